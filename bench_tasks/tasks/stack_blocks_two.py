"""One block onto another, by raw end-effector actions."""

from __future__ import annotations

from bench_tasks.tasks.base import ObjectSpec
from bench_tasks.tasks.families.raw_actions import RawActions
from bench_tasks.tasks.families.stacking import StackingTask

SIZE_M = 0.045


class StackBlocksTwo(RawActions, StackingTask):
    """Sixteen numbers per action: pose and gripper of each hand."""

    name = "stack_blocks_two"
    summary = "stack the red block on the green one in the middle, by end-effector targets"
    gap_m = 0.15
    order = ("green_block", "red_block")
    instruction = (
        "Bring the green block to the middle of the table (x 0.45 m, y 0 m) and stack the red "
        f"block on it.{RawActions.note}"
    )
    paraphrases = (
        "Build a tower of two in the middle of the table (x 0.45 m, y 0 m), green below and red on "
        "top. An action is 16 numbers: position (m), quaternion (w x y z) and gripper (0 closed, "
        "1 open) of the left hand, then of the right.",
    )

    def objects(self) -> tuple[ObjectSpec, ...]:
        """A red and a green block."""
        return tuple(
            ObjectSpec(f"{color}_block", "block", color, {"size": SIZE_M})
            for color in ("red", "green")
        )


TASK = StackBlocksTwo()
