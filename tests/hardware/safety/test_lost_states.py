"""States that are lost or wrong on their way: what is sent goes on from where the arms are."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.safety.oracle import JERK, oracle
from benchmarks.safety.robot import JOINTS
from benchmarks.safety.situations import calm, min_jerk
from tests.hardware.safety.ideal import HOME, reach


class Drive:
    """Commands, stops, releases and a commander that is lost, at any time.

    A share `lost` of the states is; of the others `wrong` tell of a command that is 0.02 to 0.3 rad
    off, but no two running of those that come.
    """

    def __init__(self, robot, seed, lost, wrong=0.0, late=0):
        self.robot, self.rng = robot, np.random.default_rng(seed)
        self.lost, self.wrong = lost, wrong
        robot.supervisor._plan.lead = robot.late_periods = late
        self.seen = self.begun = self.spoilt = 0
        self.misread = False
        self.draw_way()

    def draw_way(self):
        """From rest to a place at most 0.5 rad from home."""
        begin, rng = self.robot.executed[-1], self.rng
        end = begin.copy()
        end[JOINTS] += rng.uniform(-0.5, 0.5, 14) * (rng.random(14) < 0.4)
        end[JOINTS] = np.clip(end[JOINTS], HOME[JOINTS] - 0.5, HOME[JOINTS] + 0.5)
        self.path = min_jerk(begin, end, calm(begin, end))
        self.begun = self.robot.seq

    def go(self, periods):
        for _ in range(periods):
            if self.robot.seq > self.begun + 20 and self.at_rest():
                self.draw_way()
            self.intervene()
            if self.rng.random() < 0.3:
                self.ask()
            self.step()
        return self

    def at_rest(self):
        return np.ptp(np.array(self.robot.executed[-6:]), axis=0).max() == 0.0

    def intervene(self):
        robot, draw = self.robot, self.rng.random()
        if draw < 0.03:
            robot.take(robot.supervisor.stop("estop", "the button", robot.now_s))
        elif draw < 0.05:
            robot.take(robot.supervisor.lost("node /policy is gone", robot.now_s))
        elif draw < 0.08 or robot.supervisor.why_not:
            robot.supervisor.release()

    def ask(self):
        """Of somebody who has seen the newest state, or has lost the same ones."""
        seq = max(self.begun, self.seen if self.rng.random() < 0.5 else self.robot.seq)
        path = np.concatenate([self.path, np.tile(self.path[-1], (300, 1))])
        self.robot.ask(seq, path[seq - self.begun :][: int(self.rng.integers(3, 30))])

    def step(self):
        rng, robot = self.rng, self.robot
        lost, before, robot.misread = rng.random() < self.lost, self.misread, np.zeros(16)
        if not lost and not before and rng.random() < self.wrong:
            columns = JOINTS if rng.random() < 0.3 else JOINTS[int(rng.integers(14))]
            robot.misread[columns] = rng.choice([-1, 1]) * rng.uniform(0.02, 0.3)
        self.spoilt += bool((lost or robot.misread.any()) and not self.at_rest())
        robot.step(publish=not lost)
        if not lost:
            self.seen, self.misread = robot.seq, bool(robot.misread.any())

    @property
    def rough(self):
        """Which limit what was executed has been beyond, "" for none."""
        commands = np.array([HOME] * 3 + self.robot.executed)[:, JOINTS]
        return oracle().rough(commands, JERK)


@pytest.mark.parametrize("late", [0, 2])
@pytest.mark.parametrize("seed", range(6))
def test_arms_whose_states_are_lost_are_never_asked_for_more_than_they_can_do(robot, seed, late):
    """Where stops began at the newest state half of these were, by up to 170 rad/s^2."""
    drive = Drive(robot, (seed, late), lost=0.05 * (seed + 1), late=late).go(120)
    assert drive.rough == "" and drive.spoilt


@pytest.mark.parametrize("lost", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(4))
def test_nor_are_those_of_which_a_state_is_wrong_now_and_then(robot, seed, lost):
    drive = Drive(robot, (seed, 7), lost, wrong=0.1).go(120)
    assert drive.rough == "" and drive.spoilt


@pytest.mark.parametrize("way", ["stop", "lost", "command"])
@pytest.mark.parametrize("gone", [1, 2, 4])
def test_what_is_sent_begins_where_the_arms_are_by_now(robot, way, gone):
    path = reach(0, 0.8)
    robot.ask(0, path[:40])
    for _ in range(20):
        robot.step()
    for _ in range(gone):
        robot.step(publish=False)
    supervisor = robot.supervisor
    if way == "stop":
        sent = robot.take(supervisor.stop("estop", "the button", robot.now_s)).send
    elif way == "lost":
        sent = robot.take(supervisor.lost("node /policy is gone", robot.now_s)).send
    else:  # it was seen by who commands, if not here
        sent = robot.ask(20 + gone, path[20 + gone :]).send
    assert sent.seq == 20 and np.array_equal(sent.values[:gone], path[20 : 20 + gone])
    for _ in range(40):
        robot.step()
    commands = np.array([HOME] * 3 + robot.executed)
    assert oracle().rough(commands[:, JOINTS], JERK) == ""
    speeds = np.abs(np.diff(commands[:, 0]))[22 + gone :]
    assert way == "command" or speeds[1] < speeds[0], "it brakes from now on, not later"


def wrong_once(robot, off):
    """In motion, after a state whose command for joint 2 is so far off."""
    robot.ask(0, reach(0, 0.8)[:40])
    for _ in range(20):
        robot.step()
    robot.misread[1] = off
    robot.step()
    robot.misread = np.zeros(16)
    (told,) = [i for d in robot.decisions for i in d.interventions]
    assert (told.action, told.kind, told.detail["joint"]) == ("dropped", "state", "left_fr3_joint2")
    assert told.detail["value"] == pytest.approx(abs(off)) and "not believed" in told.reason


@pytest.mark.parametrize("off", [0.02, -0.3])
def test_a_single_wrong_state_changes_nothing(robot, off):
    wrong_once(robot, off)
    for _ in range(19):
        robot.step()
    assert np.array_equal(robot.executed[1:41], reach(0, 0.8)[:40])
    assert robot.ask(40, reach(0, 0.8)[40:]).interventions == ()


def test_while_it_is_doubted_no_command_is_passed_on_and_a_stop_begins_at_what_was_sent(robot):
    wrong_once(robot, 0.1)
    told = robot.ask(21, reach(0, 0.8)[21:])
    assert told.send is None and told.interventions[0].kind == "execution"
    sent = robot.take(robot.supervisor.stop("estop", "the button", robot.now_s)).send.values
    assert (sent[:, 1] == HOME[1]).all()


def test_a_wrong_state_does_not_hide_what_is_measured_with_it(robot):
    robot.ask(0, reach(0, 0.8)[:40])
    for _ in range(20):
        robot.step()
    robot.misread[1] = 0.1
    robot.step(joint_effort=np.full(14, 500.0))
    told = [i for d in robot.decisions for i in d.interventions]
    assert told[0].kind == "torque" and robot.decisions[-2].send is not None
    assert (robot.decisions[-2].send.values[:, 1] == HOME[1]).all()


def test_a_robot_that_says_twice_that_it_is_elsewhere_is_stopped_there(robot):
    wrong = 0.1
    robot.ask(0, reach(0, 0.8)[:40])
    for _ in range(20):
        robot.step()
    robot.misread[1] = wrong
    for _ in range(2):
        robot.step()
    sent = robot.decisions[-2].send.values
    assert robot.decisions[-2].interventions[0].kind == "execution"
    assert np.allclose(sent[:, 1], HOME[1] + wrong)


def test_states_of_which_each_is_wrong_in_another_way_are_none(robot):
    """Nothing can be concluded from them: after 0.1 s the arms stop, along what was sent."""
    robot.ask(0, reach(0, 0.8)[:40])
    for k in range(60):
        robot.misread = np.full(16, 0.1 * (-1) ** k * (k > 10))
        robot.step()
    told = [i.kind for d in robot.decisions for i in d.interventions]
    assert told.index("heartbeat") in (4, 5, 6) and set(told) == {"state", "heartbeat"}
    commands = np.array([HOME] * 3 + robot.executed)
    assert oracle().rough(commands[:, JOINTS], JERK) == ""
    assert np.array_equal(robot.executed[-1], robot.executed[-9])
