"""The Unitree G1 in MuJoCo: its motors, balanced by a policy, and the cell with its table."""

from __future__ import annotations

import mujoco
import numpy as np

from bench_tasks.robots import embodiments, g1
from bench_tasks.robots.balance import Balance
from bench_tasks.tasks.base import ObjectSpec
from bench_tasks.vocabulary import ARMS, CONTROL_PERIOD_NS, ROBOT_PART, ObjectInfo
from sim.objects import build
from sim.scene import PHYSICS_STEP_S, Cell, add_camera, camera_axes, finished, new_spec

__all__ = ["G1Body", "build_g1_cell"]

TABLE_EDGE_M = 0.24
"""The near edge of the table, in front of the pelvis: clear of the toes and knees."""
TABLE_DEPTH_M, TABLE_WIDTH_M, TABLE_THICKNESS_M = 0.6, 1.2, 0.04
_FOOT_FRICTION = (0.6, 0.005, 0.0001)
"""As in mjlab's training of the G1."""
_SUBSTEPS = round(CONTROL_PERIOD_NS * 1e-9 / PHYSICS_STEP_S)
_RAMP = np.arange(1, _SUBSTEPS + 1)[:, None] / _SUBSTEPS


def _robot(pretty: bool) -> mujoco.MjSpec:
    robot = mujoco.MjSpec.from_string(g1.mjcf(meshes=pretty))
    for geom in robot.geoms:
        if geom.classname.name == "visual":
            continue
        foot = "_foot" in geom.name
        hand = geom.name.endswith("hand_collision")
        geom.group = 3 if pretty else 0
        geom.rgba = [0.2, 0.2, 0.22, 1.0] if foot or hand else [0.78, 0.79, 0.81, 1.0]
        geom.condim, geom.priority = (3, 1) if foot else (4, 1) if hand else (1, 0)
        if foot:
            geom.friction = _FOOT_FRICTION
        if hand:  # rubber
            geom.friction = [1.0, 0.02, 0.001]
    for name, armature, effort, kp, kd in zip(
        g1.JOINT_NAMES, g1.ARMATURE, g1.EFFORT_NM, _gains(0), _gains(1), strict=True
    ):
        joint = robot.joint(name)
        joint.armature, joint.frictionloss = armature, 0.1
        robot.add_actuator(
            name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT,
            gaintype=mujoco.mjtGain.mjGAIN_FIXED, biastype=mujoco.mjtBias.mjBIAS_AFFINE,
            gainprm=[kp] + [0.0] * 9, biasprm=[0.0, -kp, -kd] + [0.0] * 7,
            forcelimited=True, forcerange=[-effort, effort],
        )
    for arm in ARMS:
        hand = robot.body(f"{arm}_wrist_yaw_link")
        hand.add_site(
            name=f"{arm}_tcp", pos=g1.TCP_POSE[:3].tolist(), quat=g1.TCP_POSE[3:].tolist(),
            size=[0.004, 0.004, 0.004], group=4,
        )
        add_camera(hand, f"{arm}_wrist", [0.03, 0.0, 0.06], [0, -1, 0, 0.5, 0, 0.866], 75.0)
    # Where the G1 has its depth camera: in the head, looking down at what is in front.
    add_camera(
        robot.body("torso_link"), "head", [0.06, 0.0, 0.43], [0, -1, 0, 0.74, 0, 0.67], 70.0
    )
    return robot


def _gains(which: int) -> np.ndarray:
    legs, upper = ((g1.KP, g1.UPPER_KP), (g1.KD, g1.UPPER_KD))[which]
    return np.concatenate([legs[: g1.LEGS], upper])


