"""Answers from items by rules: memory is then measured without a model's reading.

It understands the language of `bench_tasks.probes.talk` and sees colours; what it cannot answer
from the items it was given was not mentioned, as far as it knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench_tasks.probes.stream import Item, Query, Reply, refusal_of
from bench_tasks.probes.talk import counting, meanings, state_in_words, suiting
from policies.memory.facts import SEEN, Fact, FactList, Facts, Looks, SaidBy, facts_of, rank
from policies.memory.wager import bet, is_wager

__all__ = ["RuleReader", "answer_from"]


class RuleReader:
    """`answer` depends on nothing but its arguments."""

    def __init__(self, looks: Looks) -> None:
        """`looks` names the colours in a picture."""
        self.looks = looks

    def answer(self, query: Query, items: Sequence[Item]) -> Reply:
        """What the items say to a question, with those that say it."""
        return answer_from(query, FactList(facts_of(items, self.looks)))


def answer_from(query: Query, facts: Facts) -> Reply:
    """What facts say to a question, with the items that they rest on."""
    if is_wager(query):
        return bet(query, lambda plain: answer_from(plain, facts))
    asked = meanings(query.text, asked=True)
    _, counts = counting(query.text)
    if counts is not None:
        facts = SaidBy(facts, counts)
    found: Found = ("", [])
    if asked and asked[0].kind == "cloze":
        found = _completed(facts, asked[0].slots, query.choices)
    elif asked and asked[0].kind in _ANSWERS:
        found = _ANSWERS[asked[0].kind](facts, asked[0].slots)
    text, rests = found
    if not text or query.choices and text not in query.choices:
        return Reply(refusal_of(query), 0.5, abstained=True)
    used = dict.fromkeys(one for fact in rests for one in (fact.item, *fact.beside))
    return Reply(text, 1.0, tuple(used))


Found = tuple[str, list[Fact]]


def _last(facts: Facts, relation: str, subject: str, speaker: str = "") -> Found:
    """The value that was said last; by the speaker if given and heard, else by anyone."""
    told = facts.find(relation, subject)
    told = [f for f in told if speaker and f.speaker == speaker] or told
    return (told[-1].value, [told[-1]]) if told else ("", [])


def _attribute(facts: Facts, asked: dict[str, str]) -> Found:
    # Who speaks of himself knows best.
    return _last(facts, asked["attribute"], asked["person"], asked["person"])


def _place(facts: Facts, asked: dict[str, str]) -> Found:
    return _last(facts, "place", asked["object"])


def _place_before(facts: Facts, asked: dict[str, str]) -> Found:
    told = [f for f in facts.find("place", asked["object"]) if f.value != asked["place"]]
    return (told[-1].value, [told[-1]]) if told else ("", [])


def _what_was(facts: Facts, asked: dict[str, str]) -> Found:
    things = asked["things"].split(", ")
    told = [f for f in facts.find("place", value=asked["place"]) if f.subject in things]
    return (told[-1].subject, [told[-1]]) if told else ("", [])


def _what_first(facts: Facts, asked: dict[str, str]) -> Found:
    """What was first told to be right or wrong."""
    told = [f for value in ("right", "wrong") for f in facts.find("place", value=value)
            if f.subject in asked["things"].split(", ")]  # fmt: skip
    first = sorted(told, key=lambda fact: fact.stamp_ns)[:1]
    return (first[0].subject, first) if first else ("", [])


def _what_moved(facts: Facts, asked: dict[str, str]) -> Found:
    """What is elsewhere than where it was at first; nothing if all were seen there again."""
    told = [facts.find("place", thing) for thing in asked["things"].split(", ")]
    for seen in told:
        if seen and seen[0].value != seen[-1].value:
            return seen[0].subject, [seen[0], seen[-1]]
    rests = [fact for seen in told if len(seen) > 1 for fact in (seen[0], seen[-1])]
    return ("nothing", rests) if rests else ("", [])


def _place_of_word(facts: Facts, asked: dict[str, str]) -> Found:
    name, by = _last(facts, "means", f"{asked['person']}\n{asked['word']}")
    place, at = _last(facts, "place", name)
    return place, [*by, *at] if place else []


def _order(facts: Facts, asked: dict[str, str]) -> Found:
    letters = {asked[key]: key.upper() for key in ("a", "b", "c")}
    # Of what was done twice the first time counts.
    done = [facts.find("did", asked["person"], event)[:1] for event in letters]
    told = sorted((f for found in done for f in found), key=lambda f: f.stamp_ns)
    if len(told) < 3:
        return "", []
    return " -> ".join(letters[f.value] for f in told), told


def _reason(facts: Facts, asked: dict[str, str]) -> Found:
    return _last(facts, "reason", f"{asked['person']}\n{asked['event']}")


def _who(facts: Facts, asked: dict[str, str]) -> Found:
    told = facts.find("did", value=asked["event"])
    return (told[-1].subject, [told[-1]]) if told else ("", [])


def _how_often(facts: Facts, asked: dict[str, str]) -> Found:
    told = facts.find("did", asked["person"], asked["event"])
    return (str(len(told)), told) if told else ("", [])


def _colour_of_name(facts: Facts, asked: dict[str, str]) -> Found:
    return _last(facts, "colour", asked["name"])


def _colour_put(facts: Facts, asked: dict[str, str]) -> Found:
    return _last(facts, "colour", f"{asked['person']}\n{asked['place']}")


def _again(facts: Facts, asked: dict[str, str]) -> Found:
    """A second look: what was seen counts, whoever spoke last; what is disputed is not known."""
    told = facts.find("colour", asked["name"])
    seen = [fact for fact in told if rank(fact) == SEEN]
    if not seen and len({fact.value for fact in {f.speaker: f for f in told}.values()}) > 1:
        return "", []
    found = (seen or told)[-1:]
    return (found[0].value, found) if found else ("", [])


def _contradicts(facts: Facts, asked: dict[str, str]) -> Found:
    told = facts.find(asked["attribute"], asked["person"])
    told = [f for f in told if f.speaker == asked["person"]]
    other = [f for f in told if f.value != asked["value"]]
    return ("Yes" if other else "No", other or told) if told else ("", [])


def _which(facts: Facts, asked: dict[str, str]) -> Found:
    """What was said last, in general or for this context."""
    about = "\n".join(asked[key] for key in ("person", "errand", "aspect"))
    said = [_last(facts, "wants", subject, asked["person"])
            for subject in (about, f"{about}\n{asked['context']}")]  # fmt: skip
    return max(said, key=lambda found: max((f.stamp_ns for f in found[1]), default=-1))


def _whose(facts: Facts, asked: dict[str, str]) -> Found:
    """Who has it as far as is known of him: somebody may be said to have it, and say otherwise."""
    told = facts.find(asked["attribute"], value=asked["value"])
    for fact in reversed(told):
        value, rests = _attribute(facts, {"person": fact.subject, **asked})
        if value == asked["value"]:
            return fact.subject, rests
    return "", []


def _completed(facts: Facts, asked: dict[str, str], choices: Sequence[str]) -> Found:
    """The choice with which a sentence says what that person has said."""
    who = asked["person"]
    for choice in choices:
        sentence = Item("", 0, "", who, f"{asked['start']} {choice}.")
        for said in facts_of([sentence], lambda picture: ()):
            told = [f for f in facts.find(said.relation, said.subject, said.value)
                    if f.speaker == who]  # fmt: skip
            if told:
                return choice, told[-1:]
    return "", []


def _suits(facts: Facts, asked: dict[str, str]) -> Found:
    state: dict[str, str] = {}
    rests: list[Fact] = []
    for attribute in asked["attributes"].split(" and "):
        value, told = _attribute(facts, {"person": asked["person"], "attribute": attribute})
        if not value:
            return "", []
        state[attribute] = value
        rests += told
    return suiting(state_in_words(state)), rests


def _suits_given(facts: Facts, asked: dict[str, str]) -> Found:
    return suiting(asked["state"]), []


_ANSWERS: dict[str, Callable[[Facts, dict[str, str]], Found]] = {
    "attribute": _attribute, "place": _place,
    "place_before": _place_before, "what_was": _what_was, "what_moved": _what_moved,
    "what_first": _what_first,
    "place_of_word": _place_of_word, "order": _order,
    "reason": _reason, "who": _who, "how_often": _how_often, "colour_of_name": _colour_of_name,
    "colour_put": _colour_put, "contradicts": _contradicts, "again": _again,
    "which": _which,
    "whose": _whose, "in_context": _attribute, "suits": _suits, "suits_given": _suits_given,
}  # fmt: skip
