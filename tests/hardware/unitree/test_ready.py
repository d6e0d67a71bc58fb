"""A G1 gets ready: held until a human has confirmed, then home by a way that is free."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from bench_tasks.errors import BenchError
from bench_tasks.robots import embodiments, g1
from hardware import preparation
from hardware import signals as signals_module
from hardware.signals import Signals
from hardware.unitree import ready
from hardware.unitree.cell import read_cell
from hardware.unitree.clearance import BodyClearance
from hardware.unitree.ready import Preparation
from hardware.unitree.steering import Steering
from tests.hardware.clock import Clock

ROBOT = embodiments.get("g1")
HOME = ROBOT.home[ROBOT.joint_columns]
LEAST = dict.fromkeys(("hands", "arms", "itself", "table"), 0.009)
"""Points of a straight line, taken by another's steps."""
UPRIGHT = np.array([0.0, 0.0, 0.05, 1.0, 0.0, 0.0, 0.0])


class Driver:
    """Waist and arms that are where they are told to be."""

    def __init__(self):
        self.mode, self.did, self.events, self.at = "following", [], [], HOME + 0.2
        self.hears, self.weighed = True, []

    @property
    def told(self):
        return self.at

    def poll(self):
        found, self.events = self.events, []
        return found

    def ready(self, heed, torque):
        self.did.append("ready")
        self.weighed.append(torque(self.at))
        heed()

    def state(self):
        if not self.hears:
            raise BenchError("no state of the robot: following")
        q = np.concatenate([g1.DEFAULT_RAD[: g1.LEGS], self.at])
        return SimpleNamespace(
            q=q, told=self.at, quaternion=UPRIGHT[3:], rests=True, seq=-2
        )

    def move(self, seq, q, tau, due_ns):
        self.did.append("move")
        self.at, _ = np.array(q), self.weighed.append(tau)

    def hold(self, seq=-1, tau=None):
        self.did.append("hold")


@pytest.fixture
def cell(monkeypatch):
    """All that getting ready looks at; the safety node is alive."""
    clock = Clock()
    for module in (preparation, ready, signals_module):
        monkeypatch.setattr(module, "time", clock)
    settings = read_cell("cell")
    settings.raw["home_rad_s"] = 2.0
    signals, driver = Signals(), Driver()
    steering = Steering(driver, 0.15, gravity=True)
    made = SimpleNamespace(
        raw=settings.raw, signals=signals, driver=driver, steering=steering, said=[], record=[],
        pelvis=UPRIGHT.copy(), beats=True, clock=clock,
    )  # fmt: skip
    made.preparation = Preparation(
        settings, driver, SimpleNamespace(pose=lambda _: (made.pelvis, None)), signals,
        threading.Event(), lambda kind, why: made.record.append((kind, why)), made.said.append,
        steering=steering,
    )  # fmt: skip

    def tick():
        if made.beats:
            signals.on_beat(7)
        steering.tell(0, clock.monotonic())

    clock.each.append(tick)
    return made


def when_moving(cell, work):
    """Once they are on their way home."""
    plain = cell.driver.move

    def move(*command):
        plain(*command)
        if np.abs(cell.driver.at - HOME).max() < 0.15:
            work()

    cell.driver.move = move


def test_arms_are_held_until_a_human_has_confirmed(cell):
    cell.steering.take(ROBOT.home)
    cell.driver.did.clear()
    seen = []

    def confirm():
        seen.append((list(cell.driver.did), cell.steering.engaged))
        cell.signals.confirmed.set()

    cell.clock.later(0.6, confirm)
    cell.preparation.go_home()
    (before, engaged), = seen
    assert engaged and len(before) > 10 and set(before) == {"move"}
    assert "stand clear" in cell.said[0] and cell.driver.did.index("ready") >= len(before)


