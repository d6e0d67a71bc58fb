"""Files of played probes: one line of JSON per step, so that a run can be scored again."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from bench_tasks.errors import BenchError, UsageError
from bench_tasks.probes.player import Record
from bench_tasks.probes.stream import Asked, reply_from, step_from_json, step_to_json

__all__ = ["FORMAT_VERSION", "SUFFIX", "Run", "RunWriter", "each_once", "read_run"]

FORMAT_VERSION = 1
SUFFIX = ".run.jsonl"


@dataclass(frozen=True)
class Run:
    """A probe played with a memory: specifications of both, seed, all steps, and what was kept.

    `storage_bytes` is None when the file ends before the run did.
    """

    probe: str
    memory: str
    seed: int
    records: tuple[Record, ...]
    storage_bytes: int | None = None

    @property
    def asked(self) -> list[Record]:
        """The records of questions."""
        return [record for record in self.records if isinstance(record.step, Asked)]


class RunWriter:
    """Writes a run while it is played; `close` says how it ended."""

    def __init__(self, path: Path, probe: str, memory: str, seed: int) -> None:
        """UsageError when the file is there already, or cannot be made."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Of two that begin at once one has it; a line is on the disk before the next is due.
            self._file: TextIO = path.open("x", encoding="utf-8", buffering=1)
        except FileExistsError:
            raise UsageError(f"{path} exists already: choose another folder") from None
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}") from None
        head = {"format_version": FORMAT_VERSION, "probe": probe, "memory": memory, "seed": seed}
        self._line(json.dumps({"run": head}))

    def _line(self, text: str) -> None:
        try:
            self._file.write(text + "\n")
        except OSError as error:
            raise BenchError(f"cannot write {self._file.name}: {error.strerror}") from None

    def keep(self, record: Record) -> None:
        """Add a step. BenchError when the disk does not take it."""
        more: dict[str, Any] = {"seconds": round(record.seconds, 7)}
        if record.reply is not None:
            more["reply"] = asdict(record.reply)
        if record.error:
            more["error"] = record.error
        self._line(f"{step_to_json(record.step)[:-1]}, {json.dumps(more)[1:]}")

    def close(self, storage_bytes: int | None = None) -> None:
        """End the file; without `storage_bytes` the run counts as broken off."""
        try:
            if storage_bytes is not None:
                self._line(json.dumps({"end": {"storage_bytes": storage_bytes}}))
        finally:
            with suppress(OSError):  # What a full disk did not take was told at its line.
                self._file.close()


def read_run(path: Path) -> Run:
    """A written run; UsageError names the file and line that is malformed.

    A last line without its end is what a killed process, or a full disk, left: the run was broken
    off there, and is named after its file if not even its head is whole.
    """
    try:
        *lines, rest = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}") from None
    records, storage = [], None
    head: dict[str, Any] = {}
    for number, line in enumerate(lines, 1):
        try:
            raw = json.loads(line)
            if number == 1:
                head = _head(raw["run"])
            elif storage is not None:
                raise ValueError("the run had ended before")
            elif "end" in raw:
                storage = raw["end"]["storage_bytes"]
                if type(storage) is not int or storage < 0:
                    raise ValueError(f"storage_bytes must be 0 or more, got {storage!r:.80}")
            else:
                records.append(_record(raw))
        except (
            KeyError, TypeError, ValueError, AttributeError, RecursionError, UsageError,
        ) as error:  # fmt: skip
            raise UsageError(f"{path} line {number}: {error}") from None
    if rest and storage is not None:
        raise UsageError(f"{path} line {len(lines) + 1}: the run had ended before")
    if not head:
        if rest and not rest.startswith('{"run"'[: len(rest)]):
            raise UsageError(f"{path} is no run")
        return Run(path.parent.name, path.name.removesuffix(SUFFIX), 0, ())
    try:
        each_once(records)
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None
    return Run(head["probe"], head["memory"], head["seed"], tuple(records), storage)


def each_once(records: list[Record]) -> None:
    """ValueError when an item or question is there twice: it would be scored another time."""
    ids: set[tuple[str, str]] = set()
    for step in (record.step for record in records):
        asked = isinstance(step, Asked)
        one = ("question", step.query.id) if asked else ("item", step.id)
        if one in ids:
            raise ValueError(f"{one[0]} {one[1]!r} is there twice")
        ids.add(one)


def _head(raw: dict[str, Any]) -> dict[str, Any]:
    if raw["format_version"] != FORMAT_VERSION:
        raise ValueError(f"format_version must be {FORMAT_VERSION}")
    for name, kind in (("probe", str), ("memory", str), ("seed", int)):
        if type(raw[name]) is not kind:
            raise ValueError(f"{name} must be of type {kind.__name__}, got {raw[name]!r:.80}")
        str(raw[name]).encode()
    return raw


def _record(raw: dict[str, Any]) -> Record:
    seconds, error = float(raw.pop("seconds")), str(raw.pop("error", ""))
    if not 0 <= seconds < math.inf:
        raise ValueError(f"seconds must be 0 or more, got {seconds}")
    reply = raw.pop("reply", None)
    step = step_from_json(json.dumps(raw))
    if isinstance(step, Asked) != (reply is not None):
        raise ValueError("a question has a reply, and nothing else has")
    if reply is not None:
        reply = reply_from(reply)
    return Record(step, reply, seconds, error)
