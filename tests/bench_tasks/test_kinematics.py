"""Kinematics and collision checks against MuJoCo, which is built from the same model file."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bench_tasks.robots.fr3 import HOME_RAD, base_position
from bench_tasks.robots.kinematics import LIMIT_MARGIN_RAD, dual_arm
from bench_tasks.view import rotation_matrix
from bench_tasks.vocabulary import ARMS
from sim.scene import build_cell

import mujoco  # isort: skip  # after sim, which chooses its renderer

DOWN = (0.0, 1.0, 0.0, 0.0)


@pytest.fixture(scope="module")
def arms():
    return dual_arm()


@pytest.fixture(scope="module")
def cell():
    """The simulated cell without objects, and the addresses of its joints."""
    model = build_cell(()).model
    names = [f"{arm}_fr3_joint{i}" for arm in ARMS for i in range(1, 8)]
    address = np.array([model.joint(n).qposadr[0] for n in names])
    names = [f"{arm}_finger_joint{k}" for arm in ARMS for k in (1, 2)]
    fingers = np.array([model.joint(n).qposadr[0] for n in names])
    return model, mujoco.MjData(model), address, fingers


def draw(arms, rng) -> np.ndarray:
    return rng.uniform(arms.lower, arms.upper)


def angle(a, b) -> float:
    return 2 * np.arccos(min(1.0, abs(float(a @ b))))


def test_forward_agrees_with_mujoco(arms, cell):
    model, data, address, _ = cell
    rng = np.random.default_rng(1)
    for _ in range(100):
        joints = np.stack([draw(arms, rng), draw(arms, rng)])
        data.qpos[address] = joints.ravel()
        mujoco.mj_kinematics(model, data)
        for k, arm in enumerate(ARMS):
            pose = arms.forward(arm, joints[k])
            site = model.site(f"{arm}_tcp").id
            assert pose[:3] == pytest.approx(data.site_xpos[site], abs=1e-9)
            quat = np.zeros(4)
            mujoco.mju_mat2Quat(quat, data.site_xmat[site])
            assert angle(pose[3:], quat) < 1e-6


def test_home_points_down_in_front_of_the_base(arms):
    for arm in ARMS:
        pose = arms.forward(arm, HOME_RAD)
        assert pose[:3] - base_position(arm) == pytest.approx([0.307, 0.0, 0.487], abs=2e-3)
        assert angle(pose[3:], np.array(DOWN)) < 1e-6


def test_limits_are_those_of_the_model(arms, cell):
    model, *_ = cell
    ranges = np.array([model.joint(f"left_fr3_joint{i}").range for i in range(1, 8)])
    assert arms.lower == pytest.approx(ranges[:, 0] + LIMIT_MARGIN_RAD)
    assert arms.upper == pytest.approx(ranges[:, 1] - LIMIT_MARGIN_RAD)


@pytest.mark.parametrize("arm", ARMS)
def test_inverse_finds_poses_that_are_reached_from_home(arms, arm):
    """Round trip over the workspace that tasks use: hand down or tilted, in front of the arm."""
    rng = np.random.default_rng(2)
    found = []
    for _ in range(100):
        q = HOME_RAD + rng.uniform(-0.6, 0.6, 7)
        pose = arms.forward(arm, np.clip(q, arms.lower, arms.upper))
        joints = arms.inverse(arm, pose, HOME_RAD)
        found.append(joints is not None)
        if joints is None:
            continue
        assert (joints >= arms.lower).all() and (joints <= arms.upper).all()
        again = arms.forward(arm, joints)
        assert np.linalg.norm(again[:3] - pose[:3]) < 1e-3 and angle(again[3:], pose[3:]) < 2e-3
    assert all(found)


def test_inverse_finds_all_poses_within_the_limits(arms):
    """Anywhere within the joint limits, folded up or stretched out."""
    rng = np.random.default_rng(3)
    found = 0
    for _ in range(200):
        pose = arms.forward("left", draw(arms, rng))
        joints = arms.inverse("left", pose, HOME_RAD)
        if joints is not None:
            assert np.linalg.norm(arms.forward("left", joints)[:3] - pose[:3]) < 1e-3
            found += 1
    assert found == 200


@pytest.mark.parametrize(
    "position", [(0.3, 0.35, 2.0), (1.5, 0.35, 0.3), (-0.9, 0.35, 0.2), (0.45, -0.9, 0.02)]
)
def test_inverse_of_the_unreachable_is_none(arms, position):
    assert arms.inverse("left", np.array([*position, *DOWN]), HOME_RAD) is None


def test_inverse_is_deterministic_and_keeps_its_input(arms):
    pose = np.array([0.5, 0.1, 0.05, *DOWN])
    start = HOME_RAD.copy()
    first = arms.inverse("left", pose, start)
    arms.inverse("right", np.array([0.4, -0.4, 0.2, *DOWN]), HOME_RAD)
    assert np.array_equal(first, arms.inverse("left", pose, start))
    assert np.array_equal(start, HOME_RAD) and np.array_equal(pose[:3], [0.5, 0.1, 0.05])


def mirrored(joints: np.ndarray) -> np.ndarray:
    """The other arm's mirror image of these joints; the hand sits turned by pi/4 on the flange."""
    return joints * [-1, 1, -1, 1, -1, 1, -1] + [0, 0, 0, 0, 0, 0, np.pi / 2]


