"""How the world moves and reads two FR3 with hands."""

from __future__ import annotations

import mujoco
import numpy as np

from bench_tasks.robots import embodiments
from bench_tasks.robots.dynamics import MAX_DELAY_S, Dynamics
from bench_tasks.vocabulary import ARMS, CONTROL_PERIOD_NS, FR3_PAIR, MAX_OPENING_M
from sim.scene import PHYSICS_STEP_S

__all__ = ["FR3Body", "give_dynamics", "own_dynamics"]

_SUBSTEPS = round(CONTROL_PERIOD_NS * 1e-9 / PHYSICS_STEP_S)
_RAMP = np.arange(1, _SUBSTEPS + 1)[:, None] / _SUBSTEPS
_PAST = round(MAX_DELAY_S * 1e9 / CONTROL_PERIOD_NS)
"""Commands that are remembered: as many as the longest delay takes."""


def give_dynamics(model: mujoco.MjModel, dynamics: Dynamics) -> None:
    """Give a compiled cell the servos and the friction of `dynamics`."""
    rows = (dynamics.stiffness, dynamics.damping, dynamics.dry)
    joints = embodiments.get(FR3_PAIR).joint_names
    for name, stiffness, damping, dry in zip(joints, *rows, strict=True):
        motor = model.actuator(name)
        motor.gainprm[0], motor.biasprm[1:3] = stiffness, (-stiffness, -damping)
        model.dof_frictionloss[model.joint(name).dofadr[0]] = dry


def own_dynamics(model: mujoco.MjModel) -> Dynamics:
    """What a cell has that was given none."""
    robot = embodiments.get(FR3_PAIR)
    motors = [model.actuator(name) for name in robot.joint_names]
    dry = [model.dof_frictionloss[model.joint(name).dofadr[0]] for name in robot.joint_names]
    none = np.zeros(len(motors))
    return Dynamics(
        np.array([-m.biasprm[1] for m in motors]), np.array([-m.biasprm[2] for m in motors]),
        np.array(dry), none, np.zeros(len(ARMS)),
    )  # fmt: skip


def _late_ramp(delay_s: float) -> np.ndarray:
    """Weights (substeps, past + 2) of the last commands in what a late servo follows.

    The last two commands are those that the control period begins and ends with.
    """
    knots = np.arange(-_PAST, 2)
    at = _RAMP[:, 0] - delay_s * 1e9 / CONTROL_PERIOD_NS
    return np.stack([np.interp(at, knots, one) for one in np.eye(len(knots))], axis=1)


class FR3Body:
    """Position servos follow the targets linearly within a control period.

    With `dynamics` they do so late and settle beside their targets; its gains and friction are the
    model's (`give_dynamics`).
    """

    embodiment = embodiments.get(FR3_PAIR)
    settle_s = 0.4
    memory: np.ndarray | None = None
    """With a delay the commands (n, 16) before the last, which may not have taken effect yet."""

    def __init__(self, model: mujoco.MjModel, dynamics: Dynamics | None = None) -> None:
        """Find its joints and actuators in a compiled cell."""
        self._model = model
        robot = self.embodiment
        joints = [model.joint(name) for name in robot.joint_names]
        self.v_rows = np.array([j.dofadr[0] for j in joints])
        self._q_arm = np.array([j.qposadr[0] for j in joints])
        fingers = [[f"{arm}_finger_joint{k}" for k in (1, 2)] for arm in ARMS]
        self._q_finger = np.array([[model.joint(n).qposadr[0] for n in pair] for pair in fingers])
        self.q_rows = np.concatenate([self._q_arm, self._q_finger.T.ravel()])
        order = []
        for arm in ARMS:
            order += [model.actuator(f"{arm}_fr3_joint{i}").id for i in range(1, 8)]
            order.append(model.actuator(f"{arm}_hand").id)
        self._ctrl_of_action = np.argsort(order)
        self._scale = np.ones(robot.action_size)
        # The hand's actuator acts on one finger's travel.
        self._scale[robot.opening_columns] = 0.5
        limits = np.stack([model.jnt_range[j.id] for j in joints])
        self._low = embodiments.with_openings(limits[:, 0], 0.0)
        self._high = embodiments.with_openings(limits[:, 1], MAX_OPENING_M)
        self._offset, self._late = np.zeros(robot.action_size), None
        if dynamics is not None:
            self._offset[robot.joint_columns] = dynamics.offset_rad
            self._late = [_late_ramp(delay_s) for delay_s in dynamics.delay_s]

    def place(self, data: mujoco.MjData) -> np.ndarray:
        """Put the arms at home; returns the command (16,) that keeps them there."""
        command = self.embodiment.home.copy()
        data.qpos[self._q_arm] = (command + self._offset)[self.embodiment.joint_columns]
        data.qpos[self._q_finger] = MAX_OPENING_M / 2
        data.ctrl[:] = ((command + self._offset) * self._scale)[self._ctrl_of_action]
        if self._late is not None:
            self.memory = np.tile(command, (_PAST, 1))
        return command

    def advance(self, data: mujoco.MjData, command: np.ndarray, target: np.ndarray) -> np.ndarray:
        """One control period; returns the action (16,) that was executed: `target` in limits."""
        model, step, ctrl = self._model, mujoco.mj_step, data.ctrl
        target = np.minimum(np.maximum(target, self._low), self._high)
        begin = command * self._scale
        ramp = begin + _RAMP * (target * self._scale - begin)
        if self._late is not None:
            ramp = self._delayed(ramp, command, target)
        for row in ramp[:, self._ctrl_of_action]:
            ctrl[:] = row
            step(model, data)
        return target

    def _delayed(self, ramp: np.ndarray, command: np.ndarray, target: np.ndarray) -> np.ndarray:
        """The ramp (substeps, 16) of the motors, with the joints' columns late and offset."""
        assert self._late is not None and self.memory is not None
        knots = np.concatenate([self.memory, command[None], target[None]])
        ramp = ramp.copy()
        for arm, late in enumerate(self._late):
            columns = slice(8 * arm, 8 * arm + 7)
            ramp[:, columns] = late @ knots[:, columns] + self._offset[columns]
        self.memory = knots[1:-1]
        return ramp

    def effort(self, data: mujoco.MjData) -> np.ndarray:
        """Torques (14,) Nm of the arms' motors."""
        return data.qfrc_actuator[self.v_rows]

    def opening(self, fingers: np.ndarray) -> np.ndarray:
        """Openings (2,) m from the positions (4,) of the fingers."""
        return fingers[:2] + fingers[2:]
