"""Lifting one thing by its two ends with both hands at once: what such tasks share."""

from __future__ import annotations

import abc
from typing import ClassVar

from bench_tasks.tasks.base import Check, Goal, Task
from bench_tasks.view import View, compose, invert
from bench_tasks.vocabulary import ARMS, Scene, SkillCall

__all__ = ["LiftingTask", "hands_beyond", "in_both_hands", "on_fingers_alone", "rise"]

LIFT_M = 0.16
REQUIRED_M = 0.10
LEVEL_RAD, TIPPED_RAD = 0.17, 0.35
TOGETHER = "off the table in both hands"
"""Seen before it is half way up: one hand that lifts first and a second that joins is not it."""


def rise(view: View, name: str) -> float:
    """How far the object is above where it lies upright on the table, m."""
    return float(view.position(name)[2] - view.scene.object(name).half_size_m[2])


def in_both_hands(view: View, name: str) -> bool:
    """Whether either hand grasps the object."""
    return all(view.grasped(name, arm) for arm in ARMS)


def hands_beyond(view: View, name: str, along_y_m: float) -> bool:
    """Whether one hand is beyond this distance from the middle on each side (object's y)."""
    inverse = invert(view.pose(name))
    y = sorted(float(compose(inverse, hand)[1]) for hand in view.state.ee_pose)
    return y[0] < -along_y_m and y[1] > along_y_m


def on_fingers_alone(view: View, name: str) -> bool:
    """Whether nothing but fingers carries the object: neither table nor palm nor arm."""
    others = ("table", *(f"{arm}_{part}" for arm in ARMS for part in ("arm", "hand")))
    return not any(view.touching(name, other) for other in others)


class LiftingTask(Task):
    """Object `item` is to be held up level, one hand on each handle (+y and -y of the object).

    The handles' grasps are called `left_handle` and `right_handle`.
    """

    version = 2
    mode = "simultaneous"
    time_limit_s = 40.0
    item: ClassVar[str]

    @abc.abstractmethod
    def handle_from_m(self, scene: Scene) -> float:
        """How far from the object's middle the handles begin, along its y."""

    def goal(self, scene: Scene) -> Goal:
        """Up, level, in both hands, nothing else carrying it."""
        item, beyond = self.item, self.handle_from_m(scene)
        return Goal(
            (
                Check("10 cm up", lambda v: rise(v, item) >= REQUIRED_M),
                Check("level", lambda v: self.slope(v, item) < LEVEL_RAD),
                Check("in both hands", lambda v: in_both_hands(v, item)),
                Check("one hand on each handle", lambda v: hands_beyond(v, item, beyond)),
                Check("on the fingers alone", lambda v: on_fingers_alone(v, item)),
            ),
            after=(TOGETHER,),
        )

    def invariants(self, scene: Scene) -> tuple[Check, ...]:
        """Never further from level than 20 degrees: of what was in a pot some would be spilt."""
        item = self.item
        return (Check(f"{item} not tipped", lambda v: self.slope(v, item) < TIPPED_RAD),)

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """Each handle held, off the table, half way up."""
        item = self.item
        return (
            Check("left hand on", lambda v: v.grasped(item, "left")),
            Check("right hand on", lambda v: v.grasped(item, "right")),
            Check(
                TOGETHER,
                lambda v: 0.01 < rise(v, item) < REQUIRED_M / 2 and in_both_hands(v, item)
                and on_fingers_alone(v, item),
            ),
            Check("half way up", lambda v: rise(v, item) >= REQUIRED_M / 2),
        )

    def expert(self, view: View, turn: int) -> list[tuple[SkillCall, ...]]:
        """Both hands on the handles, then up together."""
        item = self.item
        if in_both_hands(view, item):
            missing = LIFT_M - rise(view, item)
            if missing < 0.04:
                return []
            return [
                tuple(SkillCall("move_by", arm, {"offset": [0.0, 0.0, missing]}) for arm in ARMS)
            ]
        if any(view.grasped(item, arm) for arm in ARMS):
            return [tuple(SkillCall("open", arm) for arm in ARMS)]
        return [
            tuple(
                SkillCall("grasp", arm, {"object": item, "grasp": f"{arm}_handle"})
                for arm in ARMS
            )
        ]
