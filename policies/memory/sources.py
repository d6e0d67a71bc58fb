"""How far each source is trusted: by what it rests on, and how often it was confirmed before."""

from __future__ import annotations

from collections.abc import Iterable

from bench_tasks.errors import UsageError
from policies.memory.facts import LASTS, SAID, SEEN, Fact, Facts, rank
from policies.memory.graph import Graph

__all__ = ["Believed", "Sources"]

SURE = {1: 0.9, SEEN: 0.95}
"""Trust in what somebody says of himself, and in what was seen."""
PRIOR = (2, 3)
"""Of a source that nothing is known of: confirmed 2 of 3 times."""
LEAST = 0.5
"""Nothing rests on the word of who is trusted less: he was wrong more often than right."""


class Sources:
    """Trust in speakers: given, or learned from what the graph counted."""

    def __init__(self, graph: Graph, given: Iterable[str] = ()) -> None:
        """`given`: Name=trust. UsageError when that is no number in [0, 1]."""
        self._graph = graph
        self._given = dict(map(_given, given))

    def of(self, speaker: str, relation: str | None = None) -> float:
        """Trust in what somebody says of other things and people, in [0, 1].

        With `relation` it is learned from what he said of that kind alone.
        """
        if speaker in self._given:
            return self._given[speaker]
        if not speaker:
            return SURE[SEEN]
        confirmed, contradicted = self._graph.record(speaker, relation)
        return (PRIOR[0] + confirmed) / (PRIOR[1] + confirmed + contradicted)

    def trust(self, fact: Fact) -> float:
        """S of a fact."""
        kind = rank(fact)
        return self.of(fact.speaker, fact.relation) if kind == SAID else SURE[kind]

    def believed(self, fact: Fact) -> bool:
        """Whether anything may rest on it."""
        return self.trust(fact) >= LEAST


class Believed:
    """Facts of which the last one is to be relied on.

    What only somebody says who is mostly wrong is left out; what was seen comes after what was
    said, unless a change was told of since.
    """

    def __init__(self, facts: Facts, sources: Sources) -> None:
        """What is known, and whom to trust."""
        self._facts, self._sources = facts, sources

    def find(self, relation: str, subject: str | None = None, value: str | None = None
             ) -> list[Fact]:
        """As of `Facts`."""
        found = self._facts.find(relation, subject, value)
        if relation in LASTS or subject is None:
            return found
        # Of all that one speaker says of it alike: what he says of himself has another rank.
        kinds = {(fact.speaker, rank(fact)): fact for fact in found}
        believed = {key for key, fact in kinds.items() if self._sources.believed(fact)}
        found = [fact for fact in found if (fact.speaker, rank(fact)) in believed]
        changed = max((k for k, fact in enumerate(found) if fact.ends), default=0)
        return found[:changed] + sorted(found[changed:], key=rank)


def _given(text: str) -> tuple[str, float]:
    name, _, value = text.rpartition("=")
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not name or not 0 <= number <= 1:
        raise UsageError(f"trust in a source must be Name=number from 0 to 1, got {text!r}")
    return name, number