def build_g1_cell(
    objects: tuple[ObjectSpec, ...], table_height_m: float, pretty: bool = False,
    scale: float = 1.0,
) -> Cell:
    """Compile the robot before a table whose top is this high above the floor.

    The world frame's origin is on the plane of the table top, above the floor between the feet.
    """
    extent = ([0.2, 0.0, 0.1 - table_height_m / 2], 1.6)
    spec = new_spec("g1", pretty, extent, _robot(pretty))
    # With the pair's 10 the feet's many contacts take several times as long; with 1 what palms hold
    # creeps, unless what slips is solved once more.
    spec.option.impratio, spec.option.noslip_iterations = 1.0, 3
    world = spec.worldbody
    middle = TABLE_EDGE_M + TABLE_DEPTH_M / 2
    world.add_geom(
        name="table", type=mujoco.mjtGeom.mjGEOM_BOX,
        pos=[middle, 0.0, -TABLE_THICKNESS_M / 2],
        size=[TABLE_DEPTH_M / 2, TABLE_WIDTH_M / 2, TABLE_THICKNESS_M / 2],
        rgba=[0.72, 0.62, 0.50, 1.0], friction=[0.9, 0.01, 0.0005], condim=4,
    )
    legs_m = (table_height_m - TABLE_THICKNESS_M) / 2
    for side in (-1.0, 1.0):
        world.add_geom(
            type=mujoco.mjtGeom.mjGEOM_BOX,
            pos=[middle + 0.2, side * (TABLE_WIDTH_M / 2 - 0.05), -TABLE_THICKNESS_M - legs_m],
            size=[0.05, 0.03, legs_m], rgba=[0.3, 0.3, 0.32, 1.0], contype=0, conaffinity=0,
        )
    world.add_geom(
        name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, pos=[0, 0, -table_height_m],
        size=[3, 3, 0.1], rgba=[0.35, 0.38, 0.42, 1.0],
    )
    third = [1.9, -1.5, 0.9]
    add_camera(world, "third", third, camera_axes(third, [0.1, 0.0, 0.4 - table_height_m]), 45.0)
    pelvis = ObjectInfo(g1.PELVIS, ROBOT_PART, "gray", (0.1, 0.1, 0.1))
    infos = (pelvis, *(build(spec, item, scale) for item in objects))
    parts = [f"{arm}_{part}" for arm in ARMS for part in ("arm", "hand", "finger1", "finger2")]
    # No geom of rubber hands is a finger: what asks for fingers gets the answer of none.
    parts += ["body", "left_foot", "right_foot"]
    return finished(spec, infos, parts, _part, pretty)


def _part(body: str, geom: str) -> str:
    """Which part of the robot a geom is."""
    for arm in ARMS:
        if geom == f"{arm}_hand_collision":
            return f"{arm}_hand"
        if body == f"{arm}_ankle_roll_link":
            return f"{arm}_foot"
        if body.startswith((f"{arm}_shoulder", f"{arm}_elbow", f"{arm}_wrist")):
            return f"{arm}_arm"
    return "body"


