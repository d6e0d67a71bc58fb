"""Two buttons, pressed one after the other by the humanoid's finger tips: the low one first."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench_tasks.tasks.base import Check, Goal, Layout, ObjectSpec
from bench_tasks.tasks.families.humanoid import TIP_M, HumanoidTask, hand_pose
from bench_tasks.tasks.families.layouts import upright as standing
from bench_tasks.view import View, rotation_matrix
from bench_tasks.vocabulary import ARMS, ObjectInfo, Scene, SkillCall

PRESS_N, PRESS_S = 3.0, 0.1
BEFORE_M, INTO_M = 0.06, 0.03
LOW, HIGH = "low_button", "high_button"
POSTS_M = {LOW: 0.05, HIGH: 0.27}
"""Heights of what the buttons are on."""


class PressButtonHighAndLow(HumanoidTask):
    """Order counts, and a hand must press, not an arm that brushes by."""

    name = "press_button_high_and_low"
    tier = 2
    mode = "sequential"
    version = 3
    summary = "the humanoid presses a low button, then a high one, with either hand"
    skills = ("move_to", "move_by", "home")
    time_limit_s = 40.0
    max_plans = 4

    def objects(self) -> tuple[ObjectSpec, ...]:
        """Two buttons, each on a post that is fixed to the table."""
        return (
            ObjectSpec(LOW, "button", "green"), ObjectSpec(HIGH, "button", "red"),
            *(ObjectSpec(_post(b), "post", "gray", {"height": h}) for b, h in POSTS_M.items()),
        )

    def arrange(
        self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo], height_m: float
    ) -> Layout:
        """One on either side."""
        side = rng.choice([-1.0, 1.0])
        poses = {}
        for name, sign in ((LOW, 1.0), (HIGH, -1.0)):
            x, y = rng.uniform(0.42, 0.46), sign * side * rng.uniform(0.14, 0.22)
            post = objects[_post(name)].half_size_m[2]
            poses[_post(name)] = standing(x, y, post)
            poses[name] = standing(x, y, 2 * post + objects[name].half_size_m[2])
        return Layout(
            poses, "Press the low green button with a hand, then the high red one, then take your "
            "hands off.",
            paraphrases=("First push the green button, which is the lower, then the higher red "
                         "one; touch neither in the end.",),
        )

    def goal(self, scene: Scene) -> Goal:
        """Both pressed in order, and let go."""
        return Goal(
            (Check("hands off", lambda v: not any(v.touched_by_robot(n) for n in (LOW, HIGH))),),
            hold_s=0.5, after=("low button pressed", "high button pressed"),
        )

    def invariants(self, scene: Scene) -> tuple[Check, ...]:
        """On its feet, and the high button not pressed before the low one."""
        return (
            *super().invariants(scene),
            Check(
                "the low button first", lambda v: not _hand_on(v, HIGH), hold_s=PRESS_S,
                until="low button pressed",
            ),
        )  # fmt: skip

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """The low one, then the high one."""
        return (
            Check("low button pressed", lambda v: _pressed(v, LOW, HIGH), hold_s=PRESS_S),
            Check(
                "high button pressed", lambda v: _pressed(v, HIGH, LOW), ("low button pressed",),
                PRESS_S,
            ),
        )

    def expert(self, view: View, turn: int) -> list[tuple[SkillCall, ...]]:
        """With the hand on its side: before it, into it, back; then the other."""
        steps = []
        for name in (LOW, HIGH):
            x, y, z = view.position(name)
            arm = ARMS[0] if y > 0 else ARMS[1]
            pose = np.array(hand_pose(view.scene, [x, y, z]))
            forward = rotation_matrix(pose[3:])[:, 2]
            # Finger tips at the button's face, then pushed into it along the hand.
            face = np.array([x - view.scene.object(name).half_size_m[0], y, z]) - TIP_M * forward
            for away in (-BEFORE_M, INTO_M, -BEFORE_M):
                pose[:3] = face + away * forward
                steps.append((SkillCall("move_to", arm, {"pose": pose.tolist()}),))
            steps.append((SkillCall("home", arm),))
        return steps


def _post(button: str) -> str:
    return f"{button}_post"


def _pressed(view: View, name: str, other: str) -> bool:
    """Whether a hand presses one button alone, not its post: of two at once none was the first."""
    return not view.touched_by_robot(other) and _hand_on(view, name)


def _hand_on(view: View, name: str) -> bool:
    return any(view.touching(name, f"{arm}_hand", PRESS_N) for arm in ARMS)


TASK = PressButtonHighAndLow()
