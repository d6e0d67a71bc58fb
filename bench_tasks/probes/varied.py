"""Probes whose sizes differ from seed to seed, so that one table shows what size does.

`people=2+4` plays two seeds with two people, the next two with four, and so on in turn; with sizes
of several options every combination has its turn. Two seeds go together since some probes say the
same in both, with pictures and without.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from itertools import product
from typing import Any

from bench_tasks.probes.stills import Render
from bench_tasks.probes.stream import Probe

__all__ = ["Varied", "combinations"]

TOGETHER = 2
"""So many seeds after each other are of one size."""


def combinations(options: dict[str, Any], kind: type) -> Iterator[dict[str, Any]]:
    """The options of each combination of sizes; one when every size is a single number."""
    whole = {field.name for field in fields(kind) if type(field.default) is int}
    sizes = {
        name: value.split("+") for name, value in options.items()
        if name in whole and isinstance(value, str) and "+" in value
    }  # fmt: skip
    for chosen in product(*sizes.values()):
        yield {**options, **dict(zip(sizes, chosen, strict=True))}


class Varied:
    """Probes of one kind in turn."""

    def __init__(self, kinds: Sequence[Any]) -> None:
        """One for each combination of sizes."""
        self._kinds, self._last = kinds, kinds[0]
        self.pictured = any(kind.pictured for kind in kinds)

    @property
    def faults(self) -> Sequence[str]:
        """Of what was played last."""
        return getattr(self._last, "faults", ())

    def of(self, seed: int) -> Any:
        """The probe whose turn it is with a seed."""
        return self._kinds[seed // TOGETHER % len(self._kinds)]

    def check(self, seed: int) -> None:
        """UsageError as of that probe."""
        getattr(self.of(seed), "check", lambda seed: None)(seed)

    def steps(self, seed: int, render: Render | None = None) -> Probe:
        """The steps of that probe."""
        self._last = self.of(seed)
        return self._last.steps(seed, render)
