"""What an FR3 may be asked to do: Franka's own numbers, and how they depend on where a joint is.

Source: libfranka 0.21 (`include/franka/rate_limiting.h`, `src/joint_velocity_limits.cpp`) and the
FR3's URDF that a robot serves to its clients.
"""

from __future__ import annotations

import numpy as np

__all__ = [
    "ACCELERATION_SHARE", "LEAD_PERIODS", "MAX_ACCELERATION", "MAX_JERK", "MAX_TORQUE_NM",
    "MAX_TORQUE_RATE_NM_S", "MAX_VELOCITY", "POSITION_RAD", "SPEED_SHARE", "velocity_bounds",
]  # fmt: skip

POSITION_RAD = np.array(
    [
        [-2.7501, 2.7501],
        [-1.7918, 1.7918],
        [-2.9065, 2.9065],
        [-3.0481, -0.1458],
        [-2.8101, 2.8101],
        [0.54092, 4.5205],
        [-3.0196, 3.0196],
    ]
)
"""(7, 2) hard ends, a little outside those of the data sheet (`robots.JOINT_LIMITS_RAD`)."""
MAX_VELOCITY = np.array([2.62, 2.62, 2.62, 2.62, 5.26, 4.18, 5.26])
MAX_ACCELERATION = np.full(7, 10.0)
MAX_JERK = np.full(7, 5000.0)
MAX_TORQUE_NM = np.array([87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0])
MAX_TORQUE_RATE_NM_S = 1000.0
SPEED_SHARE, ACCELERATION_SHARE = 0.95, 0.8
"""Of the robot's limits that its arms are driven with. The rest is for commands that get lost on
the way: the robot then goes on by itself at the same acceleration, and what comes next must be
within its limits from there."""
LEAD_PERIODS = 1
"""What answers a state finds the arms on their way to the next one already."""
_OFFSET = np.array([0.30, 0.20, 0.20, 0.30, 0.35, 0.35, 0.35])
_DECELERATION = np.array([6.0, 2.585, 3.5, 4.0, 17.0, 5.5, 17.0])
_TOLERANCE = 1e-3


def velocity_bounds(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lowest (<= 0) and highest (>= 0) velocity (7,), rad/s, allowed at joint positions (7,).

    Towards an end of its range a joint must be slow enough to stop before it: libfranka's
    v = -offset + sqrt(2 deceleration distance), at most the greatest velocity.
    """
    room_up = np.maximum(0.0, POSITION_RAD[:, 1] - q)
    room_down = np.maximum(0.0, q - POSITION_RAD[:, 0])
    up, down = (
        np.minimum(MAX_VELOCITY, np.maximum(0.0, np.sqrt(2 * _DECELERATION * room) - _OFFSET))
        for room in (room_up, room_down)
    )
    return -np.maximum(0.0, down - _TOLERANCE), np.maximum(0.0, up - _TOLERANCE)
