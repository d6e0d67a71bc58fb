"""Turns of the bus, one by one, on topics and a clock of the test's own."""

from types import SimpleNamespace

import numpy as np
import pytest

from bench_tasks.robots import g1
from bench_tasks.robots import unitree_hg as hg
from hardware.link import pair
from hardware.unitree import bus as module

PERIOD_S = 0.005
SETTINGS = {
    "transport": "dds", "control": "arm_sdk", "hands": "dex3", "rate_hz": 200.0,
    "report_every": 4, "speed": 0.5, "max_jump_rad": 0.3, "stale_s": 0.1, "release_s": 0.6,
    "ramp_s": 0.2,
}  # fmt: skip
HOME = g1.HOME_RAD.tolist()


class Topics:
    """What has come and was sent."""

    def __init__(self):
        self.come, self.sent, self.hands = {}, [], {}

    def take(self, topic):
        return self.come.pop(topic, [])

    def write(self, topic, data):
        if topic == hg.ARM_SDK:
            self.sent.append(hg.decode(data, hg.LOW_CMD))
        else:
            self.hands[topic.split("/")[2]] = hg.decode(data, hg.HAND_CMD)["motor"]


class Robot:
    """A bus, its topics, and the other end of its link."""

    def __init__(self, monkeypatch, **changes):
        self.now, self.tick, self.topics, self.heard = 100.0, 0, Topics(), []
        monkeypatch.setattr(module, "_topics", lambda *_: self.topics)
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))
        self.link, theirs = pair()
        self.bus = module.Bus(module.Link(theirs), {**SETTINGS, **changes})
        self.bus._turn_s = self.now

    def state(self, count=True, signed=True, q=None):
        state = np.zeros((), hg.LOW_STATE)
        self.tick += count
        state["tick"], state["mode_machine"] = self.tick, 5
        state["motor"]["q"][: hg.JOINTS] = g1.DEFAULT_RAD if q is None else q
        state["motor"]["q"][g1.LEGS : hg.JOINTS] = g1.HOME_RAD if q is None else q[g1.LEGS :]
        hg.signed(state)
        state["crc"] += not signed
        return hg.encode(state)

    def turns(self, seconds, listen=True, move=False, state=lambda r: r.state()):
        """So long; what `state` makes of the robot comes each turn."""
        for k in range(round(seconds / PERIOD_S)):
            self.now += PERIOD_S
            data = state(self)
            if data is not None:
                self.topics.come["rt/lowstate"] = [data]
            if move and k % 4 == 0:
                self.move()
            self.bus._turn(PERIOD_S)
            if listen:
                self.heard += self.link.receive()

    def move(self, q=HOME, ago_s=-0.03):
        due_ns = int((self.now - ago_s) * 1e9)
        self.link.send({"do": "move", "seq": 7, "q": q, "tau": [0.0] * 17, "due_ns": due_ns})

    def start(self, ago_s=0.0):
        self.link.send({"do": "start", "at_ns": int((self.now - ago_s) * 1e9)})

    def followed(self):
        self.turns(0.05)
        self.start()
        self.turns(0.3, move=True)
        assert self.mode == "following"
        self.heard.clear()

    @property
    def mode(self):
        return self.bus._follower.mode

    def said(self, what):
        return [message[what] for message in self.heard if what in message]


@pytest.fixture
def robot(monkeypatch):
    return Robot(monkeypatch)


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (lambda r: r.state(signed=False), "its checksum is wrong"),
        (lambda r: r.state(count=False), "its tick stands still"),
        (lambda r: r.state(q=np.full(29, np.nan)), "its q holds a number that is not finite"),
        (lambda r: b"\x00\x01\x00\x00short", "bytes"),
        (lambda r: None, ""),
    ],
    ids=["checksum", "tick", "nan", "length", "none"],
)
def test_messages_that_cannot_be_used_are_silence(robot, state, why):
    robot.followed()
    robot.turns(0.2, move=True, state=state)
    gaps = robot.said("gap")
    assert "and still none" in gaps[-1] and why in gaps[0]
    assert len(gaps) == 1 + (robot.heard[-1]["state"]["bad"] > 0)
    assert robot.heard[-1]["lost"] and "no rt/lowstate" in robot.said("refused")
    robot.heard.clear()
    robot.turns(1.0)
    assert not robot.heard[-1]["lost"] and "no rt/lowstate for 2" in robot.said("gap")[0]
    assert robot.mode == "idle", "it was let go of meanwhile"
    robot.turns(0.5, state=state)
    robot.start()
    robot.turns(0.3, state=state)
    robot.turns(0.3)
    assert robot.mode == "idle", "what was asked for while nothing was known is over"


def test_a_bad_message_of_a_hand_costs_no_state_of_the_robot(robot):
    robot.followed()

    def both(robot):
        robot.topics.come["rt/dex3/left/state"] = [b"\x00\x01\x00\x00nonsense"]
        return robot.state()

    robot.turns(0.2, move=True, state=both)
    assert not robot.heard[-1]["lost"] and robot.said("refused") == []
    assert len(robot.said("gap")) == 1 and "not used" in robot.said("gap")[0]


