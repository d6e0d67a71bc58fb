"""What a person likes, what was said of it, and what an act deserves to be told.

Golds come from the persona, never from texts. The probe of preferences plays it by questions, and
with real motion what the arms did takes the place of the answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from bench_tasks.probes.conversation_state import SECOND_NS, START_NS
from bench_tasks.probes.stream import Asked, Item, Query
from bench_tasks.probes.talk import put, say, variants
from bench_tasks.probes.words import PERSONS, SMALL_TALK

__all__ = ["ASPECTS", "CONTEXTS", "ERRANDS", "PHASES", "Home", "Persona", "Scenario"]

ASPECTS: dict[str, tuple[str, ...]] = {
    "thing": ("the red block", "the green block", "the blue block"),
    "place": ("the left mat", "the middle mat", "the right mat"),
    "hand": ("the left hand", "the right hand"),
    "pace": ("slow", "fast"),
}
"""What there is to choose in an act, and the values of each; none goes better with an errand."""
ERRANDS = (
    "breakfast", "tea time", "the puzzle", "painting", "homework", "the garden", "a party",
    "the window sill",
)  # fmt: skip
CONTEXTS = ("tired", "busy", "cheerful", "hungry", "late", "ill")
PHASES = ("1 learn", "2 test", "3 relearn", "4 test")
"""The person tells in the first and third what he likes, and has changed before the third."""
HOUR_NS = 3600 * SECOND_NS


class Persona:
    """What one person likes: (errand, aspect) -> a value, or one for each context.

    Half of the errands depend on the context in an aspect. Values are dealt out evenly among both
    halves, so that none is a good guess.
    """

    def __init__(
        self, rng: np.random.Generator, errands: Iterable[str], contexts: Iterable[str]
    ) -> None:
        """Draw everything."""
        self._rng, self.errands, self.contexts = rng, tuple(errands), tuple(contexts)
        self._likes: dict[tuple[str, str], tuple[int, ...]] = {}
        for aspect, values in ASPECTS.items():
            mixed = [self.errands[int(k)] for k in rng.permutation(len(self.errands))]
            half = (len(mixed) + int(rng.integers(2))) // 2
            for part, depends in ((mixed[:half], True), (mixed[half:], False)):
                names = rng.permutation(len(values))
                for k, errand in enumerate(part):
                    first, step = int(names[k % len(values)]), self._step(aspect)
                    steps = range(len(self.contexts)) if depends else [0]
                    likes = tuple((first + j * step) % len(values) for j in steps)
                    self._likes[errand, aspect] = likes

    def _step(self, aspect: str) -> int:
        return int(self._rng.integers(1, len(ASPECTS[aspect])))

    def depends(self, errand: str, aspect: str) -> bool:
        """Whether it depends on the context."""
        return len(self._likes[errand, aspect]) > 1

    def likes(self, errand: str, aspect: str, context: str) -> str:
        """The value that is liked."""
        found = self._likes[errand, aspect]
        return ASPECTS[aspect][found[self.contexts.index(context) if len(found) > 1 else 0]]

    def drift(self, share: float) -> set[tuple[str, str]]:
        """Like another value in a share of the errands, in each aspect; returns in which."""
        changed = set()
        for aspect, values in ASPECTS.items():
            mixed = self._rng.permutation(len(self.errands))
            for k in mixed[: round(share * len(self.errands))]:
                key, step = (self.errands[int(k)], aspect), self._step(aspect)
                self._likes[key] = tuple((v + step) % len(values) for v in self._likes[key])
                changed.add(key)
        return changed


@dataclass(frozen=True)
class Scenario:
    """What the person wants done once, and in what context."""

    phase: str
    number: int
    errand: str
    context: str

    @property
    def learning(self) -> bool:
        """Whether he may be asked, and says what was wrong."""
        return self.phase in PHASES[::2]


class Home:
    """A person who wants things done, and others who talk."""

    def __init__(
        self, seed: int, errands: int, contexts: int, people: int, small_talk: int, others: int,
        drift: float = 0.5, paraphrase: bool = True,
    ) -> None:
        """`small_talk` and `others`: what is said between acts, of nothing and by others."""
        self.rng = np.random.default_rng([seed, 5])
        self._draw = np.random.default_rng([seed, 6])
        self.people = [str(p) for p in self.rng.choice(PERSONS, people, replace=False)]
        drawn = [[str(v) for v in self.rng.permutation(pool)] for pool in (ERRANDS, CONTEXTS)]
        errand, context = drawn[0][:errands], drawn[1][:contexts]
        self.persona = Persona(np.random.default_rng([seed, 7]), errand, context)
        self._small_talk, self._others = small_talk, others * (people > 1)
        self._drift, self._paraphrase = drift, paraphrase
        self.changed: set[tuple[str, str]] = set()
        self.items: list[Item] = []
        self._told: dict[tuple[str, str, str], tuple[int, str]] = {}
        """(errand, aspect, context or "") -> where in `items` it was said last, and the value."""
        self._now_ns, self._count, self._session = START_NS, 0, ""

    @property
    def person(self) -> str:
        """Whose wishes are to be met."""
        return self.people[0]

    def phase(self, name: str, scenarios: int) -> list[Scenario]:
        """The scenarios of a phase: errands and contexts in turn. Before the third he changes."""
        if name == PHASES[2]:
            self.changed = self.persona.drift(self._drift)
        pairs = [(e, c) for e in self.persona.errands for c in self.persona.contexts]
        order = [int(k) for _ in range(-(-scenarios // len(pairs)))
                 for k in self.rng.permutation(len(pairs))]  # fmt: skip
        return [Scenario(name, n, *pairs[k]) for n, k in enumerate(order[:scenarios])]

    def begin(self, scenario: Scenario) -> list[Item]:
        """What is said before an act, hours after the last: the request comes last."""
        self._now_ns += int(self.rng.integers(3, 48)) * HOUR_NS
        self._session = f"p{scenario.phase[0]}-{scenario.number:02d}"
        before = ["chat"] * self._small_talk + ["other"] * self._others
        said = []
        for what in self.rng.permutation(before):
            said.append(self._chat() if what == "chat" else self._other())
        asks = say("asks", self.rng, context=scenario.context, errand=scenario.errand)
        return [*said, self._say(self.person, asks)]

    def _chat(self) -> Item:
        who = self.people[int(self.rng.integers(len(self.people)))]
        return self._say(who, SMALL_TALK[int(self.rng.integers(len(SMALL_TALK)))])

    def _other(self) -> Item:
        """Somebody else says what he likes himself."""
        pick = lambda pool: str(pool[int(self.rng.integers(len(pool)))])  # noqa: E731
        aspect = pick(list(ASPECTS))
        slots = {"errand": pick(self.persona.errands), "aspect": aspect,
                 "value": pick(ASPECTS[aspect])}  # fmt: skip
        if self.rng.random() < 0.5:
            slots["context"] = pick(self.persona.contexts)
        kind = "wants_when" if "context" in slots else "wants"
        return self._say(pick(self.people[1:]), say(kind, self.rng, **slots))

    def _say(self, who: str, text: str, about: str | None = None) -> Item:
        self._now_ns += int(self.rng.integers(3, 40)) * SECOND_NS
        name = f"{self._session}-{len(self.items):04d}"
        self.items.append(Item(name, self._now_ns, self._session, who, text, about=about))
        return self.items[-1]

    def gold(self, scenario: Scenario, aspect: str) -> str:
        """What the person likes there."""
        return self.persona.likes(scenario.errand, aspect, scenario.context)

    def known(self, scenario: Scenario, aspect: str) -> Item | None:
        """What he said of it and still holds: in general or for this context, whichever was last.

        None if that is not what he likes now.
        """
        said = [self._told.get((scenario.errand, aspect, context))
                for context in ("", scenario.context)]  # fmt: skip
        at, value = max((told for told in said if told), default=(-1, ""))
        return self.items[at] if value == self.gold(scenario, aspect) else None

    def ask(self, scenario: Scenario, aspect: str, instead_of: str = "") -> Asked:
        """The question which value to choose; `instead_of` names one that this is put again for."""
        self._now_ns += SECOND_NS
        self._count += 1
        way = int(self._draw.integers(variants("which"))) * self._paraphrase
        values = ASPECTS[aspect]
        query = Query(
            f"q{self._count:04d}", self._now_ns,
            put("which", way, person=self.person, aspect=aspect, errand=scenario.errand,
                context=scenario.context),
            tuple(values[int(k)] for k in self._draw.permutation(len(values))),
        )  # fmt: skip
        rests = self.known(scenario, aspect)
        depends = self.persona.depends(scenario.errand, aspect)
        changed = (scenario.errand, aspect) in self.changed
        tags = {
            "phase": scenario.phase, "scenario": scenario.number, "modality": "text",
            "people": len(self.people), "distractors": self._small_talk + self._others,
            "paraphrase": "plain" if way == 0 else f"way {way}",
            "difficulty": f"{'in context' if depends else 'always'}"
                          f"{', changed' if changed else ''}",
        }  # fmt: skip
        if instead_of:
            tags["instead_of"] = instead_of
        if rests is not None:
            tags["turns"] = len(self.items) - self.items.index(rests)
            tags["seconds"] = round((query.stamp_ns - rests.stamp_ns) / 1e9)
        evidence = () if rests is None else (rests.id,)
        return Asked(query, aspect, self.gold(scenario, aspect), 1 / len(values), evidence, tags,
                     scored=not scenario.learning)  # fmt: skip

    def tell(self, scenario: Scenario, aspect: str, about: str) -> Item:
        """He says what he likes, `about` being the question: an answer, or a correction."""
        depends = self.persona.depends(scenario.errand, aspect)
        context = scenario.context if depends else ""
        slots = {"errand": scenario.errand, "aspect": aspect, "value": self.gold(scenario, aspect)}
        if context:
            slots["context"] = context
        text = say("wants_when" if context else "wants", self.rng, **slots)
        item = self._say(self.person, text, about)
        self._told[scenario.errand, aspect, context] = (len(self.items) - 1, slots["value"])
        return item

    def after(
        self, scenario: Scenario, done: Mapping[str, str], about: Mapping[str, str]
    ) -> list[Item]:
        """What he says of an act that was `done` so: aspect by aspect, what was wrong.

        What was right by luck alone, he says too: it would else never be known.
        """
        return [
            self.tell(scenario, aspect, about[aspect]) for aspect in ASPECTS
            if done.get(aspect) != self.gold(scenario, aspect)
            or self.known(scenario, aspect) is None
        ]  # fmt: skip
