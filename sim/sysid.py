"""Fits friction, delay and offsets of the joints, so that the simulation does what a robot did.

Output error: the recorded commands are played to the simulated arms, and the parameters are those
whose joint positions differ least from the recorded ones in the sense of least squares (Ljung,
"System Identification", 1999, chapter 7). Only positions are compared, which every robot measures;
what a robot calls effort differs from maker to maker. (`mujoco.sysid` does it too, with packages
that nothing else here needs.)
"""

from __future__ import annotations

import mujoco
import mujoco.rollout
import numpy as np
from scipy.optimize import least_squares

from bench_tasks.errors import BenchError
from bench_tasks.excitation import Excitation, Fit
from bench_tasks.robots.dynamics import MAX_DELAY_S, MAX_FRICTION, MAX_OFFSET_RAD, Dynamics
from sim.fr3 import FR3Body, servo_damping, set_friction
from sim.scene import PHYSICS_STEP_S, build_cell

__all__ = ["Replay", "fit"]

JOINTS = 14
BEGIN_S = 0.5
"""What comes before is not compared: how a joint sticks at rest depends on what was before."""
BLOCK_S = 1.0
"""Errors of the model further apart than this are taken to be independent."""
STEPS = (0.05, 0.05, 1e-4, 1e-3)
"""For finite differences: viscous, dry, offset, delay."""
NEAR = (1e-2, 1e-3, 1e-5, 1e-5)
"""What is this close to the end of its range is at it."""
MAX_EVALUATIONS = 40
UNIT_RAD = 1e-3
_FULL = mujoco.mjtState.mjSTATE_FULLPHYSICS
# Friction, dry friction and offset of each joint, then the delay of each arm.
_KINDS = tuple(np.arange(k * JOINTS, (k + 1) * JOINTS) for k in range(3)) + (
    np.arange(3 * JOINTS, 3 * JOINTS + 2),
)
_ARM = np.arange(JOINTS) // 7


class Replay:
    """The simulated arms, without anything to touch, told what a recording says."""

    def __init__(self) -> None:
        """Compile the model (0.3 s)."""
        self._model = build_cell(()).model
        self._model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
        self._data = mujoco.MjData(self._model)
        self._body = FR3Body(self._model)
        self._names = self._body.embodiment.joint_names
        self._servo = servo_damping(self._model, self._names)
        dofs = self._body.v_rows
        self._rows = 1 + self._body.q_rows[:JOINTS]  # a full state begins with the time
        self._motors = [self._model.actuator(name).id for name in self._names]
        self.nominal = Dynamics(
            self._model.dof_damping[dofs].copy(), self._model.dof_frictionloss[dofs].copy(),
            np.zeros(JOINTS), np.zeros(2),
        )
        self.least_viscous = -self._servo

    def positions(self, told: Excitation, dynamics: Dynamics) -> np.ndarray:
        """Joint positions (n, 14) rad at the recording's times, starting where it does."""
        model, data = self._model, self._data
        set_friction(model, self._names, self._servo, dynamics.viscous, dynamics.dry)
        mujoco.mj_resetData(model, data)
        self._body.place(data)
        data.qpos[self._body.q_rows[:JOINTS]] = told.measured[0]
        start = np.empty(mujoco.mj_stateSize(model, _FULL))
        mujoco.mj_getState(model, data, start, _FULL)
        grid = PHYSICS_STEP_S * np.arange(round(told.time_s[-1] / PHYSICS_STEP_S) + 1)
        control = np.tile(data.ctrl, (len(grid) - 1, 1))
        for joint, motor in enumerate(self._motors):
            late = grid[1:] - dynamics.delay_s[_ARM[joint]]
            wish = np.interp(late, told.time_s, told.command[:, joint])
            control[:, motor] = wish + dynamics.offset_rad[joint]
        states, _ = mujoco.rollout.rollout(model, data, start[None], control[None])
        simulated = np.concatenate([start[None], states[0]])[:, self._rows]
        return np.stack([np.interp(told.time_s, grid, q) for q in simulated.T], axis=1)