def test_arms_are_mirror_images(arms):
    rng = np.random.default_rng(4)
    for _ in range(20):
        q = draw(arms, rng)
        left, right = arms.forward("left", q), arms.forward("right", mirrored(q))
        assert left[:3] == pytest.approx(right[:3] * [1, -1, 1], abs=1e-9)
        x, mirror_x = (rotation_matrix(p[3:])[:, 0] for p in (left, right))
        assert x == pytest.approx(mirror_x * [1, -1, 1], abs=1e-6)


# -- collision -----------------------------------------------------------------------------------


def at(arms, arm: str, x: float, y: float, z: float) -> np.ndarray:
    joints = arms.inverse(arm, np.array([x, y, z, *DOWN]), HOME_RAD)
    assert joints is not None
    return joints


def test_home_and_work_side_by_side_are_free(arms):
    assert arms.collision(HOME_RAD, HOME_RAD) is None
    left, right = at(arms, "left", 0.45, 0.15, 0.02), at(arms, "right", 0.45, -0.15, 0.02)
    assert arms.collision(left, right) is None


def test_hands_at_the_same_place_collide_and_say_with_whom(arms):
    left, right = at(arms, "left", 0.45, 0.01, 0.3), at(arms, "right", 0.45, -0.01, 0.3)
    assert re.fullmatch(
        r"left arm \(link [5-8]\) with the right arm \(link [5-8]\)", arms.collision(left, right)
    )


def test_the_table_is_hit_from_above_only(arms):
    assert arms.collision(at(arms, "left", 0.45, 0.2, 0.012), HOME_RAD) is None
    hit = arms.collision(at(arms, "left", 0.45, 0.2, -0.02), HOME_RAD)
    assert hit == "left arm (link 8) with the table"
    hit = arms.collision(HOME_RAD, at(arms, "right", 0.45, -0.2, -0.02))
    assert hit == "right arm (link 8) with the table"


def test_an_arm_folded_onto_itself_collides(arms):
    folded = np.array([0.0, -1.5, 0.0, -3.0, 0.0, 0.6, 0.8])
    assert "left arm" in (arms.collision(folded, HOME_RAD) or "")


@pytest.mark.parametrize("share", [0.0, 0.4, 0.8, 1.0])
def test_collision_with_the_arms_swapped(arms, share):
    """One hand at the middle, the other coming to it from its own side: the same both ways."""
    y = 0.3 * share
    left = arms.collision(at(arms, "left", 0.45, y, 0.3), at(arms, "right", 0.45, 0.0, 0.3))
    right = arms.collision(at(arms, "left", 0.45, 0.0, 0.3), at(arms, "right", 0.45, -y, 0.3))
    assert (left is None) == (right is None) == (share > 0.5)
    assert left is None or "left arm" in left and "right arm" in left


def test_collisions_that_mujoco_sees_are_found(arms, cell):
    """Where MuJoCo's own penetration is more than 2 mm, between parts that are checked."""
    model, data, address, fingers = cell
    rng = np.random.default_rng(6)
    checked, missed, deep = 0, [], 0
    for _ in range(200):
        centre = np.tile(HOME_RAD, 2)
        joints = centre + rng.uniform(-1.0, 1.0, 14)
        joints = np.clip(joints, np.tile(arms.lower, 2), np.tile(arms.upper, 2))
        data.qpos[address], data.qpos[fingers] = joints, 0.04
        mujoco.mj_fwdPosition(model, data)
        found = arms.collision(joints[:7], joints[7:])
        worst = 0.0
        for k in range(data.ncon):
            contact = data.contact[k]
            bodies = [model.body(model.geom_bodyid[g]).name for g in contact.geom]
            if worst > contact.dist:
                worst, pair = contact.dist, bodies
        checked += 1
        if worst < -0.002:
            deep += 1
            if found is None:
                missed.append((pair, round(worst * 1e3, 1)))
    assert checked == 200 and deep > 20
    assert missed == []


def test_a_free_verdict_is_not_given_away_for_nothing(arms, cell):
    """Convex hulls are larger than the parts, but not by much: few false alarms."""
    model, data, address, fingers = cell
    rng = np.random.default_rng(7)
    false_alarms = free = 0
    for _ in range(150):
        joints = np.tile(HOME_RAD, 2) + rng.uniform(-0.6, 0.6, 14)
        data.qpos[address], data.qpos[fingers] = joints, 0.04
        mujoco.mj_fwdPosition(model, data)
        if data.ncon == 0:
            free += 1
            false_alarms += arms.collision(joints[:7], joints[7:]) is not None
    assert free > 30 and false_alarms <= 0.05 * free


def test_fingers_count_with_their_opening(arms):
    """Open fingers reach farther to the side than closed ones."""
    left = at(arms, "left", 0.45, 0.108, 0.3)
    right = at(arms, "right", 0.45, -0.108, 0.3)
    assert arms.collision(left, right, (0.0, 0.0)) is None


def test_manipulability_falls_towards_the_stretched_arm(arms):
    assert arms.manipulability("left", HOME_RAD) > 0.05
    stretched = np.array([0.0, 0.5, 0.0, -0.2, 0.0, 1.6, 0.8])
    assert arms.manipulability("left", stretched) < arms.manipulability("left", HOME_RAD) / 2
