"""Any model planner without its eyes: what the instruction alone, and chance, can give."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bench_tasks.errors import UsageError, unknown
from bench_tasks.options import build
from bench_tasks.protocols import Planner
from bench_tasks.vocabulary import (
    Answer,
    Metadata,
    Observation,
    Plan,
    PlanRequest,
    Question,
    Scene,
)

__all__ = ["INNER", "BlindPlanner"]

INNER = ("openai", "transformers", "smollm2")


class BlindPlanner:
    """`blind:inner=openai,...`: the other options are those of the planner inside."""

    def __init__(self, inner: Planner) -> None:
        """Blindfold a planner."""
        self._inner = inner
        seen = inner.metadata
        if seen.depth:
            raise UsageError("planner blind has no pictures to point in: leave dialect out")
        self.metadata = Metadata(f"blind:{seen.name}", seen.version, (), seen.privileged)

    @classmethod
    def from_options(cls, options: dict[str, Any]) -> BlindPlanner:
        """Build the planner inside (by default `openai`); UsageError on a wrong option."""
        options = dict(options)
        name = str(options.pop("inner", "openai"))
        if name not in INNER:
            raise unknown("planner inside blind", name, INNER)
        from bench_tasks.registry import load
        from policies import PLANNERS

        kind = load("planner", name, PLANNERS)
        return cls(kind(build(f"blind:{name}", kind.Options, options)))

    def reset(self, scene: Scene, seed: int) -> None:
        """Begin an episode."""
        self._inner.reset(scene, seed)

    def observe(self, observation: Observation) -> None:
        """See nothing."""
        self._inner.observe(replace(observation, frames=()))

    def plan(self, request: PlanRequest) -> Plan:
        """Plan without pictures."""
        return self._inner.plan(
            replace(request, observation=replace(request.observation, frames=()))
        )

    def ask(self, question: Question, observation: Observation) -> Answer:
        """Answer without pictures."""
        return self._inner.ask(question, replace(observation, frames=()))
