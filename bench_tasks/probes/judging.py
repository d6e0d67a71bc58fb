"""Has the replies of played probes judged by a model; runs are read and never changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from bench_tasks.errors import BenchError, BrokenOff
from bench_tasks.patience import patient
from bench_tasks.probes.acted import TASK
from bench_tasks.probes.judgements import Judgement, Judgements, judgements_path
from bench_tasks.probes.runs import Run
from bench_tasks.probes.scores import is_right
from bench_tasks.probes.stream import Asked, Reply

__all__ = ["Asks", "Case", "Judged", "judge_runs"]


class Asks(Protocol):
    """A judge: `policies.judge.Judge`."""

    name: str
    identity: dict[str, Any]

    def key(self, asked: Asked, reply: Reply) -> str:
        """By which a judgement is found again."""
        ...

    def ask(self, asked: Asked, reply: Reply) -> tuple[Judgement, dict[str, Any] | None]:
        """What it says, and who it is, None if it was not called; BenchError without an answer."""
        ...


@dataclass(frozen=True)
class Case:
    """A reply with what the rules and the judge say of it.

    `judged` is None where there was no reply, or no verdict, for the `reason` given.
    """

    run: Run
    asked: Asked
    reply: Reply
    rules: bool
    key: str
    judged: bool | None = None
    reason: str = ""

    @property
    def silent(self) -> bool:
        """Whether there was no reply: nothing to judge, and wrong."""
        return not self.reply.text.strip()


@dataclass(frozen=True)
class Judged:
    """All cases; `calls` were made for them, and the rest was in the file `path`.

    `served` is what the judge turned out to be, None if it never answered.
    """

    name: str
    identity: dict[str, Any]
    served: dict[str, Any] | None
    path: Path
    calls: int
    cases: tuple[Case, ...]


def judge_runs(
    runs: Iterable[Run], judge: Asks, folder: Path,
    begun: Callable[[int], Callable[[str], None]] = lambda count: lambda text: None,
) -> Judged:
    """Judge what is not judged yet, and keep it in the judge's file in the folder.

    What arms did (`acted_runs`) is no reply, and left out. `begun` is told how many calls are to
    be made, and returns what is told of each. UsageError when the file is another judge's.
    """
    cases = [
        Case(run, asked, reply, is_right(asked, reply), judge.key(asked, reply))
        for run, asked, reply in _asked(runs)
    ]
    kept = Judgements(judgements_path(folder, judge.identity), judge.identity)
    missing = {c.key: c for c in cases if not c.silent and kept.get(c.key) is None}
    calls, failures = 0, dict[str, str]()
    if missing:
        with kept:
            calls = _call(judge, kept, missing, failures, begun(len(missing)))
    return Judged(judge.name, judge.identity, kept.served, kept.path, calls,
                  tuple(_with_verdict(case, kept, failures) for case in cases))  # fmt: skip


def _call(
    judge: Asks, kept: Judgements, missing: dict[str, Case], failures: dict[str, str],
    done: Callable[[str], None],
) -> int:
    """Ask for what is missing; how many calls were made. Why some failed gets into `failures`."""
    calls, ask = 0, patient(judge.ask)
    for key, case in missing.items():
        if kept.get(key) is not None:  # Another process was faster.
            continue
        try:
            judgement, served = ask(case.asked, case.reply)
        except BrokenOff as error:
            failures[key] = str(error)
            continue
        except BenchError as error:
            calls += 1
            failures[key] = str(error)
            kept.failed(key, str(error))
            done(f"not judged: {error}")
            continue
        if served is not None:
            calls += 1
            kept.served_by(served)
        kept.keep(key, case.asked, case.reply, judgement)
        done(judgement.verdict or f"not judged: {judgement.reason}")
    return calls


def _with_verdict(case: Case, kept: Judgements, failures: dict[str, str]) -> Case:
    if case.silent:
        return case
    judgement = kept.get(case.key) or Judgement("", reason=failures[case.key])
    if not judgement.verdict:
        return replace(case, reason=judgement.reason)
    return replace(case, judged=judgement.verdict == "right")


def _asked(runs: Iterable[Run]) -> Iterator[tuple[Run, Asked, Reply]]:
    """The questions that count, of runs that were not broken off."""
    for run in runs:
        if run.storage_bytes is None or run.probe == TASK:
            continue
        for record in run.records:
            step, reply = record.step, record.reply
            if isinstance(step, Asked) and step.scored and reply is not None:
                yield run, step, reply
