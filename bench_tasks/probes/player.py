"""Plays a probe with a memory in one process, and keeps a record of each step."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench_tasks.probes.stream import Item, Probe, Reply, Step
from bench_tasks.protocols import Memory

__all__ = ["Record", "play", "storage_bytes"]


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

    `keep` gets each record at once. A memory that has a method `tell` (an upper bound) is told
    before each question on which items the answer rests.
    """
    records: list[Record] = []
    reply: Reply | None = None
    tell = getattr(memory, "tell", None)
    while True:
        try:
            step = steps.send(reply)
        except StopIteration:
            return records
        reply, error = None, ""
        if not isinstance(step, Item) and tell is not None:
            tell(step.evidence)
        started = clock()
        try:
            if isinstance(step, Item):
                memory.observe(step)
            else:
                reply = memory.answer(step.query)
        except Exception as raised:  # noqa: BLE001 - other people's code: anything can come
            error = f"{type(raised).__name__}: {raised}"
        took = clock() - started
        if not isinstance(step, Item) and reply is None:
            reply = Reply("", 0.0, abstained=True)
        records.append(Record(step, reply, took, error))
        if keep is not None:
            keep(records[-1])


def storage_bytes(memory: Memory, store: Path | None = None) -> int:
    """How much it keeps: the size of its file, closed, with what lies beside it; or a snapshot's.

    A memory that has a file is closed by this: before, part of it is in a journal as well.
    """
    if store is None or not store.exists():
        return len(memory.snapshot())
    memory.close()
    return sum(file.stat().st_size for file in store.parent.glob(f"{store.name}*"))
