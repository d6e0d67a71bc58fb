"""Which of five profiles each fact has, after WikiProfile (arXiv 2602.14080).

A fact is encoded when a probe that leads to where it was told is right in more than half of its
repeats, any of them; known when every phrasing from either end is; with thinking, when it is with
what follows from further questions where there was no answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from bench_tasks.probes.player import Record
from bench_tasks.probes.runs import Run
from bench_tasks.probes.scores import is_right
from bench_tasks.probes.stream import Asked

__all__ = ["PROFILES", "THRESHOLD", "Profile", "profiles", "report"]

PROFILES = (
    "not encoded", "encoded but not recalled", "directly recalled", "recalled with thinking",
    "inferred",
)  # fmt: skip
THRESHOLD = 0.5
"""Right is what is right in more than this share of the repeats."""


@dataclass(frozen=True)
class Profile:
    """What is known of a fact; `status` says whether it was told, untold or is inferable."""

    fact: str
    status: str
    encoded: bool
    known: bool
    known_with_thinking: bool

    @property
    def name(self) -> str:
        """One of `PROFILES`."""
        if not self.encoded:
            return PROFILES[4] if self.known or self.known_with_thinking else PROFILES[0]
        if self.known:
            return PROFILES[2]
        return PROFILES[3] if self.known_with_thinking else PROFILES[1]


def profiles(records: Iterable[Record], threshold: float = THRESHOLD) -> list[Profile]:
    """The profiles of all facts of a run, in the order in which they were first asked for."""
    asked: dict[str, dict[tuple[str, str], dict[int, bool]]] = {}
    thought: dict[tuple[str, str, int], list[tuple[str, str, bool]]] = defaultdict(list)
    golds: dict[tuple[str, str, int], str] = {}
    statuses: dict[str, str] = {}
    for record in records:
        step, reply = record.step, record.reply
        if not isinstance(step, Asked) or reply is None or "fact" not in step.tags:
            continue
        fact, name, n = step.tags["fact"], step.tags["probe"], step.tags["repeat"]
        if "would_be" in step.tags:
            thought[fact, name, n].append((step.tags["would_be"], step.gold, is_right(step, reply)))
            continue
        statuses[fact] = step.tags["status"]
        kind = "encoding" if step.kind == "encoding" else "recall"
        asked.setdefault(fact, {}).setdefault((kind, name), {})[n] = is_right(step, reply)
        golds[fact, name, n] = step.gold
    return [_profile(fact, statuses[fact], probes, thought, golds, threshold)
            for fact, probes in asked.items()]  # fmt: skip


def _profile(
    fact: str, status: str, probes: dict[tuple[str, str], dict[int, bool]],
    thought: dict[tuple[str, str, int], list[tuple[str, str, bool]]],
    golds: dict[tuple[str, str, int], str], threshold: float,
) -> Profile:
    def often(repeats: dict[int, bool]) -> bool:
        return sum(repeats.values()) > threshold * len(repeats)

    encoded = [often(rights) for (kind, _), rights in probes.items() if kind == "encoding"]
    recalled = {name: rights for (kind, name), rights in probes.items() if kind == "recall"}
    with_thinking = {
        name: {n: ok or _follows(thought[fact, name, n], golds[fact, name, n])
               for n, ok in rights.items()}
        for name, rights in recalled.items()
    }  # fmt: skip
    return Profile(fact, status, any(encoded), all(map(often, recalled.values())),
                   all(map(often, with_thinking.values())))  # fmt: skip


def _follows(thoughts: list[tuple[str, str, bool]], gold: str) -> bool:
    """Whether exactly one possible answer was confirmed, and that is the right one."""
    return [would_be for would_be, _, confirmed in thoughts if confirmed] == [gold]


def report(runs: list[Run]) -> dict[str, float | None]:
    """Shares of the five profiles among facts that were told; then of those that were not."""
    found = [one for run in runs for one in profiles(run.records)]
    told = [one for one in found if one.status == "told"]
    shares = {name: _share(told, {name}) for name in PROFILES[:4]}
    shares["told, inferred"] = _share(told, {PROFILES[4]})
    rest = {status: [one for one in found if one.status == status]
            for status in ("inferable", "untold")}  # fmt: skip
    shares["inferable, inferred"] = _share(rest["inferable"], {PROFILES[4]})
    shares["untold, not encoded"] = _share(rest["untold"], {PROFILES[0]})
    return shares


def _share(found: list[Profile], names: set[str]) -> float | None:
    return sum(one.name in names for one in found) / len(found) if found else None
