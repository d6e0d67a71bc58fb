"""What on-policy talks measure: overall, memory score, and why answers failed (AMemGym).

    memory score of a user and period = (overall - random) / (upper bound - random)

with the upper bound of the same agent being told the state, random 1 / choices. Each question that
failed is of one kind:

    write   some variable is wrong now, and was wrong right after it was last shown
    read    else some variable is wrong now, which was right then
    use     all variables are right now, and the answer is wrong

so that write + read + use = 1 - overall, to the question.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bench_tasks.probes.player import Record
from bench_tasks.probes.runs import Run
from bench_tasks.probes.scores import is_right
from bench_tasks.probes.stream import Asked

__all__ = ["FAILURES", "Outcome", "outcomes", "report"]

FAILURES = ("write", "read", "use")


@dataclass(frozen=True)
class Outcome:
    """One question at the end of a period: right or not, and if not why.

    `failure` is "" when it is right, or when the variables were not asked for. `bound` says
    whether the same agent is right when it is told the state.
    """

    asked: Asked
    right: bool
    bound: bool
    failure: str = ""

    @property
    def period(self) -> int:
        """Counted from 0."""
        return int(self.asked.tags["period"])


def outcomes(records: tuple[Record, ...] | list[Record]) -> list[Outcome]:
    """The questions of a run with what became of them."""
    found = _by_role(records)
    bounds = {_key(asked): ok for asked, ok in found["given"]}
    now = {(asked.tags["variable"], asked.tags["period"]): ok for asked, ok in found["now"]}
    # Of what was shown again the last time counts, which is the last one not after the period.
    written: dict[str, list[tuple[int, bool]]] = {}
    for asked, ok in found["written"]:
        written.setdefault(asked.tags["variable"], []).append((asked.tags["period"], ok))
    return [
        Outcome(asked, ok, bounds.get(_key(asked), False),
                "" if ok else _failure(asked, now, written))
        for asked, ok in found["overall"]
    ]  # fmt: skip


def _by_role(records: tuple[Record, ...] | list[Record]) -> dict[str, list[tuple[Asked, bool]]]:
    found: dict[str, list[tuple[Asked, bool]]] = {
        role: [] for role in ("overall", "given", "now", "written", "turn")
    }
    for record in records:
        step = record.step
        if isinstance(step, Asked) and record.reply is not None and "role" in step.tags:
            found[step.tags["role"]].append((step, is_right(step, record.reply)))
    return found


def _key(asked: Asked) -> tuple[int, tuple[str, ...]]:
    return asked.tags["question"], tuple(asked.tags["state"])


def _failure(
    asked: Asked, now: dict[tuple[str, int], bool], written: dict[str, list[tuple[int, bool]]]
) -> str:
    period, needs = asked.tags["period"], asked.tags["needs"]
    if any((name, period) not in now for name in needs):
        return ""
    wrong = [name for name in needs if not now[name, period]]
    for name in wrong:
        then = [ok for at, ok in written.get(name, ()) if at <= period]
        if not then or not then[-1]:  # What was never shown was never written.
            return "write"
    return "read" if wrong else "use"


def report(runs: list[Run]) -> dict[str, float | None]:
    """Means over all questions, and of the memory score over users and periods."""
    each = [(k, one) for k, run in enumerate(runs) for one in outcomes(run.records)]
    total = len(each)
    if not total:
        return {}
    scores = [_memory_score(group) for group in _periods(each)]
    told = [value for value in scores if value is not None]
    explained = all(one.right or one.failure for _, one in each)
    found: dict[str, float | None] = {
        "overall": sum(one.right for _, one in each) / total,
        "random": sum(one.asked.chance for _, one in each) / total,
        "upper bound": sum(one.bound for _, one in each) / total,
        "memory score": sum(told) / len(told) if told else None,
    }
    for kind in FAILURES:
        count = sum(one.failure == kind for _, one in each)
        found[kind] = count / total if explained else None
    return found


def _periods(each: list[tuple[int, Outcome]]) -> Iterator[list[Outcome]]:
    groups: dict[tuple[int, Any], list[Outcome]] = {}
    for user, one in each:
        groups.setdefault((user, one.period), []).append(one)
    yield from groups.values()


def _memory_score(group: list[Outcome]) -> float | None:
    """None when the agent does no better with the state told than by guessing."""
    n = len(group)
    chance = sum(one.asked.chance for one in group) / n
    bound = sum(one.bound for one in group) / n
    return (sum(one.right for one in group) / n - chance) / (bound - chance) \
        if bound > chance else None  # fmt: skip
