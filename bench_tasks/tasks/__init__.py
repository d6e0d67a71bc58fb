"""The tasks and probes: one module each, found by name. To add one, add one file here."""

from __future__ import annotations

import importlib
import pkgutil
import re
from functools import cache

from bench_tasks.errors import BenchError, UsageError, unknown
from bench_tasks.tasks.base import Task
from bench_tasks.vocabulary import FR3_PAIR

__all__ = ["Task", "get", "known", "names"]


@cache
def _registry() -> dict[str, Task]:
    found: dict[str, Task] = {}
    for module in pkgutil.iter_modules(__path__):
        for task in _load(module.name):
            found[task.name] = task
    return dict(sorted(found.items(), key=lambda item: (item[1].tier or 9, item[0])))


def _load(module: str) -> list[Task]:
    """What a module calls TASK and CONTROL, if it does; UsageError if it cannot be loaded.

    The control of a memory probe is the same without anything to be remembered.
    """
    try:
        loaded = importlib.import_module(f"{__name__}.{module}")
        found = {k: v for k, v in vars(loaded).items() if k in ("TASK", "CONTROL")}
        for name, task in found.items():
            if not isinstance(task, Task):
                raise TypeError(f"{name} must be an instance of Task, got {task!r}")
            if not isinstance(getattr(task, "name", None), str):
                raise TypeError(f"{name} has no name")
        return list(found.values())
    except BenchError as error:
        reason = str(error)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
    raise UsageError(f"task module {module} cannot be loaded: {reason}")


def names(embodiment: str | None = FR3_PAIR, apart: bool = False) -> list[str]:
    """Names of the tasks for a robot (None: for any), by tier; probes last.

    With `apart` those that are run only when they are asked for by name (`Task.apart`).
    """
    return [
        name for name, task in _registry().items()
        if embodiment in (None, task.embodiment) and task.apart == apart
    ]  # fmt: skip


def known(name: str) -> bool:
    """Whether there is a task called `name`."""
    return name in _registry() or "_rumours" in name and _with_rumours(name) is not None


def get(name: str) -> Task:
    """The task called `name`; UsageError lists the valid names.

    `<probe>_rumours<N>` is a memory probe with so many distractors (`families.rumours`).
    """
    task = _registry().get(name) or _with_rumours(name)
    if task is None:
        raise unknown("task", name, _registry())
    return task


@cache
def _with_rumours(name: str) -> Task | None:
    from bench_tasks.tasks.families.memory import MOST_RUMOURS, MemoryTask

    base, _, count = name.rpartition("_rumours")
    task = _registry().get(base)
    if not isinstance(task, MemoryTask):
        return None
    if not re.fullmatch("[1-9][0-9]*", count) or int(count) > MOST_RUMOURS:
        raise UsageError(f"{name}: rumours must be from 1 to {MOST_RUMOURS}, got {count!r}")
    return task.with_rumours(int(count))
