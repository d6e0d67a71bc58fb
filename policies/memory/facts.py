"""What items say, as plain facts: the understanding that reader and structured memory share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from bench_tasks.probes.stream import Item, Picture
from bench_tasks.probes.talk import meanings

__all__ = [
    "LASTS", "OF_HIMSELF", "SAID", "SEEN", "Fact", "FactList", "Facts", "Looks", "SaidBy",
    "facts_beside", "facts_of", "rank",
]  # fmt: skip

Looks = Callable[[Picture], tuple[str, ...]]
"""Names the colours of the things that a picture shows, the largest first."""


@dataclass(frozen=True)
class Fact:
    """`relation` of `subject` is `value`, by the item and speaker who said it, at a time.

    Relations: an attribute's name; `place` of an object; `did` of a person, whose `value` is the
    event; `reason` of such an event, `subject` being (person, event) joined by a line feed; `means`
    of a word of a person's, joined likewise; `colour` of a name, or of what lies somewhere by
    somebody's hand (person and place, joined likewise); `wants` of a person, for an errand, in an
    aspect and, where it depends on that, a context (joined likewise). A value of "" says that the
    speaker does not know it, whatever he has said before.
    """

    relation: str
    subject: str
    value: str
    item: str
    speaker: str
    stamp_ns: int
    beside: tuple[str, ...] = ()
    """Further items that it rests on, as the picture that `this one` meant."""
    ends: bool = False
    """Whether it tells of a change: what anybody said before does not contradict it, it is over."""


LASTS = frozenset({"did"})
"""Relations in which a new value does not end an old one: somebody does many things."""
SAID, OF_HIMSELF, SEEN = 0, 1, 2


def rank(fact: Fact) -> int:
    """What it rests on: somebody's word, his word on himself, or what was seen."""
    if not fact.speaker or fact.beside:
        return SEEN
    return OF_HIMSELF if fact.subject.split("\n")[0] == fact.speaker else SAID


def facts_of(items: Iterable[Item], looks: Looks) -> list[Fact]:
    """All that the items say, in the order of their stamps.

    `this one` is the last picture that the same speaker showed in the same session.
    """
    found: list[Fact] = []
    shown: dict[tuple[str, str], Item] = {}
    for item in sorted(items, key=lambda one: (one.stamp_ns, one.id)):
        key = (item.session, item.speaker)
        if item.picture is not None:
            shown[key] = item
        found += facts_beside(item, shown.get(key), looks)
    return found


def facts_beside(item: Item, shown: Item | None, looks: Looks) -> list[Fact]:
    """What one item says, when `shown` is what `this one` means in it."""
    found = []
    for meaning in meanings(item.text):
        found += _facts(meaning.kind, meaning.slots, item, shown, looks)
    return found


class Facts(Protocol):
    """Facts to be asked for, wherever they are kept."""

    def find(self, relation: str, subject: str | None = None, value: str | None = None
             ) -> list[Fact]:
        """The facts of a relation, with this subject and value where given, the earliest first."""
        ...


class FactList:
    """Facts in a list that is in the order of their stamps."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        """All that is known."""
        self._of: dict[str, list[Fact]] = {}
        for fact in facts:
            self._of.setdefault(fact.relation, []).append(fact)

    def find(self, relation: str, subject: str | None = None, value: str | None = None
             ) -> list[Fact]:
        """As of `Facts`."""
        return [
            fact for fact in self._of.get(relation, ())
            if subject in (None, fact.subject) and value in (None, fact.value)
        ]  # fmt: skip


class SaidBy:
    """Of other facts those that certain speakers told, in the order in which they did."""

    def __init__(self, facts: Facts, speakers: Iterable[str]) -> None:
        """Whose word counts."""
        self._facts, self._speakers = facts, frozenset(speakers)

    def find(self, relation: str, subject: str | None = None, value: str | None = None
             ) -> list[Fact]:
        """As of `Facts`."""
        found = self._facts.find(relation, subject, value)
        return sorted((f for f in found if f.speaker in self._speakers), key=lambda f: f.stamp_ns)


def _facts(
    kind: str, slots: dict[str, str], item: Item, shown: Item | None, looks: Looks
) -> list[Fact]:
    who = item.speaker

    def fact(relation: str, subject: str, value: str, *beside: str) -> Fact:
        ends = kind in ("changed", "put", "belongs")
        return Fact(relation, subject, value, item.id, who, item.stamp_ns, beside, ends)

    if kind in ("has", "changed"):
        return [fact(slots["attribute"], who, slots["value"])]
    if kind == "told":
        return [fact(slots["attribute"], slots["person"], slots["value"])]
    if kind in ("lies", "put", "was", "belongs"):
        return [fact("place", slots["object"], slots["place"])]
    if kind == "saw":
        return [fact("did", "somebody", slots["event"])]
    if kind == "did":
        return [fact("did", who, slots["event"])]
    if kind == "because":
        event = slots["event"]
        return [fact("did", who, event), fact("reason", f"{who}\n{event}", slots["reason"])]
    if kind in ("looks", "unsure"):
        return [fact("colour", slots["name"], slots.get("value", ""))]
    if kind == "means":
        return [fact("means", f"{who}\n{slots['word']}", slots["object"])]
    if kind in ("wants", "wants_when"):
        about = [who, slots["errand"], slots["aspect"], *filter(None, [slots.get("context")])]
        return [fact("wants", "\n".join(about), slots["value"])]
    if kind in ("put_this", "calls") and shown is not None and shown.picture is not None:
        colours = looks(shown.picture)
        if colours:
            subject = f"{who}\n{slots['place']}" if kind == "put_this" else slots["name"]
            return [fact("colour", subject, colours[0], shown.id)]
    return []
