"""Both hands of the humanoid to poses of their own, at the same time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

import numpy as np

from bench_tasks.tasks.base import Check, Goal, Layout, ObjectSpec
from bench_tasks.tasks.families.humanoid import HumanoidTask, hand_error, reach_target
from bench_tasks.tasks.families.raw_actions import RawActions
from bench_tasks.view import View
from bench_tasks.vocabulary import ARMS, ObjectInfo, Scene, SkillCall

NEAR_M, NEAR_RAD = 0.05, math.radians(10.0)
"""Success at 5 cm and 10 degrees (HERO's S5), held for a second."""
HALF_WAY_M = 0.10


class ReachBothHands(RawActions, HumanoidTask):
    """No objects: where the hands get to, and that the robot stays on its feet."""

    name = "reach_both_hands"
    tier = 3
    mode = "parallel"
    summary = "the humanoid brings both hands to given poses above the table, standing"
    time_limit_s = 30.0
    max_plans = 3

    def objects(self) -> tuple[ObjectSpec, ...]:
        """None."""
        return ()

    def arrange(
        self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo], height_m: float
    ) -> Layout:
        """A pose for each hand that is in reach at this height."""
        targets = reach_target(rng, height_m, ARMS)
        told = "; ".join(
            f"the {arm} hand to position {_numbers(pose[:3])}, quaternion {_numbers(pose[3:])}"
            for arm, pose in targets.items()
        )
        return Layout(
            {}, f"Bring both hands to these poses and keep them there: {told}.{self.note}",
            {"targets": targets},
            paraphrases=(f"Move your hands, both at once, to where they are wanted and hold them "
                         f"still there: {told}.{self.note}",),
        )

    def goal(self, scene: Scene) -> Goal:
        """Both hands within 5 cm and 10 degrees for a second."""
        return Goal(
            tuple(
                Check(f"{arm} hand there", partial(_there, arm=arm, near_m=NEAR_M)) for arm in ARMS
            ),
            hold_s=1.0,
        )

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """Each hand near, then there."""
        return tuple(
            Check(f"{arm} hand {what}", partial(_there, arm=arm, near_m=near_m))
            for what, near_m in (("near", HALF_WAY_M), ("arrived", NEAR_M))
            for arm in ARMS
        )

    def expert(self, view: View, turn: int) -> list[tuple[SkillCall, ...]]:
        """Both at once, again if a hand is not there yet."""
        if all(_there(view, arm, NEAR_M / 2) for arm in ARMS):
            return []
        targets = view.scene.params["targets"]
        return [tuple(
            SkillCall("move_to", arm, {"pose": targets[arm], "opening_m": 0.0}) for arm in ARMS
        )]  # fmt: skip


def _numbers(values: list[float]) -> str:
    return "(" + ", ".join(f"{value:.3f}" for value in values) + ")"


def _there(view: View, arm: str, near_m: float) -> bool:
    away, turned = hand_error(
        view.state.ee_pose[ARMS.index(arm)], view.scene.params["targets"][arm]
    )
    return away <= near_m and turned <= NEAR_RAD


TASK = ReachBothHands()
