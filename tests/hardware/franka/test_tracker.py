"""The reference of an arm: on time, within the FR3's limits, and at rest when nobody speaks."""

import numpy as np
import pytest

from bench_tasks.robots.fr3 import HOME_RAD

pytest.importorskip("ruckig", reason="comes with make test or make franka")

from hardware.franka.limits import (  # noqa: E402
    MAX_ACCELERATION,
    MAX_JERK,
    MAX_VELOCITY,
    POSITION_RAD,
    velocity_bounds,
)
from hardware.franka.tracker import CYCLE_S, Tracker  # noqa: E402
from hardware.link import Command  # noqa: E402

PERIOD_S = 0.02
SHAPE = np.array([1, 0.5, -1, 0.5, 1, -0.5, 1]) / 2


def follow(amplitude, hz, delay_ms=0, lost=0.0, seconds=3.0):
    """Reference and wish, both (n, 7), one row a cycle, of a smooth motion commanded at 50 Hz."""
    rng = np.random.default_rng(0)
    tracker = Tracker(max_jump_rad=0.15)
    tracker.reset(HOME_RAD)

    def wish(t):
        return HOME_RAD + amplitude * (1 - np.cos(2 * np.pi * hz * t)) * SHAPE

    due: dict[int, list[int]] = {}
    for k in range(int(seconds / PERIOD_S)):
        if rng.random() >= lost:
            due.setdefault(20 * k + int(rng.integers(0, delay_ms + 1)), []).append(k)
    got, wished = [], []
    for ms in range(int(seconds * 1000)):
        for k in due.get(ms, ()):
            a, b, c = (wish((k + i) * PERIOD_S) for i in (0, 1, 2))
            assert not tracker.command(
                Command(k, b, (c - a) / 2 / PERIOD_S, (c - 2 * b + a) / PERIOD_S**2,
                        int((k + 1) * 20e6)), ms * 1_000_000,
            )  # fmt: skip
        got.append(np.array(tracker.step()))
        wished.append(wish((ms + 1) / 1000))
    return tracker, np.array(got), np.array(wished)


def check_limits(track):
    v = np.diff(track, axis=0) / CYCLE_S
    a = np.diff(v, axis=0) / CYCLE_S
    j = np.diff(a, axis=0) / CYCLE_S
    assert (np.abs(v) <= MAX_VELOCITY).all()
    assert (np.abs(a) <= MAX_ACCELERATION).all()
    assert (np.abs(j) <= MAX_JERK).all()


@pytest.mark.parametrize(
    ("amplitude", "hz", "delay_ms", "lost", "rms_rad"),
    [(0.3, 0.4, 0, 0.0, 1e-4), (1.0, 0.5, 8, 0.0, 7e-3), (0.6, 0.8, 5, 0.0, 1e-2),
     (0.6, 0.4, 5, 0.2, 0.013)],
)  # fmt: skip
def test_it_follows_closely_and_within_the_limits(amplitude, hz, delay_ms, lost, rms_rad):
    _, got, wished = follow(amplitude, hz, delay_ms, lost)
    assert np.sqrt(np.mean((got - wished) ** 2)) < rms_rad
    check_limits(got)


def test_without_commands_it_comes_to_rest_by_itself():
    tracker, got, _ = follow(1.0, 0.5, seconds=0.6)
    assert max(map(abs, tracker.velocity)) > 0.5
    track, cycles = list(got), 0
    while not tracker.at_rest:
        track.append(np.array(tracker.step()))
        cycles += 1
        # The rest of the period, the time that a late command is given, and the braking.
        assert cycles < 20 + 10 + 2.62 / 8 * 1000 + 80
    assert not tracker.waiting or cycles > 100
    stop = np.array(tracker.position)
    for _ in range(200):
        tracker.step()
    assert tracker.waiting
    np.testing.assert_allclose(tracker.position, stop, atol=1e-6)
    check_limits(np.array(track))


@pytest.mark.parametrize(
    ("change", "said"),
    [(0.3, "0.300 rad away at joint 1"), (float("nan"), "finite"), (float("inf"), "finite")],
)
def test_what_is_no_next_step_is_refused_and_the_arm_brakes(change, said):
    tracker, _, _ = follow(1.0, 0.5, seconds=0.6)
    q = np.array(tracker.position)
    q[0] += change
    refused = tracker.command(Command(9, q, [0.0] * 7, [0.0] * 7, 620_000_000), 600_000_000)
    assert said in refused
    for _ in range(400):
        tracker.step()
    assert tracker.at_rest


def test_a_joint_is_never_sent_beyond_its_range():
    tracker = Tracker(max_jump_rad=10.0)
    tracker.reset(HOME_RAD)
    outside = HOME_RAD.copy()
    outside[3] = 0.1
    assert "joint 4" in tracker.command(Command(0, outside, [0.0] * 7, [0.0] * 7, 10**9), 0)
    assert "ranges" in tracker.go_to(outside.tolist(), 0.5)
    # To the very end of the range, and with speed: it stops before.
    edge = HOME_RAD.copy()
    edge[1] = POSITION_RAD[1, 1]
    track = []
    for k in range(100):
        assert not tracker.command(
            Command(k, edge, [0, 2.0, 0, 0, 0, 0, 0], [0.0] * 7, (k + 1) * 20_000_000),
            k * 20_000_000,
        )  # fmt: skip
        track += [np.array(tracker.step()) for _ in range(20)]
    check_limits(np.array(track))
    assert np.array(track)[:, 1].max() < POSITION_RAD[1, 1]


