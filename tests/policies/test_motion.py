"""Planned motion stays within the robot's limits, straight where it says so, rest to rest."""

from __future__ import annotations

import numpy as np
import pytest

from bench_tasks.robots.fr3 import HOME_RAD, MAX_ACCELERATION, MAX_VELOCITY
from bench_tasks.robots.kinematics import dual_arm
from bench_tasks.vocabulary import ARMS, CONTROL_PERIOD_NS, MAX_OPENING_M
from policies.motion import (
    SPEED_SCALE,
    MotionError,
    collision_free,
    gripper_phase,
    joint_move,
    line_move,
    sample_pair,
    slerp,
)

PERIOD_S = CONTROL_PERIOD_NS * 1e-9
START = np.append(HOME_RAD, 0.05)
DOWN = np.array([0.0, 1.0, 0.0, 0.0])


@pytest.fixture(scope="module")
def arms():
    return dual_arm()


def targets(arm: str, count: int = 10) -> list[np.ndarray]:
    """Poses in front of the arm, every third one with the hand turned."""
    rng = np.random.default_rng(0)
    side = 1.0 if arm == "left" else -1.0
    poses = []
    for k in range(count):
        turn = rng.uniform(-0.8, 0.8) if k % 3 == 0 else 0.0
        quat = [0.0, np.cos(turn / 2), np.sin(turn / 2), 0.0]
        y = side * rng.uniform(0.0, 0.45)
        poses.append(np.array([rng.uniform(0.3, 0.6), y, rng.uniform(0.02, 0.4), *quat]))
    return poses


def check_limits(track: np.ndarray) -> None:
    """Joint speed and acceleration (t, 7) by finite differences, from and to rest."""
    still = np.concatenate([track[:1], track[:1], track, track[-1:]])
    speed = np.diff(still, axis=0) / PERIOD_S
    acceleration = np.diff(speed, axis=0) / PERIOD_S
    assert (np.abs(speed) <= MAX_VELOCITY * SPEED_SCALE * 1.01).all()
    assert (np.abs(acceleration) <= MAX_ACCELERATION * SPEED_SCALE * 1.05).all()


def track(phase) -> np.ndarray:
    return np.concatenate([phase.points[:1], phase.sample(phase.ticks)])


@pytest.mark.parametrize("arm", ARMS)
def test_line_is_straight_within_limits_and_ends_where_it_should(arms, arm):
    for pose in targets(arm):
        begin = arms.forward(arm, START[:7])
        phase = line_move(arms, arm, START, pose)
        actions = track(phase)
        check_limits(actions[:, :7])
        assert (actions[:, 7] == START[7]).all()
        poses = np.array([arms.forward(arm, q) for q in actions[:, :7]])
        along = pose[:3] - begin[:3]
        along /= np.linalg.norm(along)
        offset = poses[:, :3] - begin[:3]
        assert np.linalg.norm(offset - np.outer(offset @ along, along), axis=1).max() < 0.002
        assert (np.diff(offset @ along) > -1e-4).all(), "never back"
        assert poses[-1, :3] == pytest.approx(pose[:3], abs=2e-4)
        assert abs(poses[-1, 3:] @ pose[3:]) > 1 - 1e-5


def test_joint_move_is_within_limits_and_uses_them(arms):
    rng = np.random.default_rng(1)
    for _ in range(10):
        goal = np.clip(HOME_RAD + rng.uniform(-1, 1, 7), arms.lower, arms.upper)
        actions = track(joint_move(START, goal))
        check_limits(actions[:, :7])
        assert actions[-1, :7] == pytest.approx(goal) and (actions[:, 7] == START[7]).all()
        used = np.abs(np.diff(actions[:, :7], axis=0)).max(axis=0) / PERIOD_S / MAX_VELOCITY
        assert used.max() > 0.8 * SPEED_SCALE, "no slower than it must be"


@pytest.mark.parametrize("small", [1e-6, 1e-3, 0.02])
def test_small_moves_are_within_limits_too(arms, small):
    goal = HOME_RAD + small
    check_limits(track(joint_move(START, goal))[:, :7])
    pose = arms.forward("left", HOME_RAD)
    pose[2] -= small
    check_limits(track(line_move(arms, "left", START, pose))[:, :7])


