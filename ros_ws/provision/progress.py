"""Steps with stamps: what is done is skipped, what runs is shown, what fails says what to do."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

__all__ = ["Failed", "Steps", "digest", "say"]


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


class Steps:
    """Runs the steps that are not done yet, each stamped with the hash of what it depends on."""

    def __init__(self, folder: Path) -> None:
        """Keep stamps and logs in `folder`."""
        self.folder = folder
        self.folder.mkdir(exist_ok=True)
        self.started = time.monotonic()
        self.ran = False

    def done(self, name: str, key: str) -> bool:
        """Whether step `name` was completed for `key`."""
        stamp = self.folder / name
        return stamp.is_file() and stamp.read_text() == key

    def step(self, name: str, key: str, what: str, action: Callable[[], None]) -> None:
        """Do `action` unless it was completed for `key`; `what` is the line shown."""
        if self.done(name, key):
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
            while not stop.wait(15.0):
                say(f"[{time.monotonic() - self.started:4.0f} s]   still at it")

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
            raise Failed(f"{program} ended with status {code} (whole log: {log}). {advice}")

    def finish(self) -> None:
        """Say how long it took, if anything was to be done."""
        if self.ran:
            say(f"[{time.monotonic() - self.started:4.0f} s] set-up is complete")
        os.utime(self.folder)
