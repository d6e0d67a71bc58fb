"""What can happen in a launch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["ProcessExited", "ProcessStarted", "Shutdown"]


@dataclass(frozen=True)
class Shutdown:
    """The launch is to end."""

    reason: str = "reason not given"
    due_to_sigint: bool = False


@dataclass(frozen=True)
class ProcessStarted:
    """A process runs."""

    action: Any
    name: str
    cmd: list[str]
    pid: int


@dataclass(frozen=True)
class ProcessExited:
    """A process ended; `returncode` is negative for a signal."""

    action: Any
    name: str
    cmd: list[str]
    pid: int
    returncode: int
