"""Torques of a spring and a damper at the hand, with the elbow kept by what is left of the joints.

What is told stays joint positions: the hand's displacement is the Jacobian times theirs, which is
exact for small ones, and needs no other model of the arm than the robot's own. The seventh degree
of freedom, which moves the elbow and not the hand, has a spring of its own: its torques are those
that press on nothing at the hand (Khatib 1987, "A unified approach for motion and force control").
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Spring"]

SINGULAR = 1e-3
"""Squared length (m or rad per rad) below which a direction of the hand counts as none that joints
can move it in."""


class Spring:
    """Settings as in the cell: `stiffness` and `damping` (6,) along and about the base's axes.

    N/m and Nm/rad, Ns/m and Nm s/rad; `elbow_stiffness` and `elbow_damping` in Nm/rad, Nm s/rad.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        """Take the settings."""
        self._stiffness, self._damping = (
            np.array(settings[key], dtype=float) for key in ("stiffness", "damping")
        )
        self._elbow = settings["elbow_stiffness"], settings["elbow_damping"]

    def torques(self, jacobian: np.ndarray, away: np.ndarray, slip: np.ndarray) -> np.ndarray:
        """(7,) Nm, from the hand's Jacobian (6, 7) and where (rad) and how fast (rad/s) to go."""
        force = self._stiffness * (jacobian @ away) + self._damping * (jacobian @ slip)
        own = self._elbow[0] * away + self._elbow[1] * slip
        pressing = jacobian @ own
        square = jacobian @ jacobian.T + SINGULAR * np.eye(6)
        return own + jacobian.T @ (force - np.linalg.solve(square, pressing))
