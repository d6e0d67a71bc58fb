"""Fits gains, friction, delay and offsets of joints: the simulation then does what a robot did.

Output error: the recorded commands are played to the simulated arms, and the parameters are those
whose joint positions differ least from the recorded ones in the sense of least squares (Ljung,
"System Identification", 1999, chapter 7). Only positions are compared, which every robot measures;
what a robot calls effort differs from maker to maker. (`mujoco.sysid` does it too, with packages
that nothing else here needs.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mujoco
import mujoco.rollout
import numpy as np
from scipy.optimize import lsq_linear

from bench_tasks.errors import BenchError
from bench_tasks.excitation import Excitation, Fit
from bench_tasks.robots.dynamics import MAX_DELAY_S, MAX_OFFSET_RAD, Dynamics
from bench_tasks.robots.fr3 import JOINT_NAMES
from bench_tasks.vocabulary import ARMS
from sim.fr3 import FR3Body, give_dynamics, own_dynamics
from sim.scene import PHYSICS_STEP_S, build_cell
from sim.sysid_start import regression

__all__ = ["Replay", "fit"]

JOINTS = 14
BEGIN_S = 0.5
"""What comes before is not compared: how a joint sticks at rest depends on what was before."""
BLOCK_S = 1.0
"""Errors of the model further apart than this are taken to be independent."""
SOFTEST, STIFFEST = 0.1, np.tile([15.0] * 4 + [4.0] * 3, 2)
"""Times the simulation's own stiffness; see `dynamics.MAX_STIFFNESS`.

A servo pulls by stiffness times what its command moves on in a step: at 0.7 rad/s beyond the 12 Nm
that the last three joints' motors have, were they any stiffer.
"""
LEAST_DAMPING = 0.5
"""Of the critical one. A servo with less would ring, at frequencies that 50 Hz do not show."""
MAX_LAG_S, MAX_DRY_RAD = 1.0, 0.1
STEPS = (0.02, 2e-4, 1e-5, 1e-4, 1e-3)
"""For finite differences: compliance (as a share), lag, dry friction (rad), offset, delay."""
NEAR = (1e-3, 1e-6, 1e-7, 1e-5, 1e-5)
"""What is this close to the end of its range is at it."""
MAX_ROUNDS, SETTLED, HALVINGS = 20, 1e-5, 6
"""It has settled when a round, or all shorter steps its way, take off less than this share."""
UNIT_RAD = 1e-3
_FULL = mujoco.mjtState.mjSTATE_FULLPHYSICS
# Compliance, lag, dry friction and offset of each joint, then the delay of each arm.
_KINDS = tuple(np.arange(k * JOINTS, (k + 1) * JOINTS) for k in range(4)) + (
    np.arange(4 * JOINTS, 4 * JOINTS + 2),
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
        self._rows = 1 + self._body.q_rows[:JOINTS]  # a full state begins with the time
        self._motors = [self._model.actuator(name).id for name in self._names]
        self.nominal = own_dynamics(self._model)

    def _place(self, joints: np.ndarray) -> None:
        mujoco.mj_resetData(self._model, self._data)
        self._body.place(self._data)
        self._data.qpos[self._body.q_rows[:JOINTS]] = joints

    def inertia(self, joints: np.ndarray) -> np.ndarray:
        """What each joint (14,) has to move where they stand like this, kg m^2."""
        self._place(joints)
        mujoco.mj_forward(self._model, self._data)
        full = np.zeros((self._model.nv, self._model.nv))
        mujoco.mj_fullM(self._model, self._data, full)
        return np.diag(full)[self._body.v_rows]

    def start(
        self, told: Excitation, low: np.ndarray, high: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `regression` finds them: 1/k, d/k, dry/k, offset (4, 14) and delays (2,)."""
        self._place(told.measured[0])
        rows = self._body.q_rows[:JOINTS], self._body.v_rows
        return regression(told, self._model, *rows, self._data.qpos.copy(), low, high)

    def positions(self, told: Excitation, dynamics: Dynamics) -> np.ndarray:
        """Joint positions (n, 14) rad at the recording's times, starting where it does."""
        model, data = self._model, self._data
        give_dynamics(model, dynamics)
        self._place(told.measured[0])
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


