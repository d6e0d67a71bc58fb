"""Joint paths for one arm, their timing, and the collision check of both arms together.

Timing is minimum jerk from rest to rest (Flash and Hogan 1985): s(u) = 10u^3 - 15u^4 + 6u^5,
whose peak speed is 1.875 and peak acceleration 5.774 times those of uniform motion.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench_tasks.errors import BenchError
from bench_tasks.robots.fr3 import MAX_ACCELERATION, MAX_VELOCITY
from bench_tasks.robots.kinematics import DualArm
from bench_tasks.vocabulary import CONTROL_PERIOD_NS

__all__ = ["MotionError", "Phase", "collision_free", "gripper_phase", "joint_move", "line_move",
           "sample_pair", "slerp"]

SPEED_SCALE = 0.4
"""Share of the FR3's joint limits that planned motion uses: a calm pace that objects survive."""
LINE_SPEED_M_S = 0.35
LINE_STEP_M = 0.01
LINE_STEP_RAD = 0.1
_PEAK_SPEED, _PEAK_ACCELERATION = 1.875, 5.774
_PERIOD_S = CONTROL_PERIOD_NS * 1e-9
_CHECK_EVERY = 2


class MotionError(BenchError):
    """A motion that cannot be done; the text says why."""


@dataclass(frozen=True)
class Phase:
    """Way points (m, 8) [7 joints rad, opening m], passed evenly, and the least duration (s)."""

    points: np.ndarray
    duration_s: float

    @property
    def ticks(self) -> int:
        """Control periods that the phase needs."""
        return max(1, int(np.ceil(self.duration_s / _PERIOD_S - 1e-9)))

    def sample(self, ticks: int) -> np.ndarray:
        """Actions (ticks, 8) that pass the points in `ticks` periods, from rest to rest."""
        u = np.arange(1, ticks + 1) / ticks
        s = (10 * u**3 - 15 * u**4 + 6 * u**5) * (len(self.points) - 1)
        grid = np.arange(len(self.points))
        return np.stack([np.interp(s, grid, column) for column in self.points.T], axis=1)


def _timed(points: np.ndarray, least_s: float = 0.1) -> Phase:
    steps = np.abs(np.diff(points[:, :7], axis=0)) * (len(points) - 1)
    speed = float((steps / (MAX_VELOCITY * SPEED_SCALE)).max()) * _PEAK_SPEED
    span = np.abs(points[-1, :7] - points[0, :7])
    acceleration = np.sqrt(
        float((span / (MAX_ACCELERATION * SPEED_SCALE)).max()) * _PEAK_ACCELERATION
    )
    phase = Phase(points, max(speed, acceleration, least_s))
    # A straight TCP line bends in joint space, which the formulas above do not see.
    for _ in range(10):
        excess = _excess(phase)
        if excess <= 1.0:
            break
        phase = Phase(points, phase.ticks * _PERIOD_S * max(1.02, np.sqrt(excess)))
    return phase


def _excess(phase: Phase) -> float:
    """Peak joint speed or acceleration of the sampled motion over what is allowed."""
    track = phase.sample(phase.ticks)[:, :7]
    begin, end = np.tile(phase.points[0, :7], (2, 1)), phase.points[-1:, :7]
    speed = np.diff(np.concatenate([begin, track, end]), axis=0) / _PERIOD_S
    acceleration = np.diff(speed, axis=0) / _PERIOD_S
    return float(
        max(
            (np.abs(speed) / (MAX_VELOCITY * SPEED_SCALE)).max(),
            (np.abs(acceleration) / (MAX_ACCELERATION * SPEED_SCALE)).max(),
        )
    )


def joint_move(start: np.ndarray, joints: np.ndarray) -> Phase:
    """From action (8,) straight in joint space to `joints` (7,), the gripper as it is."""
    return _timed(np.stack([start, np.append(joints, start[7])]))


def gripper_phase(start: np.ndarray, opening_m: float, duration_s: float = 0.4) -> Phase:
    """Open or close to `opening_m` without moving the arm."""
    return Phase(np.stack([start, np.append(start[:7], opening_m)]), duration_s)


def slerp(a: np.ndarray, b: np.ndarray, share: float) -> np.ndarray:
    """Quaternion between `a` and `b` (w, x, y, z) on the shorter great circle."""
    dot = float(a @ b)
    if dot < 0.0:
        b, dot = -b, -dot
    angle = np.arccos(min(1.0, dot))
    if angle < 1e-6:
        return b
    mixed = (np.sin((1 - share) * angle) * a + np.sin(share * angle) * b) / np.sin(angle)
    return mixed / np.linalg.norm(mixed)


def line_move(kinematics: DualArm, arm: str, start: np.ndarray, pose: np.ndarray) -> Phase:
    """From action (8,) along a straight TCP line, turning evenly, to `pose` (7,).

    MotionError when a point of the line cannot be reached without jumping to another posture.
    """
    begin = kinematics.forward(arm, start[:7])
    distance = float(np.linalg.norm(pose[:3] - begin[:3]))
    turn = 2 * np.arccos(min(1.0, abs(float(begin[3:] @ pose[3:]))))
    count = max(1, int(np.ceil(max(distance / LINE_STEP_M, turn / LINE_STEP_RAD))))
    points = [np.array(start)]
    for k in range(1, count + 1):
        share = k / count
        quat = slerp(begin[3:], np.asarray(pose[3:]), share)
        target = np.concatenate([begin[:3] + share * (pose[:3] - begin[:3]), quat])
        joints = kinematics.inverse(arm, target, points[-1][:7], restarts=0)
        if joints is None or np.abs(joints - points[-1][:7]).max() > 0.35:
            where = ", ".join(f"{v:.3f}" for v in target[:3])
            raise MotionError(f"unreachable: {arm} arm cannot move in a line through ({where})")
        points.append(np.append(joints, start[7]))
    return _timed(np.array(points), max(0.1, _PEAK_SPEED * distance / LINE_SPEED_M_S))


def sample_pair(
    phases: dict[str, list[Phase]], rest: dict[str, np.ndarray], together: bool
) -> np.ndarray:
    """Actions (t, 16) of both arms; an arm without phases rests at its action (8,).

    `together`: phase by phase both take as long as the slower one. Else each goes at its own
    pace and the one that is done first waits.
    """
    tracks = {}
    for arm, own in phases.items():
        other = next((p for a, p in phases.items() if a != arm), None)
        ticks = [p.ticks for p in own]
        if together and other is not None and len(other) == len(own):
            ticks = [max(t, p.ticks) for t, p in zip(ticks, other, strict=True)]
        tracks[arm] = np.concatenate([p.sample(t) for p, t in zip(own, ticks, strict=True)])
    length = max(len(t) for t in tracks.values())
    columns = []
    for arm in ("left", "right"):
        track = tracks.get(arm)
        if track is None:
            columns.append(np.tile(rest[arm], (length, 1)))
        else:
            tail = np.tile(track[-1], (length - len(track), 1))
            columns.append(np.concatenate([track, tail]))
    return np.concatenate(columns, axis=1)


def collision_free(kinematics: DualArm, actions: np.ndarray) -> str | None:
    """What collides first along actions (t, 16), or None."""
    # From the end backwards, so that where the motion comes to rest is always looked at.
    for action in actions[::-1][::_CHECK_EVERY][::-1]:
        hit = kinematics.collision(action[:7], action[8:15], (action[7], action[15]))
        if hit is not None:
            return hit
    return None
