"""Stored or not recalled: facts are asked for as they were told, and in other words (WikiProfile).

Every fact is asked for in ways that lead to where it was told (its sentence to be completed, a
question with what was said before it), in ways that do not (directly and reversely, each in two
phrasings). All of it is repeated. What follows from the answers to other questions is what
thinking adds; see `wikiprofile_scores`. After arXiv 2602.14080.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench_tasks.options import check_ranges
from bench_tasks.probes.conversation_state import DAY_NS, SECOND_NS, START_NS
from bench_tasks.probes.runs import Run
from bench_tasks.probes.stills import Render
from bench_tasks.probes.stream import Asked, Item, Probe, Query
from bench_tasks.probes.talk import put, variants
from bench_tasks.probes.wikiprofile_scores import report
from bench_tasks.probes.words import ATTRIBUTES, OBJECTS, PERSONS, PLACES, SMALL_TALK, WORDS

__all__ = ["Options", "WikiProfile"]


@dataclass(frozen=True)
class Options:
    """How many people talk of how many attributes, in how many sessions.

    Of each attribute `untold` of the people say nothing. `words` of their own follow from two
    things that are told. `rumours` are what is said wrongly of others in a session, `small_talk`
    what says nothing. Everything is asked `repeats` times; without `paraphrase` every phrasing is
    the plain one.
    """

    people: int = 8
    attributes: int = 4
    untold: int = 2
    words: int = 6
    sessions: int = 8
    rumours: int = 3
    small_talk: int = 10
    repeats: int = 3
    paraphrase: bool = True

    def __post_init__(self) -> None:
        """UsageError names the option whose value cannot be."""
        check_ranges(
            self, people=(3, 8), attributes=(1, len(ATTRIBUTES)), untold=(0, self.people - 1),
            words=(0, len(WORDS)), sessions=(2, 100), rumours=(0, 50), small_talk=(0, 200),
            repeats=(1, 20),
        )  # fmt: skip


class WikiProfile:
    """Makes the steps of one history per seed."""

    Options = Options
    pictured = False

    def __init__(self, options: Options | None = None) -> None:
        """With the defaults there are 38 facts: 24 told, 8 untold, 6 that follow from others."""
        self.options = options or Options()

    def steps(self, seed: int, render: Render | None = None) -> Probe:
        """All that is said, then all questions in any order."""
        return _History(self.options, seed).steps()

    @staticmethod
    def report(runs: list[Run]) -> dict[str, float | None]:
        """What it measures besides right and wrong, of runs that came to their end."""
        return report(runs)


@dataclass
class _Fact:
    """`subject` has `value` as `attribute`; or it is the place of what he has a word for.

    `status` is told, untold or inferable. `start` is how its sentence begins, `before` what was
    said right before.
    """

    subject: str
    attribute: str
    value: str
    status: str
    start: str = ""
    before: str = ""
    evidence: tuple[str, ...] = ()


class _History:
    def __init__(self, options: Options, seed: int) -> None:
        self._options = options
        self._rng = np.random.default_rng([seed, 21])
        self._asking = np.random.default_rng([seed, 22])
        people = self._rng.permutation(PERSONS)[: options.people].tolist()
        self._people: list[str] = people
        self._facts = [*self._attributes(), *self._words()]
        self._items: dict[str, int] = {}
        self._stamps: dict[str, int] = {}
        self._now_ns, self._asked = START_NS, 0

    def _mixed(self, values: list) -> list:
        return [values[int(k)] for k in self._rng.permutation(len(values))]

    def _attributes(self) -> Iterator[_Fact]:
        """No two people have the same value, so that a fact can be asked for from its end."""
        for attribute in self._mixed(list(ATTRIBUTES))[: self._options.attributes]:
            values = self._mixed(list(ATTRIBUTES[attribute]))
            silent = set(self._mixed(self._people)[: self._options.untold])
            for who, value in zip(self._people, values, strict=False):
                yield _Fact(who, attribute, value, "untold" if who in silent else "told")

    def _words(self) -> Iterator[_Fact]:
        words = self._mixed(list(WORDS))[: self._options.words]
        for k, word in enumerate(words):
            place = str(self._rng.choice(PLACES))
            yield _Fact(self._people[k % len(self._people)], word, place, "inferable")

    # What is said ---------------------------------------------------------------------------------

    def steps(self) -> Probe:
        it = self._options
        sayings = [(fact, part) for fact in self._facts
                   for part in {"told": ("has",), "inferable": ("means", "lies")}.get(
                       fact.status, ())]  # fmt: skip
        todo: list[list] = [[] for _ in range(it.sessions)]
        for saying in sayings:
            todo[int(self._rng.integers(it.sessions))].append(saying)
        objects = dict(zip([f.attribute for f in self._facts if f.status == "inferable"],
                           self._mixed(list(OBJECTS)), strict=False))  # fmt: skip
        for k, own in enumerate(todo):
            self._now_ns = START_NS + 3 * k * DAY_NS
            before = ""
            extra = ["rumour"] * it.rumours + ["chat"] * it.small_talk
            for saying in self._mixed([*own, *extra]):
                who, text = self._saying(saying, before, objects)
                if text:
                    item = self._said(f"s{k:02d}", who, text)
                    if isinstance(saying, tuple):
                        saying[0].evidence += (item.id,)
                    before = text
                    yield item
        for asked in self._questions():
            yield asked  # not `yield from`: it takes no replies

    def _said(self, session: str, who: str, text: str) -> Item:
        self._now_ns += int(self._rng.integers(3, 40)) * SECOND_NS
        item = Item(f"{session}-{len(self._items):04d}", self._now_ns, session, who, text)
        self._items[item.id] = len(self._items)
        self._stamps[item.id] = item.stamp_ns
        return item

    def _saying(self, saying: Any, before: str, objects: dict[str, str]) -> tuple[str, str]:
        who = str(self._rng.choice(self._people))
        if saying == "chat":
            return who, str(self._rng.choice(SMALL_TALK))
        if saying == "rumour":
            return self._rumour()
        fact, part = saying
        way = int(self._rng.integers(variants(part)))
        if part == "means":
            text = put(part, way, word=fact.attribute, object=objects[fact.attribute])
        elif part == "lies":
            return who, put(part, way, object=objects[fact.attribute], place=fact.value)
        else:
            text = put(part, way, attribute=fact.attribute, value=fact.value)
            fact.start, fact.before = text[: text.index(f" {fact.value}.")], before
        return fact.subject, text

    def _rumour(self) -> tuple[str, str]:
        """Somebody says wrongly of another what that one speaks of himself."""
        told = [fact for fact in self._facts if fact.status == "told"]
        if not told:
            return "", ""
        fact = told[int(self._rng.integers(len(told)))]
        others = [value for value in ATTRIBUTES[fact.attribute] if value != fact.value]
        people = [who for who in self._people if who != fact.subject]
        text = put("told", int(self._rng.integers(variants("told"))), person=fact.subject,
                   attribute=fact.attribute, value=str(self._rng.choice(others)))  # fmt: skip
        return str(self._rng.choice(people)), text

    # What is asked --------------------------------------------------------------------------------

    def _questions(self) -> Iterator[Asked]:
        asked = [(fact, *probe, n) for fact in self._facts for probe in self._probes(fact)
                 for n in range(self._options.repeats)]  # fmt: skip
        for k in self._asking.permutation(len(asked)).tolist():
            yield self._asked_for(*asked[k])

    def _probes(self, fact: _Fact) -> Iterator[tuple[str, str, int, str]]:
        """(kind, name, way, text) of all that a fact is asked for by; way 0 is the plain one."""
        who, what = fact.subject, fact.attribute
        often = int(self._options.paraphrase)
        if fact.status == "inferable":
            starts = (f"The {what} is", f"If you look for the {what}: it is")
            for k in range(2):
                way = k * often
                text = put("cloze", 0, person=who, start=starts[way])
                yield "encoding", f"completed {k}", way, text
            for k in range(2):
                way = k * often
                text = put("place_of_word", way, person=who, word=what)
                yield "direct", f"direct {k}", way, text
            return
        start = fact.start or f"My {what} is"
        yield "encoding", "completed", 0, put("cloze", 0, person=who, start=start)
        before = fact.before.rstrip(".?!").replace("?", "").replace("!", "").replace(".", "")
        yield "encoding", "in context", 0, put("in_context", 0, before=before or "Hello",
                                               person=who, attribute=what)  # fmt: skip
        for k in (0, 2):
            way = k * often
            yield "direct", f"direct {k}", way, put("attribute", way, person=who, attribute=what)
        for k in range(2):
            way = k * often
            text = put("whose", way, attribute=what, value=fact.value)
            yield "reverse", f"reverse {k}", way, text

    def _pool(self, fact: _Fact, kind: str) -> list[str]:
        if kind == "reverse":
            return self._people
        return list(PLACES if fact.status == "inferable" else ATTRIBUTES[fact.attribute])

    def _asked_for(self, fact: _Fact, kind: str, name: str, way: int, text: str, n: int) -> Asked:
        self._asked += 1
        gold = fact.subject if kind == "reverse" else fact.value
        pool = self._pool(fact, kind)
        choices = tuple(pool[int(k)] for k in self._asking.permutation(len(pool)))
        tags: dict[str, Any] = {
            "fact": [fact.subject, fact.attribute, fact.value], "status": fact.status,
            "probe": name, "repeat": n, "people": len(self._people), "modality": "text",
            "distractors": self._options.rumours + self._options.small_talk,
            "paraphrase": "plain" if way == 0 else f"way {way}",
        }  # fmt: skip
        query = Query(f"q{self._asked:05d}", self._now_ns + SECOND_NS, text, choices)
        if fact.evidence:
            first = min(fact.evidence, key=lambda one: self._items[one])
            tags |= {"turns": len(self._items) - self._items[first],
                     "seconds": (query.stamp_ns - self._stamps[first]) // SECOND_NS}  # fmt: skip
        scored = kind in ("direct", "reverse") and fact.status != "untold" or (
            kind == "encoding" and fact.status == "told"
        )
        kind = "inferred" if scored and fact.status == "inferable" else kind
        return Asked(query, kind, gold, 1 / len(choices), fact.evidence, tags, scored)