class G1Body:
    """Waist and arms follow the actions; the legs do as the balance policy says.

    Motors are position servos, waist and arms at `g1.UPPER_KP` with what gravity asks of them fed
    forward, the legs at the policy's gains.
    """

    embodiment = embodiments.get("g1")
    settle_s = 1.0

    def __init__(self, model: mujoco.MjModel, balance: str = "ppo") -> None:
        """Find its joints in a compiled cell and load the balance policy."""
        self._model = model
        self._balance = Balance(balance)
        joints = [model.joint(name) for name in g1.JOINT_NAMES]
        self.q_rows = np.array([j.qposadr[0] for j in joints])
        self.v_rows = np.array([j.dofadr[0] for j in joints])
        base = model.joint(f"{g1.PELVIS}_free")
        self._quat = slice(base.qposadr[0] + 3, base.qposadr[0] + 7)
        self._spin = slice(base.dofadr[0] + 3, base.dofadr[0] + 6)
        self._ctrl = np.array([model.actuator(name).id for name in g1.JOINT_NAMES])
        self._upper = self.v_rows[g1.LEGS :]
        # Pinocchio would do on a real robot; the simulation has it at hand.
        self._pelvis = model.body(g1.PELVIS).id
        self._waist = model.body("waist_yaw_link").id
        mass = model.body_subtreemass
        self._share = float(mass[self._waist] / mass[self._pelvis])
        self._usual_m = self._default_center()
        self._soles = [
            model.geom(f"{side}_foot{k}_collision").id for side in ARMS for k in range(1, 8)
        ]

    def _default_center(self) -> np.ndarray:
        data = mujoco.MjData(self._model)
        data.qpos[self.q_rows] = g1.DEFAULT_RAD
        mujoco.mj_kinematics(self._model, data)
        mujoco.mj_comPos(self._model, data)
        return self._center(data)

    def _center(self, data: mujoco.MjData) -> np.ndarray:
        """Centre of mass (3,) of all above the waist in the pelvis' frame, m."""
        offset = data.subtree_com[self._waist] - data.xpos[self._pelvis]
        return data.xmat[self._pelvis].reshape(3, 3).T @ offset

    def place(self, data: mujoco.MjData) -> np.ndarray:
        """Stand it on the floor, arms at home; returns the command (19,) that keeps it there."""
        self._balance.reset()
        command = self.embodiment.home.copy()
        data.qpos[self.q_rows] = g1.DEFAULT_RAD
        data.qpos[self.q_rows[g1.LEGS :]] = command[self.embodiment.joint_columns]
        base = self._quat.start - 3
        data.qpos[base : base + 7] = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
        mujoco.mj_kinematics(self._model, data)
        # Of a sole's capsules the lower end counts, as long as the foot is flat.
        lowest = min(
            float(data.geom_xpos[k, 2] - self._model.geom_size[k, 0]) for k in self._soles
        )
        data.qpos[base + 2] = self._model.geom("floor").pos[2] - lowest
        data.ctrl[self._ctrl] = data.qpos[self.q_rows]
        return command

    def advance(self, data: mujoco.MjData, command: np.ndarray, target: np.ndarray) -> np.ndarray:
        """One control period; returns the action (19,) that was executed: `target` in limits."""
        robot, model = self.embodiment, self._model
        target = np.minimum(np.maximum(target, robot.low), robot.high)
        wanted = self.balanced(data)
        begin = np.tile(wanted, (_SUBSTEPS, 1))
        columns = robot.joint_columns
        before, after = command[columns], target[columns]
        begin[:, g1.LEGS :] = before + _RAMP * (after - before)
        for row in begin:
            data.ctrl[self._ctrl] = row
            data.qfrc_applied[self._upper] = data.qfrc_bias[self._upper]
            mujoco.mj_step(model, data)
        return target

    def balanced(self, data: mujoco.MjData) -> np.ndarray:
        """Targets (29,) rad of the balance policy, the legs' first, for the next period."""
        model = self._model
        # Centres of mass and gravity's torques of this very state: after `restore` they are others.
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_comVel(model, data)
        mujoco.mj_rne(model, data, 0, data.qfrc_bias)
        return self._balance.targets(
            data.qpos[self._quat], data.qvel[self._spin], data.qpos[self.q_rows],
            data.qvel[self.v_rows], self._share * (self._center(data) - self._usual_m)[:2],
        )

    def effort(self, data: mujoco.MjData) -> np.ndarray:
        """Torques (29,) Nm of the motors."""
        return (data.qfrc_actuator + data.qfrc_applied)[self.v_rows]

    def opening(self, _: np.ndarray) -> np.ndarray:
        """There is nothing to open."""
        return np.zeros(2)

    @property
    def memory(self) -> np.ndarray:
        """What must be kept beside the physics to go on from a moment exactly."""
        return self._balance.last.copy()

    @memory.setter
    def memory(self, value: np.ndarray) -> None:
        self._balance.last = value.copy()
