"""Time for tests of what waits: it passes when somebody sleeps, and not when a machine is busy."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Clock"]


class Clock:
    """In place of the module `time`. Whatever happens meanwhile happens while somebody sleeps."""

    def __init__(self) -> None:
        """Nothing is due."""
        self._now, self._due = 50.0, []
        self.each: list[Callable[[], None]] = []
        """Done at the end of each sleep."""

    def monotonic(self) -> float:
        """Seconds."""
        return self._now

    def monotonic_ns(self) -> int:
        """Nanoseconds."""
        return round(self._now * 1e9)

    def later(self, seconds: float, work: Callable[[], None]) -> None:
        """Do it then."""
        self._due.append((self._now + seconds, work))

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        end = self._now + seconds
        for item in sorted((x for x in self._due if x[0] <= end), key=lambda x: x[0]):
            self._due.remove(item)
            self._now = item[0]
            item[1]()
        self._now = end
        for work in self.each:
            work()
