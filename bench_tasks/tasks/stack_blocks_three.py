"""Three blocks onto each other: red, green, blue from the bottom up."""

from __future__ import annotations

from bench_tasks.tasks.base import ObjectSpec
from bench_tasks.tasks.families.stacking import StackingTask


class StackBlocksThree(StackingTask):
    """The order is told by colour."""

    name = "stack_blocks_three"
    tier = 2
    summary = "stack three blocks in the middle: red at the bottom, then green, then blue"
    time_limit_s = 80.0
    order = ("red_block", "green_block", "blue_block")
    instruction = (
        "Stack the three blocks in the middle of the table (x 0.45 m, y 0 m): red at the bottom, "
        "green on it, blue on top."
    )
    paraphrases = (
        "Build a tower in the middle of the table, from the bottom up red, green, blue.",
        "Put the red block in the middle of the table, the green one on it and the blue one on "
        "the green one.",
    )

    def objects(self) -> tuple[ObjectSpec, ...]:
        """Blocks of one size."""
        return tuple(
            ObjectSpec(name, "block", name.split("_")[0], {"size": 0.045}) for name in self.order
        )


TASK = StackBlocksThree()
