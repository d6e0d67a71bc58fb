"""Which arm reaches which block: three blocks among other things."""

from __future__ import annotations

from bench_tasks.tasks.base import ObjectSpec
from bench_tasks.tasks.families.spatial import SpatialTask, blocks


class SpatialCluttered(SpatialTask):
    """The targets have to be picked out among things of other shapes."""

    name = "spatial_cluttered"
    summary = "say for each of three blocks among clutter which arm can grasp it"
    targets = blocks("red", "green", "blue")
    bystanders = (
        ObjectSpec("can", "can", "orange"),
        ObjectSpec("bottle", "bottle", "cyan"),
        ObjectSpec("mug", "mug", "white"),
        ObjectSpec("bowl", "bowl", "brown"),
        ObjectSpec("bar", "bar", "gray"),
    )


TASK = SpatialCluttered()
