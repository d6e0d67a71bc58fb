"""The floors: policies that know nothing. What they score is what chance scores."""

from __future__ import annotations

import zlib

import numpy as np

from bench_tasks.robots import JOINT_LIMITS_RAD
from bench_tasks.vocabulary import (
    ACTION_SIZE,
    ARM_COLUMNS,
    GRIPPER_COLUMNS,
    MAX_OPENING_M,
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

    def __init__(self) -> None:
        """Start without an episode."""
        self._begin(0, 0.02)

    def reset(self, scene: Scene, seed: int) -> None:
        """Draw a new walk from `seed`."""
        self._begin(seed, scene.control_period_ns / 1e9)

    def _begin(self, seed: int, period_s: float) -> None:
        # A stream of its own: a layout drawn from the same seed must not share its numbers.
        self._rng = np.random.default_rng([seed, zlib.crc32(b"random policy")])
        self._period_s = period_s
        self._speed = np.zeros(14)
        self._opening = np.full(2, MAX_OPENING_M)

    def accept(self, plan: Plan) -> None:
        """Ignore the plan."""

    def infer(self, observation: Observation) -> ActionChunk:
        """Return the next ten steps of the walk, starting from the last command."""
        state = observation.state
        values = np.empty((CHUNK, ACTION_SIZE))
        last = np.array(state.command, dtype=np.float64)
        for row in values:
            row[ARM_COLUMNS] = self._walk(last[ARM_COLUMNS])
            row[GRIPPER_COLUMNS] = self._grip(last[GRIPPER_COLUMNS])
            last = row
        return ActionChunk(state.seq, values)

    def _walk(self, target_rad: np.ndarray) -> np.ndarray:
        decay = np.exp(-self._period_s / RELAXATION_S)
        noise = SPEED_RAD_S * np.sqrt(1.0 - decay**2) * self._rng.standard_normal(14)
        self._speed = np.clip(decay * self._speed + noise, -MAX_SPEED_RAD_S, MAX_SPEED_RAD_S)
        low = np.tile(JOINT_LIMITS_RAD[:, 0] + MARGIN_RAD, 2)
        high = np.tile(JOINT_LIMITS_RAD[:, 1] - MARGIN_RAD, 2)
        moved = target_rad + self._speed * self._period_s
        self._speed = np.where((moved < low) | (moved > high), -self._speed, self._speed)
        return np.clip(moved, low, high)

    def _grip(self, opening_m: np.ndarray) -> np.ndarray:
        switch = self._rng.random(2) < self._period_s / GRIPPER_SWITCH_S
        self._opening = np.where(switch, MAX_OPENING_M - self._opening, self._opening)
        step = GRIPPER_SPEED_M_S * self._period_s
        moved = opening_m + np.clip(self._opening - opening_m, -step, step)
        return np.clip(moved, 0.0, MAX_OPENING_M)
