"""How far a judge agrees with the rules: what is right by both, Cohen's kappa, where they part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bench_tasks.probes.judging import Case, Judged
from bench_tasks.probes.tables import aligned
from bench_tasks.reports.stats import wilson

__all__ = ["Agreement", "agreement", "by_kind", "by_memory", "judged_tables", "judged_to_dict"]

SHOWN = 10
"""Disagreements on the screen; the file has all of them."""


@dataclass(frozen=True)
class Agreement:
    """Of replies, how many were right by both, by one alone, by neither.

    `silent` had no reply, which is wrong by both, and `unjudged` no verdict: both are in none of
    the four, and say nothing of how far rules and judge agree.
    """

    both: int
    rules_alone: int
    judge_alone: int
    neither: int
    silent: int = 0
    unjudged: int = 0

    @property
    def judged(self) -> int:
        """Replies with a verdict."""
        return self.both + self.rules_alone + self.judge_alone + self.neither

    @property
    def rules_right(self) -> int:
        """Of those with a verdict, as are the judge's."""
        return self.both + self.rules_alone

    @property
    def judge_right(self) -> int:
        """Of those with a verdict."""
        return self.both + self.judge_alone

    @property
    def raw(self) -> float | None:
        """The share of verdicts that are those of the rules; None without any."""
        return (self.both + self.neither) / self.judged if self.judged else None

    @property
    def by_chance(self) -> float | None:
        """The share that would be if each said right as often as it does, but of any replies."""
        if not self.judged:
            return None
        n, rules, judge = self.judged, self.rules_right, self.judge_right
        return (rules * judge + (n - rules) * (n - judge)) / n**2

    @property
    def kappa(self) -> tuple[float, float, float] | None:
        """Cohen's kappa and the ends of its 95 % interval; None where both always say the same.

        (agreed - by chance) / (1 - by chance), Cohen 1960. A judge that always says the same has
        0. The interval is Wilson's of what was agreed, with what is by chance taken as known, as
        Cohen's error has it; unlike that it does not shrink to nothing where all was agreed.
        """
        chance, raw = self.by_chance, self.raw
        if chance is None or raw is None or chance == 1.0:
            return None
        ends = wilson(self.both + self.neither, self.judged)
        found, low, high = ((share - chance) / (1 - chance) for share in (raw, *ends))
        return found, max(low, -1.0), high

    @property
    def constant(self) -> str:
        """Who of both always says the same, of two replies or more; "" for neither."""
        n = self.judged
        names = [name for name, right in (("rules", self.rules_right), ("judge", self.judge_right))
                 if n > 1 and right in (0, n)]  # fmt: skip
        return " and ".join(names)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        kappa = self.kappa
        return {
            "both_right": self.both, "rules_alone": self.rules_alone,
            "judge_alone": self.judge_alone, "both_wrong": self.neither,
            "no_reply": self.silent, "not_judged": self.unjudged, "judged": self.judged,
            "agreement": self.raw, "kappa": kappa[0] if kappa else None,
            "kappa_interval": list(kappa[1:]) if kappa else None, "constant": self.constant,
        }  # fmt: skip


def agreement(cases: Iterable[Case]) -> Agreement:
    """Count cases."""
    found = Counter(
        "silent" if case.silent else (case.rules, case.judged) if case.judged is not None else ""
        for case in cases
    )
    return Agreement(found[True, True], found[True, False], found[False, True],
                     found[False, False], found["silent"], found[""])  # fmt: skip


def _grouped(
    cases: Iterable[Case], name_of: Callable[[Case], tuple[str, str]]
) -> dict[tuple[str, str], Agreement]:
    groups: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        groups.setdefault(name_of(case), []).append(case)
    return {name: agreement(group) for name, group in groups.items()}


def by_memory(cases: Iterable[Case]) -> dict[tuple[str, str], Agreement]:
    """(probe, memory) -> agreement."""
    return _grouped(cases, lambda case: (case.run.probe, case.run.memory))


def by_kind(cases: Sequence[Case]) -> dict[tuple[str, str], Agreement]:
    """(probe, kind of question) -> agreement, of all memories; first of all kinds, as "all"."""
    whole = _grouped(cases, lambda case: (case.run.probe, "all"))
    parts = _grouped(cases, lambda case: (case.run.probe, case.asked.kind))
    return {**whole, **dict(sorted(parts.items()))}


