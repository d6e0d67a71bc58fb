"""Questions about a conversation, of the nine types of H2HMem (arXiv 2606.09461).

UPR unimodal recall, CRR cross-modal recall, KR knowledge revision; TR temporal order, MCR causal
relation, RET reference and entity tracking; TTL test-time learning, CD conflict detection, AR
answer refusal. What makes guessing useless is said at each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import permutations

import numpy as np

from bench_tasks.probes.conversation_state import Conversation, Told
from bench_tasks.probes.stream import NOT_MENTIONED, Asked, Query
from bench_tasks.probes.talk import put, variants
from bench_tasks.probes.words import ATTRIBUTES, COLOURS, PLACES, REASONS

__all__ = ["TYPES", "Questions"]

TYPES = ("UPR", "CRR", "KR", "TR", "MCR", "RET", "TTL", "CD", "AR")
CHOICES = 4


@dataclass(frozen=True)
class _Draft:
    """A question before it is put in words. `pool` is what answers of its form are drawn from."""

    form: str
    slots: dict[str, str]
    gold: str
    pool: tuple[str, ...]
    rests: tuple[Told, ...]
    foils: tuple[str, ...] = field(default=())


class Questions:
    """Draws questions of each type that can be asked of a conversation as it stands."""

    def __init__(
        self, talk: Conversation, rng: np.random.Generator, each: int, paraphrase: bool,
        choices: bool,
    ) -> None:
        """`each` of every type are planned, so that halves and turns come out even."""
        self._talk, self._rng = talk, rng
        self._paraphrase, self._choices = paraphrase, choices
        self._asked: dict[str, str] = {}
        """What was asked, and after which session the last time."""
        self._golds: Counter[tuple[str, str]] = Counter()
        self._count = 0
        halves = [k % 2 == 0 for k in range(each)]
        # Half of these are true, refused, about a picture; the rest is not.
        self._turns: dict[str, list] = {
            "CD": self._mixed(halves),
            "RET": self._mixed([talk.people[k // 2 % len(talk.people)] if k % 2 else ""
                                for k in range(each)]),
            "AR": self._mixed([(k % 2 == 0, k // 2 % 3) for k in range(each)]),
        }

    def _mixed(self, values: list) -> list:
        return [values[int(k)] for k in self._rng.permutation(len(values))]

    def ask(self, kind: str) -> Asked | None:
        """A question of this type; None when there is none now.

        One that was asked after an earlier session comes again when there is no other. Golds take
        turns as far as can be: a word for a thing that is often spoken of would else be a good
        guess.
        """
        turns = self._turns.get(kind)
        drafts = list(getattr(self, f"_{kind.lower()}")(*turns[-1:] if turns else ()))
        now = self._talk.items[-1].session
        mixed = self._mixed([(f"{d.form} {sorted(d.slots.values())} {d.gold}", d) for d in drafts])
        fresh = [(key, draft) for key, draft in mixed if key not in self._asked]
        again = [(key, draft) for key, draft in mixed if self._asked.get(key) != now]
        rarest = sorted(fresh or again, key=lambda one: self._golds[kind, one[1].gold])
        for key, draft in rarest[:1]:
            self._asked[key] = now
            self._golds[kind, draft.gold] += 1
            if turns:
                turns.pop()
            return self._put(kind, draft)
        return None

    def _put(self, kind: str, draft: _Draft) -> Asked:
        self._count += 1
        # Drawn in any case: but for the words the same is asked.
        way = int(self._rng.integers(variants(draft.form))) * self._paraphrase
        choices = self._choices_of(draft)
        chance = 1 / len(choices)
        shown = tuple(choices) if self._choices or draft.form == "order" else ()
        if not shown:
            # A word may be said at random, too.
            chance = 0.5 if kind in ("AR", "CD") else 1 / len(draft.pool)
        query = Query(
            f"q{self._count:03d}", self._talk.now_ns + 10**9 * self._count,
            put(draft.form, way, **draft.slots), shown,
        )
        rests = dict.fromkeys(one for told in draft.rests for one in (*told.beside, told.item))
        tags = {"paraphrase": "plain" if way == 0 else f"way {way}", "people":
                len(self._talk.people), "distractors": self._talk.small_talk + self._talk.rumours,
                "modality": self._modality(draft), **self._distance(query, rests)}
        if kind == "AR":
            tags["refusal"] = True
        return Asked(query, kind, draft.gold, chance, tuple(rests), tags)

    def _modality(self, draft: _Draft) -> str:
        pictured = any(told.beside for told in draft.rests)
        return "both" if pictured and self._talk.pictured else "text"

    def _distance(self, query: Query, rests: Iterable[str]) -> dict[str, float]:
        """To the farthest of what the answer rests on: in turns, and in simulated seconds."""
        items, places = self._talk.items, [self._talk.at[one] for one in rests]
        if not places:
            return {}
        first = min(places)
        waited = (query.stamp_ns - items[first].stamp_ns) / 1e9
        return {"turns": len(items) - first, "seconds": round(waited)}

    def _choices_of(self, draft: _Draft) -> list[str]:
        """The gold among what could be taken for it, in any order."""
        if len(draft.pool) <= CHOICES or draft.form == "order":
            return self._mixed(list(draft.pool))
        heard = [v for v in dict.fromkeys(draft.foils) if v != draft.gold]
        heard = self._mixed(heard)[: CHOICES - 2]
        rest = [v for v in draft.pool if v != draft.gold and v not in heard]
        return self._mixed([draft.gold, *heard, *self._mixed(rest)][:CHOICES])

    # What can be asked -------------------------------------------------------------------------

    def _own(self) -> dict[tuple[str, str], list[Told]]:
        """What people said of themselves: (person, attribute) -> all of it."""
        found: dict[tuple[str, str], list[Told]] = {}
        for told in self._talk.told:
            if told.relation in ATTRIBUTES:
                found.setdefault((told.subject[0], told.relation), []).append(told)
        return found

    def _attribute(self, who: str, attribute: str, told: list[Told]) -> _Draft:
        others = [*told[:-1], *self._talk.values("heard", who, attribute)]
        others += [t for p in self._talk.people for t in self._talk.values(attribute, p)]
        return _Draft("attribute", {"person": who, "attribute": attribute}, told[-1].value,
                      ATTRIBUTES[attribute], (told[-1],), tuple(t.value for t in others))

    def _places(self, fits: Callable[[int], bool]) -> Iterable[_Draft]:
        for thing in dict.fromkeys(t.subject[0] for t in self._of("place")):
            told = self._talk.values("place", thing)
            if fits(len({t.value for t in told})):
                yield _Draft("place", {"object": thing}, told[-1].value, PLACES, (told[-1],),
                             tuple(t.value for t in told[:-1]))

    def _of(self, relation: str) -> list[Told]:
        return [t for t in self._talk.told if t.relation == relation]

    def _recalled(self, fits: Callable[[int], bool]) -> Iterable[_Draft]:
        drafts = [self._attribute(*key, told) for key, told in self._own().items()
                  if fits(len({t.value for t in told}))]
        return [*drafts, *self._places(fits)]

    def _upr(self) -> Iterable[_Draft]:
        """What was always said to be so, by whom it concerns."""
        return self._recalled(lambda n: n == 1)

    def _kr(self) -> Iterable[_Draft]:
        """What was changed: the value that holds now; the old ones are among the choices."""
        return self._recalled(lambda n: n > 1)

    def _crr(self) -> Iterable[_Draft]:
        """The colour in a picture of what was named in words."""
        for told in self._of("called"):
            yield _Draft("colour_of_name", {"name": told.subject[0]}, told.value, COLOURS,
                         (told,), told.foils)

    def _tr(self) -> Iterable[_Draft]:
        """Three things that somebody did. The letters are drawn, so each order is as likely."""
        orders = tuple(" -> ".join(order) for order in permutations("ABC"))
        for who in self._talk.people:
            done = [t for t in self._of("did") if t.subject == (who,)]
            if len(done) < 3:
                continue
            rests = [done[int(k)] for k in sorted(self._rng.choice(len(done), 3, replace=False))]
            letters = self._mixed(list("ABC"))
            slots = {x.lower(): t.value for x, t in zip(letters, rests, strict=True)}
            yield _Draft("order", {"person": who, **slots}, " -> ".join(letters), orders,
                         tuple(rests))

    def _mcr(self) -> Iterable[_Draft]:
        """Why somebody did something. Reasons go with events by the draw."""
        for told in self._of("reason"):
            foils = tuple(t.value for t in self._of("reason") if t.subject[0] == told.subject[0])
            yield self._reason(told.subject, told.value, (told,), foils)

    def _reason(self, subject: tuple[str, ...], gold: str, rests: tuple[Told, ...],
                foils: tuple[str, ...] = ()) -> _Draft:
        slots = {"person": subject[0], "event": subject[1]}
        return _Draft("reason", slots, gold, REASONS, rests, foils)

    def _ret(self, who: str) -> Iterable[_Draft]:
        """Who it was, each person in turn; or, without a person, what `this one` was."""
        for told in self._of("did" if who else "put"):
            if not who:
                slots = {"person": told.subject[0], "place": told.subject[1]}
                yield _Draft("colour_put", slots, told.value, COLOURS, (told,), told.foils)
            elif told.subject == (who,):
                yield _Draft("who", {"event": told.value}, who, tuple(self._talk.people), (told,))

    def _ttl(self) -> Iterable[_Draft]:
        """Where something is that somebody has an own word for, which others may use otherwise."""
        for told in self._of("means"):
            at = self._talk.values("place", told.value)
            slots = {"person": told.subject[0], "word": told.subject[1]}
            foils = [t.value for other in self._of("means") if other.subject[1] == slots["word"]
                     for t in self._talk.values("place", other.value)]
            yield _Draft("place_of_word", slots, at[-1].value, PLACES, (told, at[-1]),
                         tuple(foils))

    def _cd(self, contradicts: bool) -> Iterable[_Draft]:
        """Yes and No half each. What is changed contradicts even when it holds now."""
        for (who, attribute), told in self._own().items():
            said = {t.value for t in told}
            slots = {"person": who, "attribute": attribute}
            if not contradicts:
                values = [told[-1].value] if len(said) == 1 else []
            elif len(said) > 1:
                values = [told[-1].value]
            else:
                others = [t.value for t in self._talk.values("heard", who, attribute)]
                values = [v for v in others or ATTRIBUTES[attribute] if v not in said]
                values = self._mixed(values)[:1]
            for value in values:
                rests = tuple(t for t in told if t.value != value) or tuple(told)
                yield _Draft("contradicts", {**slots, "value": value},
                             "Yes" if contradicts else "No", ("Yes", "No"), rests)

    def _ar(self, turn: tuple[bool, int]) -> Iterable[_Draft]:
        """Half was never mentioned; the other half has the same forms and an answer.

        The one other choice is a value, which with what was not mentioned is somebody else's.
        """
        refuse, form = turn
        for draft in (self._ar_attribute, self._ar_reason, self._ar_word)[form](refuse):
            value = draft.gold
            if refuse:
                foils = [*dict.fromkeys(draft.foils)] or list(draft.pool)
                value = foils[int(self._rng.integers(len(foils)))]
            yield _Draft(draft.form, draft.slots, NOT_MENTIONED if refuse else value,
                         (value, NOT_MENTIONED), () if refuse else draft.rests)

    def _ar_attribute(self, refuse: bool) -> Iterable[_Draft]:
        if not refuse:
            yield from (self._attribute(*key, told) for key, told in self._own().items())
            return
        for who in self._talk.people:
            for attribute in sorted(self._talk.silent[who]):
                foils = [t.value for p in self._talk.people
                         for t in self._talk.values(attribute, p)]
                yield _Draft("attribute", {"person": who, "attribute": attribute}, "",
                             ATTRIBUTES[attribute], (), tuple(foils))

    def _ar_reason(self, refuse: bool) -> Iterable[_Draft]:
        if not refuse:
            yield from self._mcr()
            return
        told = [t.subject for t in self._of("reason")]
        foils = tuple(t.value for t in self._of("reason"))
        for done in self._of("did"):
            if (done.subject[0], done.value) not in told:
                yield self._reason((done.subject[0], done.value), "", (), foils)

    def _ar_word(self, refuse: bool) -> Iterable[_Draft]:
        if not refuse:
            yield from self._ttl()
            return
        for draft in self._ttl():
            for who in self._talk.people:
                if not self._talk.values("means", who, draft.slots["word"]):
                    # Where that is which the other calls so.
                    yield _Draft(draft.form, {**draft.slots, "person": who}, "", PLACES, (),
                                 (draft.gold,))
