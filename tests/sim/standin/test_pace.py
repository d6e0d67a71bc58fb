"""One time for the parts of a simulated cell."""

import threading
import time

import pytest

from sim.standin import pace as module
from sim.standin.pace import SCENE, Pace


@pytest.fixture
def file(tmp_path):
    path = str(tmp_path / "pace")
    Pace.begin(path)
    return path


def waits(part, own_s):
    """How long (s) it takes a robot to begin a cycle."""
    begun = time.monotonic()
    part.wait(own_s)
    return time.monotonic() - begun


def test_nobody_waits_for_who_is_not_there(file):
    assert waits(Pace(), 3.0) < 0.1
    assert waits(Pace(file, 0), 3.0) < 0.1
    assert Pace(file, 1).others_s == 0.0, "the first one's time is that of all"


def test_a_robot_waits_for_a_slower_one_until_it_has_come(file, monkeypatch):
    monkeypatch.setattr(module, "LONGEST_S", 10.0)
    left, right = Pace(file, 0), Pace(file, 1)
    left.wait(100.0)
    right.wait(5.0)  # each has begun at a time of its own
    assert waits(left, 100.001) < 0.1
    threading.Timer(0.3, right.tell, [0.099]).start()
    assert waits(left, 100.1) > 0.25
    monkeypatch.setattr(module, "LONGEST_S", 0.1)
    assert 0.1 <= waits(left, 100.2) < 1.0, "not for ever"


def test_a_scene_may_be_later_by_some_periods_and_is_not_waited_for_when_it_says_so(
    file, monkeypatch
):
    left, scene = Pace(file, 0), Pace(file, SCENE)
    left.wait(0.0)
    scene.tell(0.0)
    monkeypatch.setattr(module, "LONGEST_S", 0.1)
    assert waits(left, 0.05) < 0.05 and waits(left, 0.08) >= 0.1
    scene.tell(float("inf"))
    assert waits(left, 1.0) < 0.05
    assert scene.others_s == 1.0
