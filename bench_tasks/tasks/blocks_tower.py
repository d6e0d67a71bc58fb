"""Three blocks of different size onto each other, the largest at the bottom."""

from __future__ import annotations

from bench_tasks.tasks.base import ObjectSpec
from bench_tasks.tasks.families.stacking import StackingTask

SIZES_M = {"large_block": 0.056, "medium_block": 0.045, "small_block": 0.034}
COLORS = {"large_block": "yellow", "medium_block": "cyan", "small_block": "pink"}


class BlocksTower(StackingTask):
    """The order is told by size, and it counts."""

    name = "blocks_tower"
    tier = 2
    summary = "build a tower in the middle, the largest block at the bottom, the smallest on top"
    time_limit_s = 80.0
    order = tuple(SIZES_M)
    instruction = (
        "Build a tower of the three blocks in the middle of the table (x 0.45 m, y 0 m): the "
        "largest at the bottom, the smallest on top."
    )
    paraphrases = (
        "Stack the blocks in the middle of the table by size, getting smaller upwards.",
        "Put the biggest block in the middle, the next smaller one on it, and the smallest on top.",
    )

    def objects(self) -> tuple[ObjectSpec, ...]:
        """One block per size."""
        return tuple(
            ObjectSpec(name, "block", COLORS[name], {"size": size})
            for name, size in SIZES_M.items()
        )


TASK = BlocksTower()
