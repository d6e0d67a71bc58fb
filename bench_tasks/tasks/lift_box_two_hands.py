"""A carton, lifted by the humanoid between its two palms."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench_tasks.tasks.base import Check, Goal, Layout, ObjectSpec
from bench_tasks.tasks.families.humanoid import HEIGHTS_M, HumanoidTask, hand_pose, palms_press
from bench_tasks.tasks.families.layouts import upright as standing
from bench_tasks.tasks.families.lifting import hands_beyond, rise
from bench_tasks.view import View
from bench_tasks.vocabulary import ARMS, ObjectInfo, Scene, SkillCall

LIFT_M, REQUIRED_M = 0.15, 0.08
LEVEL_RAD = 0.26
BACK_M, TURN_RAD = 0.05, 0.2
"""The palms stay so much nearer than the box's middle, and toe in, so that no wrist touches it."""
CLEAR_M, SQUEEZE_M = 0.12, 0.0
"""How far beside the box's sides the palms begin, and where they are told to go: into it, since a
palm's surface is 4 to 5 cm inside of its TCP."""
GRIP_M = (0.23, 0.19, 0.16)
"""How high above the table the palms press, for each height of it."""
WAITS = 4
"""Times of 0.6 s that it is held still for at a time."""
BOX = "box"


class LiftBoxTwoHands(HumanoidTask):
    """Rubber hands have no fingers that hold: friction of two palms must."""

    name = "lift_box_two_hands"
    tier = 2
    mode = "simultaneous"
    summary = "the humanoid lifts a carton between its two palms and keeps it up, level"
    skills = ("move_to", "move_by", "home")
    time_limit_s = 40.0
    max_plans = 4

    def objects(self) -> tuple[ObjectSpec, ...]:
        """The carton."""
        return (ObjectSpec(BOX, "carton", "brown"),)

    def arrange(
        self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo], height_m: float
    ) -> Layout:
        """In front of the robot, nearly square to it."""
        pose = standing(
            rng.uniform(0.34, 0.37), rng.uniform(-0.015, 0.015), objects[BOX].half_size_m[2],
            rng.uniform(-0.06, 0.06),
        )
        return Layout(
            {BOX: pose},
            "Lift the box between both palms at least 8 cm off the table, keep it level, and hold "
            "it there.",
            paraphrases=("Press your palms against the box from both sides and raise it level by "
                         "8 cm or more; keep it up.",),
        )

    def goal(self, scene: Scene) -> Goal:
        """Up, level, between both palms, nothing else carrying it."""
        return Goal(
            (
                Check("8 cm up", lambda v: rise(v, BOX) >= REQUIRED_M),
                Check("level", lambda v: v.tilt(BOX) < LEVEL_RAD),
                Check("between both palms", _between),
                Check("carried by nothing else", _carried_by_nothing_else),
            ),
            hold_s=1.0,
        )

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """Both palms on, off the table, half way up."""
        return (
            Check("both palms on", lambda v: palms_press(v, BOX)),
            Check("off the table", lambda v: self.both_hold(v, BOX)),
            Check("half way up", lambda v: palms_press(v, BOX) and rise(v, BOX) >= REQUIRED_M / 2),
        )

    def expert(self, view: View, turn: int) -> list[tuple[SkillCall, ...]]:
        """Beside it, together, up, and held there until it rests."""
        if rise(view, BOX) >= REQUIRED_M and palms_press(view, BOX):
            still = {"offset": [0.0, 0.0, 0.0]}
            return [tuple(SkillCall("move_by", arm, still) for arm in ARMS)] * WAITS
        x, y, _ = view.position(BOX)
        # On a low table the upper part is what hands reach that cannot squat.
        z = float(np.interp(-view.scene.base_height_m, HEIGHTS_M, GRIP_M))
        half = view.scene.object(BOX).half_size_m[1]

        def hands(beside_m: float, up_m: float) -> tuple[SkillCall, ...]:
            calls = []
            for arm, side in zip(ARMS, (1.0, -1.0), strict=True):
                place = [x - BACK_M, y + side * (half + beside_m), z + up_m]
                pose = hand_pose(view.scene, place, -side * TURN_RAD)
                calls.append(SkillCall("move_to", arm, {"pose": pose}))
            return tuple(calls)

        lift = tuple(SkillCall("move_by", arm, {"offset": [0.0, 0.0, LIFT_M]}) for arm in ARMS)
        return [hands(CLEAR_M, 0.1), hands(CLEAR_M, 0.0), hands(SQUEEZE_M, 0.0), lift]


def _between(view: View) -> bool:
    """Both palms press, more than the wrists behind them, and from either side."""
    pressing = all(
        view.force(BOX, f"{arm}_hand") > 2.0 * view.force(BOX, f"{arm}_arm") for arm in ARMS
    )
    return palms_press(view, BOX) and pressing and hands_beyond(
        view, BOX, view.scene.object(BOX).half_size_m[1]
    )


def _carried_by_nothing_else(view: View) -> bool:
    return not any(view.touching(BOX, other) for other in ("table", "body"))


TASK = LiftBoxTwoHands()
