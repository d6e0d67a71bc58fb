"""The loops of an arm and of a hand, over a client library that misbehaves when it is told to."""

import re
import threading
import time

import numpy as np
import pytest

from hardware.franka.cell import read_cell
from hardware.link import ArmState, Command, Link, pair

CELL = read_cell("standin")
HERE = CELL.arm("left")["address"]


def late_s(refused):
    """By how much a command came too late, from why it was refused."""
    return float(re.search(r"was due ([\d.]+) s ago", refused)[1])


class Other:
    """The world node's end of a link to a loop that runs on a thread of this process."""

    def __init__(self, loop, settings):
        self.link, theirs = pair()
        self.heard, self.state = [], None
        self.loop = loop(Link(theirs), settings)
        self.thread = threading.Thread(target=self.loop.run, daemon=True)
        self.thread.start()

    def listen(self):
        for message in self.link.receive():
            if isinstance(message, ArmState):
                self.state = message
            else:
                self.heard.append(message)

    def until(self, true, seconds=10.0):
        """Listen until `true(last message)`; returns that message."""
        end, seen = time.monotonic() + seconds, len(self.heard)
        while time.monotonic() < end:
            self.listen()
            for message in self.heard[seen:]:
                if true(message):
                    return message
            seen = len(self.heard)
            time.sleep(0.002)
        pytest.fail(f"not heard; the last were {self.heard[-5:]}")

    def mode(self, name):
        return self.until(lambda m: m.get("mode") == name)

    def end(self):
        self.link.close()
        self.thread.join(10)
        assert not self.thread.is_alive()


@pytest.fixture
def arm(wrong):
    import pylibfranka

    from hardware.franka.arm import Arm

    other = Other(Arm, {**CELL.arm("left"), "simulated": False})
    other.calls, other.wrong = pylibfranka.calls, wrong
    other.mode("idle")
    yield other
    other.end()


def names(calls):
    return [name for name, *_ in calls]


def test_collision_thresholds_and_payload_are_set_before_every_start(arm):
    for again in range(2):
        arm.calls.clear()
        arm.link.send({"do": "start"})
        arm.mode("following")
        assert names(arm.calls) == ["collision", "load", "impedance", "control"], again
        arm.wrong("reflex", HERE)
        assert arm.mode("fault")["fault"] == "joint_reflex"
        arm.wrong("reflex")
        arm.link.send({"do": "recover"})
        arm.mode("idle")
    collision = CELL.raw["arms"]["collision"]
    assert arm.calls[0][2] == collision["upper_torque_nm"]


def test_without_its_settings_an_arm_is_not_controlled_and_says_why_until_it_recovers(arm):
    arm.wrong("settings", HERE)
    arm.link.send({"do": "start"})
    assert "collision command rejected" in arm.mode("fault")["fault"]
    time.sleep(0.2)  # the robot itself is idle meanwhile
    arm.listen()
    assert arm.heard[-1]["mode"] == "fault" and "control" not in names(arm.calls)
    arm.wrong("settings")
    arm.link.send({"do": "recover"})
    arm.mode("idle")
    assert "recovery" not in names(arm.calls), "there was nothing to recover the robot from"


def test_a_start_that_was_asked_for_in_another_mode_is_not_made_up_for(arm):
    arm.wrong("reflex", HERE)
    arm.link.send({"do": "start"})
    arm.mode("fault")
    arm.wrong("reflex")
    arm.link.send({"do": "start"})
    arm.until(lambda m: "start: the arm is in mode fault" in m.get("refused", ""))
    arm.link.send({"do": "recover"})
    arm.mode("idle")
    time.sleep(0.1)
    arm.listen()
    assert arm.heard[-1]["mode"] == "idle"


def test_a_mode_that_could_not_be_said_is_said_later(arm):
    arm.link.send({"do": "start"})
    arm.mode("following")
    while arm.state is None:
        arm.listen()
    arm.loop._every = 1
    full = arm.loop._link.dropped
    while arm.loop._link.dropped == full:  # nobody reads
        time.sleep(0.01)
    arm.wrong("reflex", HERE)
    time.sleep(0.3)
    assert arm.mode("fault")["fault"] == "joint_reflex"


def test_a_stale_command_is_refused(arm):
    arm.link.send({"do": "start"})
    arm.mode("following")
    while arm.state is None:
        arm.listen()
    q = arm.state.q_sent + 0.01
    arm.link.send(Command(5, q, [0.0] * 7, [0.0] * 7, time.monotonic_ns() - 500_000_000))
    assert late_s(arm.until(lambda m: "refused" in m)["refused"]) >= 0.5
    end = time.monotonic() + 0.2
    while time.monotonic() < end:
        arm.listen()
    np.testing.assert_allclose(arm.state.q_sent, q - 0.01, atol=1e-6)
    assert arm.state.command_seq == -1


@pytest.mark.parametrize("simulated", [True, False])
def test_only_a_simulated_robot_goes_by_its_own_time(wrong, simulated):
    from hardware.franka.arm import Arm

    arm = Other(Arm, {**CELL.arm("left"), "simulated": simulated})
    try:
        arm.link.send({"do": "start"})
        arm.mode("following")
        while arm.state is None or arm.state.mode != "following":
            arm.listen()
        # Its cycles have gone on since it was switched on, a moment ago.
        age_s = abs(arm.state.own_ns - arm.state.time_ns) / 1e9
        assert (arm.state.own_ns < 60e9) is simulated and (age_s < 1e-3) is not simulated
        arm.link.send(
            Command(5, arm.state.q_sent, [0.0] * 7, [0.0] * 7, arm.state.own_ns - 500_000_000)
        )
        assert late_s(arm.until(lambda m: "refused" in m)["refused"]) >= 0.5
        end = time.monotonic() + 10
        while arm.state.command_seq != 6:
            due_ns = arm.state.own_ns + 500_000_000
            arm.link.send(Command(6, arm.state.q_sent, [0.0] * 7, [0.0] * 7, due_ns))
            time.sleep(0.02)
            arm.listen()
            assert time.monotonic() < end
    finally:
        arm.end()


