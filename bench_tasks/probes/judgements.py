"""Files of judgements: what one judge said of replies, so that it is asked for each only once.

A file begins with who the judge is, and takes no other's. Each line is on the disk before the next
reply is judged; what a killed process left of a line is cut off when the next one is written.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from bench_tasks.errors import BenchError, UsageError
from bench_tasks.manifest import utc_now
from bench_tasks.probes.stream import Asked, Reply

__all__ = ["FORMAT_VERSION", "SUFFIX", "VERDICTS", "Judgement", "Judgements", "judgements_path"]

FORMAT_VERSION = 1
SUFFIX = ".judge.jsonl"
VERDICTS = ("right", "wrong")
_HEAD = '{"judgements": '


@dataclass(frozen=True)
class Judgement:
    """What a judge made of a reply: `verdict` right, wrong, or "" with the `reason` why none.

    `said` is its answer as it came.
    """

    verdict: str
    said: str = ""
    reason: str = ""


def judgements_path(folder: Path, identity: dict[str, Any]) -> Path:
    """Where a judge's file lies beside runs: named by what the judge is."""
    folder = folder if folder.is_dir() else folder.parent
    told = json.dumps(identity, sort_keys=True)
    name = re.sub(r"\W+", "-", f"{identity['planner']}-{identity['model']}").strip("-")[:80]
    return folder / f"{name}-{sha256(told.encode()).hexdigest()[:12]}{SUFFIX}"


class Judgements:
    """What is in a file so far, and in a `with` block, more of it."""

    def __init__(self, path: Path, identity: dict[str, Any]) -> None:
        """UsageError when the file is of another judge, of another format, or cannot be read."""
        self.path, self._identity = path, identity
        self.served: dict[str, Any] | None = None
        """What the judge turned out to be, once it has answered."""
        self._found: dict[str, Judgement] = {}
        self._file: BinaryIO | None = None
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            data = b""
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}") from None
        self._read(data)

    def get(self, key: str) -> Judgement | None:
        """The judgement with that key, if there is one."""
        return self._found.get(key)

    def __enter__(self) -> Judgements:
        """Begin to write. UsageError when another process does, or the disk does not let us."""
        try:
            self._file = self.path.open("a+b", buffering=0)
        except OSError as error:
            raise UsageError(f"cannot write {self.path}: {error.strerror}") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._file.seek(0)
            whole = self._read(self._file.read())  # Another process may have gone on with it.
            self._file.truncate(whole)
        except BlockingIOError:
            self._file.close()
            raise UsageError(f"another process is judging into {self.path}") from None
        except OSError as error:
            self._file.close()
            raise UsageError(f"cannot write {self.path}: {error.strerror}") from None
        except BaseException:
            self._file.close()
            raise
        if not whole:
            head = {"format_version": FORMAT_VERSION, "created": utc_now(),
                    "judge": self._identity}  # fmt: skip
            self._line({"judgements": head})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the writing."""
        assert self._file is not None
        with suppress(OSError):  # What a full disk did not take was told at its line.
            self._file.close()

    def served_by(self, served: dict[str, Any]) -> None:
        """Who it is that answers. UsageError when it is another than who has answered before."""
        if self.served is None:
            self._line({"served": served})
            self.served = served
        if served != self.served:
            names = [name for name in {**self.served, **served}
                     if self.served.get(name) != served.get(name)]  # fmt: skip
            was, now = ({name: one.get(name) for name in names} for one in (self.served, served))
            raise UsageError(f"{self.path} is of another judge, with {_short(was)}: "
                             f"now it has {_short(now)}")  # fmt: skip

    def keep(self, key: str, asked: Asked, reply: Reply, judgement: Judgement) -> None:
        """Add a judgement; what it is of is for people to read. BenchError on a full disk."""
        line: dict[str, Any] = {
            "key": key, "verdict": judgement.verdict, "said": judgement.said,
            "question": asked.query.text, "gold": asked.gold, "reply": reply.text,
        }  # fmt: skip
        if judgement.reason:
            line["reason"] = judgement.reason
        self._line(line)
        self._found.setdefault(key, judgement)

    def failed(self, key: str, reason: str) -> None:
        """Note that there was no answer: it will be asked for again."""
        self._line({"failed": {"key": key, "reason": reason, "at": utc_now()}})

    def _line(self, value: dict[str, Any]) -> None:
        assert self._file is not None
        data = (json.dumps(value) + "\n").encode()
        try:
            while data:  # A full disk takes the beginning.
                data = data[self._file.write(data) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            raise BenchError(f"cannot write {self.path}: {error.strerror}") from None

    def _read(self, data: bytes) -> int:
        """Take in what is in the file; returns how much of it are whole lines."""
        *lines, rest = data.split(b"\n")
        if not lines and not _HEAD.encode().startswith(rest[: len(_HEAD)]):
            raise UsageError(f"{self.path} is no file of judgements")
        for number, line in enumerate(lines, 1):
            try:
                self._take(json.loads(line), first=number == 1)
            except UsageError:
                raise
            except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
                raise UsageError(f"{self.path} line {number}: {error!s:.200}") from None
        return len(data) - len(rest)

    def _take(self, raw: dict[str, Any], first: bool) -> None:
        if first:
            head = raw["judgements"]
            if head["format_version"] != FORMAT_VERSION:
                raise ValueError(f"format_version must be {FORMAT_VERSION}, got "
                                 f"{head['format_version']!r:.80}")  # fmt: skip
            if head["judge"] != self._identity:
                raise UsageError(f"{self.path} is of another judge, {_short(head['judge'])}")
        elif "served" in raw:
            if not isinstance(raw["served"], dict) or self.served not in (None, raw["served"]):
                raise ValueError("served must be one object, and the same throughout")
            self.served = raw["served"]
        elif "failed" not in raw:
            found = Judgement(raw["verdict"], raw["said"], raw.get("reason", ""))
            if found.verdict not in VERDICTS and (found.verdict or not found.reason):
                raise ValueError(f"verdict must be right or wrong, or there must be a reason, got "
                                 f"{found.verdict!r:.80}")  # fmt: skip
            self._found.setdefault(str(raw["key"]), found)


def _short(value: dict[str, Any]) -> str:
    text = ", ".join(f"{name} {one}" for name, one in value.items())
    return text if len(text) <= 300 else f"{text[:297]}..."