@dataclass(frozen=True)
class _Numbers:
    """What is fitted, in one vector x, and the dynamics that it stands for.

    Of each joint: by how much softer it is than the simulation's own servo, how late it follows
    (damping by stiffness, s) beyond what `LEAST_DAMPING` takes, how far dry friction holds it off
    (rad), and its offset (rad); then the delay of each arm (s). In these the positions are nearly
    linear, however stiff the robot is; and a servo's gains cannot be told from a delay by less.
    """

    own: np.ndarray
    inertia: np.ndarray

    @property
    def _least_lag(self) -> np.ndarray:
        return 2.0 * LEAST_DAMPING * np.sqrt(self.inertia / self.own)

    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and the greatest x."""
        low = (0.0, 0.0, 0.0, -MAX_OFFSET_RAD, 0.0)
        high = (1.0 / SOFTEST, MAX_LAG_S, MAX_DRY_RAD, MAX_OFFSET_RAD, MAX_DELAY_S)
        least, most = (np.repeat(ends, [len(kind) for kind in _KINDS]) for ends in (low, high))
        least[_KINDS[0]] = 1.0 / STIFFEST
        return least, most

    def vector(self, parts: np.ndarray, delay_s: np.ndarray) -> np.ndarray:
        """X of 1/k, d/k, dry/k and offset (4, 14), and of delays (2,); it may be out of limits."""
        softer = parts[0] * self.own
        late = parts[1] - self._least_lag * np.sqrt(softer)
        return np.concatenate([softer, late, parts[2], parts[3], delay_s])

    def dynamics(self, x: np.ndarray) -> Dynamics:
        """What x stands for."""
        softer, late, dry, offset, delay = (x[kind] for kind in _KINDS)
        stiffness = self.own / softer
        damping = stiffness * (late + self._least_lag * np.sqrt(softer))
        return Dynamics(stiffness, damping, dry * stiffness, offset.copy(), delay.copy())

    def slope(self, x: np.ndarray) -> np.ndarray:
        """How the dynamics, as `_flat` has them, change with x: (n, n)."""
        steps = np.repeat(STEPS, [len(kind) for kind in _KINDS]) * 1e-3
        rows = [(_flat(self.dynamics(x + d)) - _flat(self.dynamics(x - d))) / (2 * h)
                for d, h in zip(np.diag(steps), steps, strict=True)]  # fmt: skip
        return np.stack(rows, axis=1)


def _flat(dynamics: Dynamics) -> np.ndarray:
    return np.concatenate([dynamics.stiffness, dynamics.damping, dynamics.dry,
                           dynamics.offset_rad, dynamics.delay_s])  # fmt: skip


def fit(told: Excitation, other: Excitation | None = None) -> Fit:
    """The dynamics with which the simulation follows `told` best.

    They are tried on the `other` recording, which has no say in them. BenchError when there are
    no such: the recording is of something that the model has not.
    """
    replay = Replay()
    compared = told.time_s >= BEGIN_S
    measured = told.measured[compared]
    latest: dict[bytes, np.ndarray] = {}
    numbers = _Numbers(replay.nominal.stiffness, replay.inertia(told.measured.mean(axis=0)))

    def residuals(x: np.ndarray) -> np.ndarray:
        if x.tobytes() in latest:
            return latest[x.tobytes()]
        apart = replay.positions(told, numbers.dynamics(x))[compared] - measured
        latest.clear()
        latest[x.tobytes()] = (apart / UNIT_RAD).ravel()
        return latest[x.tobytes()]

    def jacobian(x: np.ndarray) -> np.ndarray:
        """By finite differences, all joints at once: each moves the others hardly at all."""
        base = residuals(x).reshape(-1, JOINTS)
        found = np.zeros((*base.shape, len(x)))
        for kind, step in zip(_KINDS, STEPS, strict=True):
            moved = x.copy()
            by = step * x[kind] if kind is _KINDS[0] else step
            moved[kind] += np.where(x[kind] + by > high[kind], -by, by)
            change = residuals(moved).reshape(-1, JOINTS) - base
            for joint in range(JOINTS):
                column = kind[joint] if len(kind) == JOINTS else kind[_ARM[joint]]
                found[:, joint, column] = change[:, joint] / (moved - x)[column]
        return found.reshape(-1, len(x))

    low, high = numbers.limits()
    begin = numbers.vector(*replay.start(told, *_bounds(numbers.own, low, high)))
    x, settled = _least_squares(residuals, jacobian, np.clip(begin, low, high), low, high)
    dynamics = numbers.dynamics(x)
    before, after = (replay.positions(told, one) for one in (replay.nominal, dynamics))
    if not settled:
        raise BenchError(
            f"the fit to {told.name} did not settle: after {MAX_ROUNDS} rounds positions "
            f"are still {1e3 * _rms(after, told).mean():.3f} mrad apart in the mean"
        )
    free = ~_ended(x, low, high).any(axis=0)
    error = _standard_errors(
        jacobian(x), residuals(x), told.time_s[compared], free, numbers.slope(x)
    )
    tried = other and tuple(
        _rms(replay.positions(other, one), other) for one in (replay.nominal, dynamics)
    )
    return Fit(
        dynamics, Dynamics(*(error[kind] for kind in _KINDS)), replay.nominal, _rms(before, told),
        _rms(after, told), _at_limit(x, low, high), tried,
    )  # fmt: skip


def _least_squares(
    residuals: Callable[[np.ndarray], np.ndarray], jacobian: Callable[[np.ndarray], np.ndarray],
    x: np.ndarray, low: np.ndarray, high: np.ndarray,
) -> tuple[np.ndarray, bool]:
    """Gauss and Newton's way from x to the least squares within bounds; whether it has settled.

    Each round solves the linear problem within the bounds exactly. Methods that keep off bounds
    take tiny steps where much begins at one, as dry friction does.
    """
    now = residuals(x)
    for _ in range(MAX_ROUNDS):
        few, small = np.linalg.qr(jacobian(x))
        scale = np.linalg.norm(small, axis=0) + 1e-12
        box = (low - x) * scale, (high - x) * scale
        step = lsq_linear(small / scale, -few.T @ now, box, method="bvls").x / scale
        for halved in range(HALVINGS):
            trial = np.clip(x + step / 2**halved, low, high)
            then = residuals(trial)
            if then @ then < now @ now:
                break
        else:
            return x, True
        before, x, now = now @ now, trial, then
        if before - now @ now < SETTLED * before:
            return x, True
    return x, False


def _bounds(own: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of 1/k, d/k, dry/k and offset (4, 14)."""
    parts = [np.stack([x[kind] for kind in _KINDS[:4]]) for x in (low, high)]
    for part in parts:
        part[0] /= own
    return parts[0], parts[1]


