"""Progress of long work, with an estimate of what remains: one line that is rewritten, or many."""

from __future__ import annotations

import sys
import time
from typing import TextIO

__all__ = ["Progress", "duration"]


def duration(seconds: float) -> str:
    """A time for people: 8 s, 2:05, 1:02:05."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, secs = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{secs:02}" if hours else f"{minutes}:{secs:02}"


class Progress:
    """Counts items. On a terminal one line is kept up to date; elsewhere each item gets a line."""

    def __init__(self, total: int, stream: TextIO | None = None, interval_s: float = 0.2) -> None:
        """Start the clock for `total` items; `stream` is stderr unless given."""
        self._total, self._done = total, 0
        self._stream = stream or sys.stderr
        self._tty = self._stream.isatty()
        self._begun, self._shown, self._interval_s = time.monotonic(), 0.0, interval_s

    def _left(self, part: float) -> str:
        """What remains, from the mean so far; `part` in [0, 1] of the present item is done."""
        done = self._done + part
        if done <= 0.0:
            return ""
        elapsed = time.monotonic() - self._begun
        return f", {duration(elapsed / done * (self._total - done))} left"

    def note(self, text: str, part: float = 0.0) -> None:
        """Say what the present item is doing; shown on a terminal only, a few times a second."""
        now = time.monotonic()
        if not self._tty or now - self._shown < self._interval_s:
            return
        self._shown = now
        self._stream.write(f"\r\x1b[K[{self._done + 1}/{self._total}] {text}{self._left(part)}")
        self._stream.flush()

    def done(self, text: str) -> None:
        """One more item is finished."""
        self._done += 1
        start = "\r\x1b[K" if self._tty else ""
        left = self._left(0.0) if self._done < self._total else ""
        self._stream.write(f"{start}[{self._done}/{self._total}] {text}{left}\n")
        self._stream.flush()

    def close(self) -> None:
        """Leave the cursor on a line of its own."""
        if self._tty:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
