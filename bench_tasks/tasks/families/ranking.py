"""Blocks into a row in a given order: shared by the ranking tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from bench_tasks.tasks.base import Check, Goal, Layout, Task
from bench_tasks.tasks.families.carry import Carry, Step, done, next_steps
from bench_tasks.tasks.families.layouts import nearest_first, scatter
from bench_tasks.view import View
from bench_tasks.vocabulary import ObjectInfo, Scene

__all__ = ["ROW_X_M", "SPACING_M", "RankingTask"]

ROW_X_M = 0.45
SPACING_M = 0.09
MAX_GAP_M = 0.14
LIFTED_M = 0.03


class RankingTask(Task):
    """`order` names the blocks from left to right. Two arms share the middle of the table."""

    tier = 2
    mode = "parallel"
    order: ClassVar[tuple[str, ...]]
    instruction: ClassVar[str]
    paraphrases: ClassVar[tuple[str, ...]]

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """Blocks on both sides, clear of the row's place and of each other."""
        poses = scatter(
            rng, {name: objects[name].half_size_m[2] for name in self.order}, x=(0.38, 0.60),
            y=(-0.38, 0.38), gap_m=0.09, keep_out=((ROW_X_M - 0.07, ROW_X_M + 0.07, -0.17, 0.17),),
        )  # fmt: skip
        return Layout(
            poses, self.instruction, paraphrases=self.paraphrases,
            reach={name: nearest_first(poses[name]) for name in self.order},
        )  # fmt: skip

    def goal(self, scene: Scene) -> Goal:
        """In order, in a row, standing on the table, let go."""
        return Goal(
            (
                Check("ordered", self._ordered),
                Check("in a row", self._in_row),
                Check("standing on the table", self._on_table),
                Check("let go", lambda v: not any(v.touched_by_robot(n) for n in self.order)),
            )
        )

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """Each block lifted once, then all in order."""

        def lifted(view: View, name: str) -> bool:
            rise = view.position(name)[2] - view.scene.object(name).half_size_m[2]
            return view.holder(name) is not None and rise > LIFTED_M

        return (
            *(Check(f"{name} lifted", lambda v, n=name: lifted(v, n)) for name in self.order),
            Check("ordered on the table", lambda v: self._ordered(v) and self._on_table(v)),
        )

    def expert(self, view: View, turn: int) -> list[Step]:
        """Pick with both arms at once where they are far apart, then place one after the other."""
        carries = [
            Carry(
                name,
                (
                    ROW_X_M, ((len(self.order) - 1) / 2 - k) * SPACING_M,
                    view.scene.object(name).half_size_m[2],
                ),
            )
            for k, name in enumerate(self.order)
        ]  # fmt: skip
        return next_steps(view, [c for c in carries if not done(view, c)], turn)

    def _ordered(self, view: View) -> bool:
        y = [view.position(name)[1] for name in self.order]
        return all(a > b for a, b in zip(y, y[1:], strict=False))

    def _in_row(self, view: View) -> bool:
        """Whether the blocks stand in a straight row across the table, close to each other."""
        points = np.array([view.position(name) for name in self.order])
        half = np.array([view.scene.object(name).half_size_m[1] for name in self.order])
        gaps = -np.diff(points[:, 1])
        apart = (gaps > half[:-1] + half[1:]).all() and (gaps < MAX_GAP_M).all()
        return bool(np.ptp(points[:, 0]) < 0.04 and apart)

    def _on_table(self, view: View) -> bool:
        return all(
            view.supported_by(name, "table") and view.lean(name) < 0.1 for name in self.order
        )
