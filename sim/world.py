"""The simulated cell as a `World`: reset by task and seed, stepped by actions, exact to the bit."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from bench_tasks import tasks
from bench_tasks.errors import BenchError, UsageError, unknown
from bench_tasks.object_sets import Evolved, ObjectSet
from bench_tasks.robots import embodiments
from bench_tasks.robots.dynamics import Dynamics
from bench_tasks.robots.embodiments import Embodiment
from bench_tasks.robots.fr3 import HOME_RAD
from bench_tasks.robots.kinematics import dual_arm
from bench_tasks.tasks.base import Layout, ObjectSpec, Task
from bench_tasks.view import View, compose
from bench_tasks.vocabulary import (
    ARMS,
    CONTROL_PERIOD_NS,
    FR3_PAIR,
    ROBOT_PART,
    ActionChunk,
    CameraFrame,
    Scene,
    WorldState,
    numbers,
)
from sim import gl

RENDERER = gl.choose()  # before mujoco is imported: it reads the choice then

import mujoco  # noqa: E402

from sim import variation  # noqa: E402
from sim.cameras import Cameras  # noqa: E402
from sim.fr3 import FR3Body, give_dynamics  # noqa: E402
from sim.objects import check_set  # noqa: E402
from sim.scene import PHYSICS_STEP_S, Cell, build_cell  # noqa: E402

__all__ = ["RENDERER", "Saved", "SimWorld"]

SUBSTEPS = round(CONTROL_PERIOD_NS * 1e-9 / PHYSICS_STEP_S)
CACHED_CELLS = 8
"""Compiled models kept; one takes about 40 MB."""
SETTLE_SHIFT_M = 0.01
MAX_OVERLAP_M = 0.003
_STATE = mujoco.mjtState.mjSTATE_INTEGRATION


class Body(Protocol):
    """How one kind of robot is moved and read; found in a compiled cell.

    `q_rows` are addresses of what is read of it in qpos: its joints, then what `opening` takes;
    `v_rows` those of its joints in qvel. `memory` is what it keeps beside the physics.
    """

    embodiment: Embodiment
    settle_s: float
    q_rows: np.ndarray
    v_rows: np.ndarray
    memory: np.ndarray | None

    def place(self, data: mujoco.MjData) -> np.ndarray:
        """Put it in its starting posture; returns the command that keeps it there."""
        ...

    def advance(self, data: mujoco.MjData, command: np.ndarray, target: np.ndarray) -> np.ndarray:
        """One control period from `command` towards `target`; returns what was executed."""
        ...

    def effort(self, data: mujoco.MjData) -> np.ndarray:
        """Torques of the joints, Nm."""
        ...

    def opening(self, fingers: np.ndarray) -> np.ndarray:
        """Openings (2,) of the hands, m."""
        ...


@dataclass(frozen=True)
class Saved:
    """An exact snapshot: physics, the state that was reported, and the fixed objects' poses."""

    physics: np.ndarray
    state: WorldState
    task: str
    cell: str
    body_pos: np.ndarray
    body_quat: np.ndarray
    memory: np.ndarray | None


