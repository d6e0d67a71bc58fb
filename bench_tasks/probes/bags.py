"""Probes that were played over ROS, read from their bags: to score them again, or to replay them.

Items lie on the topics of `bench_tasks.probes.messages`, in the order in which they were said.
Events of kind `answered` say what was asked after how many of them, and what was replied; the
event `probe_over` ends a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bench_tasks.bags import cdr
from bench_tasks.bags.bag import messages
from bench_tasks.errors import UsageError
from bench_tasks.manifest import read_json
from bench_tasks.probes.messages import SHOWN, TALK, Hearing
from bench_tasks.probes.player import Record
from bench_tasks.probes.runs import Run, each_once
from bench_tasks.probes.stills import Render
from bench_tasks.probes.stream import (
    Asked,
    Item,
    Probe,
    checked,
    reply_from,
    step_from_json,
    step_to_json,
)
from bench_tasks.vocabulary import Event

__all__ = [
    "ANSWERED", "EVENTS", "OVER", "BagProbe", "Options", "answered", "probe_bags", "read_bag",
]  # fmt: skip

EVENTS = "/episode/events"
ANSWERED, OVER = "answered", "probe_over"


def answered(
    record: Record, after: int, observed_s: float, raised: dict[str, str] | None = None
) -> Event:
    """The event that says what was asked after so many items, and what came of it.

    `observed_s` is how long the memory took for the items since the question before, and `raised`
    what it raised at some of them, by id.
    """
    assert isinstance(record.step, Asked)
    data = {
        "asked": step_to_json(record.step), "after": after, "seconds": record.seconds,
        "observed_s": observed_s, "error": record.error, "raised": raised or {},
        "reply": asdict(record.reply) if record.reply is not None else None,
    }  # fmt: skip
    return Event(ANSWERED, 0, record.step.query.stamp_ns, data)


def probe_bags(folder: Path) -> list[Path]:
    """Bags of probes in a folder and below, sorted: those whose manifest names a probe."""
    files = sorted(folder.rglob("manifest.json"))
    return [file.parent for file in files if "probe" in read_json(file)]


def read_bag(path: Path) -> Run:
    """The run that a bag holds. One that was broken off has no `storage_bytes`.

    UsageError names what is missing, or cannot be read.
    """
    head = _head(path)
    hearing, items, events = Hearing(), [], []
    problems: list[str] = []
    try:
        for message in messages(path, problems, (TALK, SHOWN, EVENTS)):
            if message.topic == EVENTS:
                events.append(cdr.decode_event(message.data))
                continue
            (hearing.said if message.topic == TALK else hearing.shown)(message.data)
            items.extend(map(checked, hearing.take()))
        records, storage = _records(items, events)
        each_once(records)
    except (ValueError, KeyError, TypeError, AttributeError, UsageError) as error:
        raise UsageError(f"{path}: {error}") from None
    if hearing.waiting:
        problems.append(f"picture {hearing.waiting!r} is missing")
    if problems and storage is not None:
        raise UsageError(f"{path}: {'; '.join(problems)}")
    return Run(head["probe"], head["memory"], head["seed"], tuple(records), storage)


def _head(path: Path) -> dict[str, Any]:
    """A bag's manifest, which names probe, memory and seed; UsageError when one is not there."""
    head = read_json(path / "manifest.json")
    for name, kind in (("probe", str), ("memory", str), ("seed", int)):
        if type(head.get(name)) is not kind:
            raise UsageError(f"{path / 'manifest.json'}: {name!r} is missing or no {kind.__name__}")
    return head


def _records(items: list[Item], events: list[Event]) -> tuple[list[Record], int | None]:
    """What happened, in order, and what was stored if the run got to its end."""
    records: list[Record] = []
    heard, storage = 0, None
    raised: dict[str, str] = {}

    def hear(until: int, seconds: float) -> None:
        nonlocal heard
        if not heard <= until <= len(items):
            raise ValueError(f"{len(items)} of {until} items are there")
        records.extend(Record(item) for item in items[heard:until])
        if records and until > heard:
            records[-1] = replace(records[-1], seconds=seconds)
        heard = until

    for event in events:
        data: dict[str, Any] = event.data
        raised |= data.get("raised", {})
        if event.kind == ANSWERED:
            hear(data["after"], data["observed_s"])
            records.append(Record(
                step_from_json(data["asked"]), reply_from(data["reply"]),
                float(data["seconds"]), str(data["error"]),
            ))  # fmt: skip
        elif event.kind == OVER:
            hear(data["after"], data["observed_s"])
            storage = data["storage_bytes"]
    if storage is None:
        records.extend(Record(item) for item in items[heard:])
    for k, record in enumerate(records):
        if isinstance(record.step, Item) and record.step.id in raised:
            records[k] = replace(record, error=str(raised[record.step.id]))
    return records, storage


@dataclass(frozen=True)
class Options:
    """dir: a bag of a probe, or a folder with the bags of one probe."""

    dir: str = ""


class BagProbe:
    """Plays what is in bags again: the items and the questions, whatever was replied then."""

    Options = Options
    pictured = False

    def __init__(self, options: Options | None = None) -> None:
        """UsageError when there is no bag, or they are of several probes."""
        folder = Path((options or Options()).dir)
        if not (options and options.dir) or not folder.is_dir():
            raise UsageError(f"probe bag: dir must be a folder of bags, got {str(folder)!r}")
        self._bags: dict[int, Path] = {}
        names = set()
        for path in probe_bags(folder):
            head = _head(path)
            names.add(head["probe"])
            self._bags.setdefault(head["seed"], path)
        if len(names) != 1:
            found = f"bags of {', '.join(sorted(names))}" if names else "no bag of a probe"
            raise UsageError(f"probe bag: {found} in {folder}: one probe's bags are needed")

    def check(self, seed: int) -> None:
        """UsageError lists the seeds there are, or says what its bag lacks."""
        self._run(seed)

    def steps(self, seed: int, render: Render | None = None) -> Probe:
        """What was played with that seed. UsageError as of `check`."""
        return _replayed(self._run(seed))

    def _run(self, seed: int) -> Run:
        if seed not in self._bags:
            there = ", ".join(map(str, sorted(self._bags)))
            raise UsageError(f"no bag of seed {seed}: choose from {there}")
        run = read_bag(self._bags[seed])
        if run.storage_bytes is None:
            raise UsageError(f"{self._bags[seed]} was broken off: not all is in it")
        return run


def _replayed(run: Run) -> Iterator:
    for record in run.records:
        yield record.step