def test_motion_begins_and_ends_at_rest(arms):
    pose = targets("left")[1]
    for phase in (joint_move(START, HOME_RAD + 0.5), line_move(arms, "left", START, pose)):
        speed = np.abs(np.diff(track(phase)[:, :7], axis=0)).max(axis=1)
        assert speed[0] < 0.1 * speed.max() and speed[-1] < 0.1 * speed.max()


def test_gripper_moves_alone():
    actions = track(gripper_phase(START, 0.0))
    assert (actions[:, :7] == HOME_RAD).all()
    assert actions[-1, 7] == 0.0 and (np.diff(actions[:, 7]) <= 0).all()


def test_a_line_out_of_reach_says_where_it_ends(arms):
    pose = np.array([1.3, 0.35, 0.3, *DOWN])
    with pytest.raises(MotionError, match=r"unreachable: left arm cannot move in a line through"):
        line_move(arms, "left", START, pose)


def test_slerp_is_even_short_and_unit():
    a, b = np.array([1.0, 0, 0, 0]), np.array([np.cos(0.6), 0, 0, np.sin(0.6)])
    for share in (0.0, 0.25, 0.5, 1.0):
        want = [np.cos(0.6 * share), 0, 0, np.sin(0.6 * share)]
        assert slerp(a, b, share) == pytest.approx(want)
        other_sign = slerp(a, -b, share)
        assert abs(other_sign @ want) == pytest.approx(1.0), "the short way round"
    assert slerp(a, a, 0.5) == pytest.approx(a)


def rest() -> dict[str, np.ndarray]:
    return {arm: START.copy() for arm in ARMS}


def test_an_arm_without_a_call_rests():
    actions = sample_pair({"right": [joint_move(START, HOME_RAD + 0.3)]}, rest(), True)
    assert (actions[:, :8] == START).all()
    assert actions[-1, 8:15] == pytest.approx(HOME_RAD + 0.3)


def test_together_both_take_as_long_as_the_slower_phase_by_phase():
    quick, slow = joint_move(START, HOME_RAD + 0.1), joint_move(START, HOME_RAD - 0.6)
    back = joint_move(slow.points[-1], HOME_RAD)
    phases = {"left": [quick, gripper_phase(quick.points[-1], 0.0)], "right": [slow, back]}
    actions = sample_pair(phases, rest(), True)
    assert len(actions) == slow.ticks + max(back.ticks, phases["left"][1].ticks)
    moving = np.abs(np.diff(actions[: slow.ticks, :7], axis=0)).max(axis=1)
    assert moving[-2] > 0, "the quick one arrives with the slow one"
    assert (actions[: slow.ticks, 7] == START[7]).all(), "and grips only then"
    assert actions[-1, 7] == 0.0
    apart = sample_pair(phases, rest(), False)
    assert len(apart) == max(slow.ticks + back.ticks, sum(p.ticks for p in phases["left"]))
    assert (apart[quick.ticks + 25 :, :8] == apart[-1, :8]).all(), "the one that is done waits"


def test_collision_is_found_wherever_it_is_along_the_way(arms):
    def at(arm: str, x: float, y: float, z: float) -> np.ndarray:
        return np.append(arms.inverse(arm, np.array([x, y, z, *DOWN]), HOME_RAD), 0.05)

    free = np.concatenate([at("left", 0.45, 0.25, 0.3), at("right", 0.45, -0.25, 0.3)])
    hit = np.concatenate([at("left", 0.45, 0.02, 0.3), at("right", 0.45, -0.02, 0.3)])
    for length in (4, 5):
        actions = np.tile(free, (length, 1))
        assert collision_free(arms, actions) is None
        actions[-1] = hit
        assert "with the right arm" in collision_free(arms, actions), "the last action counts"
    assert "with the right arm" in collision_free(arms, hit[None])


def test_opening_stays_in_range():
    assert 0 <= track(gripper_phase(START, MAX_OPENING_M))[:, 7].max() <= MAX_OPENING_M
