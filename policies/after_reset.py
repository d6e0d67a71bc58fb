"""What planners and policies have from `reset` on."""

from __future__ import annotations

from typing import TypeVar

from bench_tasks.errors import BenchError

__all__ = ["after_reset"]

T = TypeVar("T")


def after_reset(given: T | None, who: str) -> T:
    """What `reset` has given; BenchError while that is None, naming who was used too early."""
    if given is None:
        raise BenchError(f"{who} was used before it was reset")
    return given
