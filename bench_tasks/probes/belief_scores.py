"""What the probe of belief measures: CoRe as published, and so that no constant answer wins it.

CoRe (arXiv 2602.16493), where truth is a colour: b [y = y*] + (1 - b) w(y*) / 100; where it is not
known: w(UNKNOWN) / 100 - g [y is not UNKNOWN]; the mean over types A to D. Its weights are not
given where it was published: b = 0.5 and g = 1 here. Who always says UNKNOWN has half of what can
be had, and may be ahead of who mostly answers right.

`fair` is b times how far the verdict is above chance, plus (1 - b) times how far the wager is above
an even one by Brier's score, a proper one: 1 - sum (w / 100 - [it is y*])^2 / (2 / 3). Each of the
three answers counts alike, so that whoever always says and bets the same has 0 at most.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from bench_tasks.probes.player import Record
from bench_tasks.probes.runs import Run
from bench_tasks.probes.stream import UNKNOWN, Asked

__all__ = ["Answered", "answered", "core", "fair", "points", "report"]

BETA, GAMMA = 0.5, 1.0
CHANCE = 1 / 3
POINTS = 100


@dataclass(frozen=True)
class Answered:
    """One case with its verdict, wager (three numbers, on `sides` and UNKNOWN) and reflection."""

    kind: str
    gold: str
    sides: tuple[str, str]
    verdict: str
    wager: tuple[float, float, float]
    reflection: str
    mode: str = "text"

    @property
    def choices(self) -> tuple[str, str, str]:
        """What points are put on."""
        return (*self.sides, UNKNOWN)

    @property
    def staked(self) -> float:
        """Points on what is true."""
        return self.wager[self.choices.index(self.gold)]


def points(text: str, choices: Sequence[str]) -> tuple[float, ...]:
    """Points on each choice, as told in words like `red 70, UNKNOWN 30`.

    More than 100 in all are scaled down to 100. What is not told of, or not understood, has none.
    """
    found = []
    for choice in choices:
        stake = rf"\b{re.escape(choice)}\b\D{{0,12}}?(\d+(?:\.\d+)?)"
        match = re.search(stake, text, re.IGNORECASE)
        found.append(float(match.group(1)) if match else 0.0)
    total = sum(found)
    return tuple(f * POINTS / total for f in found) if total > POINTS else tuple(found)


def answered(records: Iterable[Record]) -> list[Answered]:
    """The cases in one run's records, in the order of their verdicts."""
    found, texts = [], {}
    for record in records:
        step = record.step
        if not isinstance(step, Asked) or "step" not in step.tags:
            continue
        texts[step.tags["step"]] = record.reply.text if record.reply is not None else ""
        if step.tags["step"] == "reflection":
            a, b = step.tags["sides"]
            on = points(texts["wager"], (a, b, UNKNOWN))
            found.append(Answered(step.kind, step.gold, (a, b), texts["verdict"],
                                  (on[0], on[1], on[2]), texts["reflection"], step.tags["mode"]))
    return found


def core(cases: Iterable[Answered], types: str = "ABCD") -> float | None:
    """CoRe as published, the mean over the types; None when one of them is missing."""
    cases = list(cases)
    by = {kind: [_core(case) for case in cases if case.kind == kind] for kind in types}
    return fmean(map(fmean, by.values())) if all(by.values()) else None


def _core(case: Answered) -> float:
    right = case.verdict == case.gold
    if case.gold == UNKNOWN:
        return case.staked / POINTS - GAMMA * (not right)
    return BETA * right + (1 - BETA) * case.staked / POINTS


def fair(cases: Iterable[Answered]) -> float | None:
    """1 for who is always right and sure of it, 0 at most for who always says the same."""
    by: list[list[float]] = [[], [], []]
    for case in cases:
        by[case.choices.index(case.gold)].append(_fair(case))
    return fmean(map(fmean, by)) if all(by) else None


def _fair(case: Answered) -> float:
    verdict = ((case.verdict == case.gold) - CHANCE) / (1 - CHANCE)
    off = sum((on / POINTS - (choice == case.gold)) ** 2
              for on, choice in zip(case.wager, case.choices, strict=True))  # fmt: skip
    return BETA * verdict + (1 - BETA) * (1 - off / (2 / 3))


def report(runs: Iterable[Run]) -> dict[str, float | None]:
    """All measures of finished runs.

    actionable: right of what was answered otherwise than by UNKNOWN, and answered: how much that
    is. SCR: of the first verdicts that were wrong those that reflection put right; FCR: of those
    that were right those that it turned. placebo_D: CoRe of type D in texts less that in pictures.
    """
    cases = [case for run in runs for case in answered(run.records)]
    told = [case for case in cases if case.verdict in case.sides]
    right = [case for case in cases if case.verdict == case.gold]
    wrong = [case for case in cases if case.verdict != case.gold]
    text, image = (core([c for c in cases if c.mode == m], "D") for m in ("text", "image"))
    return {
        "CoRe": core(cases), "fair": fair(cases),
        **{f"CoRe_{kind}": core(cases, kind) for kind in "ABCDR"},
        "actionable": _share(case.verdict == case.gold for case in told),
        "answered": _share(case.verdict in case.sides for case in cases),
        "SCR": _share(case.reflection == case.gold for case in wrong),
        "FCR": _share(case.reflection != case.gold for case in right),
        "placebo_D": None if text is None or image is None else text - image,
        "always_UNKNOWN": core(map(_unknown, cases)),
    }  # fmt: skip


def _unknown(case: Answered) -> Answered:
    return Answered(case.kind, case.gold, case.sides, UNKNOWN, (0.0, 0.0, 100.0), UNKNOWN)


def _share(hits: Iterable[bool]) -> float | None:
    found = list(hits)
    return fmean(found) if found else None