@pytest.fixture
def hand(wrong):
    import pylibfranka

    from hardware.franka.gripper import Hand

    other = Other(Hand, {**CELL.hand("left"), "home": True, "speed_m_s": 0.4})
    other.calls, other.wrong = pylibfranka.calls, wrong
    other.until(lambda m: "width" in m)
    yield other
    other.end()


def test_fingers_find_their_ends_once_and_only_when_they_are_told_to(hand):
    assert not hand.heard[-1]["homed"] and hand.calls == []
    hand.link.send({"do": "homing"})
    hand.link.send({"do": "homing"})
    assert hand.until(lambda m: m["homed"] and not m["busy"])["width"] == 0.08
    time.sleep(0.2)
    assert hand.calls == [("homing", 0.08)]


def test_a_hand_says_that_it_is_busy_and_when_it_measured_its_width(hand):
    before = hand.heard[-1]["time_ns"]
    hand.link.send({"do": "width", "width": 0.0})
    busy = hand.until(lambda m: m["busy"])
    assert (busy["width"], busy["grasped"]) == (0.04, False) and busy["time_ns"] > before
    rests = hand.until(lambda m: not m["busy"])
    assert (rests["width"], rests["grasped"]) == (0.03, True)
    hand.link.send({"do": "width", "width": 0.0})
    time.sleep(0.2)
    assert names(hand.calls) == ["grasp"], "the same again is nothing new"
    hand.link.send({"do": "width", "width": 0.0, "anew": True})
    hand.until(lambda m: m["busy"])


def test_what_a_hand_was_told_before_it_was_lost_is_not_done_afterwards(hand):
    hand.wrong("unplugged", HERE)
    lost = hand.until(lambda m: m["fault"])
    assert "Timeout" in lost["fault"] and "time_ns" not in lost
    hand.link.send({"do": "width", "width": 0.08})
    hand.wrong("unplugged")
    hand.until(lambda m: "time_ns" in m)
    time.sleep(0.2)
    hand.listen()
    assert hand.calls == [] and hand.heard[-1]["width"] == 0.04


def test_what_was_told_and_not_begun_is_not_done_after_a_stop(hand):
    hand.wrong("stuck", HERE)
    hand.link.send({"do": "width", "width": 0.02})
    hand.until(lambda m: m["busy"])
    for message in ({"do": "width", "width": 0.0}, {"do": "forget"}):
        hand.link.send(message)
    hand.wrong("stuck")
    rests = hand.until(lambda m: not m["busy"] and m["heard"] == 2)
    time.sleep(0.2)
    hand.listen()
    assert hand.calls == [("move", 0.02)] and rests["width"] == hand.heard[-1]["width"] == 0.02
    hand.link.send({"do": "width", "width": 0.0})
    hand.until(lambda m: m["grasped"])


def test_fingers_that_a_stop_finds_on_their_way_do_not_grip_what_is_in_it(hand):
    hand.link.send({"do": "width", "width": 0.08})
    hand.until(lambda m: not m["busy"] and m["width"] == 0.08)
    for name in ("stuck", "blocked"):
        hand.wrong(name, HERE)
    hand.link.send({"do": "width", "width": 0.03})
    hand.until(lambda m: m["busy"])
    hand.link.send({"do": "forget"})
    hand.wrong("stuck")
    hand.until(lambda m: not m["busy"])
    assert hand.calls[1:] == [("move", 0.03)]
    hand.link.send({"do": "width", "width": 0.03})
    hand.until(lambda m: m["grasped"])
    assert names(hand.calls[2:]) == ["move", "grasp"]


@pytest.mark.parametrize(
    ("what", "said"),
    [("short", "the fingers went to 0.040 m instead of 0.080 m"), ("jammed", "Command aborted")],
)
def test_what_a_hand_failed_to_do_is_a_fault_each_time_and_not_tried_again_by_itself(
    hand, what, said
):
    hand.wrong(what, HERE)
    for again in (1, 2):
        hand.link.send({"do": "width", "width": 0.08})
        assert hand.until(lambda m: m["busy"])["fault"] == ""
        assert said in hand.until(lambda m: m["fault"])["fault"]
        time.sleep(0.2)
        assert hand.calls == [("move", 0.08)] * again
    hand.wrong(what)
    hand.link.send({"do": "width", "width": 0.08})
    assert hand.until(lambda m: m["width"] == 0.08)["fault"] == ""


def test_an_arm_on_its_way_to_a_goal_brakes_when_its_commander_hangs(arm):
    arm.link.send({"do": "start"})
    arm.mode("following")
    goal = np.array(arm.loop._robot.q) + 1.0
    arm.link.send({"do": "go_to", "q": goal.tolist(), "share": 0.3})
    for _ in range(20):
        arm.link.send({"do": "go_on"})
        time.sleep(0.02)
    arm.until(lambda m: "nobody wanted its way to go on for 0.1 s" in m.get("lapsed", ""))
    end = time.monotonic() + 10
    while not arm.loop._tracker.at_rest:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert np.abs(np.array(arm.loop._robot.q) - goal).max() > 0.1
