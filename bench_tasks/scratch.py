"""Temporary folders that a process holds, and that the next one clears away when it was killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

__all__ = ["Scratch"]


class Scratch:
    """A new folder `path`, gone after `cleanup`, or when the next of its kind is made.

    It is locked as long as the process lives, so that one which was left behind can be told from
    one in use; another user's is never touched.
    """

    def __init__(self, prefix: str) -> None:
        """Make it where temporary files go, and clear away what was left with this prefix."""
        _clear(prefix)
        while not self._hold(prefix):
            pass

    def _hold(self, prefix: str) -> bool:
        """Whether a new folder is ours: another process may clear it away before it is locked."""
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        with suppress(FileNotFoundError):
            self._lock = os.open(self.path, os.O_RDONLY)
            with suppress(OSError):
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(self._lock), self.path.stat()):
                    return True
            os.close(self._lock)
        return False

    def cleanup(self) -> None:
        """Remove it, with what is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _clear(prefix: str) -> None:
    for path in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        try:
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:  # Gone by now, or none of ours.
            continue
        with suppress(BlockingIOError):
            if os.fstat(lock).st_uid == os.getuid():
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
        os.close(lock)
