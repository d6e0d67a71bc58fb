"""Five blocks into a cross: the red one in the middle, the others around it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench_tasks.tasks.base import Check, Goal, Layout, ObjectSpec, Task
from bench_tasks.tasks.families.carry import Carry, Step, done, next_steps
from bench_tasks.tasks.families.layouts import nearest_first, scatter
from bench_tasks.view import View
from bench_tasks.vocabulary import ObjectInfo, Scene

SIZE_M = 0.036
MIDDLE_M = (0.46, 0.0)
ARM_M = 0.085
CENTER = "red_block"
OTHERS = tuple(f"blue_block_{k}" for k in (1, 2, 3, 4))
NAMES = (CENTER, *OTHERS)
DIRECTIONS = ((0.0, 1.0), (0.0, -1.0), (1.0, 0.0), (-1.0, 0.0))
REACH_M = (0.055, 0.12)
"""How far the outer blocks' centres may be from the middle one's."""
OFF_LINE_M = 0.018
UNEVEN_M = 0.03
"""By how much the longest arm may exceed the shortest."""


def _cross(view: View) -> bool:
    """Whether one block is on each side of the red one, as far as the others, in straight lines."""
    center = view.position(CENTER)[:2]
    found = set()
    lengths = []
    for name in OTHERS:
        offset = view.position(name)[:2] - center
        axis = int(abs(offset[1]) > abs(offset[0]))
        along, across = offset[axis], offset[1 - axis]
        if not REACH_M[0] < abs(along) < REACH_M[1] or abs(across) > OFF_LINE_M:
            return False
        found.add((axis, along > 0))
        lengths.append(abs(along))
    return len(found) == len(OTHERS) and max(lengths) - min(lengths) <= UNEVEN_M


def _on_table(view: View) -> bool:
    return all(view.supported_by(n, "table") and view.lean(n) < 0.1 for n in NAMES)


class BlocksCrossShape(Task):
    """Close quarters: the later blocks must go between the earlier ones."""

    version = 2
    name = "blocks_cross_shape"
    tier = 2
    mode = "parallel"
    summary = "lay five blocks out as a cross, the red one in the middle"
    time_limit_s = 120.0

    def objects(self) -> tuple[ObjectSpec, ...]:
        """One red block and four blue ones."""
        return (
            ObjectSpec(CENTER, "block", "red", {"size": SIZE_M}),
            *(ObjectSpec(name, "block", "blue", {"size": SIZE_M}) for name in OTHERS),
        )

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """Blocks on both sides, clear of the cross's place."""
        x, y = MIDDLE_M
        poses = scatter(
            rng, {name: objects[name].half_size_m[2] for name in NAMES}, x=(0.36, 0.60),
            y=(-0.42, 0.42), gap_m=0.10, keep_out=((x - 0.2, x + 0.2, y - 0.18, y + 0.18),),
        )  # fmt: skip
        return Layout(
            poses,
            "Lay the five blocks out as a cross whose arms point along and across the table: the "
            "red block in the middle, one blue block on each of its four sides, all equally far.",
            reach={name: nearest_first(poses[name]) for name in NAMES},
            paraphrases=(
                "Make a plus sign of the blocks, with the red one at its centre.",
                "Put a blue block to the left, to the right, in front of and behind the red block, "
                "all close to it.",
            ),
        )

    def goal(self, scene: Scene) -> Goal:
        """A cross on the table, let go."""
        return Goal(
            (
                Check("a cross", _cross),
                Check("standing on the table", _on_table),
                Check("let go", lambda v: not any(v.touched_by_robot(n) for n in NAMES)),
            )
        )

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """Each block lifted once."""
        return tuple(
            Check(
                f"{name} lifted",
                lambda v, n=name: v.holder(n) is not None
                and v.position(n)[2] > v.scene.object(n).half_size_m[2] + 0.03,
            )
            for name in NAMES
        )

    def expert(self, view: View, turn: int) -> list[Step]:
        """The middle first; the others with the fingers across the line that they stand on."""
        carries = [Carry(CENTER, self._pose(view, CENTER, (0.0, 0.0)))]
        for name, direction in self._assign(view).items():
            grasp = "across_x" if direction[0] == 0.0 else "across_y"
            carries.append(Carry(name, self._pose(view, name, direction), grasp=grasp))
        # One at a time: both arms in the middle at once would be in each other's way.
        return next_steps(view, [c for c in carries if not done(view, c)][:1], turn)

    def _pose(self, view: View, name: str, direction: tuple[float, float]) -> tuple[float, ...]:
        half = view.scene.object(name).half_size_m[2]
        x, y = (m + ARM_M * d for m, d in zip(MIDDLE_M, direction, strict=True))
        return (x, y, half, 1.0, 0.0, 0.0, 0.0)

    def _assign(self, view: View) -> dict[str, tuple[float, float]]:
        """A side for each blue block: outermost left and right ones to the left and right."""
        by_side = sorted(OTHERS, key=lambda n: -view.start.position(n)[1])
        left, *middle, right = by_side
        far = sorted(middle, key=lambda n: -view.start.position(n)[0])
        sides = dict(zip((left, right, *far), DIRECTIONS, strict=True))
        # Far before near, so that no block is reached for over one that stands already.
        return {n: sides[n] for n in (far[0], left, right, far[1])}


TASK = BlocksCrossShape()
