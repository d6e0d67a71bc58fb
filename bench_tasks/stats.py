"""The interval for success rates."""

from __future__ import annotations

import math

from scipy.stats import norm

__all__ = ["wilson"]


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
