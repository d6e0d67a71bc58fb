"""The supervisor: what it passes on, slows, refuses and stops."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from bench_tasks.vocabulary import ARM_COLUMNS, ActionChunk
from benchmarks.safety.oracle import oracle
from benchmarks.safety.robot import DT, SCENE
from benchmarks.safety.situations import min_jerk
from hardware.safety import Supervisor
from hardware.safety.clearance import Clearance
from tests.hardware.safety.ideal import HOME, LIMITS, at, only, reach, settled

# -- what is passed on -----------------------------------------------------------------------------


def test_a_good_command_in_lockstep_is_passed_on_to_the_bit(stepped):
    path = reach(0, 0.2)[:10]
    decision = stepped.ask(0, path)
    assert decision.interventions == () and decision.send.seq == 0
    assert decision.send.values.tobytes() == path.tobytes()


def test_in_realtime_it_carries_its_stop_and_what_is_late_is_left_out(robot):
    for _ in range(3):
        robot.step()
    path = np.concatenate([np.tile(HOME, (3, 1)), reach(0, 0.2)[:20]])
    sent = robot.ask(0, path).send
    assert sent.seq == 3 and sent.values[:20].tobytes() == path[3:].tobytes()
    assert len(sent.values) > 20
    last = sent.values[-3:, ARM_COLUMNS]
    speeds = np.abs(np.diff(sent.values[19:, ARM_COLUMNS], axis=0)).max(1)
    assert (np.diff(speeds) < 0).all() and speeds[-1] < 1e-6, last


def test_arms_whose_commander_has_died_come_to_rest(robot):
    robot.ask(0, reach(0, 0.5)[:20])
    for _ in range(40):
        robot.step()
    speeds = np.abs(np.diff(np.array(robot.executed), axis=0)).max(1)
    assert speeds[19] > 0.005 and speeds[-1] == 0.0
    assert not any(d.interventions for d in robot.decisions)


# -- what is slowed --------------------------------------------------------------------------------


def test_a_path_that_is_too_fast_is_followed_slower(robot):
    path = reach(0, 0.5, 12)  # 1.875 x 0.5 rad in 0.24 s is 3.9 rad/s
    path[:, 7] = np.linspace(0.08, 0.04, 12)
    decision = robot.ask(0, path)
    told = only(decision)
    assert (told.action, told.kind) == ("slowed", "velocity")
    assert told.detail["joint"] == "left_fr3_joint1" and told.detail["limit"] < 2.62
    assert told.detail["value"] > 2.62 and np.allclose(told.command, path)
    sent = decision.send.values
    assert len(sent) > 12 and oracle().wrong(np.concatenate([[HOME] * 3, sent])) == ""
    # The same path: the joint and the hand are where the path has them, to a fraction of a step.
    asked = np.concatenate([[HOME], path])
    want = np.interp(sent[:, 0], asked[:, 0], asked[:, 7])
    assert np.abs(sent[:, 7] - want).max() < 2e-3
    assert np.allclose(sent[-1], path[-1])


def test_a_path_that_no_pace_makes_good_is_refused(robot):
    robot.ask(0, reach(0, 1.0)[:25])
    for _ in range(22):
        robot.step()
    path = np.tile(robot.executed[-1], (5, 1))  # to stand still at once, from 1.5 rad/s
    decision = robot.ask(22, path)
    assert only(decision).kind == "acceleration" and only(decision).action == "refused"
    assert len(decision.send.values) > 5


# -- what stops ------------------------------------------------------------------------------------


def test_a_stop_slows_down_at_once_and_lasts_until_it_is_released(robot):
    robot.ask(0, reach(0, 0.8)[:25])
    for _ in range(20):
        robot.step()
    speed = abs(robot.executed[-1] - robot.executed[-2]).max()
    assert robot.take(robot.supervisor.stop("estop", "the button", robot.now_s)).send is not None
    robot.step()
    assert abs(robot.executed[-1] - robot.executed[-2]).max() < speed
    told = only(robot.ask(21, np.tile(robot.executed[-1], (5, 1))))
    assert told.action == "stopped" and "the button" in told.reason
    for _ in range(30):
        robot.step()
    assert (robot.executed[-1] == robot.executed[-2]).all()
    assert oracle().wrong(np.array([HOME] * 3 + robot.executed)) == ""
    assert "release" in robot.supervisor.why_not
    robot.supervisor.release()
    assert robot.ask(robot.seq, np.tile(robot.executed[-1], (5, 1))).interventions == ()


def test_a_stop_that_came_a_period_too_late_is_made_anew(robot):
    """The world had executed one more action of the old chunk when it got the stop."""
    robot.ask(0, reach(0, 0.8)[:25])
    for _ in range(20):
        robot.step()
    old = robot.chunk
    stop = robot.supervisor.stop("estop", "the button", robot.now_s).send
    robot.chunk = old
    robot.executed.append(old.values[20].copy())
    robot.seq, robot.now_s, robot.chunk = 21, 0.42, stop
    robot.tell(robot.state())
    for _ in range(30):
        robot.step()
    assert oracle().wrong(np.array([HOME] * 3 + robot.executed)) == ""


@pytest.mark.parametrize("late", [1, 3, 9])
@pytest.mark.parametrize("before", [0, 15])
def test_a_stop_that_comes_late_to_slow_or_resting_arms_is_taken(robot, before, late):
    """Of one row it would be stale by then, and the world would follow the old chunk to its end."""
    path = np.tile(HOME, (60, 1))
    path[before:, 0] += 0.001 * np.arange(1, 61 - before)  # at 0.05 rad/s, after a rest
    robot.ask(0, path)
    for _ in range(10):
        robot.step()
    stop = robot.supervisor.stop("estop", "the button", robot.now_s).send
    at = robot.executed[-1]
    for _ in range(late):
        robot.step()
    assert stop.seq <= robot.seq < stop.seq + len(stop.values), "the world takes it (world_ros)"
    robot.chunk = stop
    for _ in range(40):
        robot.step()
    assert np.abs(robot.executed[-1] - at).max() < 0.001 * (late + 5)
    assert np.array_equal(robot.executed[-1], robot.executed[-2])
    assert oracle().wrong(np.array([HOME] * 3 + robot.executed)) == ""


def stopped_in_motion(robot, late: int) -> np.ndarray:
    """Speeds (n,) rad/s of joint 1 from the stop on, orders coming `late` periods late."""
    path = reach(0, 0.8)
    robot.ask(0, path[:40])
    for _ in range(20):
        robot.step()
    robot.late_periods = late
    robot.take(robot.supervisor.stop("estop", "the button", robot.now_s))
    for _ in range(40):
        robot.step()
    return np.diff(np.array(robot.executed)[19:, 0]) / DT


@pytest.mark.parametrize("late", [1, 2, 3, 5])
def test_arms_that_get_every_stop_late_are_not_thrown_to_and_fro(robot, late):
    """Each stop that was made anew came too late as well: 300 rad/s were asked for."""
    speeds = stopped_in_motion(robot, late)
    assert np.abs(speeds).max() < 2.5 * speeds[: late + 1].max()
    assert (speeds[2 * late + 12 :] == 0.0).all() and robot.supervisor._plan.lead == late
    assert len([d for d in robot.decisions if d.send is not None]) < 3 + 2 * late


@pytest.mark.parametrize("late", [1, 3])
def test_a_robot_that_is_known_to_be_late_stops_as_smoothly(robot, late):
    robot.supervisor._plan.lead = late
    stopped_in_motion(robot, late)
    assert oracle().wrong(np.array([HOME] * 3 + robot.executed)) == ""
    assert not [i for d in robot.decisions for i in d.interventions if i.kind == "execution"]


def test_what_is_asked_for_begins_where_the_arms_will_be_by_then(robot):
    """Its first actions come too late to be done: what is done is checked in their place."""
    robot.supervisor._plan.lead = robot.late_periods = 2
    path = reach(0, 0.4)
    for seq in range(0, 50, 5):
        sent = robot.ask(seq, path[seq : seq + 10]).send
        assert sent.seq == seq
        for _ in range(5):
            robot.step()
    for _ in range(40):
        robot.step()
    assert np.array_equal(sent.values[2:5], path[47:50])
    assert not [i for d in robot.decisions for i in d.interventions]
    assert oracle().wrong(np.array([HOME] * 3 + robot.executed)) == ""
    assert robot.executed[-1][0] == path[-1, 0]
    told = only(robot.ask(robot.seq, path[-2:]))
    assert told.kind == "stale", "all of it would be over"
    assert "with 2 actions" in told.reason and "2 periods late" in told.reason


@pytest.mark.parametrize("lead", [0, 1, 3])
def test_a_robot_that_has_stopped_by_itself_is_not_led_on(robot, lead):
    """As a cell whose arm has refused something: what was under way is not where it is."""
    robot.supervisor._plan.lead = robot.late_periods = lead
    robot.ask(0, reach(0, 0.8))
    for _ in range(25):
        robot.step()
    robot.chunk, robot.mail = None, []
    there = robot.executed[-1][0]
    for _ in range(40):
        robot.step()
    assert "execution" in {i.kind for d in robot.decisions for i in d.interventions}
    assert np.abs(np.array(robot.executed)[26:, 0] - there).max() < 0.04, "what it takes to brake"
    assert np.array_equal(robot.executed[-1], robot.executed[-9])
    path = robot.executed[-1] + reach(0, 0.2) - HOME
    assert robot.ask(robot.seq, path).interventions == ()


def ignoring(robot, periods: int = 60) -> None:
    """The robot goes on along what it has, at 0.05 rad/s, whatever is sent."""
    path = np.tile(HOME, (periods, 1))
    path[:, 0] += 0.001 * np.arange(1, periods + 1)
    robot.ask(0, path)
    for _ in range(10):
        robot.step()
    robot.late_periods = 1000


def test_a_stop_that_is_not_followed_is_sent_again_and_heartbeats_end(robot):
    ignoring(robot)
    supervisor = robot.supervisor
    robot.take(supervisor.stop("estop", "the button", robot.now_s))
    vouched = []
    for _ in range(20):
        robot.step()
        vouched.append(supervisor.vouches)
    assert vouched[:5] == [True] * 5 and not any(vouched[6:])
    sent = [d.send.seq for d in robot.decisions if d.send is not None]
    assert len(sent) >= 5 and sent[1] == 10 and sent[2] <= 14
    robot.late_periods, robot.mail = 0, []
    for _ in range(15):
        robot.step()
    assert supervisor.vouches and supervisor.sees, "it has come to rest"
    assert np.array_equal(robot.executed[-1], robot.executed[-9])


def test_a_robot_that_is_not_where_the_last_plan_ended_is_stopped(robot):
    """A chunk from somewhere else, say, after a stop that has been executed to its end."""
    robot.ask(0, reach(0, 0.2)[:20])
    for _ in range(45):
        robot.step()
    assert not [i for d in robot.decisions for i in d.interventions]
    robot.chunk = ActionChunk(robot.seq, np.linspace(robot.executed[-1], HOME, 100))
    for _ in range(20):
        robot.step()
    told = [i for d in robot.decisions for i in d.interventions]
    assert [i.kind for i in told][:2] == ["state", "execution"] and len(told) < 5
    assert {i.detail["joint"] for i in told} == {"left_fr3_joint1"}
    assert np.array_equal(robot.executed[-1], robot.executed[-9])


@pytest.mark.parametrize(("height_m", "steps"), [(0.3, 0.75 + 0.5 + 0.25), (0.01, 0.75 + 0.5)])
def test_a_stop_by_no_plan_goes_nowhere_that_was_not_checked(robot, height_m, steps):
    """Arms that are moved by somebody else, downwards: straight on, but not into the table."""
    down = at("left", 0.45, 0.3, height_m - 0.05) - at("left", 0.45, 0.3, height_m)
    step = 0.012 * down / np.abs(down).max()  # 0.6 rad/s
    begin = at("left", 0.45, 0.3, height_m)
    settled(robot, begin - 2 * step)
    for robot.seq, there in ((1, begin - step), (2, begin)):
        robot.executed.append(there)
        decision = robot.tell(robot.state())
    assert only(decision).kind == "execution"
    stop = decision.send.values
    assert Clearance(LIMITS).check(begin, stop) is None
    assert np.abs(stop[-1] - begin).max() == pytest.approx(0.012 * steps)
    for _ in range(30):
        robot.step()
    assert np.array_equal(robot.executed[-1], stop[-1])


def test_heartbeats_of_a_robot_that_sends_no_states(robot):
    """Between episodes it gets ready by itself: with motion confirmed, and nothing stopped."""
    supervisor = robot.supervisor
    assert supervisor.vouches and supervisor.sees
    robot.now_s = 0.2
    robot.take(supervisor.on_time(0.2))
    assert supervisor.vouches and not supervisor.sees
    supervisor.stop("stop", "/safety/stop was called", robot.now_s)
    assert not supervisor.vouches
    supervisor.release()
    assert supervisor.vouches
    new = Supervisor(LIMITS, realtime=True)
    assert not new.vouches
    new.confirm()
    assert new.vouches and not new.sees
    assert Supervisor(LIMITS).vouches, "in lockstep nothing moves without a command"


# -- a world that stalls, states that cannot be ----------------------------------------------------


def test_the_stop_of_a_world_that_has_stalled_is_one_that_it_takes(robot):
    """It goes on where it was: no later state has been, and what is sent for one is refused."""
    robot.ask(0, reach(0, 0.8)[:40])
    for _ in range(20):
        robot.step()
    decision = robot.supervisor.on_time(robot.now_s + 0.11)
    assert only(decision).kind == "heartbeat" and decision.send.seq == 20
    old = np.array(robot.chunk.values[20:25])
    assert np.array_equal(decision.send.values[:5], old), "what it would have done by now"
    robot.now_s += 0.3
    robot.take(decision)
    for _ in range(40):
        robot.step()
    assert (robot.executed[-1] == robot.executed[-9]).all()
    assert oracle().wrong(np.array([HOME] * 3 + robot.executed)) == ""
    told = [i.kind for d in robot.decisions for i in d.interventions]
    assert told == ["heartbeat"], "it was followed, and states are looked at as ever"


def test_states_that_come_late_are_looked_at(robot):
    robot.ask(0, reach(0, 0.8)[:40])
    for _ in range(20):
        robot.step()
    robot.take(robot.supervisor.on_time(robot.now_s + 0.11))
    robot.now_s += 0.3
    effort = np.zeros(14)
    effort[3] = 500.0
    robot.step(joint_effort=effort)
    assert robot.decisions[-2].interventions[0].kind == "torque", "in state 21"
    robot.step()
    speed = np.abs(robot.executed[-1] - robot.executed[-2]).max()
    for _ in range(20):
        robot.step()
    assert speed > 0.0 and np.array_equal(robot.executed[-1], robot.executed[-2])
    assert oracle().wrong(np.array([HOME] * 3 + robot.executed)) == ""


def test_a_world_that_stalls_before_its_plan_is_over_is_stopped_though_it_should_be_at_rest(robot):
    robot.ask(0, reach(0, 0.05, 25))
    for _ in range(20):
        robot.step()
    decision = robot.supervisor.on_time(robot.now_s + 1.0)
    assert decision.send.seq == 20 and len(decision.send.values) >= 50


def test_a_number_that_no_state_can_have_is_not_believed(robot):
    robot.ask(0, reach(0, 0.8)[:40])
    for _ in range(20):
        robot.step()
    decision = robot.supervisor.on_state(replace(robot.state(), seq=2**40), robot.now_s)
    told = only(decision)
    assert (told.action, told.kind) == ("stopped", "state") and str(2**40) in told.reason
    assert decision.send.seq == 20 and robot.supervisor._plan.state.seq == 20
    robot.take(decision)
    for _ in range(30):
        robot.step()
    assert (robot.executed[-1] == robot.executed[-9]).all()
    assert oracle().wrong(np.array([HOME] * 3 + robot.executed)) == ""
    robot.supervisor.release()
    assert robot.ask(robot.seq, np.tile(robot.executed[-1], (5, 1))).interventions == ()


def test_a_robot_of_which_nothing_was_heard_for_long_may_be_released(robot):
    """Two states after the gap agree: it is no number that was spoilt on the way."""
    for _ in range(3):
        robot.step()
    robot.seq, robot.now_s = 400, 8.0
    assert only(robot.tell(robot.state())).kind == "state"
    robot.step()
    robot.supervisor.release()
    assert robot.ask(401, np.tile(HOME, (5, 1))).interventions == ()


def test_a_robot_that_moves_on_though_it_says_otherwise_loses_its_heartbeats(robot):
    """What it is told stands still, and what it measures runs away at 0.03 rad/s to 0.5 rad/s."""
    supervisor = robot.supervisor
    for speed, ends in ((0.03, False), (0.5, True)):
        twin = robot.twin()
        twin.take(twin.supervisor.stop("estop", "the button", twin.now_s))
        vouched = []
        for k in range(20):
            joints = HOME[ARM_COLUMNS].copy()
            joints[2] += speed * DT * (k + 1)
            twin.step(joint_position=joints)
            vouched.append(twin.supervisor.vouches)
        assert vouched[:5] == [True] * 5 and (not any(vouched[10:])) == ends
        for _ in range(3):
            twin.step(joint_position=joints)
        assert twin.supervisor.vouches, "it stands"
    assert supervisor.vouches


def test_a_stop_in_motion_that_is_followed_keeps_its_heartbeats_one_that_is_not_loses_them(robot):
    robot.ask(0, reach(0, 0.8)[:40])
    for _ in range(20):
        robot.step()
    robot.take(robot.supervisor.stop("estop", "the button", robot.now_s))
    runs, speed = robot.twin(), np.zeros(14)
    speed[0] = 0.5
    for _ in range(40):
        robot.step()
        runs.step(joint_velocity=speed)
        assert robot.supervisor.vouches
    assert not runs.supervisor.vouches


def test_what_happens_after_a_stop_is_on_record_once(robot):
    effort = np.zeros(14)
    effort[3] = 500.0
    force = {"contact_pair": np.array([[0, 1]], np.uint16), "contact_force": np.array([np.nan])}
    for _ in range(3):
        robot.step(joint_effort=effort)
    for _ in range(3):
        robot.step(**force)
    told = [i for d in robot.decisions for i in d.interventions]
    assert [(i.action, i.kind) for i in told] == [("stopped", "torque"), ("stopped", "force")]
    assert json.loads(json.dumps(told[1].data(), allow_nan=False))["value"] == "nan"


# -- where the arms really are ---------------------------------------------------------------------


def test_arms_may_lag_but_not_stray(robot):
    """0.1 s behind a motion of 0.75 rad/s is 0.075 rad off the newest command."""
    path = reach(0, 0.4)
    robot.ask(0, path)
    for _ in range(25):
        robot.step()
    behind = robot.executed[-5]
    assert np.abs(behind - robot.executed[-1]).max() > 0.05
    robot.step(joint_position=behind[ARM_COLUMNS])
    assert robot.supervisor.why_not == ""
    off = behind[ARM_COLUMNS].copy()
    off[1] += 0.06
    robot.step(joint_position=off)
    (told,) = [i for d in robot.decisions for i in d.interventions]
    assert told.kind == "tracking" and told.detail["joint"] == "left_fr3_joint2"
    assert told.detail["value"] == pytest.approx(0.06) and told.detail["limit"] == 0.05


def test_an_arm_that_does_what_nobody_sent_gets_nothing_new_until_it_does_what_it_is_sent(robot):
    robot.ask(0, reach(0, 0.2)[:20])
    for _ in range(45):
        robot.step()
    robot.chunk = ActionChunk(robot.seq, np.linspace(robot.executed[-1], HOME, 100))
    while not [i for d in robot.decisions for i in d.interventions]:
        robot.step()
    told = only(robot.ask(robot.seq, np.tile(robot.executed[-1], (10, 1))))
    assert (told.action, told.kind) == ("dropped", "execution")
    for _ in range(40):
        robot.step()
    assert robot.ask(robot.seq, np.tile(robot.executed[-1], (10, 1))).interventions == ()


def test_distances_count_from_where_the_arms_are(robot):
    """A hand that hangs 2 cm lower than it was told to be must not be led on towards the table."""
    before, after = at("left", 0.45, 0.3, 0.08), at("left", 0.5, 0.3, 0.015)
    path = min_jerk(before, after, 100)
    hangs = np.zeros(14)
    hangs[1] = 0.048  # joint 2, at the shoulder, 0.55 m behind the hand
    for sag, refused in ((False, False), (True, True)):
        settled(robot, before, joint_position=before[ARM_COLUMNS] + hangs * sag)
        decision = robot.ask(0, path)
        assert bool(decision.interventions) == refused
        if refused:
            assert only(decision).kind == "distance" and "table" in only(decision).reason
    # What is too near already may be led away.
    low = at("left", 0.45, 0.3, 0.02)
    settled(robot, low, joint_position=low[ARM_COLUMNS] + hangs)
    assert robot.ask(0, min_jerk(low, before, 60)).interventions == ()


def test_objects_that_are_called_like_an_arm_are_none(robot):
    """`right_cover` may press on the table as it likes."""
    scene = replace(SCENE, entities=("table", "right_cover", "right_hand", "left_finger1"))
    robot.supervisor.begin(scene)
    force = {"contact_force": np.array([150.0])}
    for pair, stops in (((0, 1), False), ((1, 3), False), ((0, 2), True)):
        robot.supervisor.release()
        robot.step(contact_pair=np.array([pair], np.uint16), **force)
        assert bool(robot.supervisor.why_not) == stops, pair


def test_a_command_that_a_state_makes_up_is_not_where_a_stop_begins(robot):
    robot.ask(0, reach(0, 1.0, 60)[:40])
    for _ in range(20):
        robot.step()
    wild = robot.executed[-1].copy()
    wild[3] = 50.0
    robot.step(command=wild)
    assert [i.kind for i in robot.decisions[-2].interventions] == ["state"]
    for _ in range(40):
        robot.step()
    assert oracle().wrong(np.array(robot.executed)) == ""
    assert (robot.executed[-1] == robot.executed[-2]).all()


def test_arms_in_motion_are_so_though_their_states_begin_anew(robot):
    """What is sent then goes on from the speed that is measured."""
    robot.ask(0, reach(0, 1.0, 60)[:40])
    for _ in range(20):
        robot.step()
    robot.seq, here = 0, robot.executed[-1]
    robot.tell(robot.state())
    back = here.copy()
    back[0] -= 0.8
    assert only(robot.ask(0, min_jerk(here, back, 60)[:40])).kind == "acceleration"
    for _ in range(40):
        robot.step()
    assert oracle().wrong(np.array(robot.executed)) == ""
    assert (robot.executed[-1] == robot.executed[-2]).all()


@pytest.mark.parametrize(
    ("pairs", "forces", "kind"),
    [(np.zeros((2, 2), np.uint16), [5.0], "state"), (np.zeros((1, 2), np.uint16), [], "state"),
     (np.array([[0, 1]], np.uint16), [-500.0], "force"),
     (np.array([[0, 1]], np.uint16), [np.nan], "force")],
)  # fmt: skip
def test_contacts_that_cannot_be_stop_the_arms(robot, pairs, forces, kind):
    robot.step(contact_pair=pairs, contact_force=np.array(forces))
    assert only(robot.decisions[-2]).kind == kind