class SimWorld:
    """The robot that the task is for, at a table in MuJoCo: two FR3 arms, or a humanoid.

    `pretty` draws the visual meshes with shadows (report pictures; ten times slower). With a set
    of `objects`, an evolved one takes the place of each of its kind that a task asks for. With
    `dynamics` the arms' joints answer to commands as it says.
    """

    def __init__(
        self, pretty: bool = False, width: int = 320, height: int = 240,
        objects: ObjectSet | None = None, dynamics: Dynamics | None = None,
    ) -> None:
        """Compiles nothing before the first `reset`. UsageError on a set that cannot be built."""
        self._dynamics = dynamics
        self._pretty, self._size = pretty, (width, height)
        self._objects = objects and check_set(objects)
        self._cells: dict[str, Cell] = {}
        self._cameras: Cameras | None = None
        self._task: Task | None = None
        self.scene: Scene | None = None

    # -- setting up ------------------------------------------------------------------------------

    def reset(
        self, task: str, seed: int, vary: tuple[str, ...] = ()
    ) -> tuple[Scene, WorldState]:
        """Set up the layout of (task, seed) and return its scene and state 0.

        `vary` names the axes of scene randomisation (`vocabulary.AXES`) that are on.
        UsageError on an unknown task, or an axis that makes no sense with its robot; BenchError
        when the layout cannot be used: objects overlap, do not stay where they were put, or cannot
        be reached.
        """
        if seed < 0:
            raise UsageError(f"seed must not be negative, got {seed}")
        return self.set_up(tasks.get(task), seed, vary)

    def set_up(
        self, task: Task, seed: int, vary: tuple[str, ...] = ()
    ) -> tuple[Scene, WorldState]:
        """As `reset`, for a task that need not be registered."""
        embodiments.get(task.embodiment).check_axes(vary)
        self.scene = None  # a layout that fails must not leave the last episode to be stepped
        items = task.objects() + variation.clutter(task.name, seed, vary)
        for evolved in variation.evolved_choices(task.name, seed, items, self._objects):
            try:
                return self._set_up(task, seed, vary, items, evolved)
            except BenchError:
                # Where the task has no room for an object, the next one of its kind is tried.
                if not evolved:
                    raise
        raise AssertionError("the last choice is to change nothing")

    def _set_up(
        self, chosen: Task, seed: int, vary: tuple[str, ...], items: tuple[ObjectSpec, ...],
        evolved: dict[str, Evolved],
    ) -> tuple[Scene, WorldState]:
        task = chosen.name
        objects = tuple(replace(o, evolved=evolved.get(o.kind, o.evolved)) for o in items)
        # Two generators of one seed: the height is the first that either of them draws.
        drawn, again = (
            np.random.default_rng([seed, zlib.crc32(task.encode())]) for _ in range(2)
        )
        height_m, robot = chosen.table_height_m(drawn), embodiments.get(chosen.embodiment)
        self._load(chosen, objects, variation.size_scale(task, seed, vary), height_m)
        variation.apply(self._cell, task, seed, vary)
        layout = chosen.layout(again, {o.name: o for o in self._cell.objects})
        layout.poses.update(variation.place_clutter(task, seed, self._cell, layout))
        self._command = self._body.place(self._data)
        base = robot.base
        if base:
            names = [o.name for o in self._cell.objects]
            layout.poses[base] = self.object_poses()[names.index(base)]
        self._place(layout)
        self._settle(task, seed, layout)
        scene = Scene(
            task=task, task_version=chosen.version, seed=seed,
            instruction=variation.instruction(task, seed, vary, layout),
            objects=self._cell.objects, entities=self._cell.entities,
            joint_names=robot.joint_names, params=layout.params, vary=vary, embodiment=robot.name,
            base_height_m=-height_m if base else variation.base_height_m(task, seed, vary),
            evolved={kind: item.name for kind, item in evolved.items()},
        )
        self._data.time, self._seq = 0.0, 0
        self._state = self._observe()
        _check_reach(scene, self._state, layout)
        self.scene = scene
        self._start = self.save()
        return scene, self._state

    def restart(self) -> WorldState:
        """Back to state 0 of the present episode: time, state, controllers, sequence number."""
        self._need_episode()
        return self.restore(self._start)

    def _load(
        self, task: Task, objects: tuple[ObjectSpec, ...], scale: float, height_m: float
    ) -> None:
        key = repr((task.embodiment, height_m, objects, scale))
        if self._task is not None and key == self._key:
            self._task = task
            mujoco.mj_resetData(self._model, self._data)
            return
        if key not in self._cells:
            if len(self._cells) >= CACHED_CELLS:
                del self._cells[next(iter(self._cells))]
            self._cells[key] = self._build(task.embodiment, objects, height_m, scale)
        self._key, self._cell, self._task = key, self._cells[key], task
        self._model = self._cell.model
        self._data = mujoco.MjData(self._model)
        if self._cameras is not None:
            self._cameras.close()
            self._cameras = None
        self._index()

    def _build(
        self, robot: str, objects: tuple[ObjectSpec, ...], height_m: float, scale: float
    ) -> Cell:
        if robot == FR3_PAIR:
            cell = build_cell(objects, self._pretty, scale)
            if self._dynamics is not None:
                give_dynamics(cell.model, self._dynamics)
            return cell
        if self._dynamics is not None:
            raise UsageError(f"dynamics are those of an FR3 pair: robot {robot} takes none")
        from sim.g1 import build_g1_cell  # its model and policy are in wheels that not all need

        return build_g1_cell(objects, height_m, self._pretty, scale)

    def _find_body(self) -> Body:
        assert self._task is not None
        if self._task.embodiment == FR3_PAIR:
            return FR3Body(self._model, self._dynamics)
        from sim.g1 import G1Body

        return G1Body(self._model)

    def _index(self) -> None:
        """Addresses of everything that is read or written every period."""
        model = self._model
        self._body = self._find_body()
        self._tcp = np.array([model.site(f"{arm}_tcp").id for arm in ARMS])
        free = [o for o in self._cell.objects if not o.fixed]
        rows = [i for i, o in enumerate(self._cell.objects) if not o.fixed]
        self._free_rows = np.array(rows, dtype=int)
        addresses = [model.joint(f"{o.name}_free") for o in free]
        self._q_object = np.array(
            [np.arange(j.qposadr[0], j.qposadr[0] + 7) for j in addresses], dtype=int
        ).reshape(-1, 7)
        self._v_object = np.array(
            [np.arange(j.dofadr[0], j.dofadr[0] + 6) for j in addresses], dtype=int
        ).reshape(-1, 6)
        self._bodies = np.array([model.body(o.name).id for o in self._cell.objects], dtype=int)
        self._free_bodies = self._bodies[self._free_rows]
        # One gather per array and period: many small ones would cost a tenth of the physics.
        self._q_all = np.concatenate([self._body.q_rows, self._q_object.ravel()])
        self._v_all = np.concatenate([self._body.v_rows, self._v_object.ravel()])
        self._entity_of = self._cell.geom_entity.astype(np.intp)

    def _place(self, layout: Layout) -> None:
        missing = {o.name for o in self._cell.objects} - set(layout.poses)
        if missing:
            raise BenchError(f"the layout has no pose for {', '.join(sorted(missing))}")
        self.move_objects(layout.poses)

    def _settle(self, task: str, seed: int, layout: Layout) -> None:
        """Let things come to rest before the episode begins; BenchError where they do not."""
        where = f"layout of {task} seed {seed}"
        model, data = self._model, self._data
        mujoco.mj_forward(model, data)
        for k in range(data.ncon):
            contact = data.contact[k]
            if contact.dist < -MAX_OVERLAP_M:
                a, b = (self._cell.entities[self._cell.geom_entity[g]] for g in contact.geom)
                raise BenchError(f"{where}: {a} overlaps {b} by {-contact.dist * 1e3:.1f} mm")
        for _ in range(round(self._body.settle_s * 1e9 / CONTROL_PERIOD_NS)):
            self._body.advance(data, self._command, self._command)
        poses = self.object_poses()
        for i, item in enumerate(self._cell.objects):
            if item.kind == ROBOT_PART:
                continue
            shift = float(np.linalg.norm(poses[i, :3] - layout.poses[item.name][:3]))
            if shift > SETTLE_SHIFT_M:
                moved = f"{item.name} moved {shift * 1e3:.0f} mm before the start"
                raise BenchError(f"{where}: {moved}")
        things = [self._cell.objects[row].kind != ROBOT_PART for row in self._free_rows]
        speed = np.abs(data.qvel[self._v_object[things]]).max(initial=0.0)
        if speed > 0.05:
            raise BenchError(f"{where}: objects are not at rest ({speed:.2f} m/s or rad/s)")

    # -- running ---------------------------------------------------------------------------------

    def step(self, chunk: ActionChunk) -> list[WorldState]:
        """Execute the chunk, one control period per action, and return the state after each.

        Targets are followed linearly within the period, clipped to the joints' ranges (the
        executed command is what the state reports). BenchError on a stale or malformed chunk.
        """
        self._need_episode()
        if chunk.seq != self._seq:
            raise BenchError(f"stale action: it answers state {chunk.seq}, now is {self._seq}")
        values = np.asarray(chunk.values, dtype=np.float64)
        size = len(self._command)
        if values.ndim != 2 or values.shape[1] != size or len(values) == 0:
            raise BenchError(f"an action chunk must be (k, {size}), got {values.shape}")
        if not np.isfinite(values).all():
            raise BenchError("an action chunk holds a number that is not finite")
        return [self._advance(action) for action in values]

    def _advance(self, action: np.ndarray) -> WorldState:
        self._command = self._body.advance(self._data, self._command, action)
        self._seq += 1
        self._state = self._observe()
        return self._state

    def move_objects(self, poses: dict[str, np.ndarray]) -> None:
        """Put objects at poses (7,), at rest. UsageError on an unknown object or a wrong pose."""
        self._need_task()
        names = [o.name for o in self._cell.objects]
        for name in poses:
            if name not in names:
                raise unknown("object", name, names)
        checked = {name: numbers(f"pose of {name}", pose, (7,)) for name, pose in poses.items()}
        for name, pose in checked.items():
            row = names.index(name)
            if self._cell.objects[row].fixed:
                body = self._bodies[row]
                self._model.body_pos[body], self._model.body_quat[body] = pose[:3], pose[3:]
            else:
                k = int(np.flatnonzero(self._free_rows == row)[0])
                self._data.qpos[self._q_object[k]] = pose
                self._data.qvel[self._v_object[k]] = 0.0

    def object_poses(self) -> np.ndarray:
        """Poses (n, 7) of all objects, world frame."""
        poses = np.concatenate(
            [self._model.body_pos[self._bodies], self._model.body_quat[self._bodies]], axis=1
        )
        poses[self._free_rows] = self._data.qpos[self._q_object]
        return poses

    @property
    def state(self) -> WorldState:
        """The present state, as it was last returned."""
        self._need_episode()
        return self._state

    def _observe(self) -> WorldState:
        """Read the state. Contacts and efforts are those of the last physics step (2 ms ago)."""
        data, free = self._data, self._free_rows
        mujoco.mj_kinematics(self._model, data)
        ee = np.empty((2, 7))
        ee[:, :3] = data.site_xpos[self._tcp]
        for quat, matrix in zip(ee[:, 3:], data.site_xmat[self._tcp], strict=True):
            mujoco.mju_mat2Quat(quat, matrix)
        q, v = data.qpos[self._q_all], data.qvel[self._v_all]
        body = self._body
        known, joints = len(body.q_rows), len(body.v_rows)
        poses, velocity = q[known:].reshape(-1, 7), v[joints:].reshape(-1, 6)
        # A free joint's angular velocity is in the body's frame.
        rotations = data.xmat[self._free_bodies].reshape(-1, 3, 3)
        velocity[:, 3:] = (rotations @ velocity[:, 3:, None])[:, :, 0]
        twist = velocity
        if len(free) < len(self._bodies):
            poses, twist = self.object_poses(), np.zeros((len(self._bodies), 6))
            twist[free] = velocity
        pairs, forces = self._contacts()
        return WorldState(
            seq=self._seq,
            stamp_ns=self._seq * CONTROL_PERIOD_NS,
            joint_position=q[:joints],
            joint_velocity=v[:joints],
            joint_effort=body.effort(data),
            gripper_opening=body.opening(q[joints:known]),
            ee_pose=ee,
            command=self._command.copy(),
            object_pose=poses,
            object_twist=twist,
            contact_pair=pairs,
            contact_force=forces,
        )

    def _contacts(self) -> tuple[np.ndarray, np.ndarray]:
        """Entity pairs in contact, each once, ascending, with the summed normal force."""
        contact, force = self._data.contact, self._data.efc_force
        if not len(force) or not len(contact):
            return np.zeros((0, 2), np.uint16), np.zeros(0)
        # With elliptic cones the first constraint row of a contact is its normal; a contact that
        # is left out of the solver has none.
        row = contact.efc_address
        normal = np.maximum(np.where(row >= 0, force[row], 0.0), 0.0)
        a, b = self._entity_of[contact.geom].T
        count = len(self._cell.entities)
        key = np.minimum(a, b) * count + np.maximum(a, b)
        summed = np.bincount(key, normal)
        found = np.flatnonzero(summed)
        pairs = np.empty((len(found), 2), np.uint16)
        pairs[:, 0], pairs[:, 1] = np.divmod(found, count)
        return pairs, summed[found]

    # -- snapshots and pictures ------------------------------------------------------------------

    def save(self) -> Saved:
        """An exact snapshot, from which `restore` continues to the same bits."""
        self._need_task()
        physics = np.empty(mujoco.mj_stateSize(self._model, _STATE))
        mujoco.mj_getState(self._model, self._data, physics, _STATE)
        assert self._task is not None
        return Saved(
            physics, self._state, self._task.name, self._key,
            self._model.body_pos.copy(), self._model.body_quat.copy(), self._body.memory,
        )

    def restore(self, saved: Saved) -> WorldState:
        """Go back to a snapshot of this task and cell; BenchError if it is of another."""
        self._need_task()
        assert self._task is not None
        if saved.task != self._task.name:
            raise BenchError(f"the snapshot is of {saved.task}, not of {self._task.name}")
        if saved.cell != self._key:
            raise BenchError(
                f"the snapshot of {saved.task} is of a cell with a table or objects of another size"
            )
        self._model.body_pos[:], self._model.body_quat[:] = saved.body_pos, saved.body_quat
        mujoco.mj_setState(self._model, self._data, saved.physics, _STATE)
        self._state = saved.state
        self._seq, self._command = saved.state.seq, saved.state.command.copy()
        self._body.memory = saved.memory
        return self._state

    def capture(self, cameras: tuple[str, ...], depth: bool = False) -> tuple[CameraFrame, ...]:
        """Take one colour picture per named camera, now; with depth and calibration if asked."""
        self._need_episode()
        stamp = self._seq * CONTROL_PERIOD_NS
        return tuple(
            self.cameras.frame(self._data, camera, self._seq, stamp, depth) for camera in cameras
        )

    @property
    def cameras(self) -> Cameras:
        """The renderer, opened at first use."""
        self._need_task()
        if self._cameras is None:
            self._cameras = Cameras(self._cell, *self._size)
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_camlight(self._model, self._data)
        return self._cameras

    @property
    def model(self) -> mujoco.MjModel:
        """The compiled model of the present task."""
        self._need_task()
        return self._model

    @property
    def data(self) -> mujoco.MjData:
        """The simulation data of the present task."""
        self._need_task()
        return self._data

    def _need_task(self) -> None:
        if self._task is None:
            raise BenchError("no episode is loaded: reset(task, seed) first")

    def _need_episode(self) -> None:
        if self.scene is None:
            raise BenchError("no episode is loaded: reset(task, seed) first")


def _check_reach(scene: Scene, state: WorldState, layout: Layout) -> None:
    """BenchError when no arm that should reach an object finds a grasp on it."""
    if not layout.reach:
        return
    view, arms = View(scene, state), dual_arm()
    arms.set_base_height(scene.base_height_m)
    for name, candidates in layout.reach.items():
        if not any(
            arms.inverse(arm, compose(view.pose(name), np.array(g.pose)), HOME_RAD) is not None
            for arm in candidates
            for g in scene.object(name).grasps
        ):
            raise BenchError(
                f"layout of {scene.task} seed {scene.seed}: {name} is out of reach of "
                f"{' and '.join(candidates)}"
            )
