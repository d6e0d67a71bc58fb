"""Three bowls into each other, in any order."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench_tasks.tasks.base import Check, Goal, Layout, ObjectSpec, Task
from bench_tasks.tasks.families.carry import Carry, Step, next_steps
from bench_tasks.tasks.families.layouts import arm_for, nearest_first, scatter
from bench_tasks.view import View
from bench_tasks.vocabulary import ObjectInfo, Scene

MIDDLE_M = np.array([0.45, 0.0])
MIDDLE_TOLERANCE_M = 0.06
RISE_SHARE = 0.37
"""Nested bowls rise by this share of their height: foot stands on foot."""
ASIDE_M, RISE_TOLERANCE_M, LEVEL_RAD = 0.012, 0.006, 0.1
LIFTED_M = 0.03
BOWLS = ("red_bowl", "green_bowl", "blue_bowl")


def _upwards(view: View) -> list[str]:
    return sorted(BOWLS, key=lambda name: view.position(name)[2])


def _nested(view: View, upper: str, lower: str) -> bool:
    """Whether `upper` sits in `lower` as deep as it goes, and upright, by position alone."""
    offset = view.position(upper) - view.position(lower)
    rise = RISE_SHARE * 2 * view.scene.object(lower).half_size_m[2]
    return bool(
        np.linalg.norm(offset[:2]) < ASIDE_M
        and abs(offset[2] - rise) < RISE_TOLERANCE_M
        and view.tilt(upper) < LEVEL_RAD
    )


def _pairs(view: View) -> list[tuple[str, str]]:
    """(upper, lower), from the bottom up."""
    order = _upwards(view)
    return [(order[1], order[0]), (order[2], order[1])]


def _in_middle(view: View, name: str, within_m: float = MIDDLE_TOLERANCE_M) -> bool:
    return bool(np.linalg.norm(view.position(name)[:2] - MIDDLE_M) < within_m)


class StackBowlsThree(Task):
    """Each bowl is held at its rim, and has to be let go inside the one below."""

    name = "stack_bowls_three"
    tier = 2
    mode = "sequential"
    summary = "nest three bowls in each other in the middle, in any order"
    time_limit_s = 80.0

    def objects(self) -> tuple[ObjectSpec, ...]:
        """Bowls of one size."""
        return tuple(ObjectSpec(name, "nest_bowl", name.split("_")[0]) for name in BOWLS)

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """Anywhere within reach but in the middle."""
        radius = max(item.half_size_m[0] for item in objects.values())
        poses = scatter(
            rng, {name: objects[name].half_size_m[2] for name in BOWLS}, x=(0.38, 0.56),
            y=(-0.38, 0.38), gap_m=2 * radius + 0.05, keep_out=((0.0, 1.0, -0.16, 0.16),),
            yaw_rad=0.3,
        )
        return Layout(
            poses,
            "Stack the three bowls in the middle of the table (x 0.45 m, y 0 m), one inside the "
            "other, in any order, and let go of them.",
            reach={name: nearest_first(pose) for name, pose in poses.items()},
            paraphrases=(
                "Nest the red, the green and the blue bowl in each other at x 0.45 m, y 0 m.",
                "Put one bowl in the middle of the table (x 0.45 m, y 0 m) and set the other two "
                "into it, one after the other.",
            ),
        )

    def goal(self, scene: Scene) -> Goal:
        """Each in the next, carried by it alone, the lowest on the table in the middle, let go."""
        return Goal(
            (
                Check("nested", lambda v: all(_nested(v, a, b) for a, b in _pairs(v))),
                Check(
                    "carried by the bowl below",
                    lambda v: all(
                        v.supported_by(a, b) and not v.touching(a, "table") for a, b in _pairs(v)
                    ),
                ),
                Check(
                    "lowest upright on the table",
                    lambda v: v.supported_by(_upwards(v)[0], "table")
                    and v.tilt(_upwards(v)[0]) < LEVEL_RAD,
                ),
                Check("in the middle", lambda v: _in_middle(v, _upwards(v)[0])),
                Check("let go", lambda v: not any(v.touched_by_robot(n) for n in BOWLS)),
            )
        )

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """One lifted, one in the middle, two nested, three nested."""

        def lifted(view: View, name: str) -> bool:
            rise = view.position(name)[2] - view.scene.object(name).half_size_m[2]
            return view.holder(name) is not None and rise > LIFTED_M

        def nests(view: View) -> int:
            return sum(_nested(view, a, b) for a in BOWLS for b in BOWLS if a != b)

        return (
            Check("a bowl lifted", lambda v: any(lifted(v, n) for n in BOWLS)),
            Check("a bowl in the middle", lambda v: any(_in_middle(v, n) for n in BOWLS)),
            Check("two nested", lambda v: nests(v) >= 1),
            Check("three nested", lambda v: nests(v) >= 2),
        )

    def expert(self, view: View, turn: int) -> list[Step]:
        """The nearest to the middle goes there, the others into it, the nearest first."""
        order = sorted(
            BOWLS, key=lambda n: float(np.linalg.norm(view.position(n)[:2] - MIDDLE_M))
        )
        held = [name for name in BOWLS if view.holder(name) is not None]
        standing = [
            name for name in order if name not in held and _in_middle(view, name, 0.03)
        ]  # fmt: skip
        pile = sorted(standing, key=lambda name: view.position(name)[2])[:1]
        for _ in BOWLS:
            pile += [n for n in standing if n not in pile and _nested(view, n, pile[-1])][:1]
        todo = [*held, *(name for name in order if name not in pile and name not in held)]
        if not todo:
            return []
        half = view.scene.object(todo[0]).half_size_m[2]
        top = np.array([*MIDDLE_M, half])
        if pile:
            top = view.position(pile[-1]) + np.array([0.0, 0.0, RISE_SHARE * 2 * half])
        # Leaning outwards, a hand comes from its own side.
        arm = view.holder(todo[0]) or arm_for(view, todo[0])
        return next_steps(view, [Carry(todo[0], tuple(top.tolist()), arm, f"{arm}_rim")], turn)


TASK = StackBowlsThree()
