"""Which cameras stream, and how often: the launch argument `streams:=head,left_wrist@10`."""

from __future__ import annotations

from bench_tasks.errors import UsageError
from bench_tasks.vocabulary import CONTROL_PERIOD_NS

__all__ = ["DEFAULT_HZ", "parse_streams", "periods_between"]

DEFAULT_HZ = 10.0
CONTROL_HZ = 1e9 / CONTROL_PERIOD_NS


def parse_streams(text: str) -> dict[str, float]:
    """Camera name -> pictures per simulated second, of `name[@hz],...`; {} of an empty text.

    UsageError when a camera is named twice or a rate is not within (0, 50]. Which cameras there
    are only the world knows.
    """
    found: dict[str, float] = {}
    for item in (part.strip() for part in text.split(",")):
        if not item:
            continue
        name, _, rate = item.partition("@")
        if name in found:
            raise UsageError(f"camera {name!r} is named twice")
        try:
            found[name] = float(rate) if rate else DEFAULT_HZ
        except ValueError:
            raise UsageError(f"camera {name!r}: the rate must be in Hz, got {rate!r}") from None
        if not 0.0 < found[name] <= CONTROL_HZ:
            raise UsageError(f"camera {name!r}: the rate must be within (0, {CONTROL_HZ:g}] Hz")
    return found


def periods_between(hz: float) -> int:
    """Control periods from one picture to the next, the nearest whole number."""
    return max(1, round(CONTROL_HZ / hz))
