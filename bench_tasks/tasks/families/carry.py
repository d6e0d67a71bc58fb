"""Bringing things to places: experts made of carries, as skill calls or as raw actions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench_tasks.actions import action_from_state, step_from_action
from bench_tasks.tasks.families.layouts import arm_for
from bench_tasks.view import View, compose, rotation_matrix
from bench_tasks.vocabulary import ARMS, Grasp, SkillCall, other_arm

__all__ = [
    "Carry", "Step", "action_steps", "both_action_steps", "done", "nearest_grasp", "next_steps",
]

Step = tuple[SkillCall, ...]

APPROACH_M = 0.10
TRAVEL_M = 0.22
SECOND_TRIES = 6
"""No carry task needs more plans than this: from then on every second one tries the other arm."""
BOTH_APART_M = 0.3
"""Things further apart than this are picked up by both arms at the same time."""
HOME_TCP = {
    "left": np.array([0.307, 0.35, 0.487, 0.0, 1.0, 0.0, 0.0]),
    "right": np.array([0.307, -0.35, 0.487, 0.0, 1.0, 0.0, 0.0]),
}


@dataclass(frozen=True)
class Carry:
    """Take object `name` to `pose`, (3,) keeping its orientation or (7,), and let go there.

    `arm` and `grasp` choose how; by default the arm on the object's side and any grasp.
    """

    name: str
    pose: tuple[float, ...]
    arm: str | None = None
    grasp: str | None = None


def done(view: View, carry: Carry, within_m: float = 0.012) -> bool:
    """Whether the object is where the carry takes it, and no hand holds it."""
    offset = view.position(carry.name) - np.asarray(carry.pose[:3])
    return bool(np.linalg.norm(offset) < within_m) and view.holder(carry.name) is None


def _grasp(arm: str, carry: Carry) -> SkillCall:
    args = {"object": carry.name}
    return SkillCall("grasp", arm, args if carry.grasp is None else {**args, "grasp": carry.grasp})


def _place(arm: str, carry: Carry) -> SkillCall:
    pose = [float(v) for v in carry.pose]
    return SkillCall("place", arm, {"object": carry.name, "pose": pose})


def next_steps(view: View, carries: list[Carry], turn: int) -> list[Step]:
    """Skill calls for the carries that come next; empty when there are none.

    The first two are picked up by both arms at once on the first turn, where each arm has one on
    its own side and they need not cross. What a hand holds already is put in place first.
    """
    if not carries:
        return []
    for carry in carries:
        arm = view.holder(carry.name)
        if arm is not None:
            other = other_arm(arm)
            return [(SkillCall("home", other),), (_place(arm, carry),), (SkillCall("home", arm),)]
    if turn == 0 and len(carries) > 1:
        by_arm = {carry.arm or arm_for(view, carry.name): carry for carry in reversed(carries[:2])}
        if len(by_arm) == 2:
            left, right = (by_arm[arm] for arm in ARMS)
            apart = view.position(left.name)[1] - view.position(right.name)[1] > BOTH_APART_M
            if apart and left.pose[1] > right.pose[1]:
                first, second = ARMS if by_arm["left"] is carries[0] else ARMS[::-1]
                return [
                    (_grasp("left", left), _grasp("right", right)),
                    (_place(first, by_arm[first]),),
                    (SkillCall("home", first), _place(second, by_arm[second])),
                    (SkillCall("home", second),),
                ]
    carry = carries[0]
    arm = arm_for(view, carry.name)
    if turn >= SECOND_TRIES and turn % 2 == 0:
        arm = other_arm(arm)
    arm = carry.arm or arm
    return [(_grasp(arm, carry),), (_place(arm, carry),), (SkillCall("home", arm),)]


def nearest_grasp(view: View, carry: Carry) -> Grasp:
    """The allowed grasp whose hand is turned least from pointing straight down and ahead."""
    item = view.scene.object(carry.name)
    allowed = [g for g in item.grasps if carry.grasp in (None, g.name)]

    def turned(grasp: Grasp) -> float:
        hand = rotation_matrix(compose(view.pose(carry.name), np.array(grasp.pose))[3:])
        return -float(hand[0, 0])

    return min(allowed, key=turned)


def action_steps(view: View, carry: Carry) -> list[Step]:
    """The carry as raw 16-number actions, the other hand staying where it is."""
    arm = carry.arm or arm_for(view, carry.name)
    k = ARMS.index(arm)
    grasp = nearest_grasp(view, carry)
    at = compose(view.pose(carry.name), np.array(grasp.pose))
    goal = np.asarray(carry.pose, dtype=np.float64)
    if goal.size == 3:
        goal = np.concatenate([goal, view.pose(carry.name)[3:]])
    to = compose(goal, np.array(grasp.pose)) + np.array([0, 0, 0.001, 0, 0, 0, 0])
    travel = max(TRAVEL_M, at[2] + APPROACH_M, to[2] + APPROACH_M)

    def high(pose: np.ndarray) -> np.ndarray:
        return np.concatenate([pose[:2], [travel], pose[3:]])

    home = HOME_TCP[arm] + np.array([0.0, 0.0, view.scene.base_height_m, 0.0, 0.0, 0.0, 0.0])
    way = [
        (high(at), 1.0), (at, 1.0), (at, 0.0), (high(at), 0.0), (high(to), 0.0), (to, 0.0),
        (to, 1.0), (high(to), 1.0), (home, 1.0),
    ]
    rest = action_from_state(view.state.ee_pose, view.state.gripper_opening)
    steps: list[Step] = []
    for pose, gripper in way:
        action = rest.copy()
        action[8 * k : 8 * k + 8] = [*pose, gripper]
        steps.append(step_from_action(action.tolist()))
    return steps


def both_action_steps(view: View, first: Carry, second: Carry) -> list[Step]:
    """Two carries by different arms as raw actions: both take theirs at once, then place in turn.

    The second hand waits above where it took its thing until the first is on its way home.
    """
    arms = [carry.arm or arm_for(view, carry.name) for carry in (first, second)]
    assert set(arms) == set(ARMS), "one carry per arm"
    lead, last = (
        [step[ARMS.index(arm)] for step in action_steps(view, carry)]
        for arm, carry in zip(arms, (first, second), strict=True)
    )
    taken = 4  # over it, on it, closed, over it again
    wait = last[taken - 1 : taken] * (len(lead) - taken - 1)
    track = {
        arms[0]: [*lead, *lead[-1:] * (len(last) - taken - 1)],
        arms[1]: [*last[:taken], *wait, *last[taken:]],
    }
    return list(zip(track["left"], track["right"], strict=True))
