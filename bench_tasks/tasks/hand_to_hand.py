"""A hoop, hooked by one hand of the humanoid and passed to the other in the air."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bench_tasks.tasks.base import Check, Goal, Layout, ObjectSpec
from bench_tasks.tasks.families.humanoid import (
    PRESS_N,
    TIP_M,
    HumanoidTask,
    hand_pose,
)
from bench_tasks.tasks.families.layouts import upright as standing
from bench_tasks.tasks.families.lifting import rise
from bench_tasks.view import View, compose, invert, rotation_matrix
from bench_tasks.vocabulary import ARMS, ObjectInfo, Scene, SkillCall, other_arm

HOOP = "hoop"
LIFT_M, REQUIRED_M = 0.10, 0.05
DOWN_RAD = (0.3, 0.15, 0.0)
"""Hands point down less than they could: a hoop slides off one that points down too much."""
TURN_RAD, ASIDE_M = 0.25, 0.04
"""The second hand comes from its own side, turned inward: right before the robot no arm gets."""
BEFORE_M, INTO_M = 0.15, 0.02
"""How far before the hoop's plane a hand's TCP is, first and when the hand is through it."""
HAND_M = 0.035
"""How thick a hand is, from its axis."""
BESIDE_M, BELOW_M = 0.14, 0.09
"""Where the second hand goes through, from the first: to its own side, and lower."""
MEET_M = (0.37, 0.05)
"""Where the first hand takes the hoop to: forward, and on its own side of the middle."""
FORWARD = 0.35
"""Share of the way out of it that the second hand takes the hoop forward, off the first."""
AWAY_M = (0.24, 0.22)
"""Where it goes when it is out of it: its elbow would be at the body before the robot."""
BEHIND_M = 0.05
"""Of a hand's TCP the rest of the hand begins so far behind it."""
WAITS = 6
"""Times of 0.6 s that it is held still for at a time."""
LET_GO_S = 0.1
"""For so long it may swing free of the hands, or brush by the table, without being put down."""
FIRST, BOTH, SECOND = "in the first hand alone", "in both hands", "in the second hand alone"


