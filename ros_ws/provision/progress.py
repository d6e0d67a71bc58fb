"""Steps with stamps: what is done is skipped, what runs is shown, what fails says what to do."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

__all__ = ["Failed", "Steps", "digest", "explain", "remove", "say"]


LIFE_S = 15.0
"""Seconds between two signs of life."""


class Failed(Exception):
    """A step could not be done; the message tells the user what to do."""


def say(text: str) -> None:
    """Print one line at once, also into a pipe."""
    print(text, flush=True)


def digest(paths: Iterable[Path], *words: str) -> str:
    """Hash of words, file names and file contents; a missing file counts as such."""
    sha = hashlib.sha256()
    for word in words:
        sha.update(word.encode() + b"\0")
    for path in sorted(paths):
        sha.update(str(path).encode() + b"\0")
        sha.update(path.read_bytes() if path.is_file() else b"\0missing")
    return sha.hexdigest()


def remove(folder: Path) -> None:
    """Remove a folder with all it holds, if it exists; OSError where that cannot be done."""
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)


def explain(error: OSError, root: Path) -> str:
    """One line for the user about a file that could not be read or written."""
    path = Path(os.fsdecode(error.filename)) if error.filename else root
    shown = path.relative_to(root) if path != root and path.is_relative_to(root) else path
    if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{shown}: {error.strerror}"
    return (
        f"{shown} is not writable by you; {root} belongs to user {root.stat().st_uid}:"
        " run make as that user, or in a clone of your own"
    )


class Steps:
    """Runs the steps that are not done yet, each stamped with the hash of what it depends on."""

    def __init__(self, folder: Path) -> None:
        """Keep stamps and logs in `folder`."""
        self.folder = folder
        self.folder.mkdir(exist_ok=True)
        self.started = time.monotonic()
        self.ran = False

    def done(self, name: str, key: str, makes: Iterable[Path] = ()) -> bool:
        """Whether step `name` was completed for `key` and all it `makes` is still there."""
        stamp = self.folder / name
        return stamp.is_file() and stamp.read_text() == key and all(p.exists() for p in makes)

    def forget(self) -> None:
        """Take nothing for done any more: what all steps built upon is gone."""
        for path in self.folder.iterdir():
            if path.suffix != ".log":
                path.unlink()

    def step(
        self, name: str, key: str, what: str, action: Callable[[], None],
        makes: Iterable[Path] = (),
    ) -> None:
        """Do `action` unless it was completed for `key`; `what` is the line shown.

        It is done again as well when one of the paths that it `makes` has gone.
        """
        if self.done(name, key, makes):
            return
        (self.folder / name).unlink(missing_ok=True)
        self.ran = True
        say(f"[{time.monotonic() - self.started:4.0f} s] {what} ...")
        action()
        (self.folder / name).write_text(key)

    def run(
        self, name: str, command: list[str], advice: str, env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        """Run a command into a log, with a sign of life; Failed holds its end and `advice`."""
        log = self.folder / f"{name}.log"
        stop = threading.Event()

        def live() -> None:
            while not stop.wait(LIFE_S):
                say(f"[{time.monotonic() - self.started:4.0f} s]   {name}: still at it, log in"
                    f" {self._shown(log)}")

        watcher = threading.Thread(target=live, daemon=True)
        watcher.start()
        try:
            with log.open("w") as out:
                code = subprocess.call(
                    command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                    env=None if env is None else dict(env), cwd=cwd,
                )
        except OSError as error:
            raise Failed(f"cannot run {command[0]}: {error.strerror}. {advice}") from None
        finally:
            stop.set()
        if code != 0:
            tail = log.read_text(errors="replace").splitlines()[-15:]
            sys.stderr.write("\n".join(f"    {line}" for line in tail) + "\n")
            program = Path(command[0]).name
            raise Failed(f"{program} ended with status {code} (whole log: {self._shown(log)})."
                         f" {advice}")

    def _shown(self, path: Path) -> Path:
        """A path as seen from the repository."""
        return path.relative_to(self.folder.parent)

    def finish(self) -> None:
        """Say how long it took, if anything was to be done."""
        if self.ran:
            say(f"[{time.monotonic() - self.started:4.0f} s] set-up is complete")
