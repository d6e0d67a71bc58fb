"""Three blocks into a row: red, green, blue from left to right."""

from __future__ import annotations

from bench_tasks.tasks.base import ObjectSpec
from bench_tasks.tasks.families.ranking import RankingTask

SIZE_M = 0.04


class BlocksRankingRgb(RankingTask):
    """Independent work for two arms that share the middle of the table."""

    name = "blocks_ranking_rgb"
    summary = "put three blocks in a row: red, green, blue from left to right"
    order = ("red_block", "green_block", "blue_block")
    instruction = (
        "Put the three blocks in a straight row across the table, close together: "
        "red on the left, green in the middle, blue on the right."
    )
    paraphrases = (
        "Line the blocks up side by side across the table, from left to right red, green, blue.",
        "Arrange a tight row of blocks: the green one between the red one on its left and the "
        "blue one on its right.",
    )

    def objects(self) -> tuple[ObjectSpec, ...]:
        """One block per colour."""
        return tuple(
            ObjectSpec(name, "block", name.split("_")[0], {"size": SIZE_M}) for name in self.order
        )


TASK = BlocksRankingRgb()
