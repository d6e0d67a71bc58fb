"""Passing one thing from hand to hand in the air: what such tasks share."""

from __future__ import annotations

import abc
from typing import ClassVar

import numpy as np

from bench_tasks.tasks.base import Check, Task
from bench_tasks.view import View, compose, yaw_of
from bench_tasks.vocabulary import ARMS, ObjectInfo, Scene, SkillCall

__all__ = ["HandoverTask"]

MEETING_M = (0.42, 0.0, 0.25)
IN_AIR_M = 0.08
EASY_YAW_RAD = np.pi / 4
"""Heading of a hand that points down with its last joint in the middle of its range."""


class HandoverTask(Task):
    """The arm `params["giver"]` takes `item`, the arm `params["receiver"]` ends up with it.

    The item is long along its y; at the meeting each hand is on the end at its own side.
    """

    mode = "sequential"
    item: ClassVar[str]

    @abc.abstractmethod
    def grasp_of(self, scene: Scene, arm: str) -> str:
        """Name of the grasp by which this arm takes the item, as it is or `_flipped`."""

    @abc.abstractmethod
    def meeting_quat(self, scene: Scene) -> list[float]:
        """How the item is turned when it is passed on."""

    def finish(self, view: View) -> list[tuple[SkillCall, ...]]:
        """What the receiver does once it has the item to itself."""
        return []

    def is_finished(self, view: View) -> bool:
        """Whether the item is where it belongs, with nobody's hand on it."""
        return False

    def _in_air_in_both_hands(self, view: View) -> bool:
        return (
            all(view.grasped(self.item, arm) for arm in ARMS)
            and not view.touching(self.item, "table")
            and bool(view.position(self.item)[2] > IN_AIR_M)
        )

    def in_receivers_hand_alone(self, view: View, off_table: bool = True) -> bool:
        """Whether the receiver holds the item, no finger of the giver on it, off the table."""
        giver, receiver = view.scene.params["giver"], view.scene.params["receiver"]
        return (
            view.grasped(self.item, receiver)
            and not any(view.touching(self.item, f"{giver}_finger{k}") for k in (1, 2))
            and not (off_table and view.touching(self.item, "table"))
        )

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """Taken, in both hands, in the receiver's hand alone: in this order."""
        giver = scene.params["giver"]
        return (
            Check(
                "taken by the giver",
                lambda v: v.grasped(self.item, giver) and not v.touching(self.item, "table"),
            ),
            Check(
                "in both hands in the air", self._in_air_in_both_hands,
                after=("taken by the giver",),
            ),
            Check(
                "in the receiver's hand alone", self.in_receivers_hand_alone,
                after=("in both hands in the air",),
            ),
        )

    def expert(self, view: View, turn: int) -> list[tuple[SkillCall, ...]]:
        """Next part of the handover, judged from who holds the item."""
        scene, item = view.scene, self.item
        giver, receiver = scene.params["giver"], scene.params["receiver"]
        info, meeting = scene.object(item), np.array([*MEETING_M, *self.meeting_quat(scene)])

        def take(arm: str, pose: np.ndarray) -> SkillCall:
            grasp = _easier_way(info, self.grasp_of(scene, arm), pose)
            return SkillCall("grasp", arm, {"object": item, "grasp": grasp})

        if view.grasped(item, receiver):
            steps = self.finish(view)
            if view.grasped(item, giver):
                away = SkillCall("move_by", giver, {"offset": [0.0, 0.0, 0.12]})
                steps = [
                    (SkillCall("open", giver),), (away,), (SkillCall("home", giver),), *steps
                ]
            return steps
        if view.grasped(item, giver):
            meet = {"object": item, "pose": meeting.tolist(), "release": False}
            return [(SkillCall("place", giver, meet),), (take(receiver, meeting),)]
        return [] if self.is_finished(view) else [(take(giver, view.pose(item)),)]


def _easier_way(item: ObjectInfo, grasp: str, pose: np.ndarray) -> str:
    """The grasp as it is or with the hand half turned: further from the last joint's limits."""

    def ease(name: str) -> float:
        at = next(np.array(g.pose) for g in item.grasps if g.name == name)
        return float(np.cos(yaw_of(compose(pose, at)[3:]) - EASY_YAW_RAD))

    return max((grasp, f"{grasp}_flipped"), key=ease)
