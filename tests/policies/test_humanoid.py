"""How the policy `humanoid` ends a step, and what it makes of a step of two skills; no physics.

The robot is a state whose hands are wherever a test says, and that executes all it is told.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench_tasks.errors import UsageError
from bench_tasks.robots import embodiments, g1
from bench_tasks.robots.g1_kinematics import upper_body
from bench_tasks.view import compose
from bench_tasks.vocabulary import ARMS, Observation, Plan, SkillCall
from policies import humanoid
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
        self.told: list[np.ndarray] = []
        while not self.said and self.state.seq < 1000:
            chunk = self.policy.infer(Observation(self.state))
            if chunk.needs_plan:
                self.said = chunk.detail
                break
            self.told.extend(chunk.values)
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


def hand_in_world(begun, joints: np.ndarray) -> np.ndarray:
    """Where the left hand is (3,) with the pelvis as it was in the beginning."""
    scene, state = begun
    pelvis = state.object_pose[scene.index(g1.PELVIS)]
    return compose(pelvis, upper_body().forward(joints)[0])[:3]


def test_hands_go_straight_also_when_the_way_is_planned_anew(begun, monkeypatch):
    monkeypatch.setattr(humanoid, "REPLAN_S", 0.5)
    call = move(begun, "left", (0.1, 0.12, 0.22))
    robot = Robot(begun, ((call,),), options=HumanoidOptions(adjust=False))
    way = np.array([hand_in_world(begun, row[ROBOT.joint_columns]) for row in robot.told])
    goal = np.array(call.args["pose"][:3])
    assert way[-1] == pytest.approx(goal, abs=0.005)
    along = (goal - way[0]) / np.linalg.norm(goal - way[0])
    aside = (way - way[0]) - np.outer((way - way[0]) @ along, along)
    assert len(way) > 60 and np.linalg.norm(aside, axis=1).max() < 0.01


def test_a_goal_is_taken_into_the_pelvis_mean_pose_not_into_its_sway(begun):
    scene, state = begun
    policy = HumanoidPolicy(HumanoidOptions(replan=False, adjust=False))
    policy.reset(scene, 0)
    row = scene.index(g1.PELVIS)
    call = move(begun, "left", (0.05, 0.0, 0.05))
    for k in range(21):
        poses = state.object_pose.copy()
        poses[row, 0] += 0.03 * (-1) ** k
        if k == 20:
            policy.accept(Plan(((call,),)))
        chunk = policy.infer(Observation(replace(
            state, seq=10 * k, stamp_ns=k * 200_000_000, object_pose=poses
        )))  # fmt: skip
    while not chunk.needs_plan:
        end, seq = chunk.values[-1], chunk.seq + 10
        state = replace(state, seq=seq, stamp_ns=seq * 20_000_000, command=end)
        chunk = policy.infer(Observation(state))
    reached = hand_in_world(begun, end[ROBOT.joint_columns])
    assert reached == pytest.approx(call.args["pose"][:3], abs=0.01), "of a sway of 3 cm"


def test_what_is_told_to_stay_is_not_moved_for_a_body_that_sways(begun):
    there = begun[1].ee_pose.copy()
    there[0] = shifted(begun, "left", (0.05, 0.0, 0.05))
    goal, other = (move(begun, "left", (0.05, 0.0, z)) for z in (0.05, 0.06))
    stay = SkillCall("move_by", "left", {"offset": [0.0, 0.0, 0.0]})
    for call, moves in ((stay, False), (goal, False), (other, True)):
        robot = Robot(begun, ((goal,),), hands=there)
        poses = robot.state.object_pose.copy()
        poses[robot.scene.index(g1.PELVIS), 0] += 0.02
        robot.policy.accept(Plan(((call,),)))
        swayed = replace(robot.state, stamp_ns=robot.state.stamp_ns + 10**9, object_pose=poses)
        told = robot.policy.infer(Observation(swayed)).values
        assert (np.abs(told - robot.state.command).max() > 1e-3) == moves


def test_a_joint_with_far_to_go_slows_its_own_stretch_alone():
    points = np.zeros((4, 17))
    points[1:, 5] = [0.1, 0.2, 0.3]
    points[3, 0] = 0.3
    told = humanoid._timed(points)
    assert len(told) * 0.02 == pytest.approx(1.875 * (2 * 0.1 / 1.2 + 0.3 / 0.5), abs=0.02)
    speeds = np.abs(np.diff(told, axis=0, prepend=points[:1])) / 0.02
    assert (speeds.max(axis=0) <= humanoid.MAX_SPEED_RAD_S * 1.001).all()
    assert told[-1] == pytest.approx(points[-1])
    assert len(humanoid._timed(points, 5.0)) == 250
