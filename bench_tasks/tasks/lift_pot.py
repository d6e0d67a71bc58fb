"""A pot with two handles, lifted by both arms at the same time, level."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench_tasks.tasks.base import Layout, ObjectSpec
from bench_tasks.tasks.families.layouts import upright
from bench_tasks.tasks.families.lifting import LiftingTask
from bench_tasks.vocabulary import ARMS, ObjectInfo, Scene


class LiftPot(LiftingTask):
    """Simultaneous work: the pot is heavy, and in one hand it tips."""

    name = "lift_pot"
    tier = 2
    summary = "lift the pot by its two handles with both arms at once and keep it level"
    item = "pot"

    def objects(self) -> tuple[ObjectSpec, ...]:
        """The pot."""
        return (ObjectSpec("pot", "pot", "gray", {"radius": 0.08, "height": 0.10}),)

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """In the middle, its handles to the left and right."""
        pose = upright(
            rng.uniform(0.42, 0.52), rng.uniform(-0.05, 0.05), objects["pot"].half_size_m[2],
            rng.uniform(-0.25, 0.25),
        )
        return Layout(
            {"pot": pose},
            "Lift the pot at least 10 cm off the table with both hands, one on each handle, "
            "keeping it level, and hold it there.",
            reach={"pot": ARMS},
            paraphrases=(
                "Take the pot by both handles, one hand on each, raise it level by 10 cm or more "
                "and keep it up.",
                "With one hand per handle, pick the pot up. It must stay level and end up at "
                "least 10 cm above the table, still in both hands.",
            ),
        )

    def handle_from_m(self, scene: Scene) -> float:
        """The handles begin at the wall; the pot is as deep (x) as its wall is wide."""
        return scene.object("pot").half_size_m[0]


TASK = LiftPot()
