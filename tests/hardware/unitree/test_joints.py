"""Joints in the wrong order or with the wrong sign are found by a marker on a hand."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from bench_tasks.robots import g1
from bench_tasks.robots.g1_kinematics import UpperBody
from bench_tasks.view import compose, invert
from bench_tasks.vocabulary import ARMS
from hardware.unitree.joints import Evidence, check, columns
from sim.standin.g1_wiring import reported

NAMES = g1.JOINT_NAMES[g1.LEGS :]
MARKER = np.array([0.02, -0.03, 0.05, 0.5, -0.5, 0.5, 0.5])
NOISE_M, NOISE_RAD = 0.001, 0.004


def look(arm="left", seed=0, count=16, pelvis=None, still=(), flip=(), swap=False):
    """What a tracker sees while somebody bends waist and arm, and what the robot says of it."""
    rng, body, k = np.random.default_rng(seed), UpperBody(), ARMS.index(arm)
    q, seen = np.tile(g1.DEFAULT_RAD[g1.LEGS :], (count, 1)), []
    moved = [c for c in columns(arm) if c not in still]
    most = np.where(np.arange(17) < g1.WAIST, 0.3, 0.6)[moved]
    q[:, moved] += rng.uniform(-most, most, (count, len(moved)))
    for row in q:
        off = Rotation.from_rotvec(rng.normal(0, NOISE_RAD, 3)).as_quat()
        marker = compose(body.forward(row)[k], MARKER)
        marker = compose(marker, [*rng.normal(0, NOISE_M, 3), *np.roll(off, 1)])
        seen.append(marker if pelvis is None else compose(invert(pelvis), marker))
    said = []
    for row in q:
        whole = np.concatenate([np.zeros(g1.LEGS), row])
        said.append(reported(np.tile(whole, 3), swap, list(flip))[g1.LEGS : g1.LEGS + 17])
    return Evidence(f"{arm}.json", arm, np.array(said), np.array(seen))


def wrong(*evidence):
    return [said for _, ok, said, _ in check(evidence) if not ok]


@pytest.mark.parametrize("seed", range(3))
def test_no_false_alarm_on_a_healthy_robot(seed):
    looks = [look(arm, seed=10 * seed + k) for k, arm in enumerate(ARMS)]
    assert wrong(*looks) == [] and len(check(looks)) == 4


@pytest.mark.parametrize("arm", ARMS)
def test_swapped_arms_are_found(arm):
    assert wrong(look(arm, swap=True)) == ["the joints of left and right arm are swapped"]


@pytest.mark.parametrize("joint", columns("left"))
def test_a_joint_with_the_wrong_sign_is_named(joint):
    assert wrong(look("left", flip=[NAMES[joint]])) == [f"{NAMES[joint]} has the wrong sign"]


@pytest.mark.parametrize("joint", columns("right")[-3:])
def test_a_joint_of_the_right_arm_with_the_wrong_sign_is_named(joint):
    assert wrong(look("right", flip=[NAMES[joint]])) == [f"{NAMES[joint]} has the wrong sign"]


def test_what_did_not_move_is_not_vouched_for():
    (said,) = wrong(look(still=(1, 6)))
    assert "hardly moved: waist_roll_joint, left_elbow_joint; order and signs of these" in said
    (said,) = wrong(look(count=5))
    assert said == "5 looks are too few"


def test_a_pelvis_that_the_tracker_has_elsewhere_is_found_with_the_truth():
    off = np.array([0.05, 0.0, 0.1, *np.roll(Rotation.from_euler("z", 0.3).as_quat(), 1)])
    (found,) = [item for item in check([look(pelvis=off)]) if not item[1]]
    assert "what the tracker calls the pelvis is 112 mm and 0.30 rad" in found[2], found
    numbers = [float(v) for v in found[3].split("[")[1].split("]")[0].split(",")]
    np.testing.assert_allclose(numbers, off, atol=0.006)


def test_a_marker_on_the_other_hand_or_a_loose_one_is_no_wrong_sign():
    other = look("left")
    (said,) = wrong(Evidence("x", "right", other.q, other.seen))
    assert "does not agree with the joints" in said
    loose = look("left")
    loose.seen[:, :3] += np.random.default_rng(1).normal(0, 0.05, loose.seen[:, :3].shape)
    (said,) = wrong(loose)
    assert "does not agree with the joints" in said
