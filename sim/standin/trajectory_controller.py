"""Two ideal arms behind ros2_control's JointTrajectoryController, as far as a stand-in needs it.

What it takes and what it does with it: ros-controls/ros2_controllers, joint_trajectory_controller/
src (joint_trajectory_controller.cpp, trajectory.cpp). Unlike that it says why it does not take a
trajectory, and its joint stops as an FR3's does when what it is told is beyond its limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

__all__ = ["Point", "TrajectoryController", "coefficients", "on_quintic"]

MAX_VELOCITY = np.array([2.62, 2.62, 2.62, 2.62, 5.26, 4.18, 5.26])
MAX_ACCELERATION = 10.0
MAX_STEP_RAD_S = 0.012
"""A change of velocity in a millisecond that is none of these accelerations."""
CYCLE_NS = 1_000_000


@dataclass(frozen=True)
class Point:
    """Positions, velocities and accelerations (each (n,)) at `ns` from the start."""

    ns: int
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray


def coefficients(first: Point, second: Point) -> np.ndarray:
    """(6, n) of the quintic between two points, in the time since the first."""
    span = (second.ns - first.ns) / 1e9
    ends = np.stack([first.q, first.v, first.a, second.q, second.v, second.a])
    powers = np.array([
        [1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 2, 0, 0, 0],
        [span**k for k in range(6)],
        [0, *(k * span ** (k - 1) for k in range(1, 6))],
        [0, 0, *(k * (k - 1) * span ** (k - 2) for k in range(2, 6))],
    ])  # fmt: skip
    return np.linalg.solve(powers, ends)


def on_quintic(c: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray]:
    """Position and velocity."""
    return (
        np.array([t**k for k in range(6)]) @ c,
        np.array([0.0, *(k * t ** (k - 1) for k in range(1, 6))]) @ c,
    )


@dataclass
class TrajectoryController:
    """One arm's: `take` a trajectory, `run` to a time."""

    names: Sequence[str]
    q: np.ndarray
    now_ns: int
    v: np.ndarray = field(default_factory=lambda: np.zeros(7))
    reflex: str = ""
    stuck: bool = False
    tolerance_rad: float = 0.2
    """Of the path; a joint further away makes it hold where it is."""
    held: int = 0
    """How often that happened."""
    late_ns: int = 0
    """After its start the last trajectory came."""
    _points: list[Point] = field(default_factory=list)
    _start_ns: int = 0
    _curves: dict[int, np.ndarray] = field(default_factory=dict)

    def take(
        self, names: Sequence[str], start_ns: int, points: Sequence[Point], at_ns: int
    ) -> str:
        """Replace the trajectory. Returns why it is not taken, "" when it is."""
        if sorted(names) != sorted(self.names):
            return "joints don't match the controller's"
        if start_ns and points and start_ns + points[-1].ns < at_ns:
            return "it ends in the past"
        for k, point in enumerate(points):
            if k and point.ns <= points[k - 1].ns:
                return f"time between points {k - 1} and {k} is not strictly increasing"
            if any(len(part) != len(names) for part in (point.q, point.v, point.a)):
                return f"mismatch of sizes at point {k}"
        if not points:
            return "no points"
        if np.abs(points[-1].v).max() > 1e-7:
            return "the velocity at its end is not zero"
        order = [list(names).index(name) for name in self.names]
        self._points = [Point(p.ns, p.q[order], p.v[order], p.a[order]) for p in points]
        self._start_ns, self._curves = start_ns or at_ns, {}
        ahead_ns = self.now_ns - self._start_ns
        self.late_ns = at_ns - self._start_ns
        if self._points[0].ns > ahead_ns + CYCLE_NS:  # from here to where the first point is
            self._points.insert(0, Point(ahead_ns, self.q, self.v, np.zeros(7)))
        return ""

    def _wanted(self, ns: int) -> tuple[np.ndarray, np.ndarray]:
        """Position and velocity that the trajectory has at a time."""
        if not self._points:
            return self.q, np.zeros(7)
        ahead = max(ns - self._start_ns, self._points[0].ns)
        for k, (first, second) in enumerate(zip(self._points, self._points[1:], strict=False)):
            if first.ns <= ahead < second.ns:
                if k not in self._curves:
                    self._curves[k] = coefficients(first, second)
                return on_quintic(self._curves[k], (ahead - first.ns) / 1e9)
        return self._points[-1].q, np.zeros(7)

    def run(self, to_ns: int) -> None:
        """Each millisecond until a time; a reflex ends all motion."""
        while self.now_ns + CYCLE_NS <= to_ns:
            self.now_ns += CYCLE_NS
            if self.reflex:
                self.v = np.zeros(7)
                continue
            q, v = self._wanted(self.now_ns)
            if np.abs(q - self.q).max() > self.tolerance_rad:
                self.held += 1
                self._points = []
                q, v = self.q, np.zeros(7)
            elif not self.stuck:
                self._judge(q, v)
            if self.stuck or self.reflex:
                q, v = self.q, np.zeros(7)
            self.q, self.v = q, v

    def _judge(self, q: np.ndarray, v: np.ndarray) -> None:
        fast = np.abs(q - self.q) / 1e-3 > 1.02 * MAX_VELOCITY + 0.02
        jumps = np.abs(v - self.v)
        since_ms = (self.now_ns - self._start_ns) / 1e6
        if fast.any():
            self.reflex = f"joint_velocity_violation at {self.names[int(fast.argmax())]}"
        elif jumps.max() > MAX_STEP_RAD_S:
            self.reflex = (
                f"joint_motion_generator_acceleration_discontinuity at "
                f"{self.names[int(jumps.argmax())]}: {jumps.max():.3f} rad/s in a millisecond, "
                f"{since_ms:.0f} ms after the trajectory's start, which came after "
                f"{self.late_ns / 1e6:.0f} ms"
            )
