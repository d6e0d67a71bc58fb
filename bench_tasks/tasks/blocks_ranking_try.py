"""Memory probe: find out by trying where a block belongs in a row; later put it there at once."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench_tasks.tasks.base import Layout, ObjectSpec
from bench_tasks.tasks.families.layouts import upright
from bench_tasks.tasks.families.trying import SIGN, SIGN_M, TryTask
from bench_tasks.view import View
from bench_tasks.vocabulary import ARMS, ObjectInfo

ROW_X_M = 0.50
ROW = {"green_block": 0.09, "blue_block": -0.09}
"""The blocks that stand in the row already, and their y, m."""
MOVED_M = 0.03


class BlocksRankingTry(TryTask):
    """Nothing tells the right order but to try it."""

    name = "blocks_ranking_try"
    summary = "find out by trying which order of three blocks is right; later do it at once"
    thing = "red_block"
    places = {  # noqa: RUF012
        "order red green blue": (ROW_X_M, 0.18), "order green red blue": (ROW_X_M, 0.0),
        "order green blue red": (ROW_X_M, -0.18),
    }  # fmt: skip
    begin_m = (0.36, 0.0)

    def objects(self) -> tuple[ObjectSpec, ...]:
        """Three blocks, and the sign of the second part."""
        return tuple(
            ObjectSpec(name, "block", name.split("_")[0], {"size": 0.04})
            for name in (self.thing, *ROW, SIGN)
        )

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """The right order is drawn."""
        half = objects[SIGN].half_size_m[2]
        params = self.drawn(rng)
        x, y = np.array(self.begin_m) + rng.uniform(-0.01, 0.01, 2)
        return Layout(
            {
                self.thing: upright(x, y, half), SIGN: upright(*SIGN_M, half),
                **{name: upright(ROW_X_M, y, half) for name, y in ROW.items()},
            },
            self.instructed(
                "The red block belongs in the row with the green and the blue one: nine "
                "centimetres left or right of both, or in the middle. Put it in and let go: you "
                "are told whether the order, from left to right, is right, and it is taken back. "
                "Once it was right, the white block is moved: then put the red one there at once, "
                "and nowhere else in the row. Do not touch the white block.",
                f"Before, the {params['right']} was right.",
            ),
            params, reach={self.thing: ARMS},
        )  # fmt: skip

    def disturbed(self, view: View) -> bool:
        """Whether the green or the blue block was moved."""
        return any(
            np.linalg.norm(view.position(name)[:2] - np.array([ROW_X_M, y])) > MOVED_M
            for name, y in ROW.items()
        )


class BlocksRankingTryTold(BlocksRankingTry):
    """The control."""

    name = "blocks_ranking_try_told"
    told = True
    summary = f"{BlocksRankingTry.name}, and the instruction tells what is right"


TASK, CONTROL = BlocksRankingTry(), BlocksRankingTryTold()
