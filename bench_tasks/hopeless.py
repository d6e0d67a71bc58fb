"""When a run on a robot is given up: what keeps an episode from being set up keeps the next one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from bench_tasks.errors import BenchError

__all__ = ["SETUP", "Hopeless", "SetUps", "undone"]

SETUP = "setup: "
"""How the cause of an episode begins that could not be set up."""
IN_A_ROW = 3
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?")


class Hopeless(BenchError):
    """The episodes that are left would fail as the last ones did; the text says what they are."""


class Outcome(Protocol):
    """Of an `EpisodeScore`, what is looked at here."""

    cause: str


class SetUps:
    """Counts the episodes in a row that could not be set up for the same cause."""

    def __init__(self) -> None:
        """None so far."""
        self._alike, self._count = "", 0

    def count(self, outcome: Outcome) -> bool:
        """One more episode is over; whether the next one is hopeless."""
        cause = outcome.cause or ""
        # The same wall is met a little nearer or farther, and by another seed.
        alike = _NUMBER.sub("#", cause) if cause.startswith(SETUP) else ""
        self._count = self._count + 1 if alike and alike == self._alike else int(bool(alike))
        self._alike = alike
        return self._count >= IN_A_ROW

    @staticmethod
    def why(outcome: Outcome, left: Sequence[tuple[str, int]]) -> str:
        """The line to end the run with; `left`: task and seed of what was not begun."""
        cause = outcome.cause.removeprefix(SETUP).rstrip(".")
        return f"{IN_A_ROW} episodes in a row could not be set up: {cause}. {undone(left)}"


def undone(left: Sequence[tuple[str, int]]) -> str:
    """Which episodes were not begun, as arguments that launch them; of each task its last ones."""
    if not left:
        return "No other episode is left"
    seeds: dict[str, list[int]] = {}
    for task, seed in left:
        seeds.setdefault(task, []).append(seed)
    launches: dict[tuple[int, int], list[str]] = {}
    for task, numbers in seeds.items():
        launches.setdefault((min(numbers), len(numbers)), []).append(task)
    ways = [f"tasks:={','.join(names)} seed:={first} episodes:={count}"
            for (first, count), names in launches.items()]  # fmt: skip
    some = f"{len(left)} episodes were" if len(left) > 1 else "1 episode was"
    return f"{some} not begun; put that right, then go on with {'; and '.join(ways)}"
