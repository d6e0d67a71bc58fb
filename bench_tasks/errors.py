"""The root exception of the project and the few kinds that callers tell apart."""

__all__ = ["BenchError", "UnscoredError", "UsageError"]


class BenchError(Exception):
    """Anything the project reports in one line; its text names the offending value."""


class UsageError(BenchError):
    """A user's mistake: the command line prints the one line and exits with status 2."""


class UnscoredError(BenchError):
    """A recording from which no verdict can be derived; the text is the reason."""


def unknown(kind: str, value: object, valid: object) -> UsageError:
    """Return the error for a name that is not one of `valid` (any iterable of names)."""
    names = ", ".join(sorted(str(v) for v in valid))  # type: ignore[attr-defined]
    return UsageError(f"unknown {kind} {value!r}: choose from {names}")
