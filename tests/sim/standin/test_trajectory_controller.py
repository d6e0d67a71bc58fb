"""The stand-in for ros2_control's JointTrajectoryController: what it refuses, and its stops."""

import numpy as np
import pytest

from sim.standin.trajectory_controller import Point, TrajectoryController, coefficients, on_quintic

NAMES = [f"fr3_joint{k}" for k in range(1, 8)]
MS, NOW = 1_000_000, 10**12
ZERO = np.zeros(7)


def point(ms, q=0.0, v=0.0, size=7):
    return Point(ms * MS, np.full(size, q), np.full(size, v), np.zeros(size))


@pytest.fixture
def controller():
    return TrajectoryController(NAMES, np.zeros(7), NOW)


@pytest.mark.parametrize(
    ("names", "start_ns", "points", "said"),
    [
        (NAMES[:6], NOW, [point(0)], "joints don't match"),
        (["left_" + name for name in NAMES], NOW, [point(0)], "joints don't match"),
        (NAMES, NOW - 10**9, [point(0), point(500)], "ends in the past"),
        (NAMES, NOW, [point(0), point(10), point(10)], "between points 1 and 2 is not strictly"),
        (NAMES, NOW, [point(0), point(10, size=6)], "mismatch of sizes at point 1"),
        (NAMES, NOW, [point(0), point(10, v=1e-4)], "velocity at its end is not zero"),
        (NAMES, NOW, [], "no points"),
    ],
)  # fmt: skip
def test_what_is_not_taken(controller, names, start_ns, points, said):
    assert said in controller.take(names, start_ns, points, NOW)
    controller.run(NOW + 10**9)
    assert not controller.q.any()


def test_it_goes_through_the_points_in_its_own_order_of_joints(controller):
    order = [6, 5, 4, 3, 2, 1, 0]
    goal = np.arange(7) / 100
    points = [point(0), Point(1000 * MS, goal[order], ZERO, ZERO)]
    assert controller.take([NAMES[k] for k in order], NOW, points, NOW + 5 * MS) == ""
    controller.run(NOW + 500 * MS)
    np.testing.assert_allclose(controller.q, goal / 2)  # a quintic from rest to rest
    np.testing.assert_allclose(controller.v, 15 / 8 * goal)
    controller.run(NOW + 2000 * MS)
    np.testing.assert_allclose(controller.q, goal)
    assert controller.reflex == "" and not controller.v.any()


def test_quintics_meet_both_ends():
    rng = np.random.default_rng(0)
    first, second = (Point(ns, *rng.normal(size=(3, 7))) for ns in (0, 10 * MS))
    c = coefficients(first, second)
    for end, t in ((first, 0.0), (second, 0.01)):
        q, v = on_quintic(c, t)
        np.testing.assert_allclose(q, end.q, atol=1e-9)
        np.testing.assert_allclose(v, end.v, atol=1e-7)


def test_what_an_fr3_cannot_do_is_a_reflex_and_what_it_cannot_follow_a_hold(controller):
    assert controller.take(NAMES, NOW, [point(0, v=0.1), point(100)], NOW) == ""
    controller.run(NOW + 200 * MS)
    assert "acceleration_discontinuity at fr3_joint1: 0.1" in controller.reflex
    other = TrajectoryController(NAMES, np.zeros(7), NOW)
    assert other.take(NAMES, NOW, [point(0, q=0.5), point(100, q=0.5)], NOW) == ""
    other.run(NOW + 200 * MS)
    assert (other.held, other.reflex) == (1, "") and not other.q.any()
    stuck = TrajectoryController(NAMES, np.zeros(7), NOW, stuck=True)
    assert stuck.take(NAMES, NOW, [point(0), point(2000, q=0.3)], NOW) == ""
    stuck.run(NOW + 2000 * MS)
    assert stuck.held == 1 and not stuck.q.any()