class HandToHand(HumanoidTask):
    """Hands without fingers hold by hooking: the hoop hangs on one of them, then on the other."""

    name = "hand_to_hand"
    tier = 2
    mode = "sequential"
    summary = "the humanoid hooks a hoop with one hand and passes it to the other in the air"
    version = 2
    skills = ("move_to", "move_by", "home")
    time_limit_s = 60.0
    max_plans = 8

    def objects(self) -> tuple[ObjectSpec, ...]:
        """The hoop."""
        return (ObjectSpec(HOOP, "hoop", "orange"),)

    def arrange(
        self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo], height_m: float
    ) -> Layout:
        """On the side of the hand that takes it first, which is drawn."""
        giver = ARMS[int(rng.integers(2))]
        taker, side = other_arm(giver), _side(giver)
        pose = standing(
            rng.uniform(0.32, 0.35), side * rng.uniform(0.10, 0.16), objects[HOOP].half_size_m[2],
            rng.uniform(-0.05, 0.05),
        )
        return Layout(
            {HOOP: pose},
            f"Put your {giver} hand through the hoop and lift it off the table, pass it to your "
            f"{taker} hand in the air, and hold it up with that hand alone.",
            {"giver": giver},
            paraphrases=(f"Pick the hoop up by hooking it with the {giver} hand; without putting "
                         f"it down let the {taker} hand take it over and keep it up.",),
        )

    def goal(self, scene: Scene) -> Goal:
        """Up, on the second hand alone, which it came to from the first."""
        taker = other_arm(scene.params["giver"])
        return Goal(
            (
                Check("5 cm up", lambda v: rise(v, HOOP) >= REQUIRED_M),
                Check(SECOND, lambda v: _alone(v, taker)),
            ),
            hold_s=1.0, after=(FIRST, BOTH),
        )

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """On the first hand, on both in the air, on the second; from the start if put down."""
        giver = scene.params["giver"]
        down = Check("put down", _let_go, hold_s=LET_GO_S)
        return (
            Check(FIRST, lambda v: _alone(v, giver), hold_s=0.1, lost=down),
            Check(
                BOTH, lambda v: all(_hangs(v, arm) for arm in ARMS) and _free(v), (FIRST,),
                lost=down,
            ),
            Check(SECOND, lambda v: _alone(v, other_arm(giver)), (BOTH,), 0.1, lost=down),
        )  # fmt: skip

    def expert(self, view: View, turn: int) -> list[tuple[SkillCall, ...]]:
        """Through it, up; the other hand through it below the first; change places; out; wait."""
        giver = view.scene.params["giver"]
        taker, side = other_arm(giver), _side(giver)
        if _alone(view, taker):  # it swings for a while
            still = {"offset": [0.0, 0.0, 0.0]}  # both: with one alone the waist goes home
            return [tuple(SkillCall("move_by", arm, still) for arm in ARMS)] * WAITS
        x, y, z = _middle(view)
        hands = dict(zip(ARMS, view.state.ee_pose, strict=True))

        def both(one: Sequence[float], other: Sequence[float]) -> tuple[SkillCall, ...]:
            calls = []
            for arm, place in ((giver, one), (taker, other)):
                turn = -_side(arm) * TURN_RAD if arm == taker else 0.0
                pose = hand_pose(view.scene, place, turn, DOWN_RAD)
                calls.append(SkillCall("move_to", arm, {"pose": pose}))
            return tuple(calls)

        if not _hangs(view, giver) or not _free(view):
            aside = (0.22, -side * 0.22, z)
            up = view.scene.object(HOOP).half_size_m[1] - HAND_M + LIFT_M
            return [
                both((x - BEFORE_M, y, z), aside), both((x - INTO_M, y, z), aside),
                both((x - INTO_M, y, z + up), aside),
                both((MEET_M[0], side * MEET_M[1], z + up), aside),
            ]
        first = hands[giver][:3]
        low = np.array([x - INTO_M, first[1] - side * BESIDE_M, first[2] - BELOW_M])
        out = np.array([BEFORE_M - INTO_M, 0.0, 0.0])
        sink = np.array([0.0, 0.0, BELOW_M])
        back, taken = (1.0 - FORWARD) * out, low + sink + FORWARD * out
        swap = [both(first - share * sink, low + share * sink) for share in (0.25, 0.5, 0.75, 1.0)]
        return [
            both(first, low - out - (0.0, side * ASIDE_M, 0.0)), both(first, low), *swap,
            both(first - sink - back + (0.0, side * ASIDE_M, 0.0), taken),
            both((AWAY_M[0], side * AWAY_M[1], first[2] - BELOW_M), taken),
        ]


def _side(arm: str) -> float:
    return 1.0 if arm == ARMS[0] else -1.0


def _local_middle(view: View) -> np.ndarray:
    """The middle of the hoop in the object's frame."""
    half = view.scene.object(HOOP).half_size_m
    return np.array([0.0, 0.0, half[2] - half[1], 1.0, 0.0, 0.0, 0.0])


def _middle(view: View) -> np.ndarray:
    return compose(view.pose(HOOP), _local_middle(view))[:3]


def _hangs(view: View, arm: str) -> bool:
    """Whether it presses on a hand that is through it."""
    if not view.touching(HOOP, f"{arm}_hand", PRESS_N):
        return False
    frame = compose(view.pose(HOOP), _local_middle(view))
    hand = compose(invert(frame), view.state.ee_pose[ARMS.index(arm)])
    along = rotation_matrix(hand[3:])[:, 2]
    if abs(along[0]) < 0.3:  # it lies in the hoop's plane
        return False
    at = -hand[0] / along[0]
    crossing = hand[:3] + at * along
    within = float(np.hypot(*crossing[1:])) < view.scene.object(HOOP).half_size_m[1]
    return within and -BEHIND_M < at < TIP_M


def _free(view: View) -> bool:
    """Whether nothing but hands touches it."""
    others = ("table", "floor", "body", *(f"{arm}_arm" for arm in ARMS))
    return not any(view.touching(HOOP, other) for other in others)


def _let_go(view: View) -> bool:
    """Whether it is on the table or the floor, or on neither hand."""
    lies = any(view.touching(HOOP, other) for other in ("table", "floor"))
    return lies or not any(view.touching(HOOP, f"{arm}_hand") for arm in ARMS)


def _alone(view: View, arm: str) -> bool:
    other = other_arm(arm)
    return _hangs(view, arm) and _free(view) and not view.touching(HOOP, f"{other}_hand")


TASK = HandToHand()
