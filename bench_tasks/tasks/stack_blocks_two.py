"""One block onto another, by raw end-effector actions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench_tasks.actions import action_from_state, step_from_action
from bench_tasks.tasks.base import Check, Goal, Layout, ObjectSpec, Task
from bench_tasks.tasks.layouts import arm_for, nearest_first, scatter
from bench_tasks.view import View, rotation_matrix, yaw_of
from bench_tasks.vocabulary import ARMS, ObjectInfo, Scene, SkillCall

SIZE_M = 0.045
MIDDLE_M = np.array([0.45, 0.0])
HOME_TCP = {
    "left": np.array([0.307, 0.35, 0.487, 0.0, 1.0, 0.0, 0.0]),
    "right": np.array([0.307, -0.35, 0.487, 0.0, 1.0, 0.0, 0.0]),
}


def _stacked(view: View) -> bool:
    offset = view.position("red_block") - view.position("green_block")
    return bool(np.linalg.norm(offset[:2]) < SIZE_M / 3 and abs(offset[2] - SIZE_M) < 0.006)


class StackBlocksTwo(Task):
    """Sixteen numbers per action: pose and gripper of each hand."""

    name = "stack_blocks_two"
    tier = 3
    mode = "sequential"
    summary = "stack the red block on the green one in the middle, by end-effector targets"
    skills = ("move_to",)
    max_plans = 12

    def objects(self) -> tuple[ObjectSpec, ...]:
        """A red and a green block."""
        return tuple(
            ObjectSpec(f"{color}_block", "block", color, {"size": SIZE_M})
            for color in ("red", "green")
        )

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """Both blocks anywhere within reach but in the middle."""
        poses = scatter(
            rng, {"red_block": SIZE_M / 2, "green_block": SIZE_M / 2}, x=(0.38, 0.58),
            y=(-0.36, 0.36), gap_m=0.15,
            keep_out=((MIDDLE_M[0] - 0.08, MIDDLE_M[0] + 0.08, -0.1, 0.1),),
        )
        return Layout(
            poses,
            "Bring the green block to the middle of the table (x 0.45 m, y 0 m) and stack the red "
            "block on it. Give each action as 16 numbers: position (m), quaternion (w x y z) and "
            "gripper (0 closed, 1 open) of the left hand, then of the right.",
            reach={name: nearest_first(pose) for name, pose in poses.items()},
        )

    def goal(self, scene: Scene) -> Goal:
        """Red on green, green on the table in the middle, both let go."""
        return Goal(
            (
                Check("red on green", lambda v: _stacked(v)),
                Check("red carried by green", lambda v: v.supported_by("red_block", "green_block")),
                Check("lying flat", lambda v: v.lean("red_block") < 0.1),
                Check("red off the table", lambda v: not v.touching("red_block", "table")),
                Check("green on the table", lambda v: v.supported_by("green_block", "table")),
                Check(
                    "in the middle",
                    lambda v: bool(
                        np.linalg.norm(v.position("green_block")[:2] - MIDDLE_M) < 0.05
                    ),
                ),
                Check(
                    "let go",
                    lambda v: not any(v.touched_by_robot(n) for n in ("red_block", "green_block")),
                ),
            )
        )

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """Green in the middle, red lifted, red on green."""
        return (
            Check(
                "green in the middle",
                lambda v: bool(np.linalg.norm(v.position("green_block")[:2] - MIDDLE_M) < 0.05),
            ),
            Check(
                "red lifted",
                lambda v: v.holder("red_block") is not None and v.position("red_block")[2] > 0.06,
            ),
            Check("red on green", lambda v: _stacked(v)),
        )

    def expert(self, view: View, turn: int) -> list[tuple[SkillCall, ...]]:
        """Green to the middle, then red on top of it, one block per plan."""
        green = view.position("green_block")
        if np.linalg.norm(green[:2] - MIDDLE_M) > 0.02:
            return _carry(view, "green_block", np.array([*MIDDLE_M, SIZE_M / 2]))
        if not _stacked(view):
            return _carry(view, "red_block", green + np.array([0.0, 0.0, SIZE_M]))
        return []


def _carry(view: View, name: str, target: np.ndarray) -> list[tuple[SkillCall, ...]]:
    """Actions that take block `name` to `target` (3,) with the arm on its side."""
    arm = arm_for(view, name)
    k = ARMS.index(arm)
    at = view.position(name)
    down = _hand_down(view.pose(name)[3:])
    above, high = np.array([0.0, 0.0, 0.12]), 0.22
    lift = np.array([target[0], target[1], max(high, target[2] + 0.15)])
    way = [
        (np.array([*at[:2], high]), down, 1.0),
        (at, down, 1.0),
        (at, down, 0.0),
        (np.array([*at[:2], high]), down, 0.0),
        (lift, down, 0.0),
        (target + np.array([0.0, 0.0, 0.001]), down, 0.0),
        (target + np.array([0.0, 0.0, 0.001]), down, 1.0),
        (target + above, down, 1.0),
        (HOME_TCP[arm][:3], HOME_TCP[arm][3:], 1.0),
    ]
    rest = action_from_state(view.state.ee_pose, view.state.gripper_opening)
    steps = []
    for position, quat, gripper in way:
        action = rest.copy()
        action[8 * k : 8 * k + 8] = [*position, *quat, gripper]
        steps.append(step_from_action(action.tolist()))
    return steps


def _hand_down(block_quat: np.ndarray) -> np.ndarray:
    """Hand pointing down with the fingers along the block's nearest side."""
    yaw = yaw_of(block_quat)
    yaw -= np.round(yaw / (np.pi / 2)) * (np.pi / 2)
    # Half a turn about x points the hand down; the yaw is applied before it.
    quat = np.array([0.0, np.cos(yaw / 2), np.sin(yaw / 2), 0.0])
    assert rotation_matrix(quat)[2, 2] < -0.99
    return quat


TASK = StackBlocksTwo()
