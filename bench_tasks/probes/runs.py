"""Files of played probes: one line of JSON per step, so that a run can be scored again."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from bench_tasks.errors import UsageError
from bench_tasks.probes.player import Record
from bench_tasks.probes.stream import Asked, Reply, step_from_json, step_to_json

__all__ = ["FORMAT_VERSION", "SUFFIX", "Run", "RunWriter", "read_run"]

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
        """UsageError when the file cannot be made."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file: TextIO = path.open("w", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}") from None
        head = {"format_version": FORMAT_VERSION, "probe": probe, "memory": memory, "seed": seed}
        self._line(json.dumps({"run": head}))

    def _line(self, text: str) -> None:
        self._file.write(text + "\n")

    def keep(self, record: Record) -> None:
        """Add a step."""
        more: dict[str, Any] = {"seconds": round(record.seconds, 7)}
        if record.reply is not None:
            more["reply"] = asdict(record.reply)
        if record.error:
            more["error"] = record.error
        self._line(f"{step_to_json(record.step)[:-1]}, {json.dumps(more)[1:]}")

    def close(self, storage_bytes: int | None = None) -> None:
        """End the file; without `storage_bytes` the run counts as broken off."""
        if storage_bytes is not None:
            self._line(json.dumps({"end": {"storage_bytes": storage_bytes}}))
        self._file.close()


def read_run(path: Path) -> Run:
    """A written run; UsageError names the file and line that is malformed."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}") from None
    records, storage = [], None
    head: dict[str, Any] = {}
    for number, line in enumerate(lines, 1):
        try:
            raw = json.loads(line)
            if number == 1:
                head = raw["run"]
                if head["format_version"] != FORMAT_VERSION:
                    raise ValueError(f"format_version must be {FORMAT_VERSION}")
            elif "end" in raw:
                storage = int(raw["end"]["storage_bytes"])
            else:
                records.append(_record(raw))
        except (KeyError, TypeError, ValueError, AttributeError, UsageError) as error:
            raise UsageError(f"{path} line {number}: {error}") from None
    if not head:
        raise UsageError(f"{path} is empty")
    return Run(head["probe"], head["memory"], int(head["seed"]), tuple(records), storage)


def _record(raw: dict[str, Any]) -> Record:
    seconds, error = float(raw.pop("seconds")), str(raw.pop("error", ""))
    reply = raw.pop("reply", None)
    step = step_from_json(json.dumps(raw))
    if isinstance(step, Asked) != (reply is not None):
        raise ValueError("a question has a reply, and nothing else has")
    if reply is not None:
        reply = Reply(**{**reply, "used": tuple(reply["used"])})
    return Record(step, reply, seconds, error)
