"""Three blocks into a row: red, green, blue from left to right."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench_tasks.tasks.base import Check, Goal, Layout, ObjectSpec, Task
from bench_tasks.tasks.layouts import arm_for, nearest_first, scatter
from bench_tasks.view import View
from bench_tasks.vocabulary import ARMS, ObjectInfo, Scene, SkillCall

SIZE_M = 0.04
ROW_X_M = 0.45
SPACING_M = 0.09
BOTH_APART_M = 0.3
"""Blocks further apart than this are picked up by both arms at the same time."""
ORDER = ("red_block", "green_block", "blue_block")


def _in_row(view: View) -> bool:
    """Whether the blocks stand in a straight row across the table, close to each other."""
    points = np.array([view.position(name) for name in ORDER])
    gaps = -np.diff(points[:, 1])
    return bool(np.ptp(points[:, 0]) < 0.04 and (gaps > SIZE_M).all() and (gaps < 0.14).all())


def _ordered(view: View) -> bool:
    y = [view.position(name)[1] for name in ORDER]
    return y[0] > y[1] > y[2]


def _on_table(view: View) -> bool:
    return all(
        view.supported_by(name, "table") and view.lean(name) < 0.1 for name in ORDER
    )


def _released(view: View) -> bool:
    return not any(view.touched_by_robot(name) for name in ORDER)


class BlocksRankingRgb(Task):
    """Independent work for two arms that share the middle of the table."""

    name = "blocks_ranking_rgb"
    tier = 2
    mode = "parallel"
    summary = "put three blocks in a row: red, green, blue from left to right"

    def objects(self) -> tuple[ObjectSpec, ...]:
        """One block per colour."""
        return tuple(
            ObjectSpec(name, "block", name.split("_")[0], {"size": SIZE_M}) for name in ORDER
        )

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """Blocks on both sides, clear of the row's place and of each other."""
        poses = scatter(
            rng, {name: SIZE_M / 2 for name in ORDER}, x=(0.38, 0.60), y=(-0.38, 0.38),
            gap_m=0.09, keep_out=((ROW_X_M - 0.07, ROW_X_M + 0.07, -0.17, 0.17),),
        )
        return Layout(
            poses,
            "Put the three blocks in a straight row across the table, close together: "
            "red on the left, green in the middle, blue on the right.",
            reach={name: nearest_first(poses[name]) for name in ORDER},
        )

    def goal(self, scene: Scene) -> Goal:
        """In order, in a row, standing on the table, let go."""
        return Goal(
            (
                Check("ordered", _ordered),
                Check("in a row", _in_row),
                Check("standing on the table", _on_table),
                Check("let go", _released),
            )
        )

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """Each block lifted once, then all in order."""
        lifted = tuple(
            Check(
                f"{name} lifted",
                lambda view, n=name: view.holder(n) is not None and view.position(n)[2] > 0.05,
            )
            for name in ORDER
        )
        return (*lifted, Check("ordered on the table", lambda v: _ordered(v) and _on_table(v)))

    def expert(self, view: View, turn: int) -> list[tuple[SkillCall, ...]]:
        """Pick with both arms at once where they are far apart, then place one after the other."""
        targets = {
            name: np.array([ROW_X_M, (1 - k) * SPACING_M, SIZE_M / 2])
            for k, name in enumerate(ORDER)
        }
        todo = [n for n in ORDER if np.linalg.norm(view.position(n) - targets[n]) > 0.012]
        held = [n for n in todo if view.holder(n)]
        if not todo:
            return []
        if held:
            first = held[0]
            arm = view.holder(first)
            assert arm is not None
            other = ARMS[1 - ARMS.index(arm)]
            return [
                (SkillCall("home", other),), (_place(arm, first, targets),),
                (SkillCall("home", arm),),
            ]
        sides = {arm: [n for n in todo if arm_for(view, n) == arm] for arm in ARMS}
        if all(sides.values()) and turn == 0:
            left, right = (max(sides[a], key=lambda n: abs(view.position(n)[1])) for a in ARMS)
            apart = view.position(left)[1] - view.position(right)[1] > BOTH_APART_M
            # Arms that would have to cross each other to their targets work in turn instead.
            if apart and ORDER.index(left) < ORDER.index(right):
                return [
                    (_grasp("left", left), _grasp("right", right)),
                    (_place("left", left, targets),),
                    (SkillCall("home", "left"), _place("right", right, targets)),
                    (SkillCall("home", "right"),),
                ]
        arm = arm_for(view, todo[0])
        return [
            (_grasp(arm, todo[0]),), (_place(arm, todo[0], targets),), (SkillCall("home", arm),)
        ]


def _grasp(arm: str, name: str) -> SkillCall:
    return SkillCall("grasp", arm, {"object": name})


def _place(arm: str, name: str, targets: dict[str, np.ndarray]) -> SkillCall:
    return SkillCall("place", arm, {"object": name, "pose": targets[name].tolist()})


TASK = BlocksRankingRgb()
