"""Faults put into a memory by will, to see whether a diagnosis names them.

Which items and questions are hit is drawn from their texts and a seed, so that it is known without
asking the memory: `cause_of` says why an answer that rests on certain items must fail.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from bench_tasks.errors import UsageError
from bench_tasks.probes.stream import Asked, Item, Query, Reply
from bench_tasks.probes.talk import meanings
from bench_tasks.protocols import Memory

__all__ = ["Faults", "InjectedMemory"]


class _Reader(Protocol):
    def answer(self, query: Query, items: Sequence[Item]) -> Reply: ...


@dataclass(frozen=True)
class Faults:
    """Shares of what is hit.

    `write`: of items, which are dropped. `read`: of items, which are not recalled any more when
    their session is over. `use`: of questions, which are answered wrong whatever is recalled.
    """

    write: float = 0.0
    read: float = 0.0
    use: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        """UsageError names the share that is none."""
        for name in ("write", "read", "use"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise UsageError(f"{name} must be a share from 0 to 1, got {value}")

    def hits(self, kind: str, text: str) -> bool:
        """Whether a fault of this kind hits the item or question."""
        drawn = zlib.crc32(f"{self.seed} {kind} {text}".encode()) / 2**32
        return drawn < getattr(self, kind)


class InjectedMemory:
    """A memory with faults; asking changes nothing, as with all."""

    def __init__(self, memory: Memory, reader: _Reader, faults: Faults) -> None:
        """`reader` answers from what is left of what `memory` recalls."""
        self.name = f"{memory.name} with faults"
        self._memory, self._reader, self._faults = memory, reader, faults
        self._session = ""
        self._meant: dict[str, str] = {}
        """Question -> the answer before a fault of use."""

    def observe(self, item: Item) -> None:
        """Keep the item, unless it is dropped."""
        self._session = item.session
        if not self._faults.hits("write", item.id):
            self._memory.observe(item)

    def recall(self, query: Query) -> list[Item]:
        """What is recalled and not hidden: an item is hidden after its session."""
        return [item for item in self._memory.recall(query)
                if item.session == self._session or not self._faults.hits("read", item.id)]

    def answer(self, query: Query) -> Reply:
        """Of a choice to make from several facts, a wrong one where a fault of use hits."""
        reply = self._reader.answer(query, self.recall(query))
        asked = meanings(query.text, asked=True)
        self._meant[query.id] = reply.text
        if asked and asked[0].kind == "suits" and self._faults.hits("use", query.text):
            at = query.choices.index(reply.text) if reply.text in query.choices else 0
            return replace(reply, text=query.choices[(at + 1) % len(query.choices)])
        return reply

    def cause_of(self, asked: Asked) -> str:
        """Which fault is to blame when the question has failed.

        That of use when it would have been right else; or the first that hit its evidence. Another
        item may say the same as one that is hidden.
        """
        if self._meant[asked.query.id] == asked.gold:
            return "use"
        for kind in ("write", "read"):
            if any(self._faults.hits(kind, one) for one in asked.evidence):
                return kind
        return ""

    def snapshot(self) -> bytes:
        """Of the memory."""
        return self._memory.snapshot()

    def close(self) -> None:
        """Let go of the memory."""
        self._memory.close()
