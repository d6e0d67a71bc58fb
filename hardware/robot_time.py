"""The time by which a cell of simulated robots goes: theirs, which passes slower than the wall's.

A real robot's time is the wall's, and nobody needs this. A simulated one on a busy machine has its
thousand cycles later than a second after it was told where to be then. Whoever goes by its own
time finds it where it should be.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

__all__ = ["SLOWEST", "RobotTime"]

SLOWEST = 0.05
"""Of the wall's: a simulated cell whose time passes slower than that counts as one that hangs."""

REPORT_NS = 4_000_000
"""From one word of a robot to the next: so far its time passes as the wall's, unseen."""
EARLY_NS = 5_000_000
"""A robot that is further ahead of the others than it was is given no more time than they."""


class RobotTime:
    """Of several robots, each with a time of its own, that of the slowest. In ns."""

    def __init__(self, names: Iterable[str], silent_s: float) -> None:
        """While one has said nothing for `silent_s`, the time of all passes as the wall's."""
        self._silent_ns = round(silent_s * 1e9)
        self._heard: dict[str, tuple[int, int]] = {}
        self._names = tuple(names)
        self._ahead: dict[str, int] = {}
        """By how much the time of each is ahead of that of all; empty while not all are heard."""
        self._now_ns = self._looked_ns = time.monotonic_ns()

    def hear(self, name: str, own_ns: int, wall_ns: int) -> None:
        """What a robot's own time was at a time of the wall's (monotonic)."""
        if own_ns < self._heard.get(name, (0, 0))[0]:
            self._ahead = {}  # it has begun anew
        self._heard[name] = own_ns, wall_ns

    def now_ns(self) -> int:
        """The time of all, which never goes back."""
        wall_ns = time.monotonic_ns()
        silent = [name for name in self._names
                  if wall_ns - self._heard.get(name, (0, 0))[1] > self._silent_ns]  # fmt: skip
        if silent:
            self._ahead = {}
            self._now_ns += wall_ns - self._looked_ns
        else:
            own = {name: at + min(wall_ns - heard_ns, REPORT_NS)
                   for name, (at, heard_ns) in self._heard.items()}  # fmt: skip
            if not self._ahead:
                self._ahead = {name: at - self._now_ns for name, at in own.items()}
            slowest_ns = min(own[name] - self._ahead[name] for name in self._names)
            self._now_ns = max(self._now_ns, slowest_ns)
            for name in self._names:
                early_ns = own[name] - self._now_ns - EARLY_NS
                self._ahead[name] = max(self._ahead[name], early_ns)
        self._looked_ns = wall_ns
        return self._now_ns

    def own_ns(self, name: str, ns: int) -> int:
        """What time it will be for a robot at a time of all."""
        ahead = self._ahead.get(name)
        return ns + (self._heard.get(name, (0, 0))[0] - self._now_ns if ahead is None else ahead)
