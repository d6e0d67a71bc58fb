"""A driver's process, in an environment of its own: started with its link, and how it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from hardware.link import Link, pair

__all__ = ["STOP_S", "ending", "reap", "start"]

ROOT = Path(__file__).resolve().parents[1]
STOP_S = 3.0
"""A process that was killed has ended by then."""
REAP_S = 0.3


def start(
    python: str, module: str, settings: dict[str, Any], ros: bool = False
) -> tuple[subprocess.Popen[bytes], Link]:
    """`python -m module FD`, with the settings as the first message on its link.

    It finds ROS only if it wants `ros`: what that puts on the path are our packages, not those of
    the driver's environment.
    """
    ours, theirs = pair()
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    if ros:
        path = os.environ.get("PYTHONPATH")
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), path)))
    else:
        environment.pop("LD_LIBRARY_PATH", None)
    with theirs:
        process = subprocess.Popen(
            [python, "-m", module, str(theirs.fileno())],
            pass_fds=[theirs.fileno()], env=environment, start_new_session=True,
        )  # fmt: skip
    ours.send(settings)
    return process, ours


def ending(process: subprocess.Popen[bytes], crash: str) -> str:
    """How a process ended whose link is closed, in words; `crash` is what it said of that."""
    why = f": {crash}" if crash else ""
    try:
        code = process.wait(REAP_S)
    except subprocess.TimeoutExpired:
        return why
    return (f" ({signal.Signals(-code).name})" if code < 0 else f" (exit status {code})") + why


def reap(process: subprocess.Popen[bytes], patience_s: float = 0.0) -> None:
    """Wait for a process to end; one that does not by itself is killed."""
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_S)
