"""Answers from items by rules: memory is then measured without a model's reading.

It understands the language of `bench_tasks.probes.talk` and sees colours; what it cannot answer
from the items it was given was not mentioned, as far as it knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench_tasks.probes.stream import NOT_MENTIONED, Item, Query, Reply
from bench_tasks.probes.talk import meanings
from policies.memory.facts import Fact, Looks, facts_of

__all__ = ["RuleReader"]


class RuleReader:
    """`answer` depends on nothing but its arguments."""

    def __init__(self, looks: Looks) -> None:
        """`looks` names the colours in a picture."""
        self._looks = looks

    def answer(self, query: Query, items: Sequence[Item]) -> Reply:
        """What the items say to a question, with those that say it."""
        facts = facts_of(items, self._looks)
        asked = meanings(query.text, asked=True)
        found: tuple[str, list[Fact]] = ("", [])
        if asked and asked[0].kind in _ANSWERS:
            found = _ANSWERS[asked[0].kind](facts, asked[0].slots)
        text, rests = found
        if not text or query.choices and text not in query.choices:
            known = NOT_MENTIONED in query.choices or not query.choices
            return Reply(NOT_MENTIONED if known else "", 0.5, abstained=True)
        used = dict.fromkeys(one for fact in rests for one in (fact.item, *fact.beside))
        return Reply(text, 1.0, tuple(used))


Found = tuple[str, list[Fact]]


def _last(facts: list[Fact], relation: str, subject: str, speaker: str = "") -> Found:
    """The value that was said last; by the speaker if given and heard, else by anyone."""
    told = [f for f in facts if f.relation == relation and f.subject == subject]
    told = [f for f in told if f.speaker == speaker] or told
    return (told[-1].value, [told[-1]]) if told else ("", [])


def _attribute(facts: list[Fact], asked: dict[str, str]) -> Found:
    # Who speaks of himself knows best.
    return _last(facts, asked["attribute"], asked["person"], asked["person"])


def _place(facts: list[Fact], asked: dict[str, str]) -> Found:
    return _last(facts, "place", asked["object"])


def _place_of_word(facts: list[Fact], asked: dict[str, str]) -> Found:
    name, by = _last(facts, "means", f"{asked['person']}\n{asked['word']}")
    place, at = _last(facts, "place", name)
    return place, [*by, *at] if place else []


def _order(facts: list[Fact], asked: dict[str, str]) -> Found:
    done = [f for f in facts if f.relation == "did" and f.subject == asked["person"]]
    letters = {asked[key]: key.upper() for key in ("a", "b", "c")}
    # Of what was done twice the first time counts.
    told = {letters[f.value]: f for f in reversed(done) if f.value in letters}
    if len(told) < 3:
        return "", []
    in_order = sorted(told, key=lambda letter: told[letter].stamp_ns)
    return " -> ".join(in_order), [told[letter] for letter in in_order]


def _reason(facts: list[Fact], asked: dict[str, str]) -> Found:
    return _last(facts, "reason", f"{asked['person']}\n{asked['event']}")


def _who(facts: list[Fact], asked: dict[str, str]) -> Found:
    told = [f for f in facts if f.relation == "did" and f.value == asked["event"]]
    return (told[-1].subject, [told[-1]]) if told else ("", [])


def _how_often(facts: list[Fact], asked: dict[str, str]) -> Found:
    told = [
        f for f in facts
        if f.relation == "did" and f.subject == asked["person"] and f.value == asked["event"]
    ]  # fmt: skip
    return (str(len(told)), told) if told else ("", [])


def _colour_of_name(facts: list[Fact], asked: dict[str, str]) -> Found:
    return _last(facts, "colour", asked["name"])


def _colour_put(facts: list[Fact], asked: dict[str, str]) -> Found:
    return _last(facts, "colour", f"{asked['person']}\n{asked['place']}")


def _contradicts(facts: list[Fact], asked: dict[str, str]) -> Found:
    told = [
        f for f in facts if f.relation == asked["attribute"]
        and f.subject == f.speaker == asked["person"]
    ]  # fmt: skip
    other = [f for f in told if f.value != asked["value"]]
    return ("Yes" if other else "No", other or told) if told else ("", [])


_ANSWERS: dict[str, Callable[[list[Fact], dict[str, str]], Found]] = {
    "attribute": _attribute, "place": _place, "place_of_word": _place_of_word, "order": _order,
    "reason": _reason, "who": _who, "how_often": _how_often, "colour_of_name": _colour_of_name,
    "colour_put": _colour_put, "contradicts": _contradicts,
}  # fmt: skip
