"""Trajectories that carry their own stop, on a controller that joins their points by quintics."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("ruckig", reason="comes with make or make franka")

from hardware.franka.course import Course  # noqa: E402
from hardware.link import Command  # noqa: E402
from sim.standin.trajectory_controller import Point, TrajectoryController  # noqa: E402

NAMES = [f"fr3_joint{k}" for k in range(1, 8)]
START = np.array([0, -0.78, 0, -2.35, 0, 1.57, 0.78])
SHAPE = np.array([1, 0.5, -1, 0.5, 1, -0.5, 1]) / 2
MS, PERIOD_NS, T0 = 1_000_000, 20_000_000, 10**15


class Rig:
    """A course, and the controller that what it says is sent to."""

    def __init__(self, lead_s=0.04):
        self.course = Course(0.3, 1.0, lead_s)
        self.course.rest(START, T0)
        self.controller = TrajectoryController(NAMES, START.copy(), T0)
        self.sent = None

    def send(self, now, late_ms=2.0):
        at = max(now + int(late_ms * MS), self.controller.now_ns)
        self.controller.run(at)
        self.sent = [Point(ns, *rows) for ns, rows in self.course.points()]
        assert self.controller.take(NAMES, self.course.start_ns, self.sent, at) == ""

    def away(self):
        """How far the controller is from where the course says that it is."""
        return np.abs(self.controller.q - self.course.at(self.controller.now_ns)[0]).max()


def wish(t):
    return START + 0.35 * (1 - np.cos(0.5 * np.pi * t)) * SHAPE


def command(k):
    a, b, c = (wish((k + i) * 0.02) for i in (0, 1, 2))
    return Command(k, b.tolist(), ((c - a) / 0.04).tolist(), ((c - 2 * b + a) / 4e-4).tolist(),
                   T0 + (k + 1) * PERIOD_NS)  # fmt: skip


@pytest.fixture
def rig():
    return Rig()


@pytest.mark.parametrize("seed", range(2))
def test_the_motion_is_one_whole_however_late_commands_and_trajectories_are(rig, seed):
    rng, now = np.random.default_rng(seed), T0
    for k in range(100):
        jitter = rng.integers(0, 60 if rng.random() < 0.2 else 9)
        now = max(now + MS, T0 + k * PERIOD_NS + int(jitter) * MS)
        assert rig.course.follow(command(k), now) == ""
        rig.send(now, late_ms=rng.uniform(0.5, 28.0))
        assert rig.away() < 1e-5
    rig.controller.run(now + 10**9)
    assert (rig.controller.reflex, rig.controller.held) == ("", 0)
    assert rig.away() < 1e-6 and not rig.controller.v.any()


def test_a_trajectory_that_comes_after_its_lead_makes_a_step_which_the_stand_in_finds(rig):
    now = T0
    for k in range(40):
        now = T0 + k * PERIOD_NS
        assert rig.course.follow(command(k), now) == ""
        if k < 30 or k == 39:  # nine are lost: the controller has begun to brake
            rig.send(now)
    rig.controller.run(now + 100 * MS)
    assert "fr3_joint1" in rig.controller.reflex


def test_each_trajectory_ends_at_rest_soon_and_is_what_a_command_wants_later_by_the_lead(rig):
    for k in range(60):
        now = T0 + k * PERIOD_NS
        rig.course.follow(command(k), now)
        rig.send(now)
    last = rig.sent[-1]
    assert not last.v.any() and not last.a.any() and last.ns < 1.2e9
    np.testing.assert_array_equal(last.q, rig.sent[-2].q)
    due = now + PERIOD_NS + 40 * MS
    np.testing.assert_allclose(rig.course.at(due)[0], command(59).q, atol=1e-3)
    assert 0.2 < np.abs(rig.course.at(due)[1]).max()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"q": [float("nan")] * 7}, "not finite"), ({"due_ns": T0 - 10**9}, "a command was due 1."),
        ({"q": (START + 0.5).tolist()}, "rad away at joint 3, more than 0.3 rad"),
    ],
)  # fmt: skip
def test_what_is_refused_brakes(rig, change, said):
    for k in range(30):
        now = T0 + k * PERIOD_NS
        rig.course.follow(command(k), now)
        rig.send(now)
    bad = replace(command(30), due_ns=now + 2 * PERIOD_NS)
    assert said in rig.course.follow(replace(bad, **change), now + PERIOD_NS)
    rig.send(now + PERIOD_NS)
    rig.controller.run(now + 10**9)
    assert rig.controller.reflex == "" and not rig.controller.v.any()
    assert not rig.course.at(now + 10**9)[1:].any()
    assert rig.course.seq == 29


def test_a_way_goes_on_only_as_long_as_somebody_wants_it(rig):
    goal, now, sent = START + 0.4 * SHAPE, T0 + 10**9, 0
    assert rig.course.go_to(goal, 0.5, now) == ""
    rig.send(now)
    for _ in range(60):
        now += PERIOD_NS
        rig.course.look(now)
        if rig.course.go_on(now):
            rig.send(now)
            sent += 1
    rig.controller.run(now + 10**9)
    np.testing.assert_allclose(rig.controller.q, goal, atol=1e-5)
    assert rig.controller.reflex == "" and 5 < sent and not rig.course.lapsed
    # And back, wanted for a moment only.
    now += 2 * 10**9
    assert rig.course.go_to(START, 0.2, now) == ""
    rig.send(now)
    for _ in range(10):
        now += PERIOD_NS
        assert rig.course.go_on(now)
        rig.send(now)
    rig.controller.run(now + 10**9)
    rig.course.look(now + 10**9)
    assert not rig.controller.v.any() and rig.controller.reflex == ""
    assert np.abs(rig.controller.q - START).max() > 0.1


def test_a_lapse_is_said_while_it_matters(rig):
    now = T0 + 10**9
    assert rig.course.go_to(START + 0.4, 0.1, now) == ""
    rig.course.look(now + 99 * MS)
    assert not rig.course.lapsed
    rig.course.look(now + 101 * MS)
    assert rig.course.lapsed and not rig.course.go_on(now + 102 * MS)


def test_it_brakes_from_what_was_measured_whatever_it_was_told(rig):
    speed = 0.5 * SHAPE
    rig.course.brake_from(START + 0.05, speed, T0 + 10**9)
    first = rig.course.at(T0 + 10**9)
    np.testing.assert_allclose(first[0], START + 0.05)
    np.testing.assert_allclose(first[1], speed)
    end = rig.course.at(T0 + 2 * 10**9)
    assert not end[1:].any() and 0.005 < np.abs(end[0] - START - 0.05).max() < 0.1
