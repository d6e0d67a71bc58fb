"""What is true and what was said in a generated conversation: golds come from here, not from texts.

`Conversation.session` lets people talk: each utterance changes what is true, and is put on record
together with what it said.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench_tasks.probes.stills import Render, Still, caption_of, stills
from bench_tasks.probes.stream import Item, Picture
from bench_tasks.probes.talk import say
from bench_tasks.probes.words import (
    ATTRIBUTES,
    EVENTS,
    NAMES,
    OBJECTS,
    PERSONS,
    PLACES,
    REASONS,
    SMALL_TALK,
    WORDS,
)

__all__ = ["DAY_NS", "SECOND_NS", "START_NS", "Conversation", "Told"]

SECOND_NS = 10**9
DAY_NS = 86_400 * SECOND_NS
START_NS = 1_767_258_000 * SECOND_NS
"""1 January 2026, nine o'clock (UTC)."""
SILENT = 0.3
"""This share of each person's attributes is never spoken of: what is not mentioned."""


@dataclass(frozen=True)
class Told:
    """What was made known with an utterance, from the generator's own knowledge.

    `relation` is an attribute, or heard (by another: subject is person and attribute), place, did,
    reason, means, called, put.
    """

    relation: str
    subject: tuple[str, ...]
    value: str
    item: str
    speaker: str
    beside: tuple[str, ...] = ()
    """The picture that it is about, if there is one."""
    foils: tuple[str, ...] = ()
    """What else could be taken for the value: colours in that picture and in those about it."""


