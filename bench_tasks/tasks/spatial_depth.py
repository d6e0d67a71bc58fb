"""Which arm reaches which block, where only depth tells: pairs on one line of sight."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench_tasks.errors import BenchError
from bench_tasks.tasks.base import ObjectSpec
from bench_tasks.tasks.families.layouts import upright
from bench_tasks.tasks.families.spatial import ANSWERS, SpatialTask, clear_answer
from bench_tasks.vocabulary import ObjectInfo

EYE_M = np.array([-0.05, 0.0])
"""The head camera, seen from above."""
NEAR, FAR = 0.038, 0.055
RATIO = (1.3, 2.2)
PAIRS = tuple((near, far) for near in ANSWERS for far in ANSWERS if near != far)
_DRAWS = 40


class SpatialDepth(SpatialTask):
    """Of each pair the nearer block is the smaller one: in the picture they look alike in size.

    The second block of a pair stands on the line of sight of the first, further away, and its
    answer differs.
    """

    name = "spatial_depth"
    summary = "say for four blocks, in pairs on one line of sight, which arm can grasp each"
    targets = (
        ObjectSpec("red_block", "block", "red", {"size": NEAR}),
        ObjectSpec("green_block", "block", "green", {"size": FAR}),
        ObjectSpec("blue_block", "block", "blue", {"size": NEAR}),
        ObjectSpec("yellow_block", "block", "yellow", {"size": FAR}),
    )
    x_m = (0.30, 0.55)

    def place_targets(
        self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo],
        poses: dict[str, np.ndarray],
    ) -> dict[str, str]:
        """Two pairs whose answers are drawn from those that geometry allows."""
        gold: dict[str, str] = {}
        for near, far in (self.targets[:2], self.targets[2:]):
            answers = self._place_pair(rng, objects[near.name], objects[far.name], poses)
            gold[near.name], gold[far.name] = answers
        return gold

    def _place_pair(
        self, rng: np.random.Generator, near: ObjectInfo, far: ObjectInfo,
        poses: dict[str, np.ndarray],
    ) -> tuple[str, str]:
        for k in rng.permutation(len(PAIRS)):
            for _ in range(_DRAWS):
                first = self.anywhere(rng, near.half_size_m[2])
                point = EYE_M + (first[:2] - EYE_M) * rng.uniform(*RATIO)
                second = upright(*point, far.half_size_m[2], rng.uniform(-0.4, 0.4))
                if (
                    0.92 > point[0] > 0.3 and abs(point[1]) < 0.75
                    and self.is_free(first, poses) and self.is_free(second, {**poses, "": first})
                    and clear_answer(near, first, PAIRS[k][0])
                    and clear_answer(far, second, PAIRS[k][1])
                ):  # fmt: skip
                    poses[near.name], poses[far.name] = first, second
                    return PAIRS[k]
        raise BenchError(f"no places for {near.name} and {far.name} on one line of sight")


TASK = SpatialDepth()
