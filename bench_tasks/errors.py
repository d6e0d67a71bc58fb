"""The root exception of the project and the few kinds that callers tell apart."""

import traceback

__all__ = [
    "BenchError", "BrokenOff", "Crash", "GoneNode", "LateInput", "LostNode",
    "MemoryRaised", "SafetyStop", "UnscoredError", "UsageError", "trace_of",
]  # fmt: skip


class BenchError(Exception):
    """Anything the project reports in one line; its text names the offending value."""


class UsageError(BenchError):
    """A user's mistake: the command line prints the one line and exits with status 2."""


class UnscoredError(BenchError):
    """A recording from which no verdict can be derived; the text is the reason."""


class BrokenOff(BenchError):
    """Nothing more can be asked of who is asked: what was begun ends here, and is not scored."""

    exit_status = 1


class LateInput(BenchError):
    """A node was asked about something that has not reached it yet."""


class MemoryRaised(BenchError):
    """What a memory raised in another process; the text has its type and what it said."""


class LostNode(BenchError):
    """A node did not answer in time."""


class GoneNode(LostNode):
    """A node has ended: nothing can be evaluated without it, whatever it was asked."""


class SafetyStop(BenchError):
    """The arms were stopped to be safe, and move no more in this episode; the text says why."""


class Crash(Exception):
    """An exception that nobody foresaw, raised in another process; shown as it was there."""

    def __init__(self, shown: str, trace: str) -> None:
        """`shown` is the repr of the exception, `trace` its traceback."""
        super().__init__(shown)
        self.trace = trace

    def __repr__(self) -> str:
        """As the exception showed itself where it was raised."""
        return str(self)


def trace_of(error: BaseException) -> str:
    """The traceback of an exception, wherever it was raised."""
    if isinstance(error, Crash):
        return error.trace
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))


def unknown(kind: str, value: object, valid: object) -> UsageError:
    """Return the error for a name that is not one of `valid` (any iterable of names)."""
    names = ", ".join(sorted(str(v) for v in valid))  # type: ignore[attr-defined]
    return UsageError(f"unknown {kind} {value!r}: choose from {names}")
