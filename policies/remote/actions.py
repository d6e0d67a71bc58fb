"""From a policy server's answer to joint targets: every number is checked before an arm moves.

Shape, type and finiteness come first; then the numbers become joint targets, which must lie within
the joints' limits; then the server's rate becomes ours, and no step may be faster than the joints.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_tasks.robots.fr3 import (
    JOINT_LIMITS_RAD,
    MAX_GRIPPER_SPEED_M_S,
    MAX_VELOCITY,
    base_position,
)
from bench_tasks.vocabulary import ACTION_SIZE, ARMS, MAX_OPENING_M, Scene, WorldState
from policies.remote.codec import WireError
from policies.remote.embodiment import Embodiment, Gripper, Vector, part_size
from policies.remote.observations import quaternion_of

__all__ = ["chunk_values", "resampled"]

LIMIT_SLACK_RAD = 1e-3
"""What float32 and a model's rounding may add to a limit; it is clipped."""
SPEED_SLACK = 1.001


def chunk_values(
    embodiment: Embodiment, reply: dict[str, Any], state: WorldState, scene: Scene
) -> np.ndarray:
    """Actions (k, 16), one per control period, from a reply to `state`.

    WireError names the first number that is wrong. What the server does not drive keeps its
    command.
    """
    parts = _parts(embodiment, reply)
    targets = _targets(embodiment, parts, state, scene)
    _check_limits(targets)
    period_s = scene.control_period_ns / 1e9
    values = resampled(state.command, targets, 1.0 / embodiment.action.rate_hz, period_s)
    if len(values) == 0:
        raise WireError(
            f"it sent {len(targets)} actions at {embodiment.action.rate_hz:g} Hz: less than one "
            f"control period of {period_s * 1e3:g} ms"
        )
    _check_speed(values, state.command, period_s)
    return _slow_grippers(values, state.command, period_s)


def _parts(embodiment: Embodiment, reply: dict[str, Any]) -> dict[str, np.ndarray]:
    """Columns (rows, n) of each part, float64, all finite and of the same number of rows."""
    action = embodiment.action
    found: dict[str, np.ndarray] = {}
    rows = 0
    for vector in action.vectors:
        array = _array(embodiment, reply, vector)
        if found and len(array) != rows:
            raise WireError(f"it sent {len(array)} rows of {vector.key[-1]} and {rows} of others")
        rows = len(array)
        at = 0
        for part in vector.parts:
            size = part_size(embodiment, part)
            found[part] = array[:, at : at + size].astype(np.float64)
            at += size
    if action.execute:
        found = {part: columns[: action.execute] for part, columns in found.items()}
    return found


def _array(embodiment: Embodiment, reply: dict[str, Any], vector: Vector) -> np.ndarray:
    array: Any = reply
    for name in vector.key:
        array = array.get(name) if isinstance(array, dict) else None
    what = "/".join(vector.key)
    if not isinstance(array, np.ndarray):
        raise WireError(f"it sent no array {what!r}")
    if array.dtype.kind != "f":
        raise WireError(f"{what} must be of a float type, it is {array.dtype}")
    width, most = embodiment.size(vector), embodiment.action.max_rows
    if array.ndim != 2 or array.shape[1] != width or not 1 <= len(array) <= most:
        raise WireError(
            f"{what} must be (1 to {most}, {width}) for {embodiment.name}, it is {array.shape}"
        )
    if not np.isfinite(array).all():
        raise WireError(f"{what} holds a number that is not finite")
    return array


def _targets(
    embodiment: Embodiment, parts: dict[str, np.ndarray], state: WorldState, scene: Scene
) -> np.ndarray:
    """Absolute joint targets and openings (rows, 16) at the server's rate."""
    rows = len(next(iter(parts.values())))
    targets = np.tile(state.command, (rows, 1)).astype(np.float64)
    for arm, joints in embodiment.joints.items():
        k = ARMS.index(arm)
        if embodiment.action.space == "joint":
            columns = [8 * k + joint for joint in joints]
            measured = state.joint_position[7 * k : 7 * k + 7][list(joints)]
            targets[:, columns] = _summed(
                embodiment, parts[f"{arm}.joints"], state.command[columns], measured
            )
        else:
            targets[:, 8 * k : 8 * k + 7] = _solved(
                embodiment, parts[f"{arm}.pose"], arm, state, scene
            )
        if f"{arm}.gripper" in parts:
            targets[:, 8 * k + 7] = _opening(
                embodiment.action.gripper, parts[f"{arm}.gripper"][:, 0], arm
            )
    return targets


def _summed(
    embodiment: Embodiment, numbers: np.ndarray, last: np.ndarray, observed: np.ndarray
) -> np.ndarray:
    action = embodiment.action
    if action.mode == "absolute":
        return numbers
    steps = numbers * action.scale
    if action.mode == "delta_from_start":
        return observed + steps
    if action.mode == "velocity":
        steps = steps / action.rate_hz
    return last + np.cumsum(steps, axis=0)


