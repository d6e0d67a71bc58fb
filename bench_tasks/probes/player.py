"""Plays a probe with a memory in one process, and keeps a record of each step."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from bench_tasks.errors import BrokenOff, MemoryRaised
from bench_tasks.probes.stream import Item, Probe, Reply, Step, checked
from bench_tasks.protocols import Memory

__all__ = ["Record", "play", "shown", "storage_bytes"]


@dataclass(frozen=True)
class Record:
    """One step, what was replied if it was a question, and how long the memory took for it.

    `error` says what the memory raised instead, "" if nothing; its reply then counts as none.
    """

    step: Step
    reply: Reply | None = None
    seconds: float = 0.0
    error: str = ""


def play(
    steps: Probe, memory: Memory, keep: Callable[[Record], None] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> list[Record]:
    """Let the memory observe every item and answer every question, in the order of the steps.

    `keep` gets each record, the sooner the better. A memory that has a method `tell` (an upper
    bound) is told before each question on which items the answer rests; one with `settle` may do
    then what else has to be done about the items, and its time is the last item's. What a memory
    raises is on record, and goes no further; BrokenOff alone does, since nothing would be answered.
    """
    records: list[Record] = []
    reply: Reply | None = None
    tell, settle = getattr(memory, "tell", None), getattr(memory, "settle", None)

    def timed(do: Callable[[], Reply | None]) -> tuple[Reply | None, float, str]:
        started, error, found = clock(), "", None
        try:
            found = do()
        except BrokenOff:
            raise
        except Exception as raised:  # noqa: BLE001 - other people's code: anything can come
            error = shown(raised)
        return found, clock() - started, error

    def add(record: Record) -> None:
        if keep is not None:
            keep(record)
        records.append(record)

    last: Record | None = None
    """The last item's, until it is known what comes after it."""
    while True:
        try:
            step: Step | None = steps.send(reply)
        except StopIteration:
            step = None
        if last is not None:
            if settle is not None and not isinstance(step, Item):
                _, took, error = timed(settle)
                last = replace(last, seconds=last.seconds + took, error=last.error or error)
            add(last)
            last = None
        if step is None:
            return records
        if isinstance(step, Item):
            item, reply = step, None
            _, took, error = timed(lambda item=item: memory.observe(item))
            last = Record(step, None, took, error)
            continue
        if tell is not None:
            tell(step.evidence)
        query = step.query
        reply, took, error = timed(lambda query=query: checked(memory.answer(query)))
        reply = reply or Reply("", 0.0, abstained=True)
        add(Record(step, reply, took, error))


def shown(raised: Exception) -> str:
    """What a memory raised, as it is on record, wherever it was raised."""
    return str(raised) if isinstance(raised, MemoryRaised) else f"{type(raised).__name__}: {raised}"


def storage_bytes(memory: Memory, store: Path | None = None) -> int:
    """How much it keeps: the size of its file, closed, with what lies beside it; or a snapshot's.

    A memory that has a file is closed by this: before, part of it is in a journal as well.
    """
    if store is None or not store.exists():
        return len(memory.snapshot())
    memory.close()
    return sum(file.stat().st_size for file in store.parent.glob(f"{store.name}*"))
