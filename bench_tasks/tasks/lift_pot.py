"""A pot with two handles, lifted by both arms at the same time, level."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench_tasks.tasks.base import Check, Goal, Layout, ObjectSpec, Task
from bench_tasks.tasks.layouts import upright
from bench_tasks.view import View, compose, invert
from bench_tasks.vocabulary import ARMS, ObjectInfo, Scene, SkillCall

HEIGHT_M = 0.10
LIFT_M = 0.16
REQUIRED_M = 0.10
LEVEL_RAD = 0.17
SPILL_RAD = 0.35


RADIUS_M = 0.08


def _hand_on_each_handle(view: View) -> bool:
    """Whether one hand is beyond the wall on each handle's side (+y and -y of the pot)."""
    pot = invert(view.pose("pot"))
    y = sorted(float(compose(pot, hand)[1]) for hand in view.state.ee_pose)
    return y[0] < -RADIUS_M and y[1] > RADIUS_M


def _on_fingers_alone(view: View) -> bool:
    others = ("table", *(f"{arm}_{part}" for arm in ARMS for part in ("arm", "hand")))
    return not any(view.touching("pot", other) for other in others)


def _lifted(view: View) -> float:
    return float(view.position("pot")[2] - HEIGHT_M / 2)


class LiftPot(Task):
    """Simultaneous work: one hand on each handle, both rising together."""

    name = "lift_pot"
    tier = 2
    mode = "simultaneous"
    summary = "lift the pot by its two handles with both arms at once and keep it level"
    time_limit_s = 40.0

    def objects(self) -> tuple[ObjectSpec, ...]:
        """The pot."""
        return (ObjectSpec("pot", "pot", "gray", {"radius": RADIUS_M, "height": HEIGHT_M}),)

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """In the middle, its handles to the left and right."""
        pose = upright(
            rng.uniform(0.42, 0.52), rng.uniform(-0.05, 0.05), HEIGHT_M / 2,
            rng.uniform(-0.25, 0.25),
        )
        return Layout(
            {"pot": pose},
            "Lift the pot at least 10 cm off the table with both hands, one on each handle, "
            "keeping it level, and hold it there.",
            reach={"pot": ARMS},
        )

    def goal(self, scene: Scene) -> Goal:
        """Up, level, in both hands, nothing else carrying it."""
        return Goal(
            (
                Check("10 cm up", lambda v: _lifted(v) >= REQUIRED_M),
                Check("level", lambda v: v.tilt("pot") < LEVEL_RAD),
                Check("in both hands", lambda v: all(v.grasped("pot", arm) for arm in ARMS)),
                Check("one hand on each handle", _hand_on_each_handle),
                Check("on the fingers alone", _on_fingers_alone),
            )
        )

    def invariants(self, scene: Scene) -> tuple[Check, ...]:
        """What was in the pot would be spilt beyond 20 degrees."""
        return (Check("pot not tipped", lambda v: v.tilt("pot") < SPILL_RAD),)

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """Each handle held, off the table, half way up."""
        return (
            Check("left hand on", lambda v: v.grasped("pot", "left")),
            Check("right hand on", lambda v: v.grasped("pot", "right")),
            Check(
                "off the table in both hands",
                lambda v: _lifted(v) > 0.01 and all(v.grasped("pot", arm) for arm in ARMS),
            ),
            Check("half way up", lambda v: _lifted(v) >= REQUIRED_M / 2),
        )

    def expert(self, view: View, turn: int) -> list[tuple[SkillCall, ...]]:
        """Both hands on the handles, then up together."""
        if all(view.grasped("pot", arm) for arm in ARMS):
            rise = LIFT_M - _lifted(view)
            if rise < 0.04:
                return []
            return [
                tuple(SkillCall("move_by", arm, {"offset": [0.0, 0.0, rise]}) for arm in ARMS)
            ]
        if any(view.grasped("pot", arm) for arm in ARMS):
            return [tuple(SkillCall("open", arm) for arm in ARMS)]
        return [
            tuple(
                SkillCall("grasp", arm, {"object": "pot", "grasp": f"{arm}_handle"})
                for arm in ARMS
            )
        ]


TASK = LiftPot()
