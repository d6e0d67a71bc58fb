"""How the policy `humanoid` ends a step, and what it makes of a step of two skills; no physics.

The robot is a state whose hands are wherever a test says, and that executes all it is told.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench_tasks.errors import UsageError
from bench_tasks.robots import embodiments, g1
from bench_tasks.vocabulary import ARMS, Observation, Plan, SkillCall
from policies.humanoid import MISSED_M, HumanoidOptions, HumanoidPolicy
from sim.world import SimWorld

ROBOT = embodiments.get("g1")
LEFT, RIGHT = (slice(g1.WAIST + 7 * k, g1.WAIST + 7 * k + 7) for k in (0, 1))


@pytest.fixture(scope="module")
def begun():
    """A scene with objects, and its first state."""
    return SimWorld().reset("press_button_high_and_low", 0)


class Robot:
    """Executes a plan, at most so many chunks; `hands` (2, 7) stay where they are."""

    def __init__(self, begun, plan, contacts=(), options=None, hands=None) -> None:
        self.scene, state = begun
        pairs = [[self.scene.entity(name) for name in pair] for pair in contacts]
        self.state = replace(
            state, contact_pair=np.array(pairs, np.uint16).reshape(-1, 2),
            contact_force=np.full(len(pairs), 5.0),
            ee_pose=state.ee_pose if hands is None else hands,
        )  # fmt: skip
        self.policy = HumanoidPolicy(options)
        self.policy.reset(self.scene, 0)
        self.policy.accept(Plan(plan))
        self.said: dict = {}
        while not self.said and self.state.seq < 1000:
            chunk = self.policy.infer(Observation(self.state))
            if chunk.needs_plan:
                self.said = chunk.detail
                break
            seq = self.state.seq + len(chunk.values)
            self.state = replace(
                self.state, seq=seq, stamp_ns=seq * 20_000_000, command=chunk.values[-1]
            )

    @property
    def joints(self) -> np.ndarray:
        """What waist and arms are told to be."""
        return self.state.command[ROBOT.joint_columns]

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.state.stamp_ns * 1e-9


def shifted(begun, arm: str, by) -> np.ndarray:
    """Where a hand is, and so much further."""
    pose = begun[1].ee_pose[ARMS.index(arm)].copy()
    pose[:3] += by
    return pose


def move(begun, arm: str, by) -> SkillCall:
    return SkillCall("move_to", arm, {"pose": shifted(begun, arm, by).tolist()})


def away(begun, joints: np.ndarray):
    """The beginning with the arms commanded to be elsewhere."""
    scene, state = begun
    return scene, replace(state, command=embodiments.with_openings(joints, 0.0))


@pytest.mark.parametrize("replan", [False, True])
def test_a_hand_goes_home_while_the_other_goes_elsewhere(begun, replan):
    joints = g1.HOME_RAD + 0.2
    step = (SkillCall("home", "left"), move(begun, "right", (0.05, 0.0, 0.05)))
    options = HumanoidOptions(replan=replan, adjust=replan)
    for order in (step, step[::-1]):
        robot = Robot(away(begun, joints), (order,), options=options)
        assert robot.joints[LEFT] == pytest.approx(g1.HOME_RAD[LEFT], abs=1e-9)
        assert np.abs(robot.joints[RIGHT] - g1.HOME_RAD[RIGHT]).max() > 0.05


def test_both_home_take_the_waist_along_and_one_does_not(begun):
    joints = g1.HOME_RAD + 0.2
    one = Robot(away(begun, joints), ((SkillCall("home", "right"), SkillCall("open", "left")),))
    assert one.joints[RIGHT] == pytest.approx(g1.HOME_RAD[RIGHT])
    assert one.joints[: RIGHT.start] == pytest.approx(joints[: RIGHT.start])
    both = Robot(away(begun, joints), (tuple(SkillCall("home", arm) for arm in ARMS),))
    assert both.joints == pytest.approx(g1.HOME_RAD)
    assert one.said["status"] == both.said["status"] == "done"


OFF = (0.0, 0.0, 0.07)
AT_ITSELF = [("left_hand", "right_hand"), ("left_hand", "left_arm"), ("left_arm", "body")]


@pytest.mark.parametrize(
    ("contacts", "by", "reason"),
    [
        ([], OFF, "missed: left hand ends 0.070 m from its goal"),
        (AT_ITSELF, OFF, "missed: left hand ends 0.070 m from its goal"),
        ([("left_hand", "table")], OFF,
         "missed: left hand ends 0.070 m from its goal, pressing on table"),
        ([("low_button", "left_hand")], OFF, ""),
        ([("low_button", "right_hand")], OFF, "missed: left hand ends 0.070 m from its goal"),
        ([("low_button", "left_arm")], (0.0, 0.0, 0.16),
         "missed: left hand ends 0.160 m from its goal, pressing on low_button"),
        ([], (0.0, 0.0, 0.9 * MISSED_M), ""),
    ],
)  # fmt: skip
def test_a_hand_that_does_not_get_there_has_failed(begun, contacts, by, reason):
    steps = ((move(begun, "left", by),), (SkillCall("home", "left"),))
    robot = Robot(begun, steps, contacts)
    if reason:
        assert robot.said["reason"] == reason
        assert (robot.said["status"], robot.said["completed"]) == ("failed", 0)
        assert robot.said["call"]["skill"] == "move_to"
    else:
        assert (robot.said["status"], robot.said["completed"]) == ("done", 2)


def test_what_the_robot_touches_of_itself_does_not_end_its_corrections(begun):
    steps = ((move(begun, "left", OFF),),)
    free, itself, table = (
        Robot(begun, steps, contacts).seconds
        for contacts in ([], AT_ITSELF, [("left_hand", "table")])
    )
    assert free == itself > table + 3.0


def test_a_step_can_be_told_to_stay_on_its_goal(begun):
    steps = ((move(begun, "left", (0.0, 0.0, 0.01)),),)
    usual, longer = (
        Robot(begun, steps, options=HumanoidOptions(settle_s=s)) for s in (0.4, 4.0)
    )
    assert longer.seconds == pytest.approx(usual.seconds + 3.6, abs=0.21)
    assert usual.said["status"] == longer.said["status"] == "done"


@pytest.mark.parametrize("value", ["-1", "nan", "inf", "61"])
def test_a_time_to_settle_that_is_none_is_named(value):
    with pytest.raises(UsageError, match=f"settle_s must be from 0 to 60, got {value}"):
        HumanoidOptions(settle_s=float(value))
