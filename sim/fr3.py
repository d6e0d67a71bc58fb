"""How the world moves and reads two FR3 with hands."""

from __future__ import annotations

import mujoco
import numpy as np

from bench_tasks import embodiments
from bench_tasks.vocabulary import ARMS, CONTROL_PERIOD_NS, FR3_PAIR, MAX_OPENING_M
from sim.scene import PHYSICS_STEP_S

__all__ = ["FR3Body"]

_SUBSTEPS = round(CONTROL_PERIOD_NS * 1e-9 / PHYSICS_STEP_S)
_RAMP = np.arange(1, _SUBSTEPS + 1)[:, None] / _SUBSTEPS


class FR3Body:
    """Position servos follow the targets linearly within a control period."""

    embodiment = embodiments.get(FR3_PAIR)
    settle_s = 0.4
    memory: np.ndarray | None = None

    def __init__(self, model: mujoco.MjModel) -> None:
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

    def place(self, data: mujoco.MjData) -> np.ndarray:
        """Put the arms at home; returns the command (16,) that keeps them there."""
        command = self.embodiment.home.copy()
        data.qpos[self._q_arm] = command[self.embodiment.joint_columns]
        data.qpos[self._q_finger] = MAX_OPENING_M / 2
        data.ctrl[:] = (command * self._scale)[self._ctrl_of_action]
        return command

    def advance(self, data: mujoco.MjData, command: np.ndarray, target: np.ndarray) -> np.ndarray:
        """One control period; returns the action (16,) that was executed: `target` in limits."""
        model, step, ctrl = self._model, mujoco.mj_step, data.ctrl
        target = np.minimum(np.maximum(target, self._low), self._high)
        begin = command * self._scale
        ramp = begin + _RAMP * (target * self._scale - begin)
        for row in ramp[:, self._ctrl_of_action]:
            ctrl[:] = row
            step(model, data)
        return target

    def effort(self, data: mujoco.MjData) -> np.ndarray:
        """Torques (14,) Nm of the arms' motors."""
        return data.qfrc_actuator[self.v_rows]

    def opening(self, fingers: np.ndarray) -> np.ndarray:
        """Openings (2,) m from the positions (4,) of the fingers."""
        return fingers[:2] + fingers[2:]