def _standard_errors(
    jacobian: np.ndarray, residuals: np.ndarray, time_s: np.ndarray, free: np.ndarray,
    slope: np.ndarray,
) -> np.ndarray:
    """Of what changes with the parameters by `slope` (m, n), the larger of two estimates.

    0 of what depends on none that is `free`: it is at the end of its range.

    What is not free says nothing of the others either. One estimate takes errors to be independent;
    the other, the sandwich over blocks in time (Liang and Zeger, Biometrika 73, 1986), lets those
    of one block be alike, but is too small where blocks are few.
    """
    jacobian, slope = jacobian[:, free], slope[:, free]
    bread = np.linalg.pinv(jacobian.T @ jacobian)
    noise = (residuals.reshape(-1, JOINTS) ** 2).mean(axis=0)
    plain = jacobian.T @ (jacobian * np.tile(noise, len(time_s))[:, None])
    pull = (jacobian * residuals[:, None]).reshape(len(time_s), JOINTS, -1).sum(axis=1)
    block = ((time_s - time_s[0]) // BLOCK_S).astype(int)
    count = block[-1] + 1
    sums = np.zeros((count, jacobian.shape[1]))
    np.add.at(sums, block, pull)
    filling = sums.T @ sums * count / (count - 1)
    both = [np.diag(slope @ bread @ middle @ bread @ slope.T) for middle in (plain, filling)]
    return np.sqrt(np.maximum(np.max(both, axis=0), 0.0))


def _rms(simulated: np.ndarray, told: Excitation) -> np.ndarray:
    compared = told.time_s >= BEGIN_S
    return np.sqrt(((simulated - told.measured)[compared] ** 2).mean(axis=0))


def _ended(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Which parameters are at the low end of their range, which at the high one: (2, n)."""
    width = np.repeat(NEAR, [len(kind) for kind in _KINDS])
    return np.stack([x - low < width, high - x < width])


def _at_limit(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[str, ...]:
    """What the fit would take further; none at all of dry friction or delay is no wonder."""
    at_low, at_high = _ended(x, low, high)
    said = (
        ("greatest stiffness", "least stiffness"), ("least damping", "greatest lag"),
        ("", "greatest dry friction"), ("least offset", "greatest offset"),
    )  # fmt: skip
    found = [
        f"{name} of {', '.join(JOINT_NAMES[joint] for joint in np.flatnonzero(at[kind]))}"
        for kind, names in zip(_KINDS, said, strict=False)
        for name, at in zip(names, (at_low, at_high), strict=True) if name and at[kind].any()
    ]  # fmt: skip
    found += [f"greatest delay of the {arm} arm"
              for arm, column in zip(ARMS, _KINDS[4], strict=True) if at_high[column]]  # fmt: skip
    return tuple(found)
