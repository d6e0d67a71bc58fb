"""What is worth a look: an arm at rest, somewhere new, and the marker in sight."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

__all__ = ["Looks"]

REST_S, REST_RAD = 0.5, 0.003
NEW_RAD = 0.15
SEEN_AGE_S = 0.3


class Looks:
    """Collects looks for the evidence of a robot's check-up."""

    def __init__(self, about: dict[str, Any], part: np.ndarray, count: int) -> None:
        """None yet. `about` goes before them into the file; `part`: which joints have to move."""
        self._about, self._part, self._count = about, part, count
        self._looks: list[dict[str, Any]] = []
        self._rest_q: np.ndarray | None = None
        self._rest_since = 0.0

    @property
    def left(self) -> int:
        """How many looks are still to be taken."""
        return self._count - len(self._looks)

    def offer(self, look: dict[str, np.ndarray], seen_age_s: float) -> str:
        """Take a look if it is worth one; says why not, "" if it is.

        It has the joints (`q`) as they are now, and among others the marker (`seen`), so old.
        """
        now, arm = time.monotonic(), look["q"][self._part]
        if self._rest_q is None or np.abs(arm - self._rest_q).max() > REST_RAD:
            self._rest_q, self._rest_since = arm, now
        if now - self._rest_since < REST_S:
            return "the arm moves"
        # The marker has to have been seen since the arm came to rest, and where it is now.
        if seen_age_s > min(SEEN_AGE_S, now - self._rest_since):
            return "the marker is not seen"
        known = [np.array(other["q"])[self._part] for other in self._looks]
        if any(np.abs(arm - other).max() < NEW_RAD for other in known):
            return "the arm has been here"
        self._looks.append({name: value.tolist() for name, value in look.items()})
        return ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, as it is read again."""
        return {**self._about, "looks": self._looks}
