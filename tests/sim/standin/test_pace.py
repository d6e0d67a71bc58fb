"""One time for the parts of a simulated cell."""

import pytest

from sim.standin import pace as module
from sim.standin.pace import SCENE, Pace
from tests.hardware.clock import Clock


@pytest.fixture
def file(tmp_path):
    path = str(tmp_path / "pace")
    Pace.begin(path)
    return path


@pytest.fixture
def clock(monkeypatch):
    """The wall's time, as they see it."""
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


@pytest.fixture
def waits(clock):
    """How long (s) it takes a robot to begin a cycle."""
    def measured(part, own_s):
        begun = clock.monotonic()
        part.wait(own_s)
        return clock.monotonic() - begun

    return measured


def test_nobody_waits_for_who_is_not_there(file, waits):
    assert waits(Pace(), 3.0) == 0.0
    assert waits(Pace(file, 0), 3.0) == 0.0
    assert Pace(file, 1).others_s == 0.0, "the first one's time is that of all"


def test_a_robot_waits_for_a_slower_one_until_it_has_come(
    file, waits, clock, monkeypatch
):
    monkeypatch.setattr(module, "LONGEST_S", 10.0)
    left, right = Pace(file, 0), Pace(file, 1)
    left.wait(100.0)
    right.wait(5.0)  # each has begun at a time of its own
    assert waits(left, 100.001) == 0.0
    clock.later(0.3, lambda: right.tell(0.099))
    assert waits(left, 100.1) == pytest.approx(0.3, abs=0.001)
    monkeypatch.setattr(module, "LONGEST_S", 0.1)
    assert waits(left, 100.2) == pytest.approx(0.1, abs=0.001), "not for ever"


def test_a_scene_may_be_later_by_some_periods_and_is_not_waited_for_when_it_says_so(
    file, waits, monkeypatch
):
    left, scene = Pace(file, 0), Pace(file, SCENE)
    left.wait(0.0)
    scene.tell(0.0)
    monkeypatch.setattr(module, "LONGEST_S", 0.1)
    assert waits(left, 0.05) == 0.0
    assert waits(left, 0.08) == pytest.approx(0.1, abs=0.001)
    scene.tell(float("inf"))
    assert waits(left, 1.0) == 0.0
    assert scene.others_s == 1.0
