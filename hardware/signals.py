"""What a human and the safety node say to a cell. Told on one thread, asked on others."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

__all__ = ["SILENT_S", "Signals"]

SILENT_S = 0.1
"""So long the safety node's heartbeat may be missing."""
LATELY = 50
"""Of so many counts none is news a second time; a node that is started anew has others soon."""


class Signals:
    """The stop button, a human's word that nobody stands in the way, and the heartbeat.

    The heartbeat is a count. One that stands still says that the safety node is alive but sees
    no states of the robot, as between episodes: then it checks nothing, and can stop nothing.
    """

    def __init__(self, now_s: Callable[[], float] | None = None) -> None:
        """Nothing was said yet. `now_s`: the robot's time, the wall's (monotonic) of a real one."""
        self._now_s = now_s or (lambda: time.monotonic())
        self.estop, self.confirmed = threading.Event(), threading.Event()
        self._asked = threading.Event()
        self._counts: deque[int] = deque(maxlen=LATELY)
        self._heard_s = self._counted_s = float("-inf")

    def on_estop(self, pressed: bool) -> None:
        """The stop button is pressed, or is not."""
        (self.estop.set if pressed else self.estop.clear)()

    def ask(self) -> None:
        """Somebody waits for `confirmed` from now on; what was confirmed before does not count."""
        self.confirmed.clear()
        self._asked.set()

    def ask_no_more(self) -> None:
        """Nobody waits any more."""
        self._asked.clear()

    def on_confirm(self) -> bool:
        """A human confirms; whether anybody waits for that."""
        asked = self._asked.is_set()
        if asked:
            self._asked.clear()
            self.confirmed.set()
        return asked

    def on_beat(self, count: int) -> None:
        """A heartbeat."""
        self._heard_s = self._now_s()
        if count not in self._counts:  # two nodes that both stand still differ, and tell nothing
            self._counts.append(count)
            self._counted_s = self._heard_s

    def begin(self) -> None:
        """States are published from now on: the heartbeat has to count from now on."""
        self._counted_s = self._now_s()

    @property
    def alive(self) -> bool:
        """Whether the safety node is there."""
        return self._now_s() - self._heard_s <= SILENT_S

    @property
    def watching(self) -> bool:
        """Whether the safety node looks at what the robot does."""
        return self._now_s() - self._counted_s <= SILENT_S
