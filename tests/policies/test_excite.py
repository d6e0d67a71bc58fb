"""The exciting motion keeps every limit, ends where it began, and is refused without room."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_floors import SCENE, home, state

import policies
from bench_tasks.errors import BenchError, UsageError
from bench_tasks.robots import embodiments
from bench_tasks.robots.fr3 import JOINT_LIMITS_RAD, MAX_ACCELERATION, MAX_VELOCITY
from bench_tasks.robots.kinematics import dual_arm
from bench_tasks.vocabulary import Observation
from policies.excite import MIN_HEIGHT_M, ExciteOptions, ExcitePolicy, multi_sine

PERIOD_S = 0.02
SHORT = ExciteOptions(duration_s=6.0)


def moved(seed: int = 0, start: np.ndarray | None = None, options=SHORT) -> np.ndarray:
    """All actions (n, 16), from a start at home, until the policy says that it is over."""
    policy = ExcitePolicy(options)
    policy.reset(SCENE, seed)
    command, rows = home() if start is None else start, []
    with pytest.raises(BenchError, match="the excitation is over"):
        while True:
            chunk = policy.infer(Observation(state(command, len(rows))))
            assert chunk.seq == len(rows)
            rows += list(chunk.values)
            command = rows[-1]
    return np.stack(rows)


def joints(values: np.ndarray) -> np.ndarray:
    return values[:, embodiments.get("fr3_pair").joint_columns]


def test_every_joint_moves_within_every_limit():
    values = np.concatenate([home()[None], moved()])
    assert len(values) == 1 + 300 + 25
    np.testing.assert_array_equal(values[:, [7, 15]], 0.08)
    np.testing.assert_allclose(values[-26:], np.tile(home(), (26, 1)), atol=1e-12)
    q = joints(values)
    away = q - q[0]
    assert np.abs(away).max() <= 0.2 + 1e-12
    assert np.ptp(away, axis=0).min() > 0.1
    speed = np.diff(q, axis=0) / PERIOD_S
    push = np.diff(speed, axis=0) / PERIOD_S
    limits = (np.tile(m, 2) for m in (MAX_VELOCITY, MAX_ACCELERATION))
    for found, limit in zip((speed, push), limits, strict=True):
        # A little above the share that is asked for, between the points at which it was looked.
        assert (np.abs(found).max(axis=0) <= 0.26 * limit).all()
    low, high = np.tile(JOINT_LIMITS_RAD, (2, 1)).T
    assert ((q > low) & (q < high)).all()
    arms = dual_arm()
    arms.set_base_height(0.0)
    for row in q[::7]:
        assert arms.collision(row[:7], row[7:]) is None
        assert all(arms.forward(a, p)[2] > MIN_HEIGHT_M
                   for a, p in (("left", row[:7]), ("right", row[7:])))  # fmt: skip


def test_it_begins_and_ends_at_rest():
    speed = np.diff(joints(np.concatenate([home()[None], moved()])), axis=0) / PERIOD_S
    assert np.abs(speed[[0, 1, -1, -2]]).max() < 0.02


def test_what_one_joint_does_tells_nothing_of_another_s():
    away = multi_sine(ExciteOptions(duration_s=20.0), PERIOD_S, 0)
    for arm in (away[:, :7], away[:, 7:]):
        alike = np.corrcoef(arm.T) - np.eye(7)
        assert np.abs(alike).max() < 0.2


def test_nothing_is_faster_than_asked_for():
    away = multi_sine(ExciteOptions(duration_s=20.0, high_hz=1.5), PERIOD_S, 3)
    power = np.abs(np.fft.rfft(away, axis=0)) ** 2
    hertz = np.fft.rfftfreq(len(away), PERIOD_S)
    assert power[hertz > 1.8].sum() < 1e-3 * power.sum()
    assert power[hertz > 0.7].sum() > 0.02 * power.sum()


def test_a_seed_is_a_motion():
    first = moved(1)
    np.testing.assert_array_equal(first, moved(1))
    assert np.abs(first - moved(2)).max() > 0.05


def test_little_room_makes_it_smaller_and_none_is_refused():
    near = home()
    near[3] = JOINT_LIMITS_RAD[3, 0] + 0.05 + 0.12
    assert 0.05 <= np.abs(joints(moved(start=near))[:, 3] - near[3]).max() <= 0.12
    near[3] = JOINT_LIMITS_RAD[3, 0] + 0.06
    policy = ExcitePolicy(SHORT)
    policy.reset(SCENE, 0)
    with pytest.raises(BenchError, match="no room to move: the left arm is at the end of a joint"):
        policy.infer(Observation(state(near)))


def test_a_motion_that_sysid_would_refuse_is_not_made():
    policy = ExcitePolicy(replace(SHORT, share=0.01))
    policy.reset(SCENE, 0)
    with pytest.raises(BenchError, match=r"would move joint \d of the .* rad only, .* needs 0.03"):
        policy.infer(Observation(state(home())))


@pytest.mark.parametrize(("duration_s", "high_hz"), [(5.0, 1.4), (12.5, 0.6), (50.0, 0.5)])
def test_every_joint_has_a_motion_where_frequencies_are_few(duration_s, high_hz):
    away = multi_sine(ExciteOptions(duration_s=duration_s, high_hz=high_hz), PERIOD_S, 0)
    assert np.isfinite(away).all() and np.ptp(away, axis=0).min() > 0.03


def test_a_hand_above_the_table_is_not_moved():
    low = home()
    low[1], low[3], low[5] = 0.6, -2.0, 2.6
    assert dual_arm().forward("left", low[:7])[2] < MIN_HEIGHT_M
    policy = ExcitePolicy(SHORT)
    policy.reset(SCENE, 0)
    with pytest.raises(BenchError, match="the left hand comes closer than 0.15 m to the table"):
        policy.infer(Observation(state(low)))


def test_wrong_options_and_robots_are_named():
    for spec, said in (
        ("excite:amplitude_rad=3", "amplitude_rad must be from 0.05 to 0.5, got 3"),
        ("excite:duration_s=60", "duration_s must be from 5 to 50, got 60"),
        ("excite:share=0.9", "share must be from 0.01 to 0.5, got 0.9"),
        ("excite:duration_s=5,high_hz=1", r"\(high_hz - 0.1\) \* duration_s must be more than 6"),
        ("excite:speed=1", "choose from amplitude_rad, duration_s, high_hz, share"),
    ):
        with pytest.raises(UsageError, match=said):
            policies.make_policy(spec)
    with pytest.raises(UsageError, match="moves fr3_pair only, not g1"):
        ExcitePolicy().reset(replace(SCENE, embodiment="g1"), 0)


def test_where_the_world_goes_on_the_same_motion_is_made_without_a_gap():
    policy = ExcitePolicy(SHORT)
    policy.realtime = True
    policy.reset(SCENE, 0)
    values, seq, until, told = [home()], 0, 0, None
    with pytest.raises(BenchError, match="the excitation is over"):
        while True:
            if seq >= until:  # the answer comes three periods late, and what is over is left out
                coming = policy.infer(Observation(state(values[-1], seq)))
                until = seq + coming.detail["until_next"]
                arrives = seq + 3
            told = coming if seq == arrives else told
            values.append(told.values[seq - told.seq] if told else values[-1])
            seq += 1
    q = joints(np.stack(values))
    begin = int(np.flatnonzero(np.abs(q - q[0]).max(axis=1) > 0)[0])
    assert begin > 5  # it has computed meanwhile
    np.testing.assert_array_equal(q[begin : begin + 300], joints(moved())[:300])


def test_a_motion_that_is_not_executed_is_not_gone_on_with():
    policy = ExcitePolicy(SHORT)
    policy.reset(SCENE, 0)
    command = home()
    for seq in range(0, 80, 10):
        command = policy.infer(Observation(state(command, seq))).values[-1]
    with pytest.raises(BenchError, match=r"after 100 periods .* 0\.[12]\d\d rad beside it"):
        policy.infer(Observation(state(command, 100)))  # they have stood since the 80th
