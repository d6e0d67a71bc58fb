"""Which of five profiles each fact has, after WikiProfile (arXiv 2602.14080).

A fact is encoded when a probe that leads to where it was told is right in more than half of its
repeats, any of them; known when every phrasing from either end is. Thinking asks the other way
round. Whose value it is follows when, of all people asked for theirs, exactly one has it: that
takes the place of the answer. What a person has follows likewise from the other end, where there
was no answer: a wrong one is not seen to be wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

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

Key = tuple[str, str, str]
"""Subject, attribute and value of a fact."""


@dataclass(frozen=True)
class Profile:
    """What is known of a fact; `status` says whether it was told, untold or is inferable."""

    fact: Key
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


@dataclass
class _Asked:
    """Of one fact: status, and of each probe and repeat whether it was right, and the reply."""

    status: str
    encoding: dict[str, dict[int, bool]] = field(default_factory=dict)
    recall: dict[str, dict[int, bool]] = field(default_factory=dict)
    replies: dict[tuple[str, int], str] = field(default_factory=dict)


def profiles(records: Iterable[Record], threshold: float = THRESHOLD) -> list[Profile]:
    """The profiles of all facts of a run, in the order in which they were first asked for."""
    facts: dict[Key, _Asked] = {}
    for record in records:
        step, reply = record.step, record.reply
        if not isinstance(step, Asked) or reply is None or "fact" not in step.tags:
            continue
        subject, attribute, value = step.tags["fact"]
        known = facts.setdefault((subject, attribute, value), _Asked(step.tags["status"]))
        name, n = step.tags["probe"], step.tags["repeat"]
        group = known.encoding if step.kind == "encoding" else known.recall
        group.setdefault(name, {})[n] = is_right(step, reply)
        known.replies[name, n] = reply.text

    def often(repeats: dict[int, bool]) -> bool:
        return sum(repeats.values()) > threshold * len(repeats)

    return [
        Profile(key, one.status, any(map(often, one.encoding.values())),
                all(map(often, one.recall.values())),
                all(often({n: _with_thinking(key, name, n, ok, facts) for n, ok in rights.items()})
                    for name, rights in one.recall.items()))
        for key, one in facts.items()
    ]  # fmt: skip


def _with_thinking(key: Key, name: str, n: int, right: bool, facts: dict[Key, _Asked]) -> bool:
    """Whether the answer is right when what follows from the other end takes its place."""
    subject, attribute, value = key
    way, _, _ = name.partition(" ")
    others = {other: one for other, one in facts.items() if other[1] == attribute}
    if way == "reverse":
        found = [who for (who, _, _), one in others.items() if one.replies["direct 0", n] == value]
        return found == [subject] if len(found) == 1 else right
    if facts[key].replies[name, n]:
        return right
    found = [v for (_, _, v), one in others.items() if one.replies.get(("reverse 0", n)) == subject]
    return found == [value]


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