class Conversation:
    """People who talk, session after session."""

    def __init__(
        self, rng: np.random.Generator, people: int, small_talk: int, render: Render | None,
        attributes: int = len(ATTRIBUTES), rumours: int = 1,
    ) -> None:
        """With `render` there are real pictures, else captions in their place.

        The fewer `attributes` people have, the more often each of them is spoken of; `rumours` are
        what others say of them in each session.
        """
        self.rng, self.small_talk, self._render = rng, small_talk, render
        self.pictured = render is not None
        self.people = [str(name) for name in rng.choice(PERSONS, people, replace=False)]
        self.attributes = [str(a) for a in rng.permutation(list(ATTRIBUTES))[:attributes]]
        self.rumours = rumours
        self.silent: dict[str, set[str]] = {}
        self._lasting: dict[str, set[str]] = {}
        """Of whom which attributes are said again, but never change."""
        for who in self.people:
            mixed = [str(a) for a in rng.permutation(self.attributes)]
            silent = round(SILENT * attributes)
            self.silent[who] = set(mixed[:silent])
            self._lasting[who] = set(mixed[silent : silent + (attributes - silent) // 2])
        self.told: list[Told] = []
        self.items: list[Item] = []
        self.at: dict[str, int] = {}
        """Where in `items` an item is."""
        self._session, self._now_ns, self._days = 0, START_NS, 0
        self._events, self._names, self._words, self._objects = (
            [str(v) for v in rng.permutation(pool)] for pool in (EVENTS, NAMES, WORDS, OBJECTS)
        )
        self._open: dict[str, tuple[Still, str]] = {}
        """Who has shown what and is yet to speak of it as `this one`."""
        self._colours: list[str] = []
        """Of all that was shown in this session."""

    @property
    def now_ns(self) -> int:
        """When the last utterance ended."""
        return self._now_ns

    def values(self, relation: str, *subject: str) -> list[Told]:
        """All that was told of it, in order."""
        return [t for t in self.told if t.relation == relation and t.subject == subject]

    def session(self) -> list[Item]:
        """The next session, days after the last: what is said in it."""
        self._session += 1
        if self._session > 1:
            self._days += int(self.rng.integers(1, 8))
        self._now_ns = START_NS + self._days * DAY_NS + int(self.rng.integers(8 * 3600)) * SECOND_NS
        self._colours, first = [], len(self.items)
        n = len(self.people)
        moves = ["attribute", "event", "because"] * n + ["object", "show"] * 2 + ["show", "word"]
        moves += ["heard"] * self.rumours + ["chat"] * self.small_talk
        todo = [str(move) for move in self.rng.permutation(moves)]
        while todo:
            move = todo.pop(0)
            if move == "show":
                free = [who for who in self.people if who not in self._open]
                if free:
                    self._show(self._one(free))
                # Others may speak before the name comes, and show something themselves.
                follow = f"this {list(self._open)[-1]}" if free else "show"
                todo.insert(int(self.rng.integers(0, 4)), follow)
            elif move.startswith("this "):
                self._this_one(move[5:])
            else:
                getattr(self, f"_{move}")()
        return self.items[first:]

    def _one(self, pool) -> str:
        return str(pool[int(self.rng.integers(len(pool)))])

    def _say(self, who: str, text: str, picture: Picture | None = None) -> str:
        """Put an utterance on record; returns its id."""
        self._now_ns += int(self.rng.integers(3, 40)) * SECOND_NS
        name = f"s{self._session:02d}-{len(self.items):04d}"
        if picture is not None:
            picture = Picture(f"{name}.jpg", picture.data, picture.format, picture.caption)
        self.at[name] = len(self.items)
        self.items.append(Item(name, self._now_ns, f"s{self._session:02d}", who, text, picture))
        return name

    def _know(self, relation: str, subject: tuple[str, ...], value: str, item: str,
              beside: tuple[str, ...] = (), foils: tuple[str, ...] = ()) -> None:
        speaker = self.items[self.at[item]].speaker
        self.told.append(Told(relation, subject, value, item, speaker, beside, foils))

    def _chat(self) -> None:
        self._say(self._one(self.people), self._one(SMALL_TALK))

    def _attribute(self) -> None:
        who = self._one(self.people)
        known = {t.relation for t in self.told if t.subject == (who,) and t.relation in ATTRIBUTES}
        new = [a for a in self.attributes if a not in known | self.silent[who]]
        if new and (not known or self.rng.random() < 0.6):
            attribute, kind = self._one(new), "has"
            value = self._one(ATTRIBUTES[attribute])
        else:
            attribute = self._one(sorted(known))
            value, kind = self.values(attribute, who)[-1].value, "has"
            if attribute not in self._lasting[who]:
                value, kind = self._one([v for v in ATTRIBUTES[attribute] if v != value]), "changed"
        item = self._say(who, say(kind, self.rng, attribute=attribute, value=value))
        self._know(attribute, (who,), value, item)

    def _heard(self) -> None:
        who = self._one(self.people)
        by = self._one([p for p in self.people if p != who])
        attribute = self._one([a for a in self.attributes if a not in self.silent[who]])
        true = self.values(attribute, who)
        value = self._one([v for v in ATTRIBUTES[attribute] if not true or v != true[-1].value])
        text = say("told", self.rng, person=who, attribute=attribute, value=value)
        self._know("heard", (who, attribute), value, self._say(by, text))

    def _event(self, reason: str = "") -> None:
        if not self._events:
            return self._chat()
        who, event = self._one(self.people), self._events.pop()
        if reason:
            item = self._say(who, say("because", self.rng, event=event, reason=reason))
            self._know("reason", (who, event), reason, item)
        else:
            item = self._say(who, say("did", self.rng, event=event))
        self._know("did", (who,), event, item)

    def _because(self) -> None:
        self._event(self._one(REASONS))

    def _object(self) -> None:
        known = sorted({t.subject[0] for t in self.told if t.relation == "place"})
        if self._objects and (not known or self.rng.random() < 0.5):
            thing, kind, old = self._objects.pop(), "lies", ""
        else:
            thing, kind = self._one(known), "put"
            old = self.values("place", thing)[-1].value
        place = self._one([p for p in PLACES if p != old])
        text = say(kind, self.rng, object=thing, place=place)
        self._know("place", (thing,), place, self._say(self._one(self.people), text))

    def _word(self) -> None:
        who = self._one(self.people)
        means = [t for t in self.told if t.relation == "means"]
        mine = {t.subject[1] for t in means if t.subject[0] == who}
        others = sorted({t.subject[1] for t in means} - mine)
        if others and self.rng.random() < 0.5:
            word = self._one(others)  # the same word, of another thing
        elif self._words:
            word = self._words.pop()
        else:
            return self._chat()
        taken = {t.value for t in means if t.subject[1] == word}
        free = sorted({t.subject[0] for t in self.told if t.relation == "place"} - taken)
        if not free:
            return self._chat()
        thing = self._one(free)
        item = self._say(who, say("means", self.rng, word=word, object=thing))
        self._know("means", (who, word), thing, item)

    def _show(self, who: str) -> None:
        still = stills()[int(self.rng.integers(len(stills())))]
        if self._render is None:
            picture = Picture("", b"", "", caption_of(still))
        else:
            picture = Picture("", self._render(still))
        item = self._say(who, say("shows", self.rng), picture)
        self._open[who] = (still, item)
        self._colours.append(still.things[0][0])

    def _this_one(self, who: str) -> None:
        still, shown = self._open.pop(who)
        colour, *others = (c for c, _ in still.things)
        foils = tuple(dict.fromkeys([*self._colours, *others]))
        used = {t.subject[1] for t in self.told if t.relation == "put" and t.subject[0] == who}
        places = [place for place in PLACES if place not in used]
        if places and (self.rng.random() < 0.5 or not self._names):
            place = self._one(places)
            item = self._say(who, say("put_this", self.rng, place=place))
            self._know("put", (who, place), colour, item, (shown,), foils)
        elif self._names:
            name = self._names.pop()
            item = self._say(who, say("calls", self.rng, name=name))
            self._know("called", (name,), colour, item, (shown,), foils)
