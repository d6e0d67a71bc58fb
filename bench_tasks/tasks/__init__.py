"""The tasks and probes: one module each, found by name. To add one, add one file here."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from bench_tasks.errors import BenchError, UsageError, unknown
from bench_tasks.tasks.base import Task
from bench_tasks.vocabulary import FR3_PAIR

__all__ = ["Task", "get", "names"]


@cache
def _registry() -> dict[str, Task]:
    found: dict[str, Task] = {}
    for module in pkgutil.iter_modules(__path__):
        task = _load(module.name)
        if task is not None:
            found[task.name] = task
    return dict(sorted(found.items(), key=lambda item: (item[1].tier or 9, item[0])))


def _load(module: str) -> Task | None:
    """What a module calls TASK, None where it is no task's; UsageError if it cannot be loaded."""
    try:
        task = getattr(importlib.import_module(f"{__name__}.{module}"), "TASK", None)
        if task is not None and not isinstance(task, Task):
            raise TypeError(f"TASK must be an instance of Task, got {task!r}")
        if task is not None and not isinstance(getattr(task, "name", None), str):
            raise TypeError("TASK has no name")
        return task
    except BenchError as error:
        reason = str(error)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
    raise UsageError(f"task module {module} cannot be loaded: {reason}")


def names(embodiment: str | None = FR3_PAIR) -> list[str]:
    """Names of the tasks for a robot (None: for any), by tier; probes last."""
    return [
        name for name, task in _registry().items() if embodiment in (None, task.embodiment)
    ]


def get(name: str) -> Task:
    """The task called `name`; UsageError lists the valid names."""
    registry = _registry()
    if name not in registry:
        raise unknown("task", name, registry)
    return registry[name]
