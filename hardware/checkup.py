"""What the check-ups of all robots' cells have in common.

A marker that is seen in several poses of an arm says where whatever sees it is, or that no place of
it would explain what it saw. Then the joints are not what they are said to be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hardware.hand_eye import Fit

__all__ = ["LOOKS", "SPREAD", "Found", "Place", "good", "mistake"]

Found = tuple[str, bool, str, str]
"""What was checked, whether it is well, what was found, what to do."""
Place = Callable[[np.ndarray], Fit]
"""Where what sees the marker would be, if joints (n, k) were right."""

LOOKS = 8
SPREAD = 0.1
FIT_M, FIT_RAD = 0.010, 0.030


def good(found: Fit) -> bool:
    """Whether it explains what was seen."""
    return found.error_m <= FIT_M and found.error_rad <= FIT_RAD


def mistake(
    place: Place, q: np.ndarray, exchanged: np.ndarray, columns: Sequence[int]
) -> tuple[bool, int | None]:
    """The one mistake in joints q (n, k) that would explain what no place does.

    Whether left and right are swapped, so that joints `exchanged` are right; or which of `columns`
    has the wrong sign, None when none has.
    """
    if good(place(exchanged)):
        return True, None
    signs = []
    for column in columns:
        turned = q.copy()
        turned[:, column] *= -1
        signs.append(place(turned))
    best = int(np.argmin([found.error_m for found in signs]))
    return False, columns[best] if good(signs[best]) else None
