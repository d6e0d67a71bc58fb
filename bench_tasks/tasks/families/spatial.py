"""What the tier-1 tasks share: which arm reaches what, by inverse kinematics, and the question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from bench_tasks.errors import BenchError
from bench_tasks.tasks.base import Ask, Layout, ObjectSpec, Task, Wait
from bench_tasks.tasks.families.layouts import nearest_first, upright
from bench_tasks.view import View, compose
from bench_tasks.vocabulary import ARMS, ObjectInfo, Question, Scene, SkillCall

__all__ = ["ANSWERS", "TRIES", "SpatialTask", "arm_answer", "blocks", "can_grasp", "clear_answer"]

ANSWERS = ("left", "right", "either", "neither")
MARGIN_M = 0.03
MIN_MANIPULABILITY = 0.02
"""Yoshikawa's measure below which an arm is too near a singularity to work (home has 0.07)."""
APPROACH_M = 0.10
TRIES = 3000


def can_grasp(item: ObjectInfo, pose: np.ndarray, arm: str) -> bool:
    """Whether the arm can grasp the object at `pose` (7,).

    It can when one of the object's grasps has a solution within joint limits both on the object
    and 10 cm above it, with manipulability to spare, that does not collide with the other arm
    where it stands now (home).
    """
    from bench_tasks.robots.fr3 import HOME_RAD
    from bench_tasks.robots.kinematics import (
        dual_arm,  # scoring imports this module without pinocchio
    )

    kinematics = dual_arm()
    for grasp in item.grasps:
        tcp = compose(pose, np.array(grasp.pose))
        above = tcp + np.array([0.0, 0.0, APPROACH_M, 0.0, 0.0, 0.0, 0.0])
        start = kinematics.inverse(arm, above, HOME_RAD, restarts=2)
        joints = None if start is None else kinematics.inverse(arm, tcp, start, restarts=1)
        if joints is None or kinematics.manipulability(arm, joints) < MIN_MANIPULABILITY:
            continue
        pair = (joints, HOME_RAD) if arm == "left" else (HOME_RAD, joints)
        if kinematics.collision(*pair) is None:
            return True
    return False


def arm_answer(item: ObjectInfo, pose: np.ndarray) -> str:
    """Which arm can grasp the object at `pose` (7,): left, right, either or neither."""
    found = [arm for arm in ARMS if can_grasp(item, pose, arm)]
    return "either" if len(found) == 2 else found[0] if found else "neither"


def clear_answer(item: ObjectInfo, pose: np.ndarray, wanted: str) -> bool:
    """Whether the answer is `wanted` here and everywhere 3 cm around."""
    offsets = ((0, 0), (MARGIN_M, 0), (-MARGIN_M, 0), (0, MARGIN_M), (0, -MARGIN_M))
    around = [pose + np.array([dx, dy, 0, 0, 0, 0, 0]) for dx, dy in offsets]
    able = ARMS if wanted == "either" else (wanted,)
    # The nearer arm first: what can be reached is found out quickly, what cannot takes every try.
    return all(
        can_grasp(item, at, arm) is (arm in able) for at in around for arm in nearest_first(at)
    )


class SpatialTask(Task):
    """Name the arm for every target. The answer of each is drawn first, then a place for it."""

    tier = 1
    mode = "single"
    targets: ClassVar[tuple[ObjectSpec, ...]]
    bystanders: ClassVar[tuple[ObjectSpec, ...]] = ()
    gap_m: ClassVar[float] = 0.12
    x_m: ClassVar[tuple[float, float]] = (0.30, 0.80)
    y_m: ClassVar[tuple[float, float]] = (-0.65, 0.65)

    def objects(self) -> tuple[ObjectSpec, ...]:
        """The targets, then what merely stands about."""
        return (*self.targets, *self.bystanders)

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """Targets with a clear answer each, all four answers equally likely."""
        poses: dict[str, np.ndarray] = {}
        gold = self.place_targets(rng, objects, poses)
        self.place_bystanders(rng, objects, poses)
        names = ", ".join(spec.name.replace("_", " ") for spec in self.targets)
        return Layout(
            poses,
            f"Which arm can grasp each of these from above, from where the arms are now: {names}? "
            "Answer left, right, either or neither for each.",
            params={"gold": gold},
            paraphrases=(
                f"For each object ({names}) say which robot arm could pick it up from above: "
                "left, right, either of them, or neither.",
            ),
        )

    def place_targets(
        self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo],
        poses: dict[str, np.ndarray],
    ) -> dict[str, str]:
        """Add the targets' poses and return their answers; BenchError when no place is found."""
        gold = {spec.name: str(rng.choice(ANSWERS)) for spec in self.targets}
        for name, wanted in gold.items():
            half_height = objects[name].half_size_m[2]
            for _ in range(TRIES):
                pose = self.anywhere(rng, half_height)
                if self.is_free(pose, poses) and clear_answer(objects[name], pose, wanted):
                    poses[name] = pose
                    break
            else:
                raise BenchError(f"no place was found for {name} with the answer {wanted!r}")
        return gold

    def anywhere(self, rng: np.random.Generator, half_height_m: float) -> np.ndarray:
        """A random upright pose on the table."""
        return upright(
            rng.uniform(*self.x_m), rng.uniform(*self.y_m), half_height_m, rng.uniform(-0.4, 0.4)
        )

    def is_free(self, pose: np.ndarray, poses: dict[str, np.ndarray]) -> bool:
        """Whether a pose keeps the clearance to those that are taken."""
        return all(np.linalg.norm((pose - other)[:2]) >= self.gap_m for other in poses.values())

    def place_bystanders(
        self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo],
        poses: dict[str, np.ndarray],
    ) -> None:
        """Add the poses of the other objects: anywhere free."""
        for spec in self.bystanders:
            for _ in range(TRIES):
                pose = self.anywhere(rng, objects[spec.name].half_size_m[2])
                if self.is_free(pose, poses):
                    poses[spec.name] = pose
                    break
            else:
                raise BenchError(f"no place was found for {spec.name}")

    def prologue(self, scene: Scene) -> tuple[Wait | Ask, ...]:
        """Just the question."""
        gold = dict(scene.params["gold"])
        question = Question("arm", scene.instruction, dict.fromkeys(gold, ANSWERS))
        return (Wait(0.2), Ask(question, gold, chance=1 / len(ANSWERS)))

    def expert(self, view: View, turn: int) -> list[tuple[SkillCall, ...]]:
        """Nothing is to be moved."""
        return []


def blocks(*colors: str, size: float = 0.045) -> tuple[ObjectSpec, ...]:
    """One block per colour."""
    return tuple(ObjectSpec(f"{c}_block", "block", c, {"size": size}) for c in colors)
