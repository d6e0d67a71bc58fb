"""How far each source is trusted: by what it rests on, and how often it was confirmed before."""

from __future__ import annotations

from collections.abc import Iterable

from bench_tasks.errors import UsageError
from policies.memory.facts import SAID, SEEN, Fact, rank
from policies.memory.graph import Graph

__all__ = ["Sources"]

SURE = {1: 0.9, SEEN: 0.95}
"""Trust in what somebody says of himself, and in what was seen."""
PRIOR = (2, 3)
"""Of a source that nothing is known of: confirmed 2 of 3 times."""


class Sources:
    """Trust in speakers: given, or learned from what the graph counted."""

    def __init__(self, graph: Graph, given: Iterable[str] = ()) -> None:
        """`given`: Name=trust. UsageError when that is no number in [0, 1]."""
        self._graph = graph
        self._given = dict(map(_given, given))

    def of(self, speaker: str) -> float:
        """Trust in what somebody says of other things and people, in [0, 1]."""
        if speaker in self._given:
            return self._given[speaker]
        if not speaker:
            return SURE[SEEN]
        confirmed, contradicted = self._graph.record(speaker)
        return (PRIOR[0] + confirmed) / (PRIOR[1] + confirmed + contradicted)

    def trust(self, fact: Fact) -> float:
        """S of a fact."""
        kind = rank(fact)
        return self.of(fact.speaker) if kind == SAID else SURE[kind]


def _given(text: str) -> tuple[str, float]:
    name, _, value = text.rpartition("=")
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not name or not 0 <= number <= 1:
        raise UsageError(f"trust in a source must be Name=number from 0 to 1, got {text!r}")
    return name, number
