"""Pictures of things on a table: what they show, and how that is said in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from bench_tasks.probes.words import COLOURS, THINGS

__all__ = ["Render", "Still", "caption_of", "stills"]


@dataclass(frozen=True)
class Still:
    """Things (colour, kind) on the table, no colour twice; the first is clearly the largest.

    `number` tells pictures of the same things apart: it is what their places are drawn from.
    """

    number: int
    things: tuple[tuple[str, str], ...]


Render = Callable[[Still], bytes]
"""Draws one (JPEG). Who plays a probe hands it in: there is no simulator here."""


@cache
def stills(count: int = 240) -> tuple[Still, ...]:
    """The pictures that conversations choose from, always the same: each is rendered once.

    Every colour is that of the largest thing equally often.
    """
    rng = np.random.default_rng(len(COLOURS))
    found = []
    for number in range(count):
        first = COLOURS[number % len(COLOURS)]
        others = [colour for colour in COLOURS if colour != first]
        beside = rng.choice(others, int(rng.integers(1, 3)), replace=False)
        kinds = rng.choice(THINGS, 3)
        colours = (first, *(str(colour) for colour in beside))
        things = tuple((c, str(kind)) for c, kind in zip(colours, kinds, strict=False))
        found.append(Still(number, things))
    return tuple(found)


def caption_of(still: Still) -> str:
    """What it shows in words, the largest thing first."""
    first, *others = (
        f"{'an' if colour[0] in 'aeiou' else 'a'} {colour} {kind}" for colour, kind in still.things
    )
    beside = f", and behind it {' and '.join(others)}" if others else ""
    return f"A picture of {first}{beside}"
