"""What all memories share: they keep the same items, and differ in what they recall."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from bench_tasks.errors import UsageError
from bench_tasks.probes.stream import Item, Query, Reply, step_from_json, step_to_json
from policies.memory.store import Store

__all__ = ["SNAPSHOT_VERSION", "KeptMemory", "Reader"]

SNAPSHOT_VERSION = 1

class Reader(Protocol):
    """Answers from items; by rules, or a model."""

    def answer(self, query: Query, items: Sequence[Item]) -> Reply:
        """Depends on nothing but its arguments."""
        ...


class KeptMemory:
    """A memory over a `Store`. A subclass says what it recalls, and what it derives of items."""

    name = ""
    derives: tuple[str, ...] = ()
    """What it derives of each item before that is acknowledged, by name; see `_derive`."""
    later: tuple[str, ...] = ()
    """What it derives only before it is needed, since it takes long; see `_make`."""
    at_once = 256
    """So many items are taken in at once."""

    def __init__(
        self, path: str | Path | None, user: str, reader: Reader, options: Any = None
    ) -> None:
        """Open the file, or keep all in this process when `path` is None."""
        self.options = options
        self.reader = reader
        self.store = Store(path, user)
        self._opened()
        self._catch_up()

    def _opened(self) -> None:
        """Make what needs the open store."""

    def observe(self, item: Item) -> None:
        """Keep an item: when this returns, it survives the death of the process.

        An item that is kept already may be observed again, as when the acknowledgement was lost.
        UsageError when another item has the same id.
        """
        with self.store.writing():
            if self.store.add(item):
                self._catch_up()

    def _catch_up(self) -> None:
        """Take into what is derived whatever was kept since, by whomever."""
        for name in self.derives:
            while self.store.missing(name, 1):
                with self.store.writing():
                    # Asked again now that nobody else takes them in.
                    self._take(name, self.store.missing(name, self.at_once), None)

    def _take(self, name: str, new: list[tuple[int, Item]], made: Any) -> None:
        if new:
            self._derive(name, new, made)
            self.store.taken(name, new[-1][0])

    def _derive(self, name: str, new: list[tuple[int, Item]], made: Any) -> None:
        """Take new items, with their numbers, into a derived table, in a transaction.

        `made` is what `_make` made of them.
        """
        raise NotImplementedError(f"{self.name} derives nothing")

    def _make(self, name: str, new: list[tuple[int, Item]]) -> Any:
        """What takes long of deriving, outside of any transaction."""
        raise NotImplementedError(f"{self.name} derives nothing later")

    def recall(self, query: Query) -> list[Item]:
        """The items to answer from, the best first. Changes nothing of what is remembered."""
        raise NotImplementedError

    def answer(self, query: Query) -> Reply:
        """Answer from what is recalled. Changes nothing: asked twice it says the same."""
        return self.reader.answer(query, self.recall(query))

    def settle(self) -> None:
        """Do now, while nobody waits, what the next answer would have to do first."""
        self._catch_up()
        for name in self.later:
            while new := self.store.missing(name, self.at_once):
                made = self._make(name, new)
                with self.store.writing():
                    if self.store.missing(name, 1)[:1] == new[:1]:
                        self._take(name, new, made)

    def snapshot(self) -> bytes:
        """All that is remembered of this user, one JSON text a line."""
        head = json.dumps({"memory_snapshot": SNAPSHOT_VERSION})
        return "\n".join([head, *map(step_to_json, self.store.items()), ""]).encode()

    def restore(self, data: bytes) -> None:
        """Forget everything and remember a snapshot. UsageError when it is none of this kind."""
        items = _items_of(data)
        with self.store.writing():
            self.store.forget(None)
            for item in items:
                self.store.add(item)
            self._catch_up()
        self.store.scrub()

    def forget(self, ids: Iterable[str] | None = None) -> int:
        """Forget items by id, or all; return how many. Nothing of them is left in the file."""
        if isinstance(ids, str):
            raise UsageError(f"forget takes a list of ids, got the text {ids!r}")
        with self.store.writing():
            count = self.store.forget(ids)
            self._catch_up()
        self.store.scrub()
        return count

    def size_bytes(self) -> int:
        """Of the file, which may hold other users' memories too."""
        return self.store.size_bytes()

    def close(self) -> None:
        """Let go of the file. Nothing is lost by not calling it."""
        self.store.close()


def _items_of(data: bytes) -> list[Item]:
    try:
        head, *lines = data.decode().removesuffix("\n").split("\n")
        version = json.loads(head)["memory_snapshot"]
    except (AttributeError, UnicodeDecodeError, ValueError, KeyError, TypeError):
        raise UsageError("this is no snapshot of a memory") from None
    if version != SNAPSHOT_VERSION:
        raise UsageError(f"snapshot of format {version!r}; this reads {SNAPSHOT_VERSION}")
    items = []
    for number, line in enumerate(lines, 2):
        step = step_from_json(line)
        if not isinstance(step, Item):
            raise UsageError(f"line {number} of the snapshot is not an item")
        items.append(step)
    return items