def test_then_they_go_straight_home_and_are_kept_there_weighed_all_the_while(cell):
    cell.clock.later(0.05, cell.signals.confirmed.set)
    cell.preparation.go_home()
    assert cell.driver.at == pytest.approx(HOME) and cell.steering.engaged
    cell.clock.sleep(0.1)
    assert cell.driver.did[-1] == "move" and cell.driver.at == pytest.approx(HOME)
    assert np.abs(np.array(cell.driver.weighed)).max(axis=1).min() > 1.0
    assert cell.record == []


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda c: c.signals.on_estop(True), "/safety/estop says true"),
        (lambda c: setattr(c, "beats", False), "no heartbeat of the safety node"),
        (lambda c: setattr(c.driver, "hears", False), "no state of the robot"),
        (lambda c: setattr(c.driver, "mode", "releasing"), "not under control: releasing"),
        (lambda c: c.steering.engaged or c.pelvis.__setitem__(0, c.pelvis[0] - 0.05),
         "the pelvis moved by 0.050 m"),
        (lambda c: c.driver.events.append(("driver_lost", "it ended")), "it ended"),
        (lambda c: c.driver.events.append(("command_refused", "too far")), "too far"),
    ],
    ids=["estop", "heartbeat", "state", "mode", "pelvis", "driver", "refused"],
)
def test_what_ends_the_way_home(cell, change, why):
    cell.raw["confirm_before_home"] = False
    cell.raw["home_rad_s"] = 0.2
    when_moving(cell, lambda: change(cell))
    with pytest.raises(BenchError, match=why):
        cell.preparation.go_home()
    assert np.abs(cell.driver.at - HOME).max() > 0.02 and not cell.steering.engaged


def test_when_the_pelvis_gives_way_the_way_home_is_looked_for_anew_from_there(cell):
    cell.raw["confirm_before_home"] = False
    when_moving(cell, lambda: cell.pelvis.__setitem__(0, -0.05))
    cell.preparation.go_home()
    assert cell.driver.at == pytest.approx(HOME)
    (kind, why), = cell.record
    assert kind == "way_home" and "the pelvis moved by 0.050 m" in why
    assert cell.driver.did.count("ready") == 2 and "hold" in cell.driver.did


def test_what_is_said_while_arms_are_taken_over_is_on_record(cell):
    cell.raw["confirm_before_home"] = False
    plain = cell.driver.ready

    def ready(heed, torque):
        cell.driver.events.append(("robot_gap", "no rt/lowstate for 60 ms"))
        plain(heed, torque)

    cell.driver.ready = ready
    cell.preparation.go_home()
    assert cell.record == [("robot_gap", "no rt/lowstate for 60 ms")]


def test_a_way_through_the_table_is_not_gone(cell):
    cell.raw["confirm_before_home"] = False
    cell.driver.at = HOME.copy()
    cell.driver.at[[6, 13]] += 1.2
    cell.pelvis[2] = -0.05
    cell.raw["table"]["edge_m"] = 0.1
    start = cell.driver.at.copy()
    with pytest.raises(BenchError, match="cannot go straight home: .* nor by way of forearms up"):
        cell.preparation.go_home()
    assert np.array_equal(cell.driver.at, start), "it was held there meanwhile"


def test_hands_that_hang_behind_the_table_s_edge_are_drawn_back_first(cell):
    cell.raw["confirm_before_home"] = False
    cell.driver.at = HOME.copy()
    cell.driver.at[[6, 13]] += 1.2
    cell.pelvis[2] = -0.1
    went, plain = [], cell.driver.move

    def move(seq, q, tau, due_ns):
        went.append(q)
        plain(seq, q, tau, due_ns)

    cell.driver.move = move
    start = cell.driver.at.copy()
    cell.preparation.go_home()
    assert cell.driver.at == pytest.approx(HOME)
    (kind, why), = cell.record
    assert kind == "way_home" and "to table" in why
    clearance = BodyClearance()
    clearance.set_table(cell.pelvis, cell.raw["table"])
    straight = clearance.blocked(start, HOME[None], LEAST)
    assert straight is not None and "table" in straight.between
    assert clearance.blocked(start, np.array(went), LEAST) is None
