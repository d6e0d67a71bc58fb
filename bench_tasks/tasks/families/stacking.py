"""Blocks onto each other in the middle of the table: shared by the stacking tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from bench_tasks.tasks.base import Check, Goal, Layout, Task
from bench_tasks.tasks.families.carry import Carry, Step, action_steps, done, next_steps
from bench_tasks.tasks.families.layouts import nearest_first, scatter
from bench_tasks.view import View
from bench_tasks.vocabulary import ObjectInfo, Scene

__all__ = ["MIDDLE_M", "StackingTask"]

MIDDLE_M = np.array([0.45, 0.0])
HEIGHT_TOLERANCE_M = 0.006
MIDDLE_TOLERANCE_M = 0.05


def _half(view: View, name: str) -> float:
    return view.scene.object(name).half_size_m[2]


def stacked(view: View, upper: str, lower: str) -> bool:
    """Whether `upper` lies centrally on top of `lower`, by position alone."""
    offset = view.position(upper) - view.position(lower)
    rise = _half(view, upper) + _half(view, lower)
    least = min(_half(view, upper), _half(view, lower))
    return bool(
        np.linalg.norm(offset[:2]) < 2 * least / 3 and abs(offset[2] - rise) < HEIGHT_TOLERANCE_M
    )


def _in_middle(view: View, name: str) -> bool:
    return bool(np.linalg.norm(view.position(name)[:2] - MIDDLE_M) < MIDDLE_TOLERANCE_M)


class StackingTask(Task):
    """`order` names the blocks from bottom to top."""

    mode = "sequential"
    order: ClassVar[tuple[str, ...]]
    instruction: ClassVar[str]
    paraphrases: ClassVar[tuple[str, ...]]
    gap_m: ClassVar[float] = 0.12

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """Blocks anywhere within reach but in the middle."""
        poses = scatter(
            rng, {name: objects[name].half_size_m[2] for name in self.order}, x=(0.38, 0.58),
            y=(-0.36, 0.36), gap_m=self.gap_m,
            keep_out=((MIDDLE_M[0] - 0.08, MIDDLE_M[0] + 0.08, -0.1, 0.1),),
        )  # fmt: skip
        return Layout(
            poses, self.instruction, paraphrases=self.paraphrases,
            reach={name: nearest_first(pose) for name, pose in poses.items()},
        )  # fmt: skip

    def _pairs(self) -> list[tuple[str, str]]:
        """(upper, lower), from the bottom up."""
        return [(b, a) for a, b in zip(self.order, self.order[1:], strict=False)]

    def goal(self, scene: Scene) -> Goal:
        """Each on the next, carried by it alone, the lowest on the table in the middle, let go."""
        lowest = self.order[0]
        checks = []
        for upper, lower in self._pairs():
            a, b = upper.split("_")[0], lower.split("_")[0]
            checks += [
                Check(f"{a} on {b}", lambda v, u=upper, w=lower: stacked(v, u, w)),
                Check(
                    f"{a} carried by {b}", lambda v, u=upper, w=lower: v.supported_by(u, w)
                ),
                Check(f"{a} lying flat", lambda v, u=upper: v.lean(u) < 0.1),
                Check(f"{a} off the table", lambda v, u=upper: not v.touching(u, "table")),
            ]
        return Goal(
            (
                *checks,
                Check(
                    f"{lowest.split('_')[0]} on the table",
                    lambda v: v.supported_by(lowest, "table"),
                ),
                Check("in the middle", lambda v: _in_middle(v, lowest)),
                Check("let go", lambda v: not any(v.touched_by_robot(n) for n in self.order)),
            )
        )

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """The lowest in the middle, then each lifted and on the next."""
        lowest = self.order[0]
        stages = [
            Check(f"{lowest.split('_')[0]} in the middle", lambda v: _in_middle(v, lowest))
        ]
        for upper, lower in self._pairs():
            a, b = upper.split("_")[0], lower.split("_")[0]
            stages += [
                Check(
                    f"{a} lifted",
                    lambda v, u=upper: v.holder(u) is not None
                    and v.position(u)[2] > _half(v, u) + 0.035,
                ),
                Check(f"{a} on {b}", lambda v, u=upper, w=lower: stacked(v, u, w)),
            ]
        return tuple(stages)

    def expert(self, view: View, turn: int) -> list[Step]:
        """One block per plan, from the bottom up, by what this tier's plans may consist of."""
        lowest = self.order[0]
        carries = [Carry(lowest, (*MIDDLE_M.tolist(), _half(view, lowest)))]
        if not done(view, carries[0], 0.02):
            return self._steps(view, carries[0], turn)
        for upper, lower in self._pairs():
            if not stacked(view, upper, lower) or view.holder(upper) is not None:
                top = view.position(lower) + np.array(
                    [0.0, 0.0, _half(view, lower) + _half(view, upper)]
                )
                return self._steps(view, Carry(upper, tuple(top.tolist())), turn)
        return []

    def _steps(self, view: View, carry: Carry, turn: int) -> list[Step]:
        if self.tier == 3:
            return action_steps(view, carry)
        return next_steps(view, [carry], turn)
