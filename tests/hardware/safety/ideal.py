"""An ideal robot under a supervisor, as the fuzz has it, and ways for it to go."""

from __future__ import annotations

import json

import numpy as np

from bench_tasks.robots.fr3 import HOME_RAD
from bench_tasks.robots.kinematics import dual_arm
from benchmarks.safety.situations import min_jerk
from hardware.safety import Decision, Intervention
from hardware.safety.limits import read_limits

HOME = np.tile(np.append(HOME_RAD, 0.08), 2)
LIMITS = read_limits("fr3_pair")


def reach(joint: int, by_rad: float, periods: int = 50) -> np.ndarray:
    """From home, one joint by that much."""
    end = HOME.copy()
    end[joint] += by_rad
    return min_jerk(HOME, end, periods)


def only(decision: Decision) -> Intervention:
    """The one intervention of a decision, fit for a record."""
    (told,) = decision.interventions
    json.dumps(told.data(), allow_nan=False)
    return told


def settled(robot, command: np.ndarray, **changed) -> None:
    """The robot at rest somewhere else, in a motion of its own."""
    robot.executed, robot.chunk, robot.seq = [command.copy()], None, 0
    robot.supervisor._forget()
    robot.tell(robot.state(**changed))


def at(arm: str, x: float, y: float, z: float) -> np.ndarray:
    """Home, but for one hand, which points down at (x, y, z)."""
    found, pose = HOME.copy(), np.array([x, y, z, 0.0, 1.0, 0.0, 0.0])
    k = 8 * (arm == "right")
    found[k : k + 7] = dual_arm().inverse(arm, pose, HOME_RAD)
    return found
