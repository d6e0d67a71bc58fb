"""Which arm reaches which block: three blocks on an otherwise empty table."""

from __future__ import annotations

import numpy as np

from bench_tasks.errors import BenchError
from bench_tasks.robots import HOME_RAD, TCP_OFFSET_M, base_position
from bench_tasks.tasks.base import Ask, Layout, ObjectSpec, Task, Wait
from bench_tasks.tasks.layouts import scatter
from bench_tasks.view import View
from bench_tasks.vocabulary import ARMS, Question, Scene, SkillCall

SIZE_M = 0.045
NAMES = ("red_block", "green_block", "blue_block")
MARGIN_M = 0.03
SHOULDER_Z_M = 0.333
ARM_M = float(np.hypot(0.316, 0.0825) + np.hypot(0.384, 0.0825))
"""From the shoulder to the wrist, elbow straight (FR3 kinematics, Franka's DH parameters)."""
WRIST_AHEAD_M, WRIST_ABOVE_M = 0.088, 0.107 + TCP_OFFSET_M
"""From the tool centre point of a hand that points down to the wrist (joint 6)."""


def reaching_arms(x_m: float, y_m: float) -> tuple[str, ...]:
    """The arms that can grasp a block standing at (x, y), hand pointing down.

    Reaching means an inverse kinematics solution within joint limits both on the block and 10 cm
    above it.
    """
    from bench_tasks.kinematics import dual_arm  # scoring imports this module without pinocchio

    arms = dual_arm()
    down = [0.0, 1.0, 0.0, 0.0]
    return tuple(
        arm
        for arm in ARMS
        if _within_arms_length(arm, x_m, y_m)
        and all(
            arms.inverse(arm, np.array([x_m, y_m, z, *down]), HOME_RAD, restarts=2) is not None
            for z in (SIZE_M / 2, SIZE_M / 2 + 0.10)
        )
    )


def _within_arms_length(arm: str, x_m: float, y_m: float) -> bool:
    """False where a straight arm is too short: inverse kinematics takes long to find nothing."""
    away = float(np.hypot(*(base_position(arm)[:2] - [x_m, y_m]))) - WRIST_AHEAD_M
    return float(np.hypot(max(0.0, away), SIZE_M / 2 + WRIST_ABOVE_M - SHOULDER_Z_M)) <= ARM_M


def clear_gold(x_m: float, y_m: float) -> str | None:
    """The one arm that reaches (x, y), or None where 3 cm to either side would change it."""
    arms = reaching_arms(x_m, y_m)
    if len(arms) != 1:
        return None
    same = all(reaching_arms(x_m, y_m + d) == arms for d in (-MARGIN_M, MARGIN_M))
    return arms[0] if same else None


class SpatialSparse(Task):
    """Gold is reachability by inverse kinematics, not the side of the table."""

    name = "spatial_sparse"
    tier = 1
    mode = "single"
    summary = "say for each of three blocks which arm can grasp it"

    def objects(self) -> tuple[ObjectSpec, ...]:
        """One block per colour."""
        return tuple(
            ObjectSpec(name, "block", name.split("_")[0], {"size": SIZE_M}) for name in NAMES
        )

    def layout(self, rng: np.random.Generator) -> Layout:
        """Blocks that exactly one arm reaches, with a margin."""
        for _ in range(200):
            poses = scatter(
                rng, {name: SIZE_M / 2 for name in NAMES}, x=(0.34, 0.68), y=(-0.5, 0.5),
                gap_m=0.12,
            )
            gold = {name: clear_gold(*pose[:2]) for name, pose in poses.items()}
            if all(gold.values()):
                break
        else:
            raise BenchError("no layout of spatial_sparse with one clear arm per block was found")
        return Layout(
            poses,
            "For each block, name the arm (left or right) that can grasp it from above.",
            params={"gold": gold},
            reach={name: (str(arm),) for name, arm in gold.items()},
        )

    def prologue(self, scene: Scene) -> tuple[Wait | Ask, ...]:
        """Just the question."""
        question = Question(
            "arm", scene.instruction, {o.name: ARMS for o in scene.objects}
        )
        return (Wait(0.2), Ask(question, dict(scene.params["gold"]), chance=0.5))

    def expert(self, view: View, turn: int) -> list[tuple[SkillCall, ...]]:
        """Nothing is to be moved."""
        return []


TASK = SpatialSparse()
