"""The floors: policies that know nothing. What they score is what chance scores."""

from __future__ import annotations

import zlib

import numpy as np

from bench_tasks.robots import embodiments
from bench_tasks.vocabulary import (
    FR3_PAIR,
    ActionChunk,
    Metadata,
    Observation,
    Plan,
    Scene,
)

__all__ = ["CHUNK", "HoldPolicy", "RandomPolicy"]

CHUNK = 10
"""Actions per answer."""

MARGIN_RAD = 0.05
SPEED_RAD_S = 0.3
MAX_SPEED_RAD_S = 1.0
RELAXATION_S = 0.5
GRIPPER_SPEED_M_S = 0.08
GRIPPER_SWITCH_S = 1.5



class HoldPolicy:
    """Repeats the last command for ever; a plan changes nothing."""

    metadata = Metadata("hold", "1")
    robots = embodiments.NAMES

    def reset(self, scene: Scene, seed: int) -> None:
        """There is nothing to forget."""

    def accept(self, plan: Plan) -> None:
        """Ignore the plan."""

    def infer(self, observation: Observation) -> ActionChunk:
        """Return the command of the observed state, ten times."""
        state = observation.state
        return ActionChunk(state.seq, np.tile(state.command, (CHUNK, 1)))


class RandomPolicy:
    """A smooth random walk of all joint targets, and grippers that open and close at random.

    Joint speeds follow an Ornstein-Uhlenbeck process (standard deviation 0.3 rad/s, relaxation
    0.5 s, clipped at 1 rad/s), and a target that comes to its limit bounces back.
    """

    metadata = Metadata("random", "1")
    robots = embodiments.NAMES

    def __init__(self) -> None:
        """Start without an episode."""
        self._begin(0, 0.02, FR3_PAIR)

    def reset(self, scene: Scene, seed: int) -> None:
        """Draw a new walk from `seed`."""
        self._begin(seed, scene.control_period_ns / 1e9, scene.embodiment)

    def _begin(self, seed: int, period_s: float, robot: str) -> None:
        self._robot = embodiments.get(robot)
        self._joints, self._openings = self._robot.joint_columns, self._robot.opening_columns
        # A stream of its own: a layout drawn from the same seed must not share its numbers.
        self._rng = np.random.default_rng([seed, zlib.crc32(b"random policy")])
        self._period_s = period_s
        self._speed = np.zeros(len(self._joints))
        self._opening = self._robot.high[self._openings]

    def accept(self, plan: Plan) -> None:
        """Ignore the plan."""

    def infer(self, observation: Observation) -> ActionChunk:
        """Return the next ten steps of the walk, starting from the last command."""
        state = observation.state
        values = np.empty((CHUNK, self._robot.action_size))
        last = np.array(state.command, dtype=np.float64)
        for row in values:
            row[self._joints] = self._walk(last[self._joints])
            row[self._openings] = self._grip(last[self._openings])
            last = row
        return ActionChunk(state.seq, values)

    def _walk(self, target_rad: np.ndarray) -> np.ndarray:
        decay = np.exp(-self._period_s / RELAXATION_S)
        noise = SPEED_RAD_S * np.sqrt(1.0 - decay**2) * self._rng.standard_normal(len(self._joints))
        self._speed = np.clip(decay * self._speed + noise, -MAX_SPEED_RAD_S, MAX_SPEED_RAD_S)
        low = self._robot.low[self._joints] + MARGIN_RAD
        high = self._robot.high[self._joints] - MARGIN_RAD
        moved = target_rad + self._speed * self._period_s
        self._speed = np.where((moved < low) | (moved > high), -self._speed, self._speed)
        return np.clip(moved, low, high)

    def _grip(self, opening_m: np.ndarray) -> np.ndarray:
        most = self._robot.high[self._openings]
        switch = self._rng.random(2) < self._period_s / GRIPPER_SWITCH_S
        self._opening = np.where(switch, most - self._opening, self._opening)
        step = GRIPPER_SPEED_M_S * self._period_s
        moved = opening_m + np.clip(self._opening - opening_m, -step, step)
        return np.clip(moved, 0.0, most)
