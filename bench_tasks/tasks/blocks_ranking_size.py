"""Three blocks into a row by size: the largest on the left."""

from __future__ import annotations

from bench_tasks.tasks.base import ObjectSpec
from bench_tasks.tasks.families.ranking import RankingTask

SIZES_M = {"large_block": 0.054, "medium_block": 0.042, "small_block": 0.030}


class BlocksRankingSize(RankingTask):
    """All of one colour, so that only size tells them apart."""

    name = "blocks_ranking_size"
    summary = "put three blocks in a row by size, the largest on the left"
    order = tuple(SIZES_M)
    instruction = (
        "Put the three blocks in a straight row across the table, close together, by size: "
        "the largest on the left, the smallest on the right."
    )
    paraphrases = (
        "Line the blocks up side by side across the table, getting smaller from left to right.",
        "Arrange a tight row of blocks in order of size, with the biggest one leftmost.",
    )

    def objects(self) -> tuple[ObjectSpec, ...]:
        """One block per size."""
        return tuple(
            ObjectSpec(name, "block", "purple", {"size": size}) for name, size in SIZES_M.items()
        )


TASK = BlocksRankingSize()