def fit(told: Excitation, other: Excitation | None = None) -> Fit:
    """The dynamics with which the simulation follows `told` best, from its own ones on.

    They are tried on the `other` recording, which has no say in them. BenchError when there are
    no such: the recording is of something that the model has not.
    """
    replay = Replay()
    compared = told.time_s >= BEGIN_S
    measured = told.measured[compared]
    latest: dict[bytes, np.ndarray] = {}

    def residuals(x: np.ndarray) -> np.ndarray:
        if x.tobytes() in latest:
            return latest[x.tobytes()]
        apart = replay.positions(told, _dynamics(x))[compared] - measured
        latest.clear()
        latest[x.tobytes()] = (apart / UNIT_RAD).ravel()
        return latest[x.tobytes()]

    def jacobian(x: np.ndarray) -> np.ndarray:
        """By finite differences, all joints at once: each moves the others hardly at all."""
        base = residuals(x).reshape(-1, JOINTS)
        found = np.zeros((*base.shape, len(x)))
        for kind, step in zip(_KINDS, STEPS, strict=True):
            moved = x.copy()
            moved[kind] += np.where(x[kind] + step > high[kind], -step, step)
            change = residuals(moved).reshape(-1, JOINTS) - base
            for joint in range(JOINTS):
                column = kind[joint] if len(kind) == JOINTS else kind[_ARM[joint]]
                found[:, joint, column] = change[:, joint] / (moved - x)[column]
        return found.reshape(-1, len(x))

    low, high = _limits(replay.least_viscous)
    begin = _vector(replay.nominal)
    before = replay.positions(told, replay.nominal)
    begin[_KINDS[3]] = _lag(told, before)
    begin = np.clip(begin, low + 1e-6, high - 1e-6)
    found = least_squares(
        residuals, begin, jacobian, (low, high), x_scale="jac", xtol=1e-4, ftol=1e-5,
        max_nfev=MAX_EVALUATIONS,
    )  # fmt: skip
    dynamics = _dynamics(found.x)
    after = replay.positions(told, dynamics)
    if not found.success:
        raise BenchError(
            f"the fit to {told.name} did not settle: after {MAX_EVALUATIONS} simulations positions "
            f"are still {1e3 * _rms(after, told).mean():.3f} mrad apart in the mean"
        )
    free = ~_ended(found.x, low, high).any(axis=0)
    error = _standard_errors(found.jac, found.fun, told.time_s[compared], free)
    tried = other and tuple(
        _rms(replay.positions(other, one), other) for one in (replay.nominal, dynamics)
    )
    return Fit(
        dynamics, _dynamics(error), replay.nominal, _rms(before, told), _rms(after, told),
        _at_limit(found.x, low, high), tried,
    )  # fmt: skip


def _vector(dynamics: Dynamics) -> np.ndarray:
    return np.concatenate(
        [dynamics.viscous, dynamics.dry, dynamics.offset_rad, dynamics.delay_s]
    )


def _dynamics(x: np.ndarray) -> Dynamics:
    return Dynamics(*(x[kind].copy() for kind in _KINDS))


def _limits(least_viscous: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    nothing = Dynamics(
        least_viscous, np.zeros(JOINTS), np.full(JOINTS, -MAX_OFFSET_RAD), np.zeros(2)
    )
    most = Dynamics(
        np.full(JOINTS, MAX_FRICTION), np.full(JOINTS, MAX_FRICTION),
        np.full(JOINTS, MAX_OFFSET_RAD), np.full(2, MAX_DELAY_S),
    )
    return _vector(nothing), _vector(most)


def _lag(told: Excitation, simulated: np.ndarray) -> np.ndarray:
    """By how much (2,) s each arm comes later than simulated: a start for the fit."""
    lags = np.arange(0.0, MAX_DELAY_S + 1e-9, PHYSICS_STEP_S)

    def apart(arm: int, lag_s: float) -> float:
        late = np.stack([np.interp(told.time_s - lag_s, told.time_s, q) for q in simulated.T], 1)
        away = (told.measured - late)[:, _ARM == arm]
        return float(away.std(axis=0).sum())

    return np.array([lags[np.argmin([apart(arm, lag) for lag in lags])] for arm in (0, 1)])


def _standard_errors(
    jacobian: np.ndarray, residuals: np.ndarray, time_s: np.ndarray, free: np.ndarray
) -> np.ndarray:
    """Of each parameter, the larger of two estimates; 0 of what is not `free`, being at its end.

    What is not free says nothing of the others either. One estimate takes errors to be independent;
    the other, the sandwich over blocks in time (Liang and Zeger, Biometrika 73, 1986), lets those
    of one block be alike, but is too small where blocks are few.
    """
    error, jacobian = np.zeros(jacobian.shape[1]), jacobian[:, free]
    bread = np.linalg.pinv(jacobian.T @ jacobian)
    noise = (residuals.reshape(-1, JOINTS) ** 2).mean(axis=0)
    plain = jacobian.T @ (jacobian * np.tile(noise, len(time_s))[:, None])
    pull = (jacobian * residuals[:, None]).reshape(len(time_s), JOINTS, -1).sum(axis=1)
    block = ((time_s - time_s[0]) // BLOCK_S).astype(int)
    count = block[-1] + 1
    sums = np.zeros((count, jacobian.shape[1]))
    np.add.at(sums, block, pull)
    filling = sums.T @ sums * count / (count - 1)
    both = [np.diag(bread @ middle @ bread) for middle in (plain, filling)]
    error[free] = np.sqrt(np.maximum(np.max(both, axis=0), 0.0))
    return error


def _rms(simulated: np.ndarray, told: Excitation) -> np.ndarray:
    compared = told.time_s >= BEGIN_S
    return np.sqrt(((simulated - told.measured)[compared] ** 2).mean(axis=0))


def _ended(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Which parameters are at the low end of their range, which at the high one: (2, n)."""
    width = np.repeat(NEAR, [len(kind) for kind in _KINDS])
    return np.stack([x - low < width, high - x < width])


def _at_limit(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[str, ...]:
    """Parameters at the end of their range; none at all of dry friction or delay is no wonder."""
    names = [f"{what} of joint {k % 7 + 1}, {('left', 'right')[k // 7]} arm"
             for what in ("viscous friction", "dry friction", "offset") for k in range(JOINTS)]
    names += ["delay of the left arm", "delay of the right arm"]
    wanted = np.ones(len(x), bool)
    wanted[np.concatenate([_KINDS[1], _KINDS[3]])] = False
    at_low, at_high = _ended(x, low, high)
    beyond = at_high | (wanted & at_low)
    return tuple(name for name, yes in zip(names, beyond, strict=True) if yes)
