"""Whether answers are right more often than guesses are."""

import numpy as np
from scipy.stats import binomtest

from bench_tasks.probes.stream import Asked


def at_chance(right: int, chances: list[float], tries: int) -> bool:
    """Whether so many right are no wonder, for one of `tries` looks, at 5 % in all."""
    p = binomtest(right, len(chances), float(np.mean(chances))).pvalue
    return p > 0.05 / tries


def chances(asked: list[Asked]) -> list[float]:
    """What guessing scores in each."""
    return [one.chance for one in asked]
