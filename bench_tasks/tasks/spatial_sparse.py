"""Which arm reaches which block: three blocks on an otherwise empty table."""

from __future__ import annotations

from bench_tasks.tasks.families.spatial import SpatialTask, blocks


class SpatialSparse(SpatialTask):
    """Few things, far apart."""

    name = "spatial_sparse"
    summary = "say for each of three blocks which arm can grasp it"
    targets = blocks("red", "green", "blue")


TASK = SpatialSparse()
