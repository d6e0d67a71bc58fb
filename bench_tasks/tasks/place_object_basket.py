"""A block into a basket with one arm, then the basket lifted by its handle with the other."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench_tasks.tasks.base import Check, Goal, Layout, ObjectSpec, Task
from bench_tasks.tasks.families.carry import Step
from bench_tasks.tasks.families.kitchen import (
    carried_stage,
    hand_in,
    inside,
    let_go,
    local,
    only_by,
    side,
)
from bench_tasks.tasks.families.layouts import upright
from bench_tasks.view import View, compose, quat_from_yaw, yaw_of
from bench_tasks.vocabulary import ARMS, ObjectInfo, Scene, SkillCall, other_arm

REQUIRED_M, LIFT_M = 0.05, 0.09
LEVEL_RAD = 0.3
FLOOR_M = 0.005
OVER_M = 0.08
"""A carried block comes down from 10 cm higher still: clear of the handle on the way there."""
AT_HANDLE_M = 0.03
"""How close to the bar's height and middle plane the hand that lifts must be."""
FILLED = "block put into the standing basket"


def _lifted(view: View) -> float:
    return float(view.position("basket")[2] - view.start.position("basket")[2])


def _in_basket(view: View) -> bool:
    """Whether the basket carries the block within its sides, which reach up to the middle."""
    return inside(view, "block", "basket") and local(view, "block", "basket")[2] < 0.0


def _at_handle(view: View, arm: str) -> bool:
    x, _, z = hand_in(view, arm, "basket")
    return bool(
        abs(x) < AT_HANDLE_M and abs(z - view.scene.object("basket").half_size_m[2]) < AT_HANDLE_M
    )


class PlaceObjectBasket(Task):
    """Sequential work: a basket that hangs in a hand cannot be filled, an empty one not lifted."""

    version = 2
    name = "place_object_basket"
    tier = 2
    mode = "sequential"
    summary = "put the block in the basket with one arm, lift the basket with the other"
    time_limit_s = 50.0

    def objects(self) -> tuple[ObjectSpec, ...]:
        """The block and the basket."""
        return (
            ObjectSpec("block", "block", "yellow", {"size": 0.04}),
            ObjectSpec("basket", "hand_basket", "green"),
        )

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """The basket in the middle, the block on the side that is drawn, beyond the other arm."""
        placer = ARMS[int(rng.integers(2))]
        lifter = other_arm(placer)
        basket, block = objects["basket"].half_size_m, objects["block"].half_size_m
        poses = {
            "basket": upright(
                rng.uniform(0.45, 0.52), rng.uniform(-0.04, 0.04), basket[2],
                rng.uniform(-0.2, 0.2),
            ),
            "block": upright(
                rng.uniform(0.38, 0.55), side(placer) * rng.uniform(0.30, 0.42), block[2],
                rng.uniform(-0.4, 0.4),
            ),
        }
        return Layout(
            poses,
            f"Put the yellow block into the basket with the {placer} arm and let go of it, then "
            f"lift the basket by its handle at least 5 cm off the table with the {lifter} arm and "
            "hold it there.",
            params={"placer": placer, "lifter": lifter},
            reach={"block": (placer,), "basket": (lifter,)},
            paraphrases=(
                f"The {placer} arm puts the yellow block in the basket. Then the {lifter} arm "
                "takes the basket by its handle and holds it at least 5 cm above the table.",
                f"Fill the basket with the block ({placer} arm), then pick the basket up by the "
                f"handle ({lifter} arm), 5 cm or more, and keep holding it.",
            ),
        )

    def goal(self, scene: Scene) -> Goal:
        """The basket hangs in the lifter's hand alone, level, the block in it."""
        placer, lifter = scene.params["placer"], scene.params["lifter"]

        def in_one_hand(view: View) -> bool:
            return view.grasped("basket", lifter) and not any(
                view.touching(name, f"{placer}_{part}")
                for name in ("basket", "block")
                for part in ("arm", "hand", "finger1", "finger2")
            )

        return Goal(
            (
                Check("5 cm up", lambda v: _lifted(v) >= REQUIRED_M),
                Check("off the table", lambda v: not v.touching("basket", "table")),
                Check("in the lifting hand alone", in_one_hand),
                Check("held by the handle", lambda v: _at_handle(v, lifter)),
                Check("level", lambda v: v.tilt("basket") < LEVEL_RAD),
                Check("block in the basket", _in_basket),
                Check("block let go", let_go("block").holds),
            ),
            after=(FILLED,),
        )

    def invariants(self, scene: Scene) -> tuple[Check, ...]:
        """Neither arm does the other one's part."""
        params = scene.params
        return (only_by("block", params["placer"]), only_by("basket", params["lifter"]))

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """Block carried, block in the basket while that stands, basket taken, basket lifted."""
        placer, lifter = scene.params["placer"], scene.params["lifter"]
        taken = carried_stage("block", placer)
        return (
            taken,
            Check(
                FILLED,
                lambda v: _in_basket(v) and not v.touched_by_robot("block")
                and v.supported_by("basket", "table"),
                after=(taken.name,),
            ),
            Check("basket taken", lambda v: v.grasped("basket", lifter), after=(FILLED,)),
            Check(
                "basket off the table with the block",
                lambda v: v.grasped("basket", lifter) and _in_basket(v)
                and not v.touching("basket", "table"),
                after=(FILLED,),
            ),
        )

    def expert(self, view: View, turn: int) -> list[Step]:
        """The block first; with it in the basket, take the handle and rise."""
        placer, lifter = view.scene.params["placer"], view.scene.params["lifter"]
        if not _in_basket(view) or view.touched_by_robot("block"):
            return _fill(view, placer, lifter)
        if view.grasped("basket", lifter):
            rise = LIFT_M - _lifted(view)
            up = {"offset": [0.0, 0.0, rise]}
            return [(SkillCall("move_by", lifter, up),)] if rise > 0.03 else []
        return [(SkillCall("home", placer),), (SkillCall("grasp", lifter, {"object": "basket"}),)]


def _fill(view: View, placer: str, lifter: str) -> list[Step]:
    """Take the block over the handle, then down beside it."""
    at = _place(view)
    over = (*at[:2], at[2] + OVER_M, *at[3:])
    ways = [{"pose": list(over), "release": False}, {"pose": list(at)}]
    steps: list[Step] = [
        *((SkillCall("place", placer, {"object": "block", **way}),) for way in ways),
        (SkillCall("home", placer),),
    ]
    if view.grasped("block", placer):
        return [(SkillCall("home", lifter),), *steps]
    take = {"object": "block", "grasp": "across_y"}
    return [
        (SkillCall("home", placer), SkillCall("home", lifter)),
        (SkillCall("grasp", placer, take),), *steps,
    ]


def _place(view: View) -> tuple[float, ...]:
    """Where the block goes: the basket's near half, turned like the basket.

    Taken across y the hand is thin along x, and fits between the handle and the near side.
    """
    basket, block = (view.scene.object(n).half_size_m for n in ("basket", "block"))
    at = compose(view.pose("basket"), np.array([-0.55 * basket[0], 0, 0, 1, 0, 0, 0]))
    quat = quat_from_yaw(yaw_of(view.pose("basket")[3:]))
    return (float(at[0]), float(at[1]), FLOOR_M + block[2], *(float(v) for v in quat))


TASK = PlaceObjectBasket()
