"""Distractors of memory probes: what people say that is like what counts, and does not count.

Who is right is a rule that instruction and question state: what was seen, or what one person says,
the last that she said. Others say otherwise of the very thing, she speaks of other things, and
both of other days.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bench_tasks.probes.talk import SEEN
from bench_tasks.probes.words import PERSONS

__all__ = ["OPERATOR", "Rumour", "amid", "overruled", "rule"]

OPERATOR = "Ana"
"""Whose word counts, where anybody's does."""
YESTERDAY = 0.2
"""Share of what is said of the day before: it means nothing for today."""
Rumour = Callable[[np.random.Generator, bool], str]
"""Draws a sentence of the very thing that is asked for, or of other ones."""
CHANGES = 2
"""So often she says something else at most."""


def rule(counts: Sequence[str]) -> str:
    """Who is right, as the instruction says it."""
    if SEEN not in counts:
        return (f"What {OPERATOR} says counts, the last that she said; what others say does not, "
                "nor what was on other days.")  # fmt: skip
    if OPERATOR in counts:
        return (f"What you saw counts, unless {OPERATOR} says otherwise later: then the last "
                "that she said. What others say does not count, nor what was on other days.")
    return "What you saw counts, not what people say, nor what was on other days."


def overruled(rng: np.random.Generator, last: str, options: Sequence[str]) -> list[str]:
    """What holds at first, and what she says in turn, in half of the draws: `last` in the end.

    Each option is as likely at any place, whatever comes last.
    """
    found = [last]
    for _ in range(int(rng.integers(2)) and int(rng.integers(1, CHANGES + 1))):
        others = [option for option in options if option != found[0]]
        found.insert(0, others[int(rng.integers(len(others)))])
    return found


def amid(
    rng: np.random.Generator, lines: Sequence[Sequence[str]], count: int, rumour: Rumour,
    counts: Sequence[str], decrees: Sequence[str] = (),
) -> list[list[str]]:
    """The lines, with so many rumours among them, and her own words of the thing in their order."""
    others = [person for person in PERSONS if person not in counts]
    more = []
    for _ in range(count):
        own = bool(rng.integers(3))
        words = rumour(rng, own)
        day_before = rng.random() < YESTERDAY
        if day_before:
            words = f"Yesterday it was like this: {words[0].lower()}{words[1:]}"
        may = others if own and not day_before else PERSONS
        more.append([str(rng.choice(may)), words])
    mixed = [*map(list, lines), *more]
    mixed = [mixed[k] for k in rng.permutation(len(mixed))]
    at = sorted(rng.integers(len(mixed) + 1, size=len(decrees)))
    for k, (place, words) in enumerate(zip(at, decrees, strict=True)):
        mixed.insert(int(place) + k, [OPERATOR, words])
    return mixed