def _solved(
    embodiment: Embodiment, numbers: np.ndarray, arm: str, state: WorldState, scene: Scene
) -> np.ndarray:
    """Joints (rows, 7) that bring the TCP to the poses, by inverse kinematics."""
    from bench_tasks.robots.kinematics import dual_arm
    from bench_tasks.view import compose

    action, k = embodiment.action, ARMS.index(arm)
    arms = dual_arm()
    arms.set_base_height(scene.base_height_m)
    origin = np.zeros(3)
    if action.frame == "base":
        origin = base_position(arm) + np.array([0.0, 0.0, scene.base_height_m])
    joints = np.array(state.command[8 * k : 8 * k + 7], dtype=np.float64)
    last = start = arms.forward(arm, joints)
    if action.mode == "delta_from_start":
        start = state.ee_pose[k]
    scale = action.scale / (action.rate_hz if action.mode == "velocity" else 1.0)
    solutions = []
    for row, given in enumerate(numbers):
        if action.mode == "absolute":
            pose = np.append(given[:3] + origin, _quaternion(action.rotation, given[3:]))
        else:
            turn = _scaled(_quaternion(action.rotation, given[3:]), scale)
            of = start if action.mode == "delta_from_start" else last
            # Turned about the axes of the base, as the shift is along them.
            turned = compose(np.append(np.zeros(3), turn), np.append(np.zeros(3), of[3:]))
            pose = np.append(of[:3] + given[:3] * scale, turned[3:])
        if not np.isfinite(pose).all():
            raise WireError(f"action {row}: the {arm} pose is not finite")
        found = arms.inverse(arm, pose, joints, restarts=0)
        if found is None:
            where = ", ".join(f"{v:.4g}" for v in pose[:3])
            raise WireError(f"action {row}: the {arm} arm cannot get to ({where}) m from there")
        joints, last = found, pose
        solutions.append(found)
    return np.array(solutions)


def _quaternion(kind: str, numbers: np.ndarray) -> np.ndarray:
    try:
        return quaternion_of(kind, numbers)
    except Exception as error:  # noqa: BLE001 - scipy refuses some numbers, too
        raise WireError(f"an action's rotation is none: {error}") from None


def _scaled(quaternion: np.ndarray, scale: float) -> np.ndarray:
    from scipy.spatial.transform import Rotation

    vector = Rotation.from_quat(np.roll(quaternion, -1)).as_rotvec() * scale
    return np.roll(Rotation.from_rotvec(vector).as_quat(), 1)


def _opening(gripper: Gripper, numbers: np.ndarray, arm: str) -> np.ndarray:
    """Openings (m); WireError beyond the range and its tolerance."""
    if (gripper.closed, gripper.open) == (0.0, MAX_OPENING_M):
        share = numbers / MAX_OPENING_M
        plain = not gripper.binary
    else:
        share, plain = (numbers - gripper.closed) / (gripper.open - gripper.closed), False
    wrong = np.flatnonzero((share < -gripper.tolerance) | (share > 1.0 + gripper.tolerance))
    if len(wrong):
        raise WireError(
            f"action {wrong[0]}: the {arm} gripper is {numbers[wrong[0]]:g}, which is not between "
            f"{gripper.closed:g} (closed) and {gripper.open:g} (open)"
        )
    if plain:
        return np.clip(numbers, 0.0, MAX_OPENING_M)  # our own unit: to the bit
    if gripper.binary:
        return np.where(share > 0.5, MAX_OPENING_M, 0.0)
    return np.clip(share, 0.0, 1.0) * MAX_OPENING_M


def _check_limits(targets: np.ndarray) -> None:
    """Clip what is just beyond a joint limit, in place; WireError on more."""
    for k, arm in enumerate(ARMS):
        joints = targets[:, 8 * k : 8 * k + 7]
        low, high = JOINT_LIMITS_RAD.T
        wrong = np.argwhere((joints < low - LIMIT_SLACK_RAD) | (joints > high + LIMIT_SLACK_RAD))
        if len(wrong):
            row, joint = wrong[0]
            raise WireError(
                f"action {row}: {arm} joint {joint + 1} at {joints[row, joint]:.4g} rad is not "
                f"within {low[joint]:.3f} to {high[joint]:.3f}"
            )
        np.clip(joints, low, high, out=joints)


def resampled(
    command: np.ndarray, targets: np.ndarray, given_s: float, period_s: float
) -> np.ndarray:
    """Targets (n, 16), each to be reached `given_s` after the one before, at our period (k, 16).

    Joints go linearly from `command` through the targets; an opening counts from the end of the
    action before, since half a grip is none. What is left over at the end, less than a period,
    is not executed. At the same rate nothing changes.
    """
    if abs(given_s - period_s) < 1e-9:
        return targets
    count = int(len(targets) * given_s / period_s + 1e-6)
    at = np.arange(1, count + 1) * period_s / given_s
    known = np.arange(len(targets) + 1)
    points = np.concatenate([command[None], targets])
    values = np.empty((count, ACTION_SIZE))
    for column in range(ACTION_SIZE):
        if column % 8 == 7:
            within = np.ceil(at - 1e-6).astype(int).clip(1, len(targets)) - 1
            values[:, column] = targets[within, column]
        else:
            values[:, column] = np.interp(at, known, points[:, column])
    return values


def _check_speed(values: np.ndarray, command: np.ndarray, period_s: float) -> None:
    steps = np.diff(np.concatenate([command[None], values]), axis=0)
    for k, arm in enumerate(ARMS):
        speed = np.abs(steps[:, 8 * k : 8 * k + 7]) / period_s
        wrong = np.argwhere(speed > MAX_VELOCITY * SPEED_SLACK)
        if len(wrong):
            row, joint = wrong[0]
            raise WireError(
                f"a step of {arm} joint {joint + 1} by {steps[row, 8 * k + joint]:.3g} rad in "
                f"{period_s * 1e3:g} ms, {row * period_s:.2f} s into the chunk, is faster than "
                f"its limit of {MAX_VELOCITY[joint]:g} rad/s"
            )


def _slow_grippers(values: np.ndarray, command: np.ndarray, period_s: float) -> np.ndarray:
    """Openings follow at the speed of the hand: models say open or closed, which is no fault."""
    step = MAX_GRIPPER_SPEED_M_S * period_s
    values = values.copy()
    for column in (7, 15):
        last = command[column]
        for row in values:
            if abs(row[column] - last) > step:
                row[column] = last + np.copysign(step, row[column] - last)
            last = row[column]
    return values
