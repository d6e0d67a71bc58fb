"""Bread onto a kitchen scale, by raw end-effector actions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench_tasks.tasks.base import Check, Goal, Layout, ObjectSpec, Task
from bench_tasks.tasks.families.carry import Carry, Step, action_steps
from bench_tasks.tasks.families.kitchen import carried, inside, let_go, side
from bench_tasks.tasks.families.layouts import upright
from bench_tasks.tasks.families.raw_actions import RawActions
from bench_tasks.view import View
from bench_tasks.vocabulary import ARMS, ObjectInfo, Scene

FLAT_RAD = 0.15
LIFTED = "bread carried through the air"


class PlaceObjectScale(RawActions, Task):
    """A scale weighs right only what it alone carries: nothing may hold, lean on or overhang it."""

    name = "place_object_scale"
    mode = "single"
    summary = "put the bread on the scale and let go, by end-effector targets"
    time_limit_s = 40.0
    max_plans = 8

    def objects(self) -> tuple[ObjectSpec, ...]:
        """The bread, and the scale, which is fixed."""
        return (ObjectSpec("bread", "bread", "yellow"), ObjectSpec("scale", "scale", "gray"))

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """The scale near the middle, the bread on the side that is drawn."""
        arm = ARMS[int(rng.integers(2))]
        scale, bread = objects["scale"].half_size_m, objects["bread"].half_size_m
        at = upright(
            rng.uniform(0.42, 0.52), rng.uniform(-0.08, 0.08), scale[2], rng.uniform(-0.3, 0.3)
        )
        # Room for the open hand beside the scale, wherever that stands.
        nearest = 0.08 + 1.3 * scale[1] + 0.08
        poses = {
            "scale": at,
            "bread": upright(
                rng.uniform(0.38, 0.56), side(arm) * rng.uniform(nearest, 0.42), bread[2],
                rng.uniform(-0.5, 0.5),
            ),
        }
        return Layout(
            poses,
            "Put the bread on the scale so that the scale alone carries it, and let go."
            f"{self.note}",
            reach={"bread": (arm,)},
            paraphrases=(
                f"Weigh the bread: lay it flat on the scale and take your hands off.{self.note}",
                f"The bread belongs on the scale, fully on its plate and released.{self.note}",
            ),
        )

    def goal(self, scene: Scene) -> Goal:
        """All of the bread's weight is on the scale, and nothing else is."""
        return Goal(
            (
                Check("bread on the scale", lambda v: inside(v, "bread", "scale")),
                Check("bread on a face", lambda v: v.lean("bread") < FLAT_RAD),
                let_go("bread", "scale"),
            ),
            after=(LIFTED,),
        )

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """Carried, then on the scale."""
        return (
            Check(LIFTED, lambda v: any(carried(v, "bread", arm) for arm in ARMS)),
            Check("bread on the scale", lambda v: inside(v, "bread", "scale"), after=(LIFTED,)),
        )

    def expert(self, view: View, turn: int) -> list[Step]:
        """One carry to the middle of the plate."""
        if inside(view, "bread", "scale") and not view.touched_by_robot("bread"):
            return []
        scale, bread = (view.scene.object(n).half_size_m for n in ("scale", "bread"))
        x, y, z = (float(v) for v in view.position("scale"))
        return action_steps(view, Carry("bread", (x, y, z + scale[2] + bread[2])))


TASK = PlaceObjectScale()
