"""How a policy's chunks are executed: what can be chosen, and what came of it, from the events.

`policies.execution` does it. Its every call is an event `policy_call` (`CALL`), so that success
can be compared with latency from the recordings alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from bench_tasks.errors import UsageError, unknown
from bench_tasks.vocabulary import Event

__all__ = [
    "CALL", "HOLD_S", "MODES", "Execution", "check_execution", "check_latency", "execution_of",
    "periods",
]  # fmt: skip

MODES = ("sync", "async", "rtc")
HOLD_S = 1.0
"""How long the arms hold for want of an action in time, before the episode ends."""
CALL = "policy_call"
"""Kind of the event; see `policies.execution.ExecutedPolicy` for what it holds."""
MAX_DEADLINE_S = 3600.0


def check_latency(name: str, value: str) -> None:
    """UsageError unless it is free, measured or a number of seconds."""
    if value in ("free", "measured"):
        return
    try:
        seconds = float(value)
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds < 3600.0:
        raise UsageError(f"{name} must be free, measured or a number of seconds, got {value!r}")


def periods(duration_ns: int, period_ns: int) -> int:
    """Control periods that a duration takes, rounded up."""
    return -(-duration_ns // period_ns)


@dataclass(frozen=True)
class Execution:
    """How the chunks of a policy are executed.

    `mode` is one of `MODES`; `latency` what a call costs in simulated time: "free", "measured" or
    seconds; `execute` the periods from one call to the next (sync: the actions executed of each
    chunk), 0 for as many as the mode allows; after `deadline_s` an answer is not used any more.
    """

    mode: str = "sync"
    latency: str = "free"
    execute: int = 0
    deadline_s: float = 10.0

    def checked(self) -> Execution:
        """Return self; UsageError names the first wrong value and what is valid."""
        if self.mode not in MODES:
            raise unknown("execution", self.mode, MODES)
        check_latency("policy_latency", self.latency)
        if self.execute < 0:
            raise UsageError(f"execute must not be negative, got {self.execute}")
        if not 0.0 < self.deadline_s <= MAX_DEADLINE_S:
            raise UsageError(f"policy_deadline_s must be more than 0 and at most "
                             f"{MAX_DEADLINE_S:g} s, got {self.deadline_s:g}")  # fmt: skip
        return self

    @property
    def active(self) -> bool:
        """Whether it is anything else than executing every chunk whole and at once."""
        return self != Execution()

    def on_clock(self, clock: str) -> Execution:
        """The same where time is real: a call takes what it takes; UsageError if declared."""
        if clock != "realtime" or not self.active or self.latency == "measured":
            return self
        if self.latency != "free":
            raise UsageError(f"policy_latency is measured when the clock is realtime, "
                             f"got {self.latency!r}")  # fmt: skip
        return replace(self, latency="measured")

    def charged_ns(self, wall_ns: int) -> int:
        """What a call that took so long costs in simulated time."""
        if self.latency == "free":
            return 0
        return wall_ns if self.latency == "measured" else round(float(self.latency) * 1e9)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the record."""
        return asdict(self)


# -- what came of it -----------------------------------------------------------------------------

_SETTINGS: dict[str, tuple[type, ...]] = {
    "mode": (str,), "latency": (str,), "execute": (int,), "deadline_s": (int, float),
}  # fmt: skip
_SUMS = ("calls", "latency_s", "wall_s", "late", "actions", "dropped", "held", "blended")


def _number(value: Any) -> float:
    """A finite number that is not negative; 0 for anything else a recording may hold."""
    return value if type(value) in (int, float) and 0 <= value < 1e15 else 0


def execution_of(events: Iterable[Event]) -> dict[str, Any]:
    """The settings of an episode and sums over its calls; {} when it was recorded before both.

    `latency_s` is what was charged and `wall_s` what the calls took, both in all; `late` counts
    the calls whose answer was not used; `actions` were answered, `dropped` of them never executed
    for they were stale; `held` periods had no action; `blended` ones were made of two chunks.
    """
    settings: dict[str, Any] = {}
    sums = dict.fromkeys(_SUMS, 0.0)
    for event in events:
        if event.kind == "begin" and isinstance(event.data.get("execution"), dict):
            settings = {key: event.data["execution"].get(key) for key in _SETTINGS}
        if event.kind != CALL:
            continue
        data = event.data
        sums["calls"] += 1
        sums["latency_s"] += _number(data.get("latency_ns")) / 1e9
        sums["wall_s"] += _number(data.get("wall_ns")) / 1e9
        sums["late"] += bool(data.get("late"))
        for key in ("actions", "dropped", "held", "blended"):
            sums[key] += _number(data.get(key))
    found = {**settings, **sums}
    try:
        check_execution(found)
    except TypeError:  # what the recording says of the settings is none
        return {}
    return found


def check_execution(found: dict[str, Any]) -> None:
    """TypeError when a result file's execution is not what `execution_of` gives."""
    if not found:
        return
    good = set(found) == {*_SETTINGS, *_SUMS}
    good = good and all(type(found[key]) in kinds for key, kinds in _SETTINGS.items())
    numbers = [found.get(key) for key in (*_SUMS, "execute", "deadline_s")]
    # Written so that NaN is refused as well.
    if not good or not all(type(v) in (int, float) and 0 <= v < 1e15 for v in numbers):
        raise TypeError(f"execution is {found!r}"[:200])
