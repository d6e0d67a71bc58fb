"""The tasks and probes: one module each, found by name. To add one, add one file here."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from bench_tasks.errors import unknown
from bench_tasks.tasks.base import Task

__all__ = ["Task", "get", "names"]


@cache
def _registry() -> dict[str, Task]:
    found: dict[str, Task] = {}
    for module in pkgutil.iter_modules(__path__):
        task = getattr(importlib.import_module(f"{__name__}.{module.name}"), "TASK", None)
        if isinstance(task, Task):
            found[task.name] = task
    return dict(sorted(found.items(), key=lambda item: (item[1].tier or 9, item[0])))


def names() -> list[str]:
    """Names of all tasks, by tier; probes last."""
    return list(_registry())


def get(name: str) -> Task:
    """The task called `name`; UsageError lists the valid names."""
    registry = _registry()
    if name not in registry:
        raise unknown("task", name, registry)
    return registry[name]
