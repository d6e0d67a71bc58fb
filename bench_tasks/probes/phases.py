"""How well acts were done, phase by phase, and how much the person had to say for it.

After PAHF (arXiv 2602.16173): success rate, feedback frequency, and ACPE_t, the mean of
(1 - success) over the first t acts of a phase. An act consists of the questions of one scenario; a
question that was put again after a clarification counts by its last reply.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from bench_tasks.probes.player import Record
from bench_tasks.probes.scores import is_right
from bench_tasks.probes.stream import Item
from bench_tasks.reports.stats import wilson

__all__ = ["Act", "Phase", "acts_of", "phases_of"]


@dataclass
class Act:
    """One scenario: aspect -> whether it was done right, and what is expected of a guess there."""

    phase: str
    number: int
    right: dict[str, bool] = field(default_factory=dict)
    guess: dict[str, float] = field(default_factory=dict)
    """1 or 0 where an answer was given, chance where none was."""
    chance: dict[str, float] = field(default_factory=dict)
    told_before: bool = False
    told_after: bool = False

    @property
    def success(self) -> bool:
        """Whether all of it was right."""
        return all(self.right.values())


@dataclass(frozen=True)
class Phase:
    """`acts` over all runs, of which `right` in all aspects; Wilson's 95 % interval of their share.

    `guessing` is what is expected if each abstention were a guess instead, `chance` what is if all
    were. `feedback` is the share of acts to which anything was said, `before` and `after` those
    before and after the act. `acpe` is the mean over the runs for each t.
    """

    name: str
    acts: int
    right: int
    low: float
    high: float
    guessing: float
    chance: float
    aspects: dict[str, float]
    feedback: float
    before: float
    after: float
    acpe: tuple[float, ...]

    @property
    def success(self) -> float:
        """Share of acts that were right in all aspects."""
        return self.right / self.acts

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "success": self.success}


def acts_of(records: Iterable[Record]) -> list[Act]:
    """The acts of one run, in their order; none where questions have no scenarios."""
    acts: dict[tuple[str, int], Act] = {}
    of: dict[str, Act] = {}
    """The act of a question."""
    again: set[str] = set()
    comments: list[str] = []
    for record in records:
        step = record.step
        if isinstance(step, Item):
            if step.about is not None:
                comments.append(step.about)
        elif "scenario" in step.tags and record.reply is not None:
            key = (str(step.tags["phase"]), int(step.tags["scenario"]))
            act = acts.setdefault(key, Act(*key))
            of[step.query.id] = act
            if "instead_of" in step.tags:
                again.add(str(step.tags["instead_of"]))
                of.setdefault(str(step.tags["instead_of"]), act)
            right = is_right(step, record.reply)
            act.right[step.kind], act.chance[step.kind] = right, step.chance
            act.guess[step.kind] = step.chance if record.reply.abstained else float(right)
    for about in comments:
        if about in of:
            of[about].told_before |= about in again
            of[about].told_after |= about not in again
    return list(acts.values())


def phases_of(runs: Sequence[Iterable[Record]]) -> list[Phase]:
    """All phases, over all runs."""
    each = [acts_of(records) for records in runs]
    names = dict.fromkeys(act.phase for acts in each for act in acts)
    return [_phase(name, [[a for a in acts if a.phase == name] for acts in each]) for name in names]


def _phase(name: str, runs: list[list[Act]]) -> Phase:
    runs = [acts for acts in runs if acts]
    acts = [act for run in runs for act in run]
    right = sum(act.success for act in acts)
    low, high = wilson(right, len(acts))
    longest = max(len(run) for run in runs)
    acpe = tuple(
        _mean([_mean([not act.success for act in run[:t]]) for run in runs])
        for t in range(1, longest + 1)
    )
    aspects = dict.fromkeys(aspect for act in acts for aspect in act.right)
    return Phase(
        name, len(acts), right, low, high,
        _mean([math.prod(act.guess.values()) for act in acts]),
        _mean([math.prod(act.chance.values()) for act in acts]),
        {aspect: _mean([act.right[aspect] for act in acts if aspect in act.right])
         for aspect in aspects},
        _mean([act.told_before or act.told_after for act in acts]),
        _mean([act.told_before for act in acts]), _mean([act.told_after for act in acts]), acpe,
    )  # fmt: skip


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
