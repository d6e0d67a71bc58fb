"""Two cans into a box in the middle, each arm its can."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench_tasks.tasks.base import Check, Goal, Layout, ObjectSpec, Task
from bench_tasks.tasks.families.carry import Carry, Step, next_steps
from bench_tasks.tasks.families.kitchen import carried_stage, let_go, only_by
from bench_tasks.tasks.families.layouts import upright
from bench_tasks.view import View, compose, invert
from bench_tasks.vocabulary import ObjectInfo, Scene

CANS = {"red_can": "left", "green_can": "right"}
SPACING_M = 0.062
BOX_MOVED_M = 0.06


def inside(view: View, can: str) -> bool:
    """Whether the can stands in the box: within its walls, on its floor, not on the table."""
    local = compose(invert(view.pose("box")), view.pose(can))
    half = view.scene.object("box").half_size_m
    within = abs(local[0]) < half[0] and abs(local[1]) < half[1]
    floor = local[2] - view.scene.object(can).half_size_m[2] < 0.02 - half[2]
    return bool(
        within and floor and view.touching(can, "box") and not view.touching(can, "table")
        and view.tilt(can) < 0.2
    )  # fmt: skip


def _box_in_place(view: View) -> bool:
    moved = (view.position("box") - view.start.position("box"))[:2]
    return bool(
        np.linalg.norm(moved) < BOX_MOVED_M
        and view.supported_by("box", "table") and view.tilt("box") < 0.1
    )


class PlaceCansPlasticbox(Task):
    """Independent work: each can stands on its own arm's side."""

    version = 2
    name = "place_cans_plasticbox"
    tier = 2
    mode = "parallel"
    summary = "put two cans upright into the box in the middle, each with the arm on its side"

    def objects(self) -> tuple[ObjectSpec, ...]:
        """A box and two cans."""
        return (
            ObjectSpec("box", "basket", "cyan"),
            *(ObjectSpec(name, "can", name.split("_")[0]) for name in CANS),
        )

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """The box in the middle, a can on either side."""
        poses = {
            "box": upright(
                rng.uniform(0.42, 0.48), rng.uniform(-0.02, 0.02), objects["box"].half_size_m[2],
                rng.uniform(-0.1, 0.1),
            )
        }
        for name, side in (("red_can", 1.0), ("green_can", -1.0)):
            poses[name] = upright(
                rng.uniform(0.38, 0.58), side * rng.uniform(0.27, 0.40),
                objects[name].half_size_m[2], rng.uniform(-0.5, 0.5),
            )
        return Layout(
            poses,
            "Put both cans upright into the box in the middle of the table, the red one with the "
            "left arm and the green one with the right arm.",
            reach={name: (arm,) for name, arm in CANS.items()},
            paraphrases=(
                "Both cans belong into the box, standing upright: the left arm brings the red one, "
                "the right arm the green one. The box stays where it is.",
                "Stand the red can (left arm) and the green can (right arm) in the plastic box in "
                "the middle and let go.",
            ),
        )

    def goal(self, scene: Scene) -> Goal:
        """Both in the box, each brought by its arm, the box where it was, let go."""
        return Goal(
            (
                *(Check(f"{name} in the box", lambda v, n=name: inside(v, n)) for name in CANS),
                Check("box in its place", _box_in_place),
                let_go(*CANS, "box"),
            ),
            after=tuple(carried_stage(name, arm).name for name, arm in CANS.items()),
        )

    def invariants(self, scene: Scene) -> tuple[Check, ...]:
        """Neither can is taken by the arm of the other side."""
        return tuple(only_by(name, arm) for name, arm in CANS.items())

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """Each can carried by its arm, then in the box."""
        return tuple(
            check
            for name, arm in CANS.items()
            for check in (
                carried_stage(name, arm),
                Check(
                    f"{name} in the box", lambda v, n=name: inside(v, n),
                    after=(carried_stage(name, arm).name,),
                ),
            )
        )

    def expert(self, view: View, turn: int) -> list[Step]:
        """Pick up both at once, then put them in one after the other."""
        carries = []
        for (name, arm), side in zip(CANS.items(), (1.0, -1.0), strict=True):
            floor = 0.008 - view.scene.object("box").half_size_m[2]
            local = [0.0, side * SPACING_M, floor + view.scene.object(name).half_size_m[2]]
            pose = compose(view.pose("box"), np.array([*local, 1.0, 0.0, 0.0, 0.0]))
            if not inside(view, name) or view.holder(name):
                carries.append(Carry(name, tuple(pose.tolist()), arm, "across_y"))
        return next_steps(view, carries, turn)


TASK = PlaceCansPlasticbox()
