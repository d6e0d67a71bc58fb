"""Retrieval: the items that fit the question best by their words and by their vectors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_tasks.errors import UsageError, unknown
from bench_tasks.probes.stream import Item, Query
from policies.memory.base import KeptMemory, Reader
from policies.memory.vectors import Vectors
from policies.memory.words import Words, asked_in
from policies.sentences import check_installed

__all__ = ["RagMemory", "RagOptions", "check_search"]

RANK = 60
"""How little the first ranks stand out; the usual constant (Cormack et al., SIGIR 2009)."""
WAYS = ("words", "vectors")


@dataclass(frozen=True)
class RagOptions:
    """items: how many are recalled. by: words, vectors or words+vectors."""

    items: int = 16
    by: tuple[str, ...] = WAYS


def check_search(name: str, items: int, by: tuple[str, ...] = ("words",)) -> None:
    """UsageError when options of a search are wrong."""
    if items < 1:
        raise UsageError(f"memory {name}: items must be 1 or more, got {items}")
    for way in by or ("none",):
        if way not in WAYS:
            raise unknown(f"way to search of memory {name}", way, WAYS)


class RagMemory(KeptMemory):
    """Hybrid search: ranks by words and by vectors, fused by reciprocal rank fusion.

    An item is embedded before it is first searched for, in batches: `settle` does it.
    """

    name = "rag"
    Options = RagOptions
    options: RagOptions

    def __init__(
        self, path: str | Path | None, user: str, reader: Reader, options: RagOptions
    ) -> None:
        """As for all; UsageError when an option is wrong, or what it needs is not installed."""
        check_search(self.name, options.items, options.by)
        if "words" in options.by:
            self.derives = (*self.derives, "words")
        if "vectors" in options.by:
            check_installed(f"memory {self.name}")
            self.later = ("vectors",)
        super().__init__(path, user, reader, options)

    def _opened(self) -> None:
        self.words = Words(self.store)
        self.vectors = Vectors(self.store)

    def _make(self, name: str, new: list[tuple[int, Item]]) -> Any:
        return self.vectors.of(new)

    def _derive(self, name: str, new: list[tuple[int, Item]], made: Any) -> None:
        if name == "vectors":
            self.vectors.take(new, made)
        else:
            self.words.take(new)

    def search(self, text: str, count: int) -> list[int]:
        """The numbers of the best items; what was said later wins where they are equal."""
        ranked = []
        if "words" in self.options.by:
            ranked.append(self.words.search(text, 2 * count))
        if "vectors" in self.options.by:
            ranked.append(self.vectors.search(text, 2 * count))
        scores: dict[int, float] = {}
        for numbers in ranked:
            for rank, n in enumerate(numbers, 1):
                scores[n] = scores.get(n, 0.0) + 1 / (RANK + rank)
        return sorted(scores, key=lambda n: (-scores[n], -n))[:count]

    def settle(self) -> None:
        """Embed what has not been, and read it."""
        super().settle()
        if "vectors" in self.options.by:
            self.vectors.load()

    def recall(self, query: Query) -> list[Item]:
        """The best items, the best first."""
        self.settle()
        return self.store.numbered(self.search(asked_in(query), self.options.items))
