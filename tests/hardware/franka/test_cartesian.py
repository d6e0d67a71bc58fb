"""A spring at the hand: what it presses there, and that the elbow's presses on nothing."""

import numpy as np
import pytest

from bench_tasks.robots.fr3 import HOME_RAD
from bench_tasks.robots.kinematics import dual_arm
from bench_tasks.view import compose, invert
from hardware.franka.cartesian import Spring

SETTINGS = {
    "stiffness": [1000.0, 800.0, 600.0, 50.0, 40.0, 30.0],
    "damping": [50.0, 40.0, 30.0, 5.0, 4.0, 3.0], "elbow_stiffness": 20.0, "elbow_damping": 2.0,
}  # fmt: skip
STEP = 1e-6


def hand(q):
    return dual_arm().forward("left", q)


@pytest.fixture(scope="module")
def jacobian():
    """(6, 7) of the hand at home, by differences."""
    columns = []
    for k in range(7):
        ahead, behind = (hand(HOME_RAD + s * STEP * np.eye(7)[k]) for s in (1, -1))
        turn = compose(ahead, invert(behind))[3:]
        columns.append(np.append(ahead[:3] - behind[:3], 2 * turn[1:] * np.sign(turn[0])))
    return np.array(columns).T / (2 * STEP)


def pressed(jacobian, torques):
    """Force and torque (6,) at the hand that hold the arm against joints' torques."""
    return np.linalg.pinv(jacobian.T) @ torques


@pytest.mark.parametrize("seed", range(3))
def test_the_hand_is_pulled_by_its_stiffness_and_damping_in_each_direction(jacobian, seed):
    rng, spring = np.random.default_rng(seed), Spring(SETTINGS)
    away, slip = 0.02 * rng.normal(size=7), 0.1 * rng.normal(size=7)
    force = pressed(jacobian, spring.torques(jacobian, away, slip))
    moved = hand(HOME_RAD + away)[:3] - hand(HOME_RAD)[:3]
    still = pressed(jacobian, spring.torques(jacobian, away, np.zeros(7)))
    np.testing.assert_allclose(still[:3], np.array(SETTINGS["stiffness"][:3]) * moved, atol=1.5)
    wanted = np.array(SETTINGS["stiffness"]) * (jacobian @ away)
    wanted = wanted + np.array(SETTINGS["damping"]) * (jacobian @ slip)
    np.testing.assert_allclose(force, wanted, atol=0.2)


def test_what_moves_the_elbow_alone_is_pulled_back_and_presses_on_nothing(jacobian):
    elbow = np.linalg.svd(jacobian)[2][-1]
    torques = Spring(SETTINGS).torques(jacobian, 0.1 * elbow, np.zeros(7))
    np.testing.assert_allclose(torques, 2.0 * elbow, atol=1e-6)
    np.testing.assert_allclose(pressed(jacobian, torques), 0.0, atol=1e-6)


def test_at_a_singularity_torques_stay_finite_and_small():
    flat = np.zeros((6, 7))
    flat[0, 0] = 0.5
    torques = Spring(SETTINGS).torques(flat, np.full(7, 0.01), np.zeros(7))
    assert np.isfinite(torques).all() and np.abs(torques).max() < 5.0
