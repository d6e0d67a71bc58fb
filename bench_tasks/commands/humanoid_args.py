"""What `humanoid.launch.py` adds to the arguments of `bimanual.launch.py`: its robot and tasks."""

from __future__ import annotations

from bench_tasks import tasks
from bench_tasks.errors import UsageError, unknown

__all__ = ["ROBOTS", "humanoid_tasks"]

HUMANOID = "g1"
ROBOTS = ("sim", "unitree")


def humanoid_tasks(names: str, robot: str) -> str:
    """The tasks to run, separated by commas; `all` are all of the humanoid's.

    UsageError on a robot that cannot be launched, and on a task that is not the humanoid's.
    """
    if robot not in ROBOTS:
        raise unknown("robot", robot, ROBOTS)
    if names.strip() == "all":
        return ",".join(tasks.names(HUMANOID))
    for name in (word.strip() for word in names.split(",") if word.strip()):
        other = tasks.get(name).embodiment
        if other != HUMANOID:
            raise UsageError(f"task {name} is for {other}: choose from "
                             f"{', '.join(tasks.names(HUMANOID))}")  # fmt: skip
    return names
