"""Classes found by name, or given as `module.Class`, and imported only when they are asked for."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench_tasks.errors import BenchError, UsageError, unknown

__all__ = ["MissingExtra", "load", "making"]

EXTRAS = {"torch": "policies", "transformers": "policies", "safetensors": "policies"}
"""Modules that a plain installation lacks, and the file in requirements/ that has them."""


class MissingExtra(UsageError):
    """Something registered needs a package that is not installed."""


def load(kind: str, name: str, registry: dict[str, str]) -> Any:
    """The class registered under a name as `module:Class`, or else of the name `module.Class`.

    UsageError lists the valid names, or tells why the class could not be loaded.
    """
    where = _where(kind, name, registry)
    module, _, attribute = where.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except BenchError as error:
        reason = str(error)
    except ModuleNotFoundError as error:
        if error.name in EXTRAS:
            raise MissingExtra(
                f"{kind} {name} needs {error.name}: "
                f"pip install -r requirements/{EXTRAS[error.name]}.txt"
            ) from None
        reason = f"{type(error).__name__}: {error}"
        if error.name and f"{module}.".startswith(f"{error.name}."):
            reason += " (is the folder it lies in named in PYTHONPATH?)"
    except Exception as error:  # noqa: BLE001 - other people's code: anything can come
        reason = f"{type(error).__name__}: {error}"
    raise UsageError(f"{kind} {name} cannot be loaded from {where!r}: {reason}")


@contextmanager
def making(kind: str, name: str, registry: dict[str, str]) -> Iterator[None]:
    """UsageError names what was to be made, and from where, whatever its own code raises."""
    try:
        yield
    except BenchError:
        raise
    except Exception as error:  # noqa: BLE001 - other people's code: anything can come
        raise UsageError(
            f"{kind} {name} cannot be made from {_where(kind, name, registry)!r}: "
            f"{type(error).__name__}: {error}"
        ) from error


def _where(kind: str, name: str, registry: dict[str, str]) -> str:
    if name in registry:
        return registry[name]
    module, dot, attribute = name.rpartition(".")
    if not dot:
        raise unknown(kind, name, registry)
    return f"{module}:{attribute}"
