"""Demonstrations: episodes of the expert, pictured at a steady rate and disturbed if asked.

They are run and recorded as any others (`runner.run` of a `CollectConfig`). The pictures are taken
by the world while it executes, whoever moves it, so that they are evenly spaced from the first
state on; what is executed is the same to the bit as without them.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace

import numpy as np

from bench_tasks import tasks
from bench_tasks.config import DEMONSTRATION_SEEDS, RunConfig
from bench_tasks.episode import Sink
from bench_tasks.errors import UsageError
from bench_tasks.protocols import Policy, World
from bench_tasks.streams import CONTROL_HZ, periods_between
from bench_tasks.vocabulary import (
    ACTION_SIZE,
    ARM_COLUMNS,
    CONTROL_PERIOD_NS,
    FR3_PAIR,
    GRIPPER_COLUMNS,
    ActionChunk,
    CameraFrame,
    Event,
    Observation,
    Plan,
    Scene,
    Verdict,
    WorldState,
)

__all__ = ["CollectConfig", "Disturbance", "demonstrated"]

RATES_HZ = tuple(hz for hz in range(1, round(CONTROL_HZ) + 1) if CONTROL_HZ % hz == 0)
RELAXATION_S = 0.5
"""How long a disturbance takes to be forgotten."""
MAX_DISTURB_RAD = 0.1
GRIP_M, FADE = 0.002, 0.1
"""A hand that is commanded further together than it is measured grips or closes. Its arm is not
disturbed then: what it does with what it holds succeeds or fails by millimetres. The disturbance
fades in and out by this share of the rest each period."""


@dataclass(frozen=True)
class CollectConfig(RunConfig):
    """A run for demonstrations: seeds of their own, `picture_hz` pictures a second.

    `disturb` (rad) is the standard deviation, in joints of an arm that grips nothing, of what is
    added to the commands that are executed; those that were asked for stay what the expert wants
    (DART, arXiv 1703.09327: data on how to come back).
    """

    seed: int = DEMONSTRATION_SEEDS.start
    cameras: tuple[str, ...] = ("head", "left_wrist", "right_wrist")
    picture_hz: float = 10.0
    disturb: float = 0.0

    def checked(self) -> RunConfig:
        """As of `RunConfig`, and the rate, the disturbance and whose demonstrations these are."""
        for name in self.tasks:
            if tasks.get(name).embodiment != FR3_PAIR:
                raise UsageError(
                    f"demonstrations are of {FR3_PAIR} alone, {name} is for "
                    f"{tasks.get(name).embodiment}: choose from {', '.join(tasks.names())}"
                )
        if self.picture_hz not in RATES_HZ:
            rates = ", ".join(map(str, RATES_HZ))
            raise UsageError(f"picture-hz must be one of {rates}, got {self.picture_hz:g}")
        if not 0.0 <= self.disturb <= MAX_DISTURB_RAD:
            raise UsageError(
                f"disturb must be from 0 to {MAX_DISTURB_RAD:g} rad, got {self.disturb:g}"
            )
        return super().checked()

    def check_seeds(self) -> None:
        """UsageError when a seed is none of the demonstrations'."""
        first, last = DEMONSTRATION_SEEDS[0], DEMONSTRATION_SEEDS[-1]
        if self.seeds[0] < first or self.seeds[-1] > last:
            raise UsageError(
                f"demonstrations take seeds {first} to {last} and evaluation all others, "
                f"got {self.seeds[0]} to {self.seeds[-1]}"
            )


class Disturbance:
    """Smooth noise on the arms' joints, the same for the same task and seed.

    An Ornstein-Uhlenbeck process that drives another with the same relaxation, from rest: unlike
    the first alone its rate of change is finite, as an arm's is.
    """

    def __init__(self, task: str, seed: int, deviation_rad: float) -> None:
        """Of a standard deviation (rad) that it grows to within some relaxation times."""
        self._rng = np.random.default_rng([seed, zlib.crc32(task.encode()), 1])
        # Two processes, one after the other, remember about twice as long as one.
        keep = float(np.exp(-2.0 * CONTROL_PERIOD_NS * 1e-9 / RELAXATION_S))
        # Variance of x[t] = 2 keep x[t-1] - keep^2 x[t-2] + unit noise (Box & Jenkins, AR(2)).
        variance = (1.0 + keep**2) / (1.0 - keep**2) ** 3
        self._keep, self._scale = keep, deviation_rad / variance**0.5
        self._inner, self._value = np.zeros(len(ARM_COLUMNS)), np.zeros(len(ARM_COLUMNS))

    def next(self) -> np.ndarray:
        """What to add (16,) to the next action."""
        noise = self._rng.standard_normal(len(ARM_COLUMNS))
        self._inner = self._keep * self._inner + self._scale * noise
        self._value = self._keep * self._value + self._inner
        action = np.zeros(ACTION_SIZE)
        action[ARM_COLUMNS] = self._value
        return action


