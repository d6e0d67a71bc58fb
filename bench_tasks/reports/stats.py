"""Intervals for success rates, and how well one set of rates foretells another."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.stats import norm, pearsonr

__all__ = ["ON_A_LINE", "mmrv", "pearson", "wilson"]

ON_A_LINE = 1.0 - 1e-12
"""With |r| from here on all pairs lie on a line."""


def wilson(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval for a share (Wilson 1927); (0, 1) without a trial.

    (p + z^2/2n -+ z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n). ValueError on impossible counts.
    """
    if trials < 0 or not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes of {trials} trials")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence {confidence} is not between 0 and 1")
    if trials == 0:
        return 0.0, 1.0
    z = float(norm.ppf(0.5 + confidence / 2))
    p, n = successes / trials, trials
    middle = p + z * z / (2 * n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    # The ends are exact at k = 0 and k = n, where rounding would leave them just beside.
    low = 0.0 if successes == 0 else (middle - half) / scale
    high = 1.0 if successes == trials else (middle + half) / scale
    return low, high


def pearson(x: Sequence[float], y: Sequence[float]) -> tuple[float, float, float]:
    """Pearson's r and the ends of its 95 % interval, by Fisher's transformation.

    The interval is that of pairs drawn at random from many, their values taken as exact; with
    three, or where all lie on a line, Fisher's bounds nothing and it is (-1, 1). ValueError when
    there are less than three, or all values of one side are the same.
    """
    if len(x) != len(y) or len(x) < 3:
        raise ValueError(f"{len(x)} and {len(y)} values: three pairs are needed")
    if len(set(x)) == 1 or len(set(y)) == 1:
        raise ValueError("the values of one side are all the same")
    found = pearsonr(x, y)
    r = float(found.statistic)
    if len(x) == 3 or abs(r) >= ON_A_LINE:
        return r, -1.0, 1.0
    low, high = found.confidence_interval(0.95)
    return r, float(low), float(high)


def mmrv(sim: Sequence[float], real: Sequence[float]) -> float:
    """Mean maximum rank violation of simulated rates against real ones: 0 is best, 1 worst.

    The mean over i of max over j of |real_i - real_j| where sim ranks i and j otherwise than
    reality does: (sim_i > sim_j) != (real_i > real_j). As released with SIMPLER (Li et al., 2024,
    arXiv 2405.05941), so a tie on one side alone is a violation, for one of the
    two. ValueError without values.
    """
    if len(sim) != len(real) or not len(sim):
        raise ValueError(f"{len(sim)} and {len(real)} values")
    worst = [
        max(abs(a - b) if (s > t) != (a > b) else 0.0 for t, b in zip(sim, real, strict=True))
        for s, a in zip(sim, real, strict=True)
    ]
    return sum(worst) / len(worst)
