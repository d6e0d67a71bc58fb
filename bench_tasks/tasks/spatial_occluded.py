"""Which arm reaches which block, where each block stands half hidden behind a screen."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench_tasks.tasks.base import ObjectSpec
from bench_tasks.tasks.families.layouts import upright
from bench_tasks.tasks.families.spatial import SpatialTask, blocks
from bench_tasks.tasks.spatial_depth import EYE_M
from bench_tasks.vocabulary import ObjectInfo

BEFORE_M = 0.08
ASIDE_M = 0.018


class SpatialOccluded(SpatialTask):
    """A can stands before each block as seen from the head camera, and hides part of it."""

    name = "spatial_occluded"
    summary = "say for each of three half hidden blocks which arm can grasp it"
    targets = blocks("red", "green", "blue")
    bystanders = tuple(
        ObjectSpec(f"can_{k}", "can", "gray", {"radius": 0.022, "height": 0.10})
        for k in (1, 2, 3)
    )
    gap_m = 0.15
    x_m = (0.38, 0.80)

    def place_bystanders(
        self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo],
        poses: dict[str, np.ndarray],
    ) -> None:
        """One can on each block's line of sight, a little to either side."""
        for spec, block in zip(self.bystanders, self.targets, strict=True):
            at = poses[block.name][:2]
            sight = (at - EYE_M) / np.linalg.norm(at - EYE_M)
            side = np.array([-sight[1], sight[0]]) * rng.choice((-1.0, 1.0)) * ASIDE_M
            point = at - BEFORE_M * sight + side
            poses[spec.name] = upright(*point, objects[spec.name].half_size_m[2])


TASK = SpatialOccluded()
