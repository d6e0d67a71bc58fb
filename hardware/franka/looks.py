"""What is worth a look: an arm at rest, somewhere new, and the marker in sight."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from bench_tasks.vocabulary import ARMS

__all__ = ["Looks"]

REST_S, REST_RAD = 0.5, 0.003
NEW_RAD = 0.15
SEEN_AGE_S = 0.3


class Looks:
    """Collects looks for `calibration.Evidence`."""

    def __init__(self, camera: str, arm: str, grip_m: float, count: int) -> None:
        """None yet; see `Evidence` for what these mean."""
        self._about = {"format_version": 1, "camera": camera, "arm": arm, "grip_m": grip_m}
        self._part = slice(7 * ARMS.index(arm), 7 * ARMS.index(arm) + 7)
        self._count, self._looks = count, []
        self._rest_q: np.ndarray | None = None
        self._rest_since = 0.0

    @property
    def left(self) -> int:
        """How many looks are still to be taken."""
        return self._count - len(self._looks)

    def offer(
        self, q: np.ndarray, opening: np.ndarray, seen: np.ndarray, seen_age_s: float
    ) -> str:
        """Take a look if it is worth one; says why not, "" if it is.

        q (14,): joints now; opening (2,) of both hands; seen (7,): the marker, so old.
        """
        now, arm = time.monotonic(), q[self._part]
        if self._rest_q is None or np.abs(arm - self._rest_q).max() > REST_RAD:
            self._rest_q, self._rest_since = arm, now
        if now - self._rest_since < REST_S:
            return "the arm moves"
        # The marker has to have been seen since the arm came to rest, and where it is now.
        if seen_age_s > min(SEEN_AGE_S, now - self._rest_since):
            return "the marker is not seen"
        known = [np.array(look["q"])[self._part] for look in self._looks]
        if any(np.abs(arm - other).max() < NEW_RAD for other in known):
            return "the arm has been here"
        self._looks.append({"q": q.tolist(), "opening": opening.tolist(), "seen": seen.tolist()})
        return ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, as `calibration.read_evidence` reads it."""
        return {**self._about, "looks": self._looks}
