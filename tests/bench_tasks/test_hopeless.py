"""A run is given up when the robot does not get ready, again and again, for the same cause."""

from types import SimpleNamespace

import pytest

from bench_tasks.hopeless import SetUps, undone

BLOCKED = "setup: the arms cannot go home: left wrist to table: 0.0{} m. Move them by hand"


def told(*causes):
    """After which of them the run is given up."""
    set_ups = SetUps()
    return [set_ups.count(SimpleNamespace(cause=cause)) for cause in causes]


def test_after_the_third_of_one_cause_whatever_its_numbers():
    assert told(*(BLOCKED.format(k) for k in range(3))) == [False, False, True]


def test_whatever_the_sign_and_size_of_its_numbers():
    walls = (f"setup: {m} m to the table" for m in (-1.2e-05, 0.003, -0.3))
    assert told(*walls) == [False, False, True]


@pytest.mark.parametrize("between", ["", "setup: no camera", "plan limit: 3 plans"])
def test_not_when_anything_else_comes_between(between):
    causes = [BLOCKED.format(1)] * 2
    assert told(*causes, between, *causes) == [False] * 5


def test_episodes_that_end_alike_for_another_cause_are_results():
    assert not any(told(*["world error: the pot is not seen"] * 5))


def test_what_was_not_begun_is_said_as_arguments_that_launch_it():
    left = [("lift_pot", 3), ("lift_pot", 4), ("hand_to_hand", 0), ("stack_bowls", 0)]
    assert undone(left) == (
        "4 episodes were not begun; put that right, then go on with "
        "tasks:=lift_pot seed:=3 episodes:=2; and tasks:=hand_to_hand,stack_bowls seed:=0 "
        "episodes:=1"
    )
    assert undone([]) == "No other episode is left"
    line = SetUps.why(SimpleNamespace(cause=BLOCKED.format(1)), left[1:2])
    assert line == (
        "3 episodes in a row could not be set up: the arms cannot go home: left wrist to table: "
        "0.01 m. Move them by hand. 1 episode was not begun; put that right, then go on with "
        "tasks:=lift_pot seed:=4 episodes:=1"
    )
