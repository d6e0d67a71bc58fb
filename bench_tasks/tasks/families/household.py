"""The acts of one person's household, one an episode: who likes what, what is said, what is known.

It is the probe of preferences (`bench_tasks.probes.preferences`) with acts in the place of answers.
The seed of an episode names the household and the act: episodes of one household follow each other.
What its people say depends on the acts, but what is known after each of them does not: of every
aspect of an act in a phase of learning they have said by its end what is liked.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from bench_tasks.probes.preference_state import ASPECTS, PHASES, Home, Scenario
from bench_tasks.probes.talk import put, say, variants

__all__ = ["ACTS", "OTHERS", "PEOPLE", "SMALL_TALK", "Day", "day"]

ERRANDS, CONTEXTS, EACH = 3, 2, 12
"""Errands, contexts and acts of each phase: all pairs come twice."""
ACTS = EACH * len(PHASES)
"""Episodes of a household."""
PEOPLE, SMALL_TALK, OTHERS = 2, 4, 2
"""Who talks, and how much is said before an act of nothing, and by others."""


@dataclass(frozen=True)
class Day:
    """One act: by aspect what is liked (`gold`) and in which words that is told (`said`).

    `known` are the aspects of which it was said before, and still holds; `evidence` all sentences
    that say so. `lines` are said before the act, (speaker, words), the request last; `asks` is the
    question, in which `{item}` stands for an aspect.
    """

    person: str
    scenario: Scenario
    lines: tuple[tuple[str, str], ...]
    gold: dict[str, str]
    said: dict[str, str]
    known: frozenset[str]
    evidence: tuple[str, ...]
    asks: str


def day(seed: int) -> Day:
    """The act of an episode."""
    return _days(seed // ACTS)[seed % ACTS]


@cache
def _days(household: int) -> tuple[Day, ...]:
    home = Home(household, ERRANDS, CONTEXTS, PEOPLE, SMALL_TALK, OTHERS)
    return tuple(
        _day(home, scenario) for phase in PHASES for scenario in home.phase(phase, EACH)
    )


def _day(home: Home, scenario: Scenario) -> Day:
    lines = tuple((item.speaker, item.text) for item in home.begin(scenario))
    known = frozenset(a for a in ASPECTS if home.known(scenario, a) is not None)
    slots = {
        a: {"errand": scenario.errand, "aspect": a, "value": home.gold(scenario, a)}
        | ({"context": scenario.context} if home.persona.depends(scenario.errand, a) else {})
        for a in ASPECTS
    }
    kinds = {a: "wants_when" if "context" in own else "wants" for a, own in slots.items()}
    said = {a: say(kinds[a], home.rng, **slots[a]) for a in ASPECTS}
    if scenario.learning:
        for aspect in (a for a in ASPECTS if a not in known):
            home.tell(scenario, aspect, "")
    evidence = tuple(
        put(kinds[a], way, **slots[a])
        for a in ASPECTS if a in known for way in range(variants(kinds[a]))
    )  # fmt: skip
    asks = put("which", 0, person=home.person, aspect="{item}", errand=scenario.errand,
               context=scenario.context)  # fmt: skip
    gold = {aspect: home.gold(scenario, aspect) for aspect in ASPECTS}
    return Day(home.person, scenario, lines, gold, said, known, evidence, asks)
