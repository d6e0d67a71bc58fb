"""A rolling pin lifted by both its handles: by skills and by raw actions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench_tasks.tasks.base import Layout, ObjectSpec
from bench_tasks.tasks.families.layouts import upright
from bench_tasks.tasks.families.lifting import LiftingTask
from bench_tasks.view import View, rotation_matrix
from bench_tasks.vocabulary import ARMS, ObjectInfo, Scene

__all__ = ["RollerTask"]

BODY_SHARE = 0.55
"""How much of the roller's length its thick middle is; the rest are the handles."""


class RollerTask(LiftingTask):
    """Lift the roller, one hand on each handle, level."""

    item = "roller"

    def objects(self) -> tuple[ObjectSpec, ...]:
        """The roller."""
        return (ObjectSpec("roller", "roller", "brown"),)

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """In the middle, its handles to the left and right."""
        pose = upright(
            rng.uniform(0.40, 0.54), rng.uniform(-0.06, 0.06), objects["roller"].half_size_m[2],
            rng.uniform(-0.3, 0.3),
        )
        texts = (
            "Lift the brown roller at least 10 cm off the table with both hands, one on each "
            "handle, keeping it level, and hold it there.",
            "Take the roller by its two handles at once, one hand on each, and raise it level by "
            "10 cm or more. Keep hold of it.",
            "Both arms together: grip one handle of the rolling pin each, then raise it evenly to "
            "10 cm above the table at least and stay there.",
        )
        instruction, *paraphrases = (text + self.note for text in texts)
        return Layout(
            {"roller": pose}, instruction, reach={"roller": ARMS}, paraphrases=tuple(paraphrases)
        )

    def handle_from_m(self, scene: Scene) -> float:
        """The handles begin where the thick middle ends."""
        return BODY_SHARE * scene.object("roller").half_size_m[1]

    def slope(self, view: View, name: str) -> float:
        """How far its length (y) is from level; a turn about its length does not count."""
        y_axis = rotation_matrix(view.pose(name)[3:])[:, 1]
        return float(np.arcsin(np.clip(abs(y_axis[2]), 0.0, 1.0)))
