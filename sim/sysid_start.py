"""Where the fit of `sim.sysid` begins: by linear regression, which has no local minima.

A servo of stiffness k and damping d, late by a delay, moves its joint so that at each time

    command(t - delay) - q = tau / k + (d / k) v + (dry / k) sign(v) - offset

where tau is what it takes to accelerate the arm, by inverse dynamics (as Gautier and Khalil do for
inertias, IEEE Transactions on Robotics and Automation 6(3), 1990). Beside the delay, which is tried
in steps, the unknowns 1/k, d/k, dry/k and offset are linear.
"""

from __future__ import annotations

import mujoco
import numpy as np
from scipy.optimize import lsq_linear, minimize_scalar
from scipy.signal import butter, sosfiltfilt

from bench_tasks.excitation import Excitation
from bench_tasks.robots.dynamics import MAX_DELAY_S
from bench_tasks.vocabulary import ARMS

__all__ = ["regression"]

CUT_OFF_HZ = 8.0
"""Above what arms move with, below what is noise in the second difference of positions."""
DELAY_STEP_S = 0.01
REST_RAD_S = 0.01
"""Below this speed it is not sure which way a joint moves."""
EDGE_S = 0.5


def regression(
    told: Excitation, model: mujoco.MjModel, q_rows: np.ndarray, v_rows: np.ndarray,
    start: np.ndarray, low: np.ndarray, high: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """1/k, d/k, dry/k, offset of each joint (4, n) within `low` and `high`; delays of two arms.

    `start` (nq,) is a posture, into which the recorded joints are put at `q_rows`; `v_rows` are the
    same joints' rows of qvel.
    """
    velocity, torque = _dynamics(told, model, q_rows, v_rows, start)
    middle = (told.time_s > EDGE_S) & (told.time_s < told.time_s[-1] - EDGE_S)
    known = np.stack(
        [torque, velocity, np.tanh(velocity / REST_RAD_S), np.full_like(velocity, -1.0)], axis=2
    )[middle]
    scale = np.abs(known).max(axis=0) + 1e-12
    # What is behind in other directions than these few is the same whatever the unknowns are.
    reduced = [np.linalg.qr(one) for one in np.moveaxis(known / scale, 1, 0)]

    def best(joint: int, delay_s: float) -> tuple[float, np.ndarray]:
        late = np.interp(told.time_s - delay_s, told.time_s, told.command[:, joint])
        behind, (few, small) = (late - told.measured[:, joint])[middle], reduced[joint]
        box = low[:, joint] * scale[joint], high[:, joint] * scale[joint]
        found = lsq_linear(small, few.T @ behind, box).x / scale[joint]
        return float(((known[:, joint] @ found - behind) ** 2).sum()), found

    parts, delays = [], []
    for arm in np.split(np.arange(len(v_rows)), len(ARMS)):

        def error(delay_s: float, arm: np.ndarray = arm) -> float:
            return sum(best(joint, delay_s)[0] for joint in arm)

        tried = np.arange(0.0, MAX_DELAY_S + 1e-9, DELAY_STEP_S)
        near = tried[np.argmin([error(delay_s) for delay_s in tried])]
        # A delay that is off by little makes joints of little inertia look much too soft.
        ends = max(near - DELAY_STEP_S, 0.0), min(near + DELAY_STEP_S, MAX_DELAY_S)
        delays.append(minimize_scalar(error, bounds=ends, options={"xatol": 1e-5}).x)
        parts += [best(joint, delays[-1])[1] for joint in arm]
    return np.stack(parts, axis=1), np.array(delays)


def _dynamics(
    told: Excitation, model: mujoco.MjModel, q_rows: np.ndarray, v_rows: np.ndarray,
    start: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Speeds (t, n) rad/s and torques (t, n) Nm of the recorded motion, without friction."""
    even = np.linspace(0.0, told.time_s[-1], len(told.time_s))
    rate = 1.0 / even[1]
    q = np.stack([np.interp(even, told.time_s, one) for one in told.measured.T], axis=1)
    q = sosfiltfilt(butter(4, min(CUT_OFF_HZ, 0.4 * rate), fs=rate, output="sos"), q, axis=0)
    velocity = np.gradient(q, even, axis=0)
    acceleration = np.gradient(velocity, even, axis=0)
    dry = model.dof_frictionloss.copy()
    model.dof_frictionloss[:] = 0.0
    data, torque = mujoco.MjData(model), np.zeros_like(q)
    data.qpos[:] = start
    for row in range(len(q)):
        data.qpos[q_rows], data.qvel[v_rows], data.qacc[v_rows] = (
            q[row], velocity[row], acceleration[row],
        )  # fmt: skip
        mujoco.mj_inverse(model, data)
        torque[row] = data.qfrc_inverse[v_rows]
    model.dof_frictionloss[:] = dry
    return tuple(
        np.stack([np.interp(told.time_s, even, one) for one in part.T], axis=1)
        for part in (velocity, torque)
    )  # type: ignore[return-value]
