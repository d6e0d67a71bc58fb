"""Which way home is free: straight, or else by way of postures that get the arms out of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["way_home"]

Posture = Callable[[np.ndarray], np.ndarray]
"""Where joints go first, from where they are; it moves only what it is about."""
MOST = 2
"""Of such postures, one after the other."""


def way_home(
    start: np.ndarray, home: np.ndarray, postures: Sequence[Posture],
    blocked: Callable[[np.ndarray, np.ndarray], Any],
) -> tuple[np.ndarray | None, Any]:
    """The points (n, joints) of the first way that is free, and what blocks the straight one.

    None: there is no such way. `blocked(start, points)` says what is in the way along straight
    lines, something false when nothing is. The shortest ways are tried first, in the order given.
    """
    first = None
    for count in range(MOST + 1):
        for chosen in itertools.permutations(postures, count):
            points = []
            for posture in chosen:
                points.append(posture(points[-1] if points else start))
            way = np.array([*points, home])
            hit = blocked(start, way)
            if not hit:
                return way, first
            first = first or hit
    return None, first