def test_bad_messages_are_counted_once_a_second(robot):
    robot.followed()
    robot.turns(2.5, state=lambda r: r.state(signed=False))
    counts = [gap.split()[0] for gap in robot.said("gap") if "not used" in gap]
    assert counts[0] == "a" and len(counts) == 3 and all(int(n) > 150 for n in counts[1:])


def test_a_start_is_for_now(robot):
    robot.start()
    robot.turns(0.1, state=lambda _: None)
    robot.turns(0.2)
    assert robot.mode == "idle" and robot.topics.sent == []
    robot.start(ago_s=5.0)
    robot.turns(0.1)
    assert robot.mode == "idle"
    robot.start()
    robot.turns(0.1)
    assert robot.mode == "engaging"


def test_a_mode_that_did_not_get_through_is_said_later_and_so_is_every_report(robot):
    robot.followed()
    robot.turns(30.0, listen=False, state=lambda r: r.state(signed=r.now % 3 > 0.2))
    assert robot.link.dropped == 0 and robot.bus._link.dropped > 0 and robot.mode == "idle"
    robot.turns(0.1)
    assert robot.heard[-1]["mode"] == "idle" and not robot.heard[-1]["lost"]
    gaps = robot.said("gap")
    lost = [int(gap.split()[0]) for gap in gaps if "more reports are lost" in gap]
    assert len(gaps) - len(lost) + sum(lost) >= 20, "ten silences: that they began, and ended"


def test_the_newest_mode_is_in_every_state(robot):
    robot.followed()
    robot.turns(0.1, move=True)
    states = [message for message in robot.heard if "state" in message]
    assert len(states) >= 4 and {message["mode"] for message in states} == {"following"}


def test_before_the_robot_is_heard_the_bus_says_that_it_is_there(robot):
    robot.turns(0.5, state=lambda _: None)
    assert len(robot.heard) >= 20 and robot.heard[-1] == {"mode": "idle", "lost": True}


def test_to_hold_brakes_says_when_it_rests_and_keeps_the_weight(robot):
    robot.followed()
    for k in range(25):
        robot.move([*HOME[:6], HOME[6] + 0.02 * (k + 1), *HOME[7:]])
        robot.turns(0.02)
    assert robot.bus._follower.v[6] > 0.5
    before = len(robot.topics.sent)
    for _ in range(50):
        robot.link.send(
            {"do": "hold", "seq": -3, "tau": None, "due_ns": int(robot.now * 1e9)}
        )
        robot.turns(0.02)
    elbow = [float(m["motor"]["q"][g1.LEGS + 6]) for m in robot.topics.sent[before:]]
    assert np.diff(elbow).min() >= 0.0, "it never turns round"
    state = robot.said("state")[-1]
    assert state["rests"] and state["seq"] == -3 and state["weight"] == 1.0
    assert robot.mode == "following"


def test_stale_commands_after_a_stall_are_refused(robot):
    robot.followed()
    robot.move([*HOME[:6], HOME[6] + 0.2, *HOME[7:]])
    robot.now += 0.5
    robot.turns(0.02)
    assert "a command was due 0.4" in robot.said("refused")[0]
    assert "did not run for 505 ms" in robot.said("gap")[0]
    assert robot.bus._follower.q == pytest.approx(HOME)


def test_what_another_held_is_let_go_of_with_what_it_fed_forward(monkeypatch):
    robot = Robot(monkeypatch, let_go=[2.0] * 17)
    assert robot.bus.still_held
    robot.turns(0.1, state=lambda _: None)
    assert robot.bus.still_held and not robot.topics.sent
    robot.turns(0.3)
    first, last = robot.topics.sent[0], robot.topics.sent[-1]
    assert first["motor"]["tau"][g1.LEGS] == 2.0 and first["motor"]["q"][hg.WEIGHT] > 0.9
    assert last["motor"]["q"][hg.WEIGHT] == 0.0 and not robot.bus.still_held


def test_hands_forget_where_they_were_told_to_be_when_arms_are_taken_anew(robot):
    robot.followed()
    robot.link.send({"do": "hand", "hand": "left", "q": [0.0] * 7})
    robot.turns(0.05, move=True)
    assert "left" in robot.bus._hand_q
    robot.turns(2.0)
    assert robot.mode == "idle"
    robot.start()
    robot.turns(0.05)
    assert robot.mode == "engaging" and robot.bus._hand_q == {}


def test_a_hand_is_told_nothing_beyond_its_range_and_nothing_of_before(robot):
    """A thumb bends the one way on the left and the other on the right."""
    robot.followed()
    bent = [0.5, 1.0, 1.0, -1.5, -1.7, -1.5, -1.7]
    for hand, q in (("left", bent), ("right", bent), ("right", [-v for v in bent])):
        robot.link.send({"do": "hand", "hand": hand, "q": q})
    robot.turns(0.05, move=True)
    (why,) = robot.said("refused")
    assert why == "-1.7 rad of joint 4 of the right hand, whose range is 0 to 1.74533"
    for hand, sign in (("left", 1), ("right", -1)):
        motors = robot.topics.hands[hand]
        np.testing.assert_allclose(motors["q"], sign * np.array(bent), rtol=1e-6)
        assert (motors["kp"] > 0).all()
    robot.turns(1.0)  # without commands: let go of
    assert robot.mode == "idle" and not robot.topics.hands["left"]["kp"].any()
    robot.topics.hands.clear()
    robot.followed()
    assert robot.topics.hands == {}
