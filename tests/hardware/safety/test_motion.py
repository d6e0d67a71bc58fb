"""Speeds that a path implies, stops, slower paces."""

from __future__ import annotations

import numpy as np
import pytest

from bench_tasks.robots.fr3 import HOME_RAD, JOINT_LIMITS_RAD, MAX_ACCELERATION, MAX_VELOCITY
from hardware.safety.motion import STRAY_RAD, Moving, brake, breach, slowed, stopped_at_end
from tests.hardware.safety.ideal import LIMITS


def test_the_limits_are_the_data_sheets():
    assert np.array_equal(LIMITS.position[:7], JOINT_LIMITS_RAD)
    assert np.array_equal(LIMITS.velocity, np.tile(MAX_VELOCITY, 2))
    assert np.array_equal(LIMITS.acceleration, np.tile(MAX_ACCELERATION, 2))


def test_speeds_near_the_end_of_the_range():
    """By hand: joint 2 at 1.5 rad may go up at -0.2 + sqrt(5.17 x 0.2918) = 1.0283 rad/s."""
    q = np.tile(HOME_RAD, 2)
    q[1] = 1.5
    up, down = (LIMITS.speed(q[None], np.full((1, 14), way))[0] for way in (True, False))
    assert up[1] == pytest.approx(1.0283, abs=1e-4) and down[1] == 2.62
    q[1] = 1.7837
    assert LIMITS.speed(q[None], np.ones((1, 14), bool))[0, 1] < 0.005
    q[5] = 0.5445  # -0.35 + sqrt(11 x 0.00358) < 0
    assert LIMITS.speed(q[None], np.zeros((1, 14), bool))[0, 5] == 0.0


def moving(speed: float) -> Moving:
    q = np.tile(HOME_RAD, 2)
    return Moving(q, np.full(14, speed), np.zeros(14))


def test_a_stop_is_as_quick_as_the_acceleration_allows():
    """From 1 rad/s with 0.9 x 0.95 x 10 rad/s^2: six periods."""
    path = stopped_at_end(LIMITS, moving(1.0))
    assert len(path) == 6 and breach(LIMITS, moving(1.0), path) is None
    travelled = path[-1] - np.tile(HOME_RAD, 2)
    assert travelled == pytest.approx(1.0 * 0.02 * (5 + 4 + 3 + 2 + 1) / 6)
    assert len(stopped_at_end(LIMITS, moving(0.0))) == 0


def test_a_stop_that_keeps_to_no_path_ends_where_that_is_free_no_longer():
    nowhere = np.zeros((0, 14))
    straight = brake(LIMITS, moving(1.0), nowhere)
    assert np.array_equal(straight, stopped_at_end(LIMITS, moving(1.0))) and len(straight) == 6
    assert np.array_equal(brake(LIMITS, moving(1.0), nowhere, lambda _: 2), straight[:2])
    assert len(brake(LIMITS, moving(1.0), nowhere, lambda _: 0)) == 0
    on = moving(1.0).position + 0.02 * np.arange(1, 41)[:, None]
    assert len(brake(LIMITS, moving(1.0), on, lambda _: 0)) >= 6, "this was checked before"


def test_a_stop_keeps_to_the_path():
    """Where the path bends, the stop bends with it."""
    now = moving(0.0)
    ahead = np.tile(now.position, (40, 1))
    angle = np.arange(1, 41) / 40 * np.pi / 2
    ahead[:, 0] += 0.4 * np.sin(angle)
    ahead[:, 1] += 0.4 * (1 - np.cos(angle))
    velocity = np.zeros(14)
    velocity[:2] = (ahead[0] - now.position)[:2] / 0.02
    stop = brake(LIMITS, Moving(now.position, velocity, np.zeros(14)), ahead)
    radius = np.hypot(stop[:, 0] - now.position[0], stop[:, 1] - now.position[1] - 0.4)
    assert radius == pytest.approx(0.4, abs=1e-3) and 3 <= len(stop) < 12


def test_slowing_down_a_bend_does_not_cut_it():
    """A corner at full speed: either along the lines asked for, or not at all."""
    start, path = moving(0.0), np.tile(np.tile(HOME_RAD, 2), (20, 1))
    path[:10, 0] += np.linspace(0.08, 0.8, 10)
    path[10:, 0] += 0.8
    path[10:, 2] += np.linspace(0.08, 0.8, 10)
    found, index = slowed(LIMITS, start, path)
    assert len(found) == len(index) > 20
    off = found - start.position
    beside = np.minimum(np.abs(off[:, 2]), np.abs(off[:, 0] - 0.8))
    assert beside.max() <= STRAY_RAD + 1e-9
    assert breach(LIMITS, start, found) is None
