"""The simulated G1 whose motors do what reaches them from outside, as a real one's do."""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np

from bench_tasks.errors import UsageError
from bench_tasks.robots import g1
from bench_tasks.robots.embodiments import with_openings
from bench_tasks.tasks.base import Task
from bench_tasks.vocabulary import Scene, WorldState
from sim.g1 import G1Body
from sim.scene import PHYSICS_STEP_S
from sim.standin.g1_firmware import OWN_KD, OWN_KP
from sim.world import SUBSTEPS, Body, SimWorld

__all__ = ["EXCHANGE_S", "DrivenG1", "DrivenWorld", "Exchange", "added"]

Exchange = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""(measured, the rows (29, 5) of the robot's own controller) -> rows for the motors.

Measured: q, dq, tau (29 each), the pelvis' quaternion (4), rate (3), acceleration (3). A row is
position, velocity, torque, kp, kd."""
_EVERY = 2
EXCHANGE_S = _EVERY * PHYSICS_STEP_S
_GRAVITY_M_S2 = 9.81


def added(rows: np.ndarray) -> np.ndarray:
    """Torques (29,) Nm of rows beside those of position and damping: no more than a motor has."""
    return np.clip(rows[:, 2] + rows[:, 4] * rows[:, 1], -g1.EFFORT_NM, g1.EFFORT_NM)


class DrivenG1(G1Body):
    """Placed and settled as any other, then driven: 250 times a second what is measured goes out.

    Its own controller balances, and holds the arms at home.
    """

    def __init__(self, model: mujoco.MjModel, exchange: Exchange) -> None:
        """Find its joints in a compiled cell."""
        super().__init__(model)
        self._exchange, self.driven = exchange, False
        self._gains = model.actuator_gainprm.copy(), model.actuator_biasprm.copy()

    def place(self, data: mujoco.MjData) -> np.ndarray:
        """Stand it on the floor, arms at home, driven by nobody."""
        self.driven = False
        self._model.actuator_gainprm[:], self._model.actuator_biasprm[:] = self._gains
        data.qfrc_applied[:] = 0.0
        return super().place(data)

    def advance(self, data: mujoco.MjData, command: np.ndarray, target: np.ndarray) -> np.ndarray:
        """One control period; driven, `target` means nothing, and where the arms are comes back."""
        if not self.driven:
            return super().advance(data, command, target)
        own = np.zeros((len(g1.JOINT_NAMES), 5))
        own[:, 0], own[:, 3], own[:, 4] = self.balanced(data), OWN_KP, OWN_KD
        own[g1.LEGS :, 0] = g1.HOME_RAD
        for k in range(SUBSTEPS):
            if k % _EVERY == 0:
                own[g1.LEGS :, 2] = data.qfrc_bias[self._upper]
                rows = self._exchange(self._measured(data), own)
                self._set(data, rows)
            data.qfrc_applied[self.v_rows] = added(rows)
            mujoco.mj_step(self._model, data)
        return with_openings(data.qpos[self.q_rows[g1.LEGS :]], 0.0)

    def _set(self, data: mujoco.MjData, rows: np.ndarray) -> None:
        """Position servos with these gains; speed and torque are added as forces."""
        self._model.actuator_gainprm[self._ctrl, 0] = rows[:, 3]
        self._model.actuator_biasprm[self._ctrl, 1] = -rows[:, 3]
        self._model.actuator_biasprm[self._ctrl, 2] = -rows[:, 4]
        data.ctrl[self._ctrl] = rows[:, 0]

    def _measured(self, data: mujoco.MjData) -> np.ndarray:
        quat = data.qpos[self._quat]
        up = np.zeros(9)
        mujoco.mju_quat2Mat(up, quat)
        return np.concatenate([
            data.qpos[self.q_rows], data.qvel[self.v_rows], self.effort(data), quat,
            data.qvel[self._spin], _GRAVITY_M_S2 * up[6:],
        ])  # fmt: skip


class DrivenWorld(SimWorld):
    """A cell whose G1 is driven from outside as soon as it stands."""

    def __init__(self, exchange: Exchange, **options: object) -> None:
        """`options` as of SimWorld."""
        super().__init__(**options)  # pyright: ignore[reportArgumentType]
        self._exchange = exchange

    def _find_body(self) -> Body:
        assert self._task is not None
        if self._task.embodiment != "g1":
            raise UsageError(f"{self._task.name} is a task of {self._task.embodiment}, not of g1")
        return DrivenG1(self._model, self._exchange)

    def set_up(
        self, task: Task, seed: int, vary: tuple[str, ...] = ()
    ) -> tuple[Scene, WorldState]:
        """As SimWorld's; from then on the robot is driven."""
        found = super().set_up(task, seed, vary)
        assert isinstance(self._body, DrivenG1)
        self._body.driven = True
        return found
