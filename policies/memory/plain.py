"""Memories without a search: nothing, everything, the last of it, and what a test says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench_tasks.errors import UsageError
from bench_tasks.probes.stream import Item, Query
from policies.memory.base import KeptMemory, Reader

__all__ = ["FullMemory", "NoMemory", "OracleMemory", "WindowMemory"]


class NoMemory(KeptMemory):
    """Keeps items as all do, and recalls none: the floor of every probe."""

    name = "none"

    def recall(self, query: Query) -> list[Item]:
        """Nothing."""
        return []


class FullMemory(KeptMemory):
    """Everything, in the order in which it came: what a model with a long context is given."""

    name = "full"

    def recall(self, query: Query) -> list[Item]:
        """All items."""
        return self.store.items()


@dataclass(frozen=True)
class WindowOptions:
    """items: how many of the last ones are recalled."""

    items: int = 32


class WindowMemory(KeptMemory):
    """What came last."""

    name = "window"
    Options = WindowOptions
    options: WindowOptions

    def __init__(
        self, path: str | Path | None, user: str, reader: Reader, options: WindowOptions
    ) -> None:
        """As for all; UsageError when the window is empty."""
        if options.items < 1:
            raise UsageError(f"memory window: items must be 1 or more, got {options.items}")
        super().__init__(path, user, reader, options)

    def recall(self, query: Query) -> list[Item]:
        """The last items, in the order in which they came."""
        return self.store.items("ORDER BY i.n DESC LIMIT ?", self.options.items)[::-1]


class OracleMemory(KeptMemory):
    """Recalls exactly what it is told to: the ceiling of a probe, for tests of it."""

    name = "oracle"
    told: tuple[str, ...] = ()

    def tell(self, evidence: Iterable[str]) -> None:
        """The ids of the items that the next answers rest on."""
        self.told = tuple(evidence)

    def recall(self, query: Query) -> list[Item]:
        """The items told."""
        return self.store.by_id(self.told)