def _parted(judged: Judged) -> list[dict[str, Any]]:
    return [
        {"probe": c.run.probe, "memory": c.run.memory, "seed": c.run.seed, "id": c.asked.query.id,
         "kind": c.asked.kind, "question": c.asked.query.text, "gold": c.asked.gold,
         "reply": c.reply.text, "rules": _said(c.rules), "judge": _said(c.judged)}
        for c in judged.cases if c.judged is not None and c.judged != c.rules
    ]  # fmt: skip


def _said(right: bool) -> str:
    return "right" if right else "wrong"


def _why_not(judged: Judged) -> dict[str, int]:
    reasons = Counter(c.reason for c in judged.cases if c.judged is None and not c.silent)
    return dict(reasons.most_common())


def judged_to_dict(judged: Judged) -> dict[str, Any]:
    """For JSON: who judged, every table, all disagreements, and why what was not judged."""

    def rows(groups: dict[tuple[str, str], Agreement], name: str) -> list[dict[str, Any]]:
        return [{"probe": probe, name: value, **one.to_dict()}
                for (probe, value), one in groups.items()]  # fmt: skip

    return {
        "judge": judged.identity, "served": judged.served, "file": judged.path.name,
        "calls": judged.calls, "by_memory": rows(by_memory(judged.cases), "memory"),
        "by_kind": rows(by_kind(judged.cases), "kind"), "disagreements": _parted(judged),
        "not_judged": _why_not(judged),
    }  # fmt: skip


def judged_tables(judged: Judged) -> str:
    """All of it to read."""
    head = ["probe", "memory", "by the rules", "by the judge", "95 % interval", "no reply",
            "not judged"]  # fmt: skip
    lines = [_right(*row) for row in by_memory(judged.cases).items()]
    parts = [f"judged by {judged.name}, {judged.calls} calls, kept in {judged.path}\n"
             f"{aligned([head, *lines])}"]  # fmt: skip
    head = ["probe", "kind", "judged", "agreed", "kappa", "95 % interval", "both right",
            "rules alone", "judge alone", "both wrong", "says always the same"]  # fmt: skip
    lines = [_agreed(*row) for row in by_kind(judged.cases).items()]
    parts.append(f"agreement of judge and rules\n{aligned([head, *lines])}")
    parted = _parted(judged)
    if parted:
        lines = [["rules", "judge", "gold", "reply", "question"]]
        lines += [[d["rules"], d["judge"], *(_line(d[k]) for k in ("gold", "reply", "question"))]
                  for d in parted[:SHOWN]]  # fmt: skip
        more = f", the first {SHOWN}" if len(parted) > SHOWN else ""
        parts.append(f"{len(parted)} disagreements{more}\n{aligned(lines)}")
    for reason, count in _why_not(judged).items():
        parts.append(f"{count} not judged: {reason}\n")
    return "\n".join(parts)


def _right(name: tuple[str, str], one: Agreement) -> list[str]:
    """Of what was judged or had no reply: no other question is in either share."""
    n = one.judged + one.silent
    low, high = wilson(one.judge_right, n)
    return [*name, f"{one.rules_right}/{n}", f"{one.judge_right}/{n}",
            f"{low:.0%} to {high:.0%}", str(one.silent), str(one.unjudged)]  # fmt: skip


def _agreed(name: tuple[str, str], one: Agreement) -> list[str]:
    raw = "-" if one.raw is None else f"{one.raw:.0%}"
    kappa, ends = "-", "-"
    if one.kappa:
        kappa, ends = f"{one.kappa[0]:.2f}", f"{one.kappa[1]:.2f} to {one.kappa[2]:.2f}"
    counts = (one.both, one.rules_alone, one.judge_alone, one.neither)
    return [*name, str(one.judged), raw, kappa, ends, *map(str, counts), one.constant or "-"]


def _line(text: str) -> str:
    """A text as one line that changes nothing on a terminal."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return plain if len(plain) <= 60 else f"{plain[:57]}..."
