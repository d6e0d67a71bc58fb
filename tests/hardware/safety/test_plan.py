"""A plan alone: what is taken to be done, what comes before a stop, what is noticed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench_tasks.vocabulary import ARM_COLUMNS, ActionChunk, WorldState
from hardware.safety.plan import MOST_GAP, Plan
from tests.hardware.safety.ideal import HOME, LIMITS, reach

PATH = reach(0, 0.3)


def state(seq: int, command: np.ndarray, velocity=0.0) -> WorldState:
    """Of arms that are where they were told to be."""
    nothing = np.zeros((0, 7))
    return WorldState(
        seq, 0, command[ARM_COLUMNS], np.full(14, velocity), np.zeros(14), command[[7, 15]],
        np.zeros((2, 7)), command, nothing, nothing[:, :6], np.zeros((0, 2), np.uint16),
        np.zeros(0),
    )  # fmt: skip


def under_way(periods: int, lead: int = 0, realtime: bool = True) -> Plan:
    """After so many periods of `PATH`, which was sent in state 0 and is done `lead` later."""
    plan = Plan(replace(LIMITS, lead_periods=lead), realtime)
    plan.see(state(0, HOME), False)
    plan.go(ActionChunk(0, PATH), PATH)
    for k in range(1, periods + 1):
        plan.see(state(k, PATH[k - 1]), False)
        assert plan.astray() is None
    return plan


def test_the_lead_of_a_robot_is_that_of_its_limits():
    limits = replace(LIMITS, lead_periods=1)
    for realtime, lead in ((True, 1), (False, 0)):
        assert Plan(limits, realtime).lead == lead


@pytest.mark.parametrize(("realtime", "lead"), [(True, 2), (False, 0)])
def test_what_is_under_way_comes_before_anything_that_is_sent(realtime, lead):
    plan = under_way(10, 2, realtime)
    assert np.array_equal(plan.coming(), PATH[10 : 10 + lead])
    assert np.array_equal(plan.begin(plan.coming()), PATH[9 + lead])
    moving = plan.moving(plan.coming())
    step = (PATH[9 + lead] - PATH[8 + lead])[ARM_COLUMNS]
    assert moving.velocity == pytest.approx(step / LIMITS.period_s)


def test_nothing_is_under_way_for_arms_that_are_somewhere_else():
    plan = under_way(10, 2)
    for seq in (11, 12):
        plan.see(state(seq, HOME), False)
    assert plan.coming().shape == (0, 16)


def test_a_stop_goes_along_the_path_and_ends_in_a_hold():
    """From 0.56 rad/s with 0.9 x 0.95 x 10 rad/s^2: four periods, 1.5 periods' way."""
    plan = under_way(25)
    stop = plan.halt(still=True)
    assert stop is not None and stop.seq == 25 and np.array_equal(stop.values, plan.rows)
    passed = np.interp(stop.values[:, 0], PATH[:, 0], np.arange(1, 51)) - 25
    assert passed[:4] == pytest.approx([0.75, 1.25, 1.5, 1.5])
    assert len(passed) == 14 and (stop.values[4:] == stop.values[3]).all()


def test_a_stop_at_rest_is_not_sent_and_in_lockstep_stands_for_what_was_asked():
    for realtime in (True, False):
        plan = Plan(LIMITS, realtime)
        assert plan.halt(still=False) is None, "no state is known"
        plan.see(state(0, HOME), False)
        assert plan.halt(still=True) is None
        if not realtime:
            sent = [plan.halt(still=False, asked=asked) for asked in (0, 3, 200)]
            assert [len(chunk.values) for chunk in sent] == [10, 3, 10]


def test_while_no_state_comes_what_was_sent_is_done_and_the_stop_answers_the_last_one():
    plan = under_way(10)
    plan.wait(0.1)
    assert plan.state.seq == 15 and np.array_equal(plan.state.command, PATH[14])
    assert plan.newest.seq == 10
    stop = plan.halt(still=True)
    assert stop.seq == 10 and np.array_equal(stop.values[:5], PATH[10:15])
    plan.wait(3600.0)
    assert plan.state.seq == 10 + MOST_GAP and np.array_equal(plan.executed[-1], stop.values[-1])


