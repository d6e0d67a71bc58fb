"""Which arm reaches which block: five blocks, closer together."""

from __future__ import annotations

from bench_tasks.tasks.families.spatial import SpatialTask, blocks


class SpatialDense(SpatialTask):
    """More to keep apart."""

    name = "spatial_dense"
    summary = "say for each of five blocks which arm can grasp it"
    targets = blocks("red", "green", "blue", "yellow", "purple")
    gap_m = 0.09


TASK = SpatialDense()
