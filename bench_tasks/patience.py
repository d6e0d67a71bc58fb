"""When a model is asked no more: a server that is not there is not waited for at every question."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from bench_tasks.errors import BenchError, BrokenOff

__all__ = ["GIVE_UP", "patient"]

GIVE_UP = 3
"""Calls in a row without an answer, after which no more are made."""
P, T = ParamSpec("P"), TypeVar("T")


def patient(call: Callable[P, T]) -> Callable[P, T]:
    """The same call, until `GIVE_UP` in a row raised a BenchError: from then on BrokenOff.

    What was refused for what it is, as a prompt that is too long, is an answer: the error's
    `refused` is true then.
    """
    in_a_row, last = 0, ""

    def asked(*args: P.args, **more: P.kwargs) -> T:
        nonlocal in_a_row, last
        if in_a_row == GIVE_UP:
            raise BrokenOff(f"not asked after {GIVE_UP} calls in a row without an answer: {last}")
        try:
            found = call(*args, **more)
        except BenchError as error:
            in_a_row = 0 if getattr(error, "refused", False) else in_a_row + 1
            last = str(error)
            raise
        in_a_row = 0
        return found

    return asked
