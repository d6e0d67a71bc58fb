"""Three bottles into a dustbin on the left that only the left arm reaches."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench_tasks.tasks.base import Check, Goal, Layout, ObjectSpec, Task
from bench_tasks.tasks.families.carry import Carry, Step, next_steps
from bench_tasks.tasks.families.layouts import scatter, upright
from bench_tasks.view import View, compose, invert
from bench_tasks.vocabulary import ObjectInfo, Scene, SkillCall

BOTTLES = ("green_bottle", "orange_bottle", "cyan_bottle")
MEETING_M = (0.46, 0.02)
LEFT_REACHES_M = -0.08
"""What stands further right than this is for the right arm to bring to the middle."""
FLOOR_M, SLOT_M = 0.012, 0.045
SLOTS = ((SLOT_M, SLOT_M), (-SLOT_M, SLOT_M), (0.0, -SLOT_M))
"""Where the expert puts the bottles, in the bin's frame."""
OVER_M = 0.16
BIN_MOVED_M = 0.10


def binned(view: View, bottle: str) -> bool:
    """Whether the bottle is in the bin: its middle between the walls and below the rim."""
    local = compose(invert(view.pose("dustbin")), view.pose(bottle))[:3]
    within = (np.abs(local) < view.scene.object("dustbin").half_size_m).all()
    return bool(
        within and view.touching(bottle, "dustbin") and not view.touching(bottle, "table")
    )


class PutBottlesDustbin(Task):
    """Sequential work: the right arm passes its bottle over by way of the middle."""

    name = "put_bottles_dustbin"
    tier = 2
    mode = "sequential"
    summary = "put three bottles into the dustbin on the left, which the right arm cannot reach"
    time_limit_s = 90.0

    def objects(self) -> tuple[ObjectSpec, ...]:
        """The bin and three bottles."""
        return (
            ObjectSpec("dustbin", "dustbin", "gray"),
            *(ObjectSpec(name, "bottle", name.split("_")[0]) for name in BOTTLES),
        )

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """The bin far left; two bottles on the left of the table, one on the right."""
        half = objects["dustbin"].half_size_m[2]
        poses = {"dustbin": upright(rng.uniform(0.40, 0.46), rng.uniform(0.50, 0.54), half)}
        order = [BOTTLES[i] for i in rng.permutation(3)]
        height = objects[BOTTLES[0]].half_size_m[2]
        poses |= scatter(
            rng, dict.fromkeys(order[:2], height), x=(0.40, 0.58), y=(0.14, 0.32), gap_m=0.12
        )
        poses[order[2]] = upright(
            rng.uniform(0.40, 0.55), rng.uniform(-0.36, -0.22), height, rng.uniform(-0.5, 0.5)
        )
        return Layout(
            poses,
            "Put all three bottles into the dustbin on the left. Only the left arm reaches it, so "
            "the right arm has to bring its bottle to the middle of the table first.",
            reach={
                **dict.fromkeys(order[:2], ("left",)), order[2]: ("right",),
            },
            paraphrases=(
                "Throw the three bottles away. The bin stands on the left, out of the right arm's "
                "reach.",
                "Clear the table: every bottle belongs into the bin on the left; pass over what "
                "only the right arm can get.",
            ),
        )  # fmt: skip

    def goal(self, scene: Scene) -> Goal:
        """All in the bin, which stands, let go."""
        return Goal(
            (
                *(Check(f"{name} in the bin", lambda v, n=name: binned(v, n)) for name in BOTTLES),
                Check(
                    "bin upright on the table",
                    lambda v: v.supported_by("dustbin", "table") and v.tilt("dustbin") < 0.1,
                ),
                Check(
                    "bin in its place",
                    lambda v: np.linalg.norm(
                        (v.position("dustbin") - v.start.position("dustbin"))[:2]
                    ) < BIN_MOVED_M,
                ),
                Check(
                    "let go",
                    lambda v: not any(v.touched_by_robot(n) for n in (*BOTTLES, "dustbin")),
                ),
            )
        )

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """Each bottle lifted, then in the bin."""
        return tuple(
            check
            for name in BOTTLES
            for check in (
                Check(
                    f"{name} lifted",
                    lambda v, n=name: v.holder(n) is not None
                    and v.position(n)[2] > v.scene.object(n).half_size_m[2] + 0.04,
                ),
                Check(f"{name} in the bin", lambda v, n=name: binned(v, n)),
            )
        )

    def expert(self, view: View, turn: int) -> list[Step]:
        """What is on the right to the middle, and one bottle after the other into the bin."""
        todo = [n for n in BOTTLES if not binned(view, n) or view.holder(n)]
        todo.sort(key=lambda n: (view.holder(n) is None, view.position(n)[1]))
        for name in todo:
            half = view.scene.object(name).half_size_m[2]
            if view.position(name)[1] < LEFT_REACHES_M or view.holder(name) == "right":
                return _over(view, Carry(name, (*MEETING_M, half), "right"))
            up = FLOOR_M + half - view.scene.object("dustbin").half_size_m[2]
            slot = np.array([*SLOTS[BOTTLES.index(name)], up, 1.0, 0.0, 0.0, 0.0])
            spot = compose(view.pose("dustbin"), slot)[:3]
            return _over(view, Carry(name, tuple(spot.tolist()), "left"))
        return []


def _over(view: View, carry: Carry) -> list[Step]:
    """The carry by way of a place high above its end, so that bottles and bin stay standing."""
    x, y, z = carry.pose[:3]
    args = {"object": carry.name, "pose": [x, y, z + OVER_M], "release": False}
    *grasp, place, home = next_steps(view, [carry], 1)
    return [*grasp, (SkillCall("place", place[0].arm, args),), place, home]


TASK = PutBottlesDustbin()