def demonstrated(
    config: CollectConfig, world: World, policy: Policy, sink: Sink
) -> tuple[World, Policy, Sink]:
    """World, policy and sink of one episode with its pictures and its disturbance."""
    seen = _Pictured(config, world, sink)
    return seen, _Asked(policy) if config.disturb else policy, seen


class _Pictured:
    """A world that takes pictures while it executes, and the sink that puts them in their place."""

    def __init__(self, config: CollectConfig, world: World, sink: Sink) -> None:
        self._config, self._world, self._sink = config, world, sink
        self._stride = periods_between(config.picture_hz)
        self._taken: dict[int, tuple[CameraFrame, ...]] = {}

    def reset(
        self, task: str, seed: int, vary: tuple[str, ...] = ()
    ) -> tuple[Scene, WorldState]:
        scene, state = self._world.reset(task, seed, vary)
        self._state = state
        self._disturbance = Disturbance(task, seed, self._config.disturb)
        self._free = np.ones(2)
        self._picture(state)
        return scene, state

    def _picture(self, state: WorldState) -> None:
        if state.seq % self._stride == 0 and self._config.cameras:
            self._taken[state.seq] = self._world.capture(self._config.cameras)

    def step(self, chunk: ActionChunk) -> list[WorldState]:
        states, values = [], chunk.values
        # To ask for what was executed is to hold still: disturbed again and again, it would drift.
        still = (values == self._state.command).all()
        while len(values):
            seq = chunk.seq + len(states)
            now, values = np.split(values, [self._stride - seq % self._stride])
            if self._config.disturb and not still:
                now = self._disturbed(now)
            states += self._world.step(ActionChunk(seq, now))
            self._state = states[-1]
            self._picture(self._state)
        return states

    def _disturbed(self, values: np.ndarray) -> np.ndarray:
        noise = np.stack([self._disturbance.next() for _ in values])
        for row, action in zip(noise, values, strict=True):
            grips = action[GRIPPER_COLUMNS] < self._state.gripper_opening - GRIP_M
            self._free += (~grips - self._free) * FADE
            row *= np.repeat(self._free, ACTION_SIZE // 2)
        return values + noise

    def move_objects(self, poses: dict[str, np.ndarray]) -> None:
        self._world.move_objects(poses)

    def capture(self, cameras: tuple[str, ...], depth: bool = False) -> tuple[CameraFrame, ...]:
        return self._world.capture(cameras, depth)

    # What is recorded; pictures follow the state that they show.

    def scene(self, scene: Scene) -> None:
        self._sink.scene(scene)

    def state(self, state: WorldState) -> None:
        self._sink.state(state)
        if state.seq in self._taken:
            self._sink.frames(self._taken.pop(state.seq))

    def chunk(self, chunk: ActionChunk, stamp_ns: int) -> None:
        self._sink.chunk(chunk, stamp_ns)

    def event(self, event: Event) -> None:
        self._sink.event(event)

    def frames(self, frames: tuple[CameraFrame, ...]) -> None:
        self._sink.frames(frames)

    def verdict(self, verdict: Verdict) -> None:
        self._sink.verdict(verdict)


class _Asked:
    """A policy that takes what it asked for last, not what became of it, for the last command.

    What it asks for next begins there: otherwise each plan would start with a disturbance of the
    last one, to which the present one comes on top.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy, self.metadata = policy, policy.metadata
        self._asked: np.ndarray | None = None

    def reset(self, scene: Scene, seed: int) -> None:
        self._asked = None
        self._policy.reset(scene, seed)

    def accept(self, plan: Plan) -> None:
        self._policy.accept(plan)

    def infer(self, observation: Observation) -> ActionChunk:
        if self._asked is not None:
            state = replace(observation.state, command=self._asked)
            observation = replace(observation, state=state)
        chunk = self._policy.infer(observation)
        if len(chunk.values):
            self._asked = np.asarray(chunk.values)[-1]
        return chunk
