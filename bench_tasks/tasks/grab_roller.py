"""A rolling pin, lifted by both arms at the same time, level, by skill calls."""

from __future__ import annotations

from bench_tasks.tasks.families.roller import RollerTask


class GrabRoller(RollerTask):
    """Simultaneous work: one hand alone would lift one end."""

    name = "grab_roller"
    tier = 2
    summary = "lift the roller by its two handles with both arms at once and keep it level"


TASK = GrabRoller()
