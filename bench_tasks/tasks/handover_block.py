"""A bar that only one arm reaches, to a place that only the other arm reaches."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench_tasks.tasks.base import Check, Goal, Layout, ObjectSpec, Task
from bench_tasks.tasks.layouts import upright
from bench_tasks.view import View
from bench_tasks.vocabulary import ARMS, ObjectInfo, Scene, SkillCall

LENGTH_M, WIDTH_M = 0.20, 0.03
MEETING_M = (0.42, 0.0, 0.25)


def _in_air_in_both_hands(view: View) -> bool:
    return (
        all(view.grasped("bar", arm) for arm in ARMS)
        and not view.touching("bar", "table")
        and view.position("bar")[2] > 0.08
    )


class HandoverBlock(Task):
    """Sequential work: take, meet, pass on, put down."""

    name = "handover_block"
    tier = 2
    mode = "sequential"
    summary = "take the bar with one arm, pass it to the other in the air, put it on the pad"

    def objects(self) -> tuple[ObjectSpec, ...]:
        """The bar and the pad it belongs on."""
        return (
            ObjectSpec("bar", "bar", "orange", {"length": LENGTH_M, "width": WIDTH_M}),
            ObjectSpec("pad", "pad", "blue", {"size": 0.16}),
        )

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """The giver is drawn; bar and pad lie on opposite sides, far from the middle."""
        giver = ARMS[int(rng.integers(2))]
        side = 1.0 if giver == "left" else -1.0
        bar = upright(
            rng.uniform(0.40, 0.52), side * rng.uniform(0.34, 0.42), WIDTH_M / 2,
            rng.uniform(-0.35, 0.35),
        )
        pad = upright(rng.uniform(0.40, 0.52), -side * rng.uniform(0.34, 0.42), 0.0005)
        receiver = ARMS[1 - ARMS.index(giver)]
        return Layout(
            {"bar": bar, "pad": pad},
            f"The orange bar lies on the {giver} side, the blue pad on the {receiver} side. "
            f"Take the bar with the {giver} arm, pass it to the {receiver} arm in the air, and "
            "put it down on the pad.",
            params={"giver": giver, "receiver": receiver},
            reach={"bar": (giver,)},
        )

    def goal(self, scene: Scene) -> Goal:
        """On the pad, let go, after it went from hand to hand in the air."""
        return Goal(
            (
                Check(
                    "on the pad",
                    lambda v: bool(
                        np.linalg.norm((v.position("bar") - v.position("pad"))[:2]) < 0.05
                    ),
                ),
                Check("on the table", lambda v: v.supported_by("bar", "table")),
                Check(
                    "lying flat",
                    lambda v: v.lean("bar") < 0.15 and v.position("bar")[2] < WIDTH_M / 2 + 0.01,
                ),
                Check("let go", lambda v: not v.touched_by_robot("bar")),
            ),
            after=("in the receiver's hand alone",),
        )

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """Taken, in both hands, in the receiver's hand alone: in this order."""
        giver, receiver = scene.params["giver"], scene.params["receiver"]
        return (
            Check(
                "taken by the giver",
                lambda v: v.grasped("bar", giver) and not v.touching("bar", "table"),
            ),
            Check(
                "in both hands in the air", _in_air_in_both_hands, after=("taken by the giver",)
            ),
            Check(
                "in the receiver's hand alone",
                lambda v: v.grasped("bar", receiver)
                and not any(v.touching("bar", f"{giver}_finger{k}") for k in (1, 2))
                and not v.touching("bar", "table"),
                after=("in both hands in the air",),
            ),
        )

    def expert(self, view: View, turn: int) -> list[tuple[SkillCall, ...]]:
        """Next part of the handover, judged from who holds the bar."""
        giver = view.scene.params["giver"]
        receiver = view.scene.params["receiver"]
        pad = view.position("pad")
        along_y = [1.0, 0.0, 0.0, 0.0]
        place = SkillCall(
            "place", receiver, {"object": "bar", "pose": [*pad[:2].tolist(), WIDTH_M / 2, *along_y]}
        )
        if view.grasped("bar", receiver):
            steps = [(place,), (SkillCall("home", receiver),)]
            if view.grasped("bar", giver):
                away = SkillCall("move_by", giver, {"offset": [0.0, 0.0, 0.12]})
                steps = [
                    (SkillCall("open", giver),), (away,), (SkillCall("home", giver),), *steps
                ]
            return steps
        if view.grasped("bar", giver):
            meet = {"object": "bar", "pose": [*MEETING_M, *along_y], "release": False}
            return [
                (SkillCall("place", giver, meet),),
                (
                    SkillCall(
                        "grasp", receiver, {"object": "bar", "grasp": _own_end(receiver)}
                    ),
                ),
            ]
        if np.linalg.norm((view.position("bar") - pad)[:2]) < 0.05:
            return []
        return [(SkillCall("grasp", giver, {"object": "bar", "grasp": _own_end(giver)}),)]


def _own_end(arm: str) -> str:
    return f"{arm}_end"


TASK = HandoverBlock()
