"""Arms in motion on a good path, in which something bad is then done."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cache

import numpy as np

from bench_tasks.robots.fr3 import HOME_RAD
from bench_tasks.robots.kinematics import dual_arm
from benchmarks.safety.oracle import FASTEST, HIGH, JERK, LOW
from benchmarks.safety.robot import DT, JOINTS, Robot, speed
from hardware.safety import Supervisor
from hardware.safety.limits import Limits, read_limits

__all__ = ["CHUNK", "Case", "Maker", "Situation", "calm", "min_jerk"]

CHUNK = 25
"""Actions in a good chunk."""


@cache
def loaded() -> tuple[Limits, Supervisor]:
    """Limits, and a supervisor that has been told nothing yet."""
    limits = read_limits("fr3_pair")
    return limits, Supervisor(limits, realtime=True, confirmed=True)


def min_jerk(begin: np.ndarray, end: np.ndarray, periods: int) -> np.ndarray:
    """Commands (periods, 16) from rest to rest."""
    u = (np.arange(1, periods + 1) / periods)[:, None]
    return begin + (10 * u**3 - 15 * u**4 + 6 * u**5) * (end - begin)


def action(joints: np.ndarray, opening: float) -> np.ndarray:
    """An action (16,) of joint positions (14,)."""
    found = np.full(16, opening)
    found[JOINTS] = joints
    return found


def calm(begin: np.ndarray, end: np.ndarray) -> int:
    """Periods in which that motion keeps well within the limits."""
    span = np.abs(end - begin)[JOINTS]
    return max(30, int(1.875 * (span / (0.5 * FASTEST)).max() / DT),
               int(np.sqrt(5.774 * span.max() / 5.0) / DT))  # fmt: skip


@dataclass
class Situation:
    """Arms in motion on a good path, and what of it is to come (n, 16)."""

    robot: Robot
    ahead: np.ndarray


class Maker:
    """Draws situations."""

    def __init__(self, rng: np.random.Generator) -> None:
        """Everything is drawn from `rng`; the supervisor is copied for each robot."""
        self.rng, self.arms = rng, dual_arm()
        self.limits, self.supervisor = loaded()

    def free(self, spread: float) -> np.ndarray:
        """A random action that is free of collisions, well above the table."""
        while True:
            joints = np.tile(HOME_RAD, 2) + self.rng.uniform(-spread, spread, 14)
            joints = np.clip(joints, LOW + 0.2, HIGH - 0.2)
            low = min(self.arms.forward(arm, joints[7 * k : 7 * k + 7])[2]
                      for k, arm in enumerate(("left", "right")))  # fmt: skip
            if low > 0.15 and self.arms.collision(joints[:7], joints[7:]) is None:
                return action(joints, float(self.rng.uniform(0.0, 0.08)))

    def moving(self) -> Situation:
        """In motion, a chunk of the path having been passed on."""
        while True:
            begin, end = self.free(0.45), self.free(0.45)
            path = min_jerk(begin, end, calm(begin, end))
            robot = Robot(copy.copy(self.supervisor), begin)
            first = robot.ask(0, path[:CHUNK])
            if first.interventions or first.send is None:
                continue  # two free places can have something between them
            done = int(self.rng.integers(8, CHUNK - 3))
            for _ in range(done):
                robot.step()
            if any(d.interventions for d in robot.decisions) or len(path) < done + CHUNK:
                continue
            return Situation(robot, path[done:])


class Case:
    """One sequence in a situation, to which a kind does something bad; and what is to come of it.

    Usually something is said about it, and the arms slow down from the next period on.
    """

    def __init__(self, situation: Situation, maker: Maker) -> None:
        """What is done to its robot leaves that of the situation as it is."""
        self.robot, self.ahead = situation.robot.twin(), situation.ahead
        self.maker, self.rng = maker, maker.rng
        self.now()
        self.unhurried = False
        """What is under way may go on."""
        self.whole = False
        """The robot had to be led to it by commands, which are judged as well."""
        self.harmless = False
        """Nothing may have been wrong."""
        self.boxes: np.ndarray | None = None
        """Where the hands are to stay, (2, 2, 3) m."""
        self.jerk = JERK
        """What a path that is slowed down keeps within; a stop is as quick as it can be."""
        self.failure = ""

    def now(self) -> None:
        """The bad thing happens now: `begun` counts what was executed before."""
        self.begun, self.before = len(self.robot.executed) - 1, speed(self.robot.executed)

    def ask(self) -> None:
        """A good command."""
        self.robot.ask(self.robot.seq, self.ahead[:CHUNK])

    def narrow(self, limits: Limits) -> None:
        """Other limits from now on."""
        supervisor = self.robot.supervisor
        supervisor._limits = supervisor._plan.limits = limits
        supervisor._clearance = copy.copy(supervisor._clearance)
        supervisor._clearance._limits = limits
