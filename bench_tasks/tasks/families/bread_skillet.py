"""What the two tasks with bread and skillet share: fetch the skillet, then fill it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench_tasks.tasks.base import Check, Goal, Layout, ObjectSpec, Task
from bench_tasks.tasks.families.carry import Carry
from bench_tasks.tasks.families.kitchen import (
    carried,
    carried_stage,
    hand_in,
    let_go,
    local,
    only_by,
    side,
)
from bench_tasks.tasks.families.layouts import upright
from bench_tasks.view import View, compose, rotate
from bench_tasks.vocabulary import ARMS, ObjectInfo, Scene, other_arm

__all__ = ["BreadSkillet"]

MIDDLE_M = (0.47, 0.0)
WITHIN_M = 0.06
PAN_FLOOR_M = 0.005
LEVEL_RAD, FLAT_RAD = 0.1, 0.2
FETCHED = "skillet carried by its handle"


def _pan_offset(half: tuple[float, float, float]) -> np.ndarray:
    """The pan's centre in the skillet's frame: half of the handle's length behind its origin."""
    return np.array([half[1] - half[0], 0.0, 0.0])


def _pan(view: View) -> np.ndarray:
    """The pan's centre (3,), m."""
    offset = _pan_offset(view.scene.object("skillet").half_size_m)
    return compose(view.pose("skillet"), np.array([*offset, 1, 0, 0, 0]))[:3]


def _in_the_middle(view: View) -> bool:
    return bool(np.linalg.norm(_pan(view)[:2] - MIDDLE_M) < WITHIN_M)


def _bread_in_pan(view: View) -> bool:
    """Whether the bread lies within the walls: on the pan, low, touching nothing else."""
    half = view.scene.object("skillet").half_size_m
    offset = local(view, "bread", "skillet")[:3] - _pan_offset(half)
    # As high over the floor as it is when it lies there on any side but its ends.
    up = offset[2] + half[2] - PAN_FLOOR_M
    lying = 0.0 < up < max(view.scene.object("bread").half_size_m[1:]) + 0.008
    return bool(
        np.linalg.norm(offset[:2]) < half[1] - 0.02 and lying
        and view.supported_by("bread", "skillet") and not view.touching("bread", "table")
    )


class BreadSkillet(Task):
    """Sequential work: the skillet stands where only one arm reaches, the bread opposite."""

    version = 2
    tier = 2
    mode = "sequential"
    time_limit_s = 60.0

    def objects(self) -> tuple[ObjectSpec, ...]:
        """The skillet and the bread."""
        return (
            ObjectSpec("skillet", "skillet", "black"), ObjectSpec("bread", "bread", "yellow"),
        )

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """The side of the skillet is drawn; its handle points to the robot."""
        fetcher = ARMS[int(rng.integers(2))]
        filler = other_arm(fetcher)
        yaw = np.pi + rng.uniform(-0.3, 0.3)
        half = objects["skillet"].half_size_m
        pan = np.array([rng.uniform(0.48, 0.54), side(fetcher) * rng.uniform(0.38, 0.45)])
        skillet = upright(*pan, half[2], yaw)
        skillet[:3] -= rotate(skillet[3:], _pan_offset(half))
        bread = upright(
            rng.uniform(0.40, 0.55), side(filler) * rng.uniform(0.28, 0.42),
            objects["bread"].half_size_m[2], rng.uniform(-0.5, 0.5),
        )
        where = f"The skillet is on the {fetcher} side, the bread on the {filler} side. "
        goal = f"the middle of the table (pan at x {MIDDLE_M[0]} m, y {MIDDLE_M[1]:g} m)"
        return Layout(
            {"skillet": skillet, "bread": bread},
            f"{where}With the {fetcher} arm carry the skillet by its handle to {goal}, then put "
            f"the bread in it with the {filler} arm; let go of both.{self.note}",
            params={"fetcher": fetcher, "filler": filler},
            reach={"skillet": (fetcher,), "bread": (filler,)},
            paraphrases=(
                f"{where}Bring the skillet by its handle to {goal} with the {fetcher} arm and lay "
                f"the bread into it with the {filler} arm, so that nothing is held.{self.note}",
                f"Bread into the pan, please: the {fetcher} arm carries the skillet by its handle "
                f"to {goal}, the {filler} arm puts the bread in.{self.note}",
            ),
        )

    def goal(self, scene: Scene) -> Goal:
        """Bread in the pan, the pan level on the table in the middle, both let go."""
        filler = scene.params["filler"]
        return Goal(
            (
                Check("skillet in the middle", _in_the_middle),
                Check(
                    "skillet level on the table",
                    lambda v: v.supported_by("skillet", "table") and v.tilt("skillet") < LEVEL_RAD,
                ),
                Check("bread in the pan", _bread_in_pan),
                Check("bread lying flat", lambda v: v.lean("bread") < FLAT_RAD),
                let_go("skillet", "bread"),
            ),
            after=(FETCHED, carried_stage("bread", filler).name),
        )

    def invariants(self, scene: Scene) -> tuple[Check, ...]:
        """Neither arm does the other one's part."""
        params = scene.params
        return (only_by("skillet", params["fetcher"]), only_by("bread", params["filler"]))

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """Skillet carried by its handle, set down in the middle; bread carried by the other arm."""
        fetcher, filler = scene.params["fetcher"], scene.params["filler"]

        def by_handle(view: View) -> bool:
            half = view.scene.object("skillet").half_size_m
            beyond = hand_in(view, fetcher, "skillet")[0] > 2 * half[1] - half[0]
            return carried(view, "skillet", fetcher) and bool(beyond)

        return (
            Check(FETCHED, by_handle),
            Check(
                "skillet in the middle",
                lambda v: _in_the_middle(v) and v.supported_by("skillet", "table"),
                after=(FETCHED,),
            ),
            carried_stage("bread", filler),
        )

    def todo(self, view: View) -> list[Carry]:
        """What comes next: the skillet to the middle, then the bread into it."""
        params, skillet = view.scene.params, view.scene.object("skillet")
        turned = rotate(view.pose("skillet")[3:], _pan_offset(skillet.half_size_m))
        at = np.array([*MIDDLE_M, skillet.half_size_m[2]]) - [turned[0], turned[1], 0.0]
        # Held by the handle the pan sags: it is to come down level, as it stood before.
        flat = view.start.pose("skillet")[3:]
        if view.tilt("skillet") < 0.02:
            flat = view.pose("skillet")[3:]
        if not _in_the_middle(view) or view.touched_by_robot("skillet"):
            pose = (*at.tolist(), *flat.tolist())
            return [Carry("skillet", pose, params["fetcher"])]
        if _bread_in_pan(view) and not view.touched_by_robot("bread"):
            return []
        pan = _pan(view)
        height = PAN_FLOOR_M + view.scene.object("bread").half_size_m[2]
        return [Carry("bread", (float(pan[0]), float(pan[1]), height), params["filler"])]
