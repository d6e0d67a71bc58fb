"""Says what is wrong with commands that were executed, and shares nothing with the supervisor.

Its limits are typed from the data sheet, its differences are its own, and its collisions MuJoCo's.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from benchmarks.safety.robot import DT, HANDS, JOINTS
from sim.scene import build_cell

import mujoco  # isort: skip  # after sim, which chooses its renderer

__all__ = ["ACCELERATION", "FASTEST", "HIGH", "JERK", "LOW", "Oracle", "oracle"]

LOW = np.tile([-2.7437, -1.7837, -2.9007, -3.0421, -2.8065, 0.5445, -3.0159], 2)
HIGH = np.tile([2.7437, 1.7837, 2.9007, -0.1518, 2.8065, 4.5169, 3.0159], 2)
FASTEST = np.tile([2.62, 2.62, 2.62, 2.62, 5.26, 4.18, 5.26], 2)
ACCELERATION, JERK = 10.0, 5000.0
DEEPEST_M = 0.004
"""Convex hulls may overlap the table by 2 mm, and MuJoCo's contacts are not exact either."""


def fastest(q: np.ndarray, up: bool) -> np.ndarray:
    """Greatest speeds at positions (n, 14) towards one end, written out from the data sheet."""
    a = np.tile([0.30, 0.20, 0.20, 0.30, 0.35, 0.35, 0.35], 2)
    b = np.tile([12.0, 5.17, 7.0, 8.0, 34.0, 11.0, 34.0], 2)
    if up:
        left = np.tile([2.7501, 1.7918, 2.9065, -0.1458, 2.8101, 4.5205, 3.0196], 2) - q
    else:
        left = np.tile([2.7501, 1.7918, 2.9065, 3.0481, 2.8101, -0.54092, 3.0196], 2) + q
    return np.minimum(FASTEST, np.maximum(0.0, np.sqrt(b * np.maximum(0.0, left)) - a))


class Oracle:
    """Says what is wrong with commands that were executed, each after the other."""

    def __init__(self) -> None:
        """Build the simulated cell, whose contacts count as collisions."""
        self.model = build_cell(()).model
        self.data = mujoco.MjData(self.model)
        model, arms = self.model, ("left", "right")
        joints = [f"{arm}_fr3_joint{i}" for arm in arms for i in range(1, 8)]
        self.q = np.array([model.joint(n).qposadr[0] for n in joints])
        fingers = [[f"{arm}_finger_joint{k}" for k in (1, 2)] for arm in arms]
        self.f = np.array([[model.joint(n).qposadr[0] for n in pair] for pair in fingers])
        self.tcp = [model.site(f"{arm}_tcp").id for arm in arms]

    def wrong(
        self, commands: np.ndarray, boxes=None, jerk: float = JERK, smooth: bool = True
    ) -> str:
        """Why the commands (n, 16) are bad; "" when they are not. Whole paths, from rest.

        Not `smooth`: only where they go is judged.
        """
        if not np.isfinite(commands).all():
            return "not finite"
        q = commands[:, JOINTS]
        if (q < LOW - 1e-9).any() or (q > HIGH + 1e-9).any():
            return "position"
        if (commands[:, HANDS] < -1e-6).any() or (commands[:, HANDS] > 0.08 + 1e-6).any():
            return "gripper"
        return (self.rough(q, jerk) if smooth else "") or self.in_the_way(commands, boxes)

    def rough(self, q: np.ndarray, jerk: float) -> str:
        """Which limit of the joints' motion (n, 14) is exceeded."""
        v = (q[1:] - q[:-1]) / DT
        if (v > fastest(q[1:], True) + 1e-6).any() or (-v > fastest(q[1:], False) + 1e-6).any():
            return "velocity"
        a = (v[1:] - v[:-1]) / DT
        if np.abs(a).max(initial=0.0) > ACCELERATION + 1e-6:
            return f"acceleration {np.abs(a).max():.1f}"
        if np.abs(np.diff(a, axis=0)).max(initial=0.0) / DT > jerk + 1e-3:
            return "jerk"
        return ""

    def in_the_way(self, commands: np.ndarray, boxes) -> str:
        """What is hit or left along the way, and half way between, so that nothing is missed."""
        middle = (commands[1:] + commands[:-1]) / 2
        moved = (commands[1:] != commands[:-1]).any(axis=1)
        for row in np.concatenate([commands[1:][moved], middle[moved]]):
            found = self.touches(row) or self.outside(row, boxes)
            if found:
                return found
        return ""

    def touches(self, command: np.ndarray) -> str:
        """What touches what, deeper than hulls may."""
        self.data.qpos[self.q] = command[JOINTS]
        self.data.qpos[self.f] = command[HANDS][:, None] / 2
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_collision(self.model, self.data)
        for k in range(self.data.ncon):
            contact = self.data.contact[k]
            if contact.dist < -DEEPEST_M:
                bodies = [self.model.body(self.model.geom_bodyid[g]).name for g in contact.geom]
                return f"collision {bodies} {contact.dist * 1e3:.1f} mm"
        return ""

    def outside(self, command: np.ndarray, boxes) -> str:
        """Whether a hand is out of its box; `touches` has put the arms there."""
        for k, site in enumerate(self.tcp):
            point = self.data.site_xpos[site]
            low, high = boxes[k] if boxes is not None else ((-0.1, -1.15, 0.0), (1.0, 1.15, 1.2))
            if (point < np.array(low) - 1e-4).any() or (point > np.array(high) + 1e-4).any():
                return f"workspace {point.round(3)}"
        return ""


@cache
def oracle() -> Oracle:
    """The one of this process: it takes a second to build."""
    return Oracle()