def test_what_was_presumed_is_forgotten_when_the_state_comes():
    plan = under_way(10)
    plan.wait(0.1)
    plan.see(state(12, PATH[11]), False)
    assert plan.state is plan.newest and plan.state.seq == 12
    assert np.array_equal(plan.executed, PATH[6:12])
    plan.miss(14)
    assert plan.newest.seq == 12 and np.array_equal(plan.state.command, PATH[13])


@pytest.mark.parametrize("lead", [0, 2])
def test_between_two_states_what_was_sent_has_been_done(lead):
    """To be taken to have moved evenly is to be believed slower, and faster, than the arms were."""
    plan = under_way(10, lead)
    plan.see(state(14, PATH[13]), False)
    assert np.array_equal(plan.executed, PATH[8:14])


def test_between_two_states_that_nothing_explains_the_command_changed_evenly():
    plan = under_way(10)
    there = PATH[9] + 0.03
    for seq in (13, 14):
        plan.see(state(seq, there), False)
    assert np.ptp(plan.executed[-3:], axis=0).max() == 0.0
    plan = under_way(10)
    plan.see(state(10 + 1, there), False)
    plan.see(state(10 + 4, there + 0.03), False)
    steps = np.diff(np.array(plan.executed)[-3:], axis=0)
    assert np.allclose(steps, 0.01), "the way from one state to the next that says so"


def test_a_single_state_that_nothing_explains_is_not_believed_and_a_second_one_is():
    plan = under_way(20)
    wrong = PATH[20] + 0.1
    reason, detail = plan.see(state(21, wrong), False)
    assert detail["value"] == pytest.approx(0.1) and not plan.settled
    assert plan.newest.seq == 20 and np.array_equal(plan.state.command, PATH[20])
    assert np.array_equal(plan.recent[-1], wrong), "arms that are there are not astray"
    stop = plan.halt(still=True)
    assert stop.seq == 20 and np.array_equal(stop.values[0], PATH[20])
    plan = under_way(20)
    plan.see(state(21, wrong), False)
    assert plan.see(state(22, PATH[21]), False) is None and plan.settled
    assert np.array_equal(plan.executed, PATH[16:22])
    plan.see(state(23, wrong), False)
    assert plan.see(state(24, wrong - 0.3), False) is not None, "no arm gets from there to there"
    assert plan.see(state(25, wrong - 0.29), False) is None
    assert np.allclose(plan.executed[-2:], [wrong - 0.3, wrong - 0.29])


def test_the_number_of_a_state_that_is_not_believed_is_as_far_as_time_has_passed():
    plan = under_way(10)
    assert plan.see(state(40, PATH[30]), False, age_s=0.02) is not None
    assert plan.state.seq == 11 and np.array_equal(plan.state.command, PATH[10])


def test_of_a_robot_that_does_something_else_only_two_periods_later_the_lead_is_learnt():
    plan = under_way(25)
    plan.halt(still=True)
    plan.see(state(26, PATH[25]), False)
    assert "going on, left_fr3_joint1: acceleration" in plan.astray()[0]
    assert plan.lead == 0, "that may have been once"
    plan.see(state(27, PATH[26]), False)
    assert plan.lead == 1, "but what is sent from now on has to be right in both cases"
    plan.astray()
    assert plan.lead == 2


def test_where_the_arms_are_when_they_are_not_where_they_were_sent():
    plan = under_way(50)
    assert np.abs(plan.rows[-1] - PATH[-1]).max() == 0.0
    wrong = PATH[-1].copy()
    wrong[9] += 0.02
    for seq in (51, 52):
        plan.see(state(seq, wrong), False)
    reason, detail = plan.astray()
    assert detail == {"joint": "right_fr3_joint2", "value": pytest.approx(0.02)}
    assert reason.startswith("the robot does not do what was sent: right_fr3_joint2 is 0.02 off")
    wrong[15] = 0.0
    plan.see(state(53, wrong), False)
    assert plan.astray()[1] == {"joint": "the right hand", "value": pytest.approx(0.08)}


def test_joints_that_run_long_after_a_stop_are_noticed():
    plan = under_way(50)
    for k in range(51, 62):
        plan.see(state(k, PATH[-1], velocity=0.5), True)
        assert plan.heeded == (k < 60), k
    for k in range(62, 64):
        plan.see(state(k, PATH[-1]), True)
        assert plan.heeded
