"""What the joints of a stand-in robot did, whoever commanded them, for who asks afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

__all__ = ["BlackBox", "read_box"]


class BlackBox:
    """A file of rows of doubles: monotonic time (s), part of the robot, its own time (s), q (rad).

    By its own time it moves as it should, also when it is simulated and falls behind.
    """

    def __init__(self, path: str = "") -> None:
        """Append to a file; nothing is kept without one."""
        self._file = open(path, "ab") if path else None  # noqa: SIM115 - open as long as the robot

    def note(self, time_s: float, part: int, own_s: float, q: Iterable[float]) -> None:
        """One look at one part of the robot."""
        if self._file is not None:
            self._file.write(np.array([time_s, part, own_s, *q]).tobytes())

    def flush(self) -> None:
        """Let others read what was noted."""
        if self._file is not None:
            self._file.flush()


def read_box(path: Path, joints: int, since: int = 0) -> np.ndarray:
    """Rows (n, 3 + joints) from number `since` on; a last one that is not whole is left."""
    width = 8 * (3 + joints)
    if not path.exists():
        return np.zeros((0, 3 + joints))
    with open(path, "rb") as file:
        file.seek(since * width)
        data = file.read()
    return np.frombuffer(data[: len(data) // width * width]).reshape(-1, 3 + joints)
