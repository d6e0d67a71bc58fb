"""The time of a cell whose robots' own passes slower than the wall's."""

from types import SimpleNamespace

import pytest

from hardware import robot_time as module
from hardware.robot_time import EARLY_NS, REPORT_NS, RobotTime

MS = 1_000_000


@pytest.fixture
def wall(monkeypatch):
    """The wall's time, ns."""
    made = SimpleNamespace(ns=5_000 * MS)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic_ns=lambda: made.ns))
    return made


def go(cell, wall, rates, periods, before=None):
    """Each wall period of 4 ms each robot's time passes at its rate, and it says so."""
    own = dict(before or {"left": 100 * MS, "right": 7_000 * MS})
    for _ in range(periods):
        wall.ns += 4 * MS
        for name, rate in rates.items():
            own[name] += round(4 * MS * rate)
            cell.hear(name, own[name], wall.ns)
        cell.now_ns()
    return own


def test_it_passes_as_that_of_the_slower_robot(wall):
    cell = RobotTime(("left", "right"), 1.0)
    own = go(cell, wall, {"left": 0.5, "right": 0.5}, 1)
    begun = cell.now_ns()
    own = go(cell, wall, {"left": 0.5, "right": 0.25}, 100, own)
    assert cell.now_ns() - begun == pytest.approx(100 * MS, abs=REPORT_NS)
    # Each is told when that is in its own time; who is ahead gets no more time than the other.
    due = cell.now_ns() + 20 * MS
    assert cell.own_ns("right", due) - own["right"] == pytest.approx(20 * MS, abs=1)
    assert cell.own_ns("left", due) - own["left"] == pytest.approx(20 * MS - EARLY_NS, abs=MS)


def test_between_what_they_say_it_passes_as_the_walls_but_not_for_long(wall):
    cell = RobotTime(("left",), 1.0)
    go(cell, wall, {"left": 1.0}, 2)
    begun = cell.now_ns()
    wall.ns += 2 * MS
    assert cell.now_ns() - begun == 2 * MS
    wall.ns += 500 * MS
    assert cell.now_ns() - begun == REPORT_NS, "it has been said nothing of what follows"


def test_while_one_says_nothing_it_passes_as_the_walls_and_never_goes_back(wall):
    cell = RobotTime(("left", "right"), 1.0)
    begun = cell.now_ns()
    wall.ns += 300 * MS
    assert cell.now_ns() - begun == 300 * MS, "nobody has spoken yet"
    own = go(cell, wall, {"left": 1.0, "right": 1.0}, 5)
    begun = cell.now_ns()
    wall.ns += 1_500 * MS
    assert cell.now_ns() - begun == 1_500 * MS, "both have fallen silent"
    begun = cell.now_ns()
    own["left"] = 0  # it was started anew
    go(cell, wall, {"left": 1.0, "right": 1.0}, 25, own)
    assert cell.now_ns() - begun == pytest.approx(100 * MS, abs=2 * REPORT_NS)
