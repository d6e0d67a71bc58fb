"""A cell gets ready: what ends that, what the arms are told then, and which way they go home."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from bench_tasks.errors import BenchError
from bench_tasks.robots.fr3 import HOME_RAD
from bench_tasks.vocabulary import ARMS
from hardware import preparation
from hardware import signals as signals_module
from hardware.franka import ready
from hardware.franka.cell import read_cell
from hardware.franka.ready import Preparation
from hardware.signals import SILENT_S, Signals
from tests.hardware.clock import Clock


class Arms:
    """Both arms and hands as drivers: they are where they are told to be, when they are allowed."""

    def __init__(self, clock):
        self.now_ns = clock.monotonic_ns
        self.told, self.events, self.widths = [], [], [0.0, 0.08]
        self.at = {arm: np.array(HOME_RAD) for arm in ARMS}
        self.measured = {arm: np.zeros(7) for arm in ARMS}
        self.wrench, self.goes, self.wanted = np.zeros(6), True, 0

    def poll(self):
        found, self.events = self.events, []
        return found

    def ready(self, heed):
        heed()
        self.told.append("ready")

    def open_to(self, arm, width, anew):
        assert anew
        self.told.append((arm, "open"))
        self.widths[ARMS.index(arm)] = width

    def width(self, arm):
        return self.widths[ARMS.index(arm)]

    def mode(self, arm):
        return "following"

    def arm(self, arm):
        q = np.array(self.at[arm])
        return SimpleNamespace(q=q + self.measured[arm], q_sent=q, wrench=self.wrench)

    def go_to(self, arm, q, share):
        self.told.append((arm, "home", share))
        if self.goes:
            self.at[arm] = np.array(q)

    def go_on(self, arm):
        self.wanted += 1

    def hold(self):
        self.told.append("hold")


@pytest.fixture
def cell(monkeypatch):
    """All that getting ready looks at; the safety node is alive."""
    clock = Clock()
    for module in (preparation, signals_module):
        monkeypatch.setattr(module, "time", clock)
    raw = read_cell("cell")
    raw.raw["layout"].update(wait_s=0.5)
    signals, arms, said, stopping = Signals(), Arms(clock), [], threading.Event()
    checked = []
    kinematics = SimpleNamespace(
        collision=lambda left, right, _: checked.append((left, right)) or made.hit
    )
    sensors = SimpleNamespace()
    made = SimpleNamespace(
        raw=raw.raw, signals=signals, arms=arms, said=said, stopping=stopping, checked=checked,
        hit=None, sensors=sensors, record=[], beats=True, clock=clock,
    )  # fmt: skip
    made.preparation = Preparation(
        raw, arms, sensors, signals, stopping,
        lambda kind, why: made.record.append((kind, why)), said.append, kinematics=kinematics,
    )  # fmt: skip

    def beat():
        if made.beats:
            signals.on_beat(7)  # alive, but it sees no states

    clock.each.append(beat)
    return made


def test_nothing_moves_before_a_human_has_confirmed(cell):
    cell.clock.later(0.3, lambda: cell.signals.on_estop(True))
    with pytest.raises(BenchError, match="/safety/estop says true"):
        cell.preparation.go_home()
    assert cell.arms.told == ["hold"] and "stand clear" in cell.said[0]
    assert not cell.signals.on_confirm(), "nobody waits any more"
    cell.signals.on_estop(False)
    assert not cell.signals.estop.is_set()


def test_a_button_that_is_pressed_beforehand_is_waited_for(cell):
    cell.raw["confirm_before_home"] = False
    cell.signals.on_estop(True)
    released = cell.clock.monotonic() + 5.0
    cell.clock.later(5.0, lambda: cell.signals.on_estop(False))
    cell.preparation.go_home()
    assert cell.clock.monotonic() >= released and cell.arms.told[0] == "ready"
    assert cell.said == ["waiting: /safety/estop says true"]
    cell.signals.on_estop(True)
    cell.clock.later(5.0, cell.stopping.set)
    with pytest.raises(BenchError, match="getting ready was broken off"):
        cell.preparation.go_home()


def test_then_hands_open_and_one_arm_after_the_other_goes_home(cell):
    cell.clock.later(0.1, cell.signals.confirmed.set)
    cell.arms.at["right"] = HOME_RAD + 0.3
    cell.preparation.go_home()
    share = cell.raw["arms"]["home_share"]
    assert cell.arms.told == [
        "ready", ("left", "open"), ("right", "open"), ("left", "home", share),
        ("right", "home", share),
    ]  # fmt: skip


def test_who_makes_them_slow_waits_the_longer_for_them(cell, monkeypatch):
    monkeypatch.setattr(ready, "HOME_S", 0.0)
    cell.raw["confirm_before_home"] = False
    cell.raw["arms"].update(speed=0.5, home_share=0.2)
    cell.arms.at["left"], cell.arms.goes = HOME_RAD + 0.3, False

    def arrive():
        cell.arms.at["left"], cell.arms.goes = np.array(HOME_RAD), True

    cell.clock.later(1.15, arrive)  # 0.3 / (0.1 * 2.62)
    cell.preparation.go_home()
    cell.arms.at["left"], cell.arms.goes = HOME_RAD + 0.3, False
    with pytest.raises(BenchError, match="the left arm is not home within 2 s"):
        cell.preparation.go_home()


def test_the_way_that_is_checked_is_the_one_that_is_driven(cell):
    cell.raw["confirm_before_home"] = False
    start = cell.arms.at["left"] = HOME_RAD + 0.3
    cell.arms.measured["left"] += 0.01  # it hangs a little beside where it is told to be
    cell.preparation.go_home()
    left = np.array([left for left, _ in cell.checked])
    np.testing.assert_allclose(left[0], start)
    np.testing.assert_allclose(left[-1], HOME_RAD)
    cell.arms.measured["left"] -= 0.01
    cell.arms.at["left"], cell.hit = start, "left_link5 and right_hand"
    cell.arms.told.clear()
    with pytest.raises(BenchError, match="cannot go straight home: left_link5 and right_hand"):
        cell.preparation.go_home()
    assert ("left", "home", 0.1) not in cell.arms.told and cell.arms.told[-1] == "hold"


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (lambda cell: cell.signals.on_estop(True), "/safety/estop says true"),
        (lambda cell: cell.stopping.set(), "the node ends"),
        (lambda cell: setattr(cell.arms, "wrench", np.full(6, 25.0)), "43 N act on the left arm"),
        (lambda cell: cell.arms.events.append(("robot_fault", "left arm: joint_reflex")), "reflex"),
        (lambda cell: cell.arms.events.append(("command_refused", "a goal must")), "a goal must"),
        (lambda cell: cell.arms.events.append(("hand_fault", "left hand: stuck")), "hand: stuck"),
    ],
)
def test_what_breaks_it_off_on_the_way_home(cell, what, said):
    cell.raw["confirm_before_home"] = False
    cell.arms.at["left"], cell.arms.goes = HOME_RAD + 0.3, False
    cell.clock.later(0.4, lambda: what(cell))
    with pytest.raises(BenchError, match=said):
        cell.preparation.go_home()
    assert cell.arms.told[-1] == "hold" and cell.arms.wanted > 5
    wanted = cell.arms.wanted
    cell.clock.sleep(0.1)
    assert cell.arms.wanted == wanted, "nobody wants it to go on"


def test_an_arm_that_was_not_heard_to_go_on_is_sent_home_again_by_a_way_that_is_checked(cell):
    cell.raw["confirm_before_home"] = False
    cell.arms.at["left"], cell.arms.goes = HOME_RAD + 0.3, False

    def lapse():
        cell.arms.goes = True
        cell.arms.at["left"] = HOME_RAD + 0.1
        cell.arms.events.append(("way_lapsed", "left arm: nobody wanted its way to go on"))

    cell.clock.later(0.3, lapse)
    cell.preparation.go_home()
    went = [what for what in cell.arms.told if what == "hold" or what[1] == "home"]
    assert went == [("left", "home", 0.1), "hold", ("left", "home", 0.1), ("right", "home", 0.1)]
    assert cell.record == [("way_lapsed", "left arm: nobody wanted its way to go on")]
    left = [left for left, _ in cell.checked]
    assert any(np.allclose(q, HOME_RAD + 0.1) for q in left)


def test_an_arm_that_cannot_go_straight_is_folded_first(cell):
    cell.raw["confirm_before_home"] = False
    start = cell.arms.at["left"] = HOME_RAD + np.array([0.6, 0.5, 0.0, 0.5, 0.0, 0.3, 0.0])

    def collision(left, right, _):
        stretched = left[1] - HOME_RAD[1] > 0.1
        return "left hand with a post" if stretched and left[0] < start[0] - 0.05 else None

    cell.preparation._kinematics.collision = collision
    went, plain = [], cell.arms.go_to
    cell.arms.go_to = lambda arm, q, share: (went.append((arm, q)), plain(arm, q, share))
    cell.preparation.go_home()
    (_, folded), (arm, home), _ = went
    assert folded[0] == start[0] and folded[1] == HOME_RAD[1] and arm == "left"
    np.testing.assert_allclose(home, HOME_RAD)
    assert cell.record == [("way_home", "the left arm goes not straight: left hand with a post")]


def test_the_arm_goes_first_that_is_in_the_other_s_way(cell):
    cell.raw["confirm_before_home"] = False
    cell.arms.at = {arm: HOME_RAD + 0.3 for arm in ARMS}

    def collision(left, right, _):
        there = np.abs(right - HOME_RAD).max() > 0.1
        return "left hand with the right arm" if there and left[2] < HOME_RAD[2] + 0.2 else None

    cell.preparation._kinematics.collision = collision
    cell.preparation.go_home()
    assert [what for what in cell.arms.told if what[1] == "home"] == [
        ("right", "home", 0.1), ("left", "home", 0.1)
    ]  # fmt: skip


def test_what_is_thin_is_not_passed_over_between_two_looks_at_the_way_home(cell):
    cell.raw["confirm_before_home"] = False
    cell.arms.at["left"] = HOME_RAD + 1.7
    middle = HOME_RAD[0] + 1.7 * 20.5 / 59  # of 60 looks, half-way between two

    def collision(left, right, _):
        return "a thin rod" if abs(left[0] - middle) < 0.006 else None

    cell.preparation._kinematics.collision = collision
    with pytest.raises(BenchError, match="cannot go straight home: a thin rod"):
        cell.preparation.go_home()


def test_what_is_lost_while_objects_are_laid_out_ends_the_preparation(cell):
    cell.raw["confirm_before_home"] = False
    lost = ("driver_lost", "the process of the left arm has ended (SIGKILL)")
    cell.arms.events.append(lost)  # before arms are in control it is only on record
    cell.preparation.go_home()
    seen(cell, [BenchError("pot is not seen")])
    cell.arms.events.append(lost)
    with pytest.raises(BenchError, match="left arm has ended"):
        cell.preparation.wait_for_objects(SCENE, np.array([THERE]))
    assert cell.record == [lost, lost]


def test_without_the_safety_node_nothing_moves(cell, monkeypatch):
    monkeypatch.setattr(preparation, "ALIVE_S", 0.2)
    cell.raw["confirm_before_home"] = cell.beats = False
    with pytest.raises(BenchError, match="the safety node was not heard within 0.2 s"):
        cell.preparation.go_home()
    assert cell.arms.told == ["hold"]


def test_when_the_safety_node_falls_silent_the_arms_hold_and_go_on_when_it_is_back(
    cell, monkeypatch
):
    cell.raw["confirm_before_home"] = False
    cell.arms.at["left"], cell.arms.goes = HOME_RAD + 0.3, False
    cell.clock.later(0.3, lambda: setattr(cell, "beats", False))

    def back():
        cell.beats = cell.arms.goes = True

    cell.clock.later(1.5, back)
    cell.preparation.go_home()
    went = [what for what in cell.arms.told if what == "hold" or what[1] == "home"]
    assert went == [("left", "home", 0.1), "hold", ("left", "home", 0.1), ("right", "home", 0.1)]
    assert [kind for kind, _ in cell.record] == ["heartbeat_lost"]
    assert len({tuple(left) for left, _ in cell.checked}) > 2


def test_only_what_was_asked_for_can_be_confirmed_and_only_once():
    signals = Signals()
    assert not signals.on_confirm() and not signals.confirmed.is_set()
    signals.ask()
    assert signals.on_confirm() and signals.confirmed.is_set() and not signals.on_confirm()
    signals.ask()
    assert not signals.confirmed.is_set()


def test_a_heartbeat_that_stands_still_is_alive_but_watches_nothing(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(signals_module, "time", clock)
    signals = Signals()
    assert not signals.alive and not signals.watching
    signals.on_beat(7)
    assert signals.alive and signals.watching
    for _ in range(6):
        clock.sleep(0.02)
        signals.on_beat(7)
    assert signals.alive and not signals.watching
    signals.on_beat(8)
    assert signals.watching
    clock.sleep(1.1 * SILENT_S)
    signals.begin()
    assert signals.watching and not signals.alive


def seen(cell, poses):
    """What the tracker says, look after look; the last one stays."""
    def pose(name):
        found = poses.pop(0) if len(poses) > 1 else poses[0]
        if isinstance(found, Exception):
            raise found
        return np.array(found, dtype=float), np.zeros(6)

    cell.sensors.pose = pose


SCENE = SimpleNamespace(objects=[SimpleNamespace(name="pot")], task="lift_pot", seed=3)
THERE = [0.5, 0, 0.05, 1, 0, 0, 0]


def test_who_has_put_objects_where_they_belong_says_when_it_begins(cell):
    """A hand may still be on them; the tracker sees the objects alone."""
    wrong = [0.9, *THERE[1:]]
    seen(cell, [wrong, THERE])
    asked, plain = [], cell.signals.ask

    def ask():
        plain()
        asked.append(cell.clock.monotonic())
        if len(asked) == 1:  # one is moved once more meanwhile
            seen(cell, [wrong, wrong, THERE])
        cell.clock.later(0.3, cell.signals.on_confirm)

    cell.signals.ask = ask
    cell.preparation.wait_for_objects(SCENE, np.array([THERE]))
    assert len(asked) == 2 and cell.clock.monotonic() - asked[1] >= 0.29
    assert "the episode is going to begin: stand clear, then call /world/confirm" in cell.said[0]
    cell.preparation.wait_for_objects(SCENE, np.array([THERE]))
    assert len(asked) == 2, "nobody had to move them"


def test_objects_have_to_lie_where_they_belong_for_a_while(cell):
    cell.raw["confirm_before_home"] = False
    seen(cell, [BenchError("pot is not seen"), THERE, [0.9, *THERE[1:]], THERE])
    begun = cell.clock.monotonic()
    cell.preparation.wait_for_objects(SCENE, np.array([THERE]))
    assert cell.clock.monotonic() - begun > preparation.STILL_S
    seen(cell, [[0.55, 0, 0.05, 0.9, 0, 0, 0.436]])
    with pytest.raises(BenchError, match=r"lift_pot seed 3 do not lie as they must: pot is 0.050 m"
                       r" and 0.90 rad away from \(0.500, 0.000, 0.050\)"):  # fmt: skip
        cell.preparation.wait_for_objects(SCENE, np.array([THERE]))


def test_the_button_and_the_end_break_off_every_wait(cell):
    seen(cell, [BenchError("pot is not seen")])
    cell.sensors.picture = lambda camera: (_ for _ in ()).throw(BenchError("no picture"))
    for press in (lambda: cell.signals.on_estop(True), cell.stopping.set):
        press()
        for wait in (lambda: cell.preparation.wait_for_objects(SCENE, np.array([THERE])),
                     cell.preparation.wait_for_cameras):  # fmt: skip
            with pytest.raises(BenchError, match="getting ready was broken off"):
                wait()
        cell.signals.on_estop(False)


def test_each_camera_has_to_send_a_picture(cell, monkeypatch):
    monkeypatch.setattr(preparation, "CAMERAS_S", 0.2)
    asked = []

    def picture(camera):
        asked.append(camera)
        if asked.count(camera) < 3 or camera == "right_wrist":
            raise BenchError(f"camera {camera}: nothing has come")

    cell.sensors.picture = picture
    with pytest.raises(BenchError, match="camera right_wrist: nothing has come"):
        cell.preparation.wait_for_cameras()
    assert asked.count("head") == asked.count("left_wrist") == 3
