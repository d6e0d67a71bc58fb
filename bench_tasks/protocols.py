"""The methods of what an episode couples: a world, a planner and an action policy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np

from bench_tasks.probes.stream import Item, Query, Reply
from bench_tasks.vocabulary import (
    ActionChunk,
    Answer,
    CameraFrame,
    Metadata,
    Observation,
    Plan,
    PlanRequest,
    Question,
    Scene,
    WorldState,
)

__all__ = ["Memory", "Planner", "Policy", "World"]


class World(Protocol):
    """A simulation or a robot cell."""

    def reset(
        self, task: str, seed: int, vary: tuple[str, ...] = ()
    ) -> tuple[Scene, WorldState]:
        """Set up the episode, these axes randomised; its state has seq 0 and stamp 0.

        BenchError when it cannot.
        """
        ...

    def step(self, chunk: ActionChunk) -> Iterable[WorldState]:
        """Execute the chunk's actions, one control period each, and return the state after each.

        A world that can be stopped raises SafetyStop behind the last state, and has a `report`
        that does so for a stop in between.
        """
        ...

    def move_objects(self, poses: dict[str, np.ndarray]) -> None:
        """Put objects at poses (7,), at rest: the experimenter's hand. Shows in the next state."""
        ...

    def capture(self, cameras: tuple[str, ...], depth: bool = False) -> tuple[CameraFrame, ...]:
        """Take one colour picture per named camera, now; with depth and calibration if asked."""
        ...


class Policy(Protocol):
    """Maps observations to actions. Deterministic after `reset` with the same seed.

    One that has `sees_by_itself` gets its pictures from the world: the conductor, which has a
    world that can `show` them then, only says when. It first announces the state that `infer`
    will be asked about, with `ask(state)`.
    """

    metadata: Metadata

    def reset(self, scene: Scene, seed: int) -> None:
        """Forget everything; a new episode begins."""
        ...

    def accept(self, plan: Plan) -> None:
        """Take a plan to execute; called when `infer` said `needs_plan`."""
        ...

    def infer(self, observation: Observation) -> ActionChunk:
        """Return the next actions, or `needs_plan`.

        With `needs_plan`, `detail` is {"status": "idle"|"done"|"failed", "reason": str,
        "call": {...} of the failed call, "completed": number of steps done}.
        """
        ...


class Planner(Protocol):
    """Turns an instruction and observations into skill calls, and answers questions."""

    metadata: Metadata

    def reset(self, scene: Scene, seed: int) -> None:
        """Forget everything; a new episode begins."""
        ...

    def observe(self, observation: Observation) -> None:
        """See the world without being asked anything (a memory probe's showing phase)."""
        ...

    def plan(self, request: PlanRequest) -> Plan:
        """Return the next steps; an empty plan when the task is held to be finished."""
        ...

    def ask(self, question: Question, observation: Observation) -> Answer:
        """Answer a question."""
        ...


class Memory(Protocol):
    """What one user's robot remembers. Users share a file, and nothing else."""

    name: str

    def observe(self, item: Item) -> None:
        """Keep an item: when this returns, it survives the death of the process.

        UsageError when another item has the same id.
        """
        ...

    def recall(self, query: Query) -> list[Item]:
        """The items to answer from, the best first. Changes nothing."""
        ...

    def answer(self, query: Query) -> Reply:
        """Answer from what is recalled. Changes nothing: asked twice it says the same."""
        ...

    def settle(self) -> None:
        """Do now, while nobody waits, what the next answer would have to do first."""
        ...

    def snapshot(self) -> bytes:
        """All that is remembered of this user; `restore` brings it back, byte for byte."""
        ...

    def restore(self, data: bytes) -> None:
        """Forget everything and remember a snapshot. UsageError when it is none of this kind."""
        ...

    def forget(self, ids: Iterable[str] | None = None) -> int:
        """Forget items by id, or all; return how many. Nothing of them can be recalled after."""
        ...

    def close(self) -> None:
        """Let go of the file. Nothing is lost by not calling it."""
        ...
