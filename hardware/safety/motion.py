"""Commands as motion: the speeds that a path implies, how to stop on it, how to go along it slower.

A path is joint positions (n, 14) rad, one per control period, that follow the command executed
last; speed, acceleration and jerk are its differences, taken from what was executed before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

from hardware.safety.limits import Limits

__all__ = ["Breach", "Moving", "brake", "breach", "slowed", "stopped_at_end"]

_UNITS = {"velocity": "rad/s", "acceleration": "rad/s^2", "jerk": "rad/s^3", "position": "rad"}
_ROUNDING = 1.0 + 1e-6
_STOP_PERIODS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 32, 40)
_PACES = (1.0, 0.85, 0.7, 0.55, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02)
_EASINGS = (1, 3, 8, 16)
"""Periods within which the pace changes to the slower one."""
_LONGEST_PERIODS = 1000
STRAY_RAD = 0.02
"""A path that is slowed down stays as near to the one asked for, straight between its points."""


@dataclass(frozen=True)
class Breach:
    """The first and worst place where a path is beyond a limit; `row` counts its actions from 0."""

    kind: str
    row: int
    joint: int
    value: float
    limit: float

    def said(self, limits: Limits) -> str:
        """In words."""
        name, unit = limits.joint_names[self.joint], _UNITS[self.kind]
        return (f"{name}: {self.kind} {self.value:.4g} {unit} in action {self.row} "
                f"(limit {self.limit:.4g})")  # fmt: skip

    def detail(self, limits: Limits, late: int = 0) -> dict[str, Any]:
        """For the record, of a path that begins `late` actions behind the command's own."""
        return {"joint": limits.joint_names[self.joint], "row": self.row + late,
                "value": self.value, "limit": self.limit}  # fmt: skip


@dataclass(frozen=True)
class Moving:
    """Position, velocity and acceleration (14,) of the command that was executed last."""

    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray

    @classmethod
    def after(cls, commands: list[np.ndarray], period_s: float) -> Moving:
        """From joint positions (14,) executed in the last periods, oldest first; at least one."""
        last = commands[-3:]
        a, b, c = [last[0]] * (3 - len(last)) + last
        return cls(c, (c - b) / period_s, (c - 2 * b + a) / period_s**2)

    @property
    def at_rest(self) -> bool:
        """Whether the last two commands were the same."""
        return bool(np.abs(self.velocity).max() < 1e-6)


def _worst(kind: str, value: np.ndarray, limit: np.ndarray) -> Breach | None:
    limit = np.broadcast_to(limit, value.shape)
    over = np.abs(value) - (limit * _ROUNDING + 1e-9)
    if (over <= 0.0).all():  # written so that NaN is a breach
        return None
    rows = np.flatnonzero(~(over <= 0.0).all(axis=1))
    joint = int(np.argmax(np.nan_to_num(over[rows[0]], nan=np.inf)))
    row = int(rows[0])
    return Breach(kind, row, joint, float(value[row, joint]), float(limit[row, joint]))


def breach(limits: Limits, moving: Moving, path: np.ndarray) -> Breach | None:
    """Where the path (n, 14) is beyond a limit of position, velocity, acceleration or jerk."""
    low, high = limits.position.T
    outside = np.maximum(low - path, path - high)
    if not (outside <= 1e-9).all():
        row = int(np.flatnonzero(~(outside <= 1e-9).all(axis=1))[0])
        joint = int(np.argmax(np.nan_to_num(outside[row], nan=np.inf)))
        value = float(path[row, joint])
        limit = low[joint] if value < low[joint] else high[joint]
        return Breach("position", row, joint, value, float(limit))
    share, period_s = limits.commands["share"], limits.period_s
    velocity = np.diff(path, axis=0, prepend=moving.position[None]) / period_s
    acceleration = np.diff(velocity, axis=0, prepend=moving.velocity[None]) / period_s
    jerk = np.diff(acceleration, axis=0, prepend=moving.acceleration[None]) / period_s
    return (
        _worst("velocity", velocity, share * limits.speed(path, velocity > 0))
        or _worst("acceleration", acceleration, share * limits.acceleration)
        or _worst("jerk", jerk, share * limits.jerk)
    )