@pytest.mark.parametrize("seed", range(2))
def test_a_goal_is_reached_on_a_straight_way_at_its_share_of_speed_and_acceleration(seed):
    rng = np.random.default_rng(seed)
    start = rng.uniform(POSITION_RAD[:, 0] + 0.011, POSITION_RAD[:, 1] - 0.011)
    start[0] = HOME_RAD[0] + 1e-7  # one that is there already
    tracker, share = Tracker(max_jump_rad=0.1), 0.4
    tracker.reset(start)
    assert not tracker.go_to(HOME_RAD.tolist(), share)
    track = [start]
    while not (tracker.at_rest and len(track) > 100):
        tracker.go_on()
        track.append(np.array(tracker.step()))
        assert len(track) < 60_000
    track, way = np.array(track), HOME_RAD - start
    np.testing.assert_allclose(track[-1], HOME_RAD, atol=1e-4)
    done = (track - start) @ way / (way @ way)
    assert np.abs(track - start - done[:, None] * way).max() < 1e-5
    v = np.diff(track, axis=0) / CYCLE_S
    a = np.diff(v, axis=0) / CYCLE_S
    assert (np.abs(v).max(0) <= share * MAX_VELOCITY).all()
    assert 0.1 < np.abs(a).max() <= share * 0.8 * 10.0 + 1e-3
    assert tracker.at_rest and not tracker.waiting
    for _ in range(200):  # there it is not missed that nobody wants it to go on
        tracker.step()
    assert tracker.waiting and not tracker.lapsed
    # What follows has all of the acceleration again.
    q = np.array(tracker.position) + 0.05
    assert not tracker.command(Command(0, q, [0.0] * 7, [0.0] * 7, 20_000_000), 0)
    v = np.diff([np.array(tracker.step()) for _ in range(150)], axis=0) / CYCLE_S
    assert np.abs(np.diff(v, axis=0) / CYCLE_S).max() > 2.0


def test_a_goal_is_gone_to_from_rest_only():
    tracker, _, _ = follow(1.0, 0.5, seconds=0.6)
    assert "rest" in tracker.go_to(HOME_RAD.tolist(), 0.2)
    for _ in range(600):
        tracker.step()
    assert tracker.at_rest and not tracker.go_to(HOME_RAD.tolist(), 0.2)


def test_a_way_that_nobody_wants_to_go_on_ends_at_once_and_only_a_new_goal_begins_another():
    tracker = Tracker(max_jump_rad=0.1)
    tracker.reset(HOME_RAD + 0.5)
    assert not tracker.go_to(HOME_RAD.tolist(), 0.2)
    for k in range(500):
        if k % 90 == 0:
            tracker.go_on()
        tracker.step()
    assert not tracker.braking and max(map(abs, tracker.velocity)) > 0.1
    track = [np.array(tracker.step()) for _ in range(300)]
    assert tracker.braking and tracker.at_rest and tracker.lapsed
    assert np.abs(track[-1] - HOME_RAD).max() > 0.1, "it had still far to go"
    check_limits(np.array(track))
    tracker.go_on()
    for _ in range(50):
        tracker.step()
    np.testing.assert_allclose(tracker.position, track[-1], atol=1e-6)
    assert not tracker.go_to(HOME_RAD.tolist(), 0.2) and not tracker.lapsed


@pytest.mark.parametrize(
    ("due_s", "said"), [(-0.11, "was due 0.110 s ago"), (-9.0, "9.000 s ago"), (3.0, "in 3.000 s")]
)
def test_what_was_due_long_ago_or_is_far_off_is_refused_and_the_arm_brakes(due_s, said):
    tracker, _, _ = follow(0.3, 0.4, seconds=0.6)
    now = 600_000_000
    late = Command(9, tracker.position, [0.0] * 7, [0.0] * 7, now - 90_000_000)
    assert not tracker.command(late, now), "a little late is not too late"
    other = Command(10, tracker.position, [0.0] * 7, [0.0] * 7, now + int(due_s * 1e9))
    assert said in tracker.command(other, now)
    assert tracker.braking and tracker.seq == 9
    for _ in range(400):
        tracker.step()
    assert tracker.at_rest


def test_towards_an_end_a_joint_must_be_slower():
    low, high = velocity_bounds(HOME_RAD)
    assert (low < 0).all() and (high > 0).all()
    near = POSITION_RAD[:, 1] - 0.02
    low, high = velocity_bounds(near)
    # libfranka's formula by hand for joint 1: -0.30 + sqrt(2 * 6.0 * 0.02) - 0.001
    assert high[0] == pytest.approx(-0.30 + np.sqrt(0.24) - 0.001)
    assert (high < 1.0).all() and (low <= -MAX_VELOCITY + 0.01).all()
