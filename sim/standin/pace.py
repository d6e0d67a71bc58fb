"""One time for the parts of a simulated cell: who is slow on a busy machine slows the others down.

Each part keeps its time (s) in a file that all of them map. A robot waits for the others before a
cycle, so that none gets ahead of what it works with.
"""

from __future__ import annotations

import math
import time

import numpy as np

__all__ = ["PARTS", "SCENE", "Pace"]

PARTS, SCENE = 3, 2
"""Two robots and the scene."""
AHEAD_S = 0.002
SCENE_AHEAD_S = 0.060
"""A scene goes in whole periods, and is allowed to be so much later than the robots."""
LONGEST_S = 0.2
"""A part that stands still is not waited for longer in a cycle: robots have to answer."""
LOOK_S = 0.0002


class Pace:
    """One part's view. Without a file there are no others."""

    def __init__(self, path: str = "", part: int = SCENE) -> None:
        """Take part; who has not said its time yet keeps nobody waiting."""
        self._part, self._offset_s = part, math.nan
        self._times = np.memmap(path, float, "r+", shape=(PARTS,)) if path else np.zeros(PARTS)
        if not path:
            self._times[:] = math.inf

    @staticmethod
    def begin(path: str) -> None:
        """Make the file, in which nobody has said anything yet."""
        with open(path, "wb") as file:
            file.write(np.full(PARTS, math.inf).tobytes())

    def tell(self, time_s: float) -> None:
        """Where this part is, in the time of all; infinite: nobody need wait for it."""
        ahead_s = SCENE_AHEAD_S - AHEAD_S if self._part == SCENE else 0.0
        self._times[self._part] = time_s + ahead_s

    @property
    def others_s(self) -> float:
        """Where the last of the others is; infinite when there are none."""
        return float(min(self._times[k] for k in range(PARTS) if k != self._part))

    def wait(self, own_s: float) -> None:
        """Before a cycle that begins at `own_s` of this robot's own time, which began somewhere."""
        if math.isnan(self._offset_s):
            others_s = self.others_s
            self._offset_s = (others_s if math.isfinite(others_s) else 0.0) - own_s
        now_s = own_s + self._offset_s
        self.tell(now_s)
        end = time.monotonic() + LONGEST_S
        while now_s > self.others_s + AHEAD_S and time.monotonic() < end:
            time.sleep(LOOK_S)