def stopped_at_end(limits: Limits, moving: Moving) -> np.ndarray:
    """Straight on with all joints slowing evenly to rest: positions (n, 14), n = 0 when at rest."""
    if moving.at_rest:
        return np.zeros((0, len(moving.position)))
    period_s = limits.period_s
    most = limits.commands["stop_share"] * limits.commands["share"] * limits.acceleration
    count = int(np.ceil((np.abs(moving.velocity) / (most * period_s)).max() - 1e-9))
    left = 1.0 - np.arange(1, count + 1) / count
    return moving.position + np.cumsum(left)[:, None] * moving.velocity * period_s


def brake(
    limits: Limits, moving: Moving, ahead: np.ndarray, free: Callable[[np.ndarray], int] = len
) -> np.ndarray:
    """The quickest stop within the limits, from the next period on: positions (n, 14).

    Along the path `ahead` (m, 14) if it can be, since that was checked for collisions; else
    straight on, but no farther than the first rows of it that are `free`, whatever the limits.
    """
    if moving.at_rest:
        return np.zeros((0, len(moving.position)))
    straight = stopped_at_end(limits, moving)
    if len(ahead):
        points = np.concatenate([moving.position[None], ahead])
        for count in _STOP_PERIODS:
            if count < len(straight):
                continue
            along = np.cumsum(1.0 - np.arange(1, count + 1) / count)
            path = _between(points, along)
            first = np.abs(path[0] - moving.position).max() / limits.period_s
            if first < np.abs(moving.velocity).max() and breach(limits, moving, path) is None:
                return path
    straight = np.clip(straight, limits.position[:, 0], limits.position[:, 1])
    return straight[: free(straight)]


def _between(points: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Points (n, 14) passed in turn, at fractional indices; the last one beyond the end."""
    at = np.minimum(at, len(points) - 1)
    index = np.minimum(at.astype(int), len(points) - 2)
    share = (at - index)[:, None]
    return points[index] + share * (points[index + 1] - points[index])


def slowed(limits: Limits, moving: Moving, path: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same path at the quickest of some paces that keep within the limits.

    Returns positions (m, 14) and for each the index into `path` it lies at (-1 is where the arms
    are); both empty when no pace of at least `slowest` will do.
    """
    nothing = np.zeros((0, path.shape[1])), np.zeros(0)
    points = np.concatenate([moving.position[None], path])
    steps = np.abs(np.diff(points, axis=0))
    # A step that is too long takes as long as it must; the spline spreads the change of speed.
    needed = (steps / (0.9 * limits.commands["share"] * limits.velocity * limits.period_s)).max(1)
    knots = np.concatenate([[0.0], np.cumsum(np.maximum(1.0, needed))])
    slowest = limits.commands["slowest"]
    if knots[-1] > len(path) / slowest:
        return nothing
    curve = _curve(knots, points)
    heading = (curve(np.array([1e-3])) - points[0])[0] / 1e-3 / limits.period_s
    pace_now = float(moving.velocity @ heading / max(float(heading @ heading), 1e-12))
    pace_now = min(1.0, max(0.0, pace_now))
    for pace in _PACES:
        if knots[-1] / pace > min(len(path) / slowest, _LONGEST_PERIODS) + 1e-9:
            break
        for easing in _EASINGS:
            at = _paced(pace_now, pace, easing, knots[-1])
            slower = curve(at)
            slower[-1] = path[-1]
            if breach(limits, moving, slower) is None:
                return slower, np.interp(at, knots, np.arange(len(points))) - 1.0
    return nothing


def _curve(knots: np.ndarray, points: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Smooth through the points; straight from one to the next where that would stray from them."""
    spline = CubicSpline(knots, points, bc_type="natural")
    between = np.linspace(knots[:-1], knots[1:], 5)[1:-1].ravel()

    def straight(at: np.ndarray) -> np.ndarray:
        return _between(points, np.interp(at, knots, np.arange(len(points))))

    stray = np.abs(spline(between) - straight(between)).max()
    return spline if stray <= STRAY_RAD else straight


def _paced(pace_now: float, pace: float, easing: int, end: float) -> np.ndarray:
    """Places on the way to `end`, one per period, at a pace that changes to `pace` and keeps it."""
    count = int(np.ceil(end / pace)) + easing
    left = np.maximum(0.0, 1.0 - np.arange(1, count + 1) / easing)
    at = np.cumsum(pace + (pace_now - pace) * left)
    at = at[: int(np.searchsorted(at, end - 1e-9)) + 1]
    return at * (end / at[-1])
