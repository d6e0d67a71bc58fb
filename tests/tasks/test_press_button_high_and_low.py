"""Which presses count, in which order, and that the expert makes them."""

from __future__ import annotations

import pytest
from staging import Played, fails, fails_with, succeeds

from bench_tasks import runner
from bench_tasks.config import RunConfig

NAME = "press_button_high_and_low"
LOW, HIGH = ("low_button", "right_hand", 8.0), ("high_button", "left_hand", 8.0)
NOT_LOW, NOT_HIGH = "low button pressed before", "high button pressed before"
WRONG_FIRST = "invariant broken: the low button first"


@pytest.fixture(scope="module")
def press(world):
    """A function that lets these touch for so many periods, one after the other, then nothing.

    What touches at the same time is given as a list.
    """
    world.reset(NAME, 0)

    def pressed(*presses, periods: int = 10):
        played = Played(world, NAME)
        for each in presses:
            played.add(periods, each if isinstance(each, list) else [each])
        return played.add(30)

    return pressed


def test_the_low_one_then_the_high_one_counts_with_either_hand(press):
    succeeds(press(LOW, HIGH))
    succeeds(press(("low_button", "left_hand", 4.0), HIGH))


def test_nothing_or_one_alone_is_not_both(press):
    fails(press(), NOT_LOW, NOT_HIGH)
    fails(press(LOW), NOT_HIGH)


def test_the_wrong_one_first_is_wrong_whatever_comes_after(press):
    for presses in ((HIGH,), (HIGH, LOW), (HIGH, LOW, HIGH), (HIGH, [HIGH, LOW], LOW, HIGH)):
        fails_with(press(*presses), WRONG_FIRST)


def test_after_the_low_one_neither_is_wrong(press):
    succeeds(press(LOW, HIGH, LOW, HIGH))


def test_of_both_at_once_none_is_the_first(press):
    fails_with(press([HIGH, LOW], LOW, HIGH), WRONG_FIRST)
    fails(press(LOW, [LOW, HIGH]), NOT_HIGH)


def test_brushing_by_is_not_pressing(world, press):
    fails_with(press(("low_button", "right_hand", 1.0), HIGH), WRONG_FIRST)
    brush = Played(world, NAME).add(4, [HIGH]).add(10).add(4, [HIGH]).add(10, [LOW])
    succeeds(brush.add(10, [HIGH]).add(30))
    fails(press(LOW, HIGH, periods=3), NOT_LOW, NOT_HIGH)
    fails(press(*[LOW, ("table", "right_hand", 8.0)] * 5, HIGH, periods=4), NOT_LOW)


def test_an_arm_does_not_press(press):
    fails(press(("low_button", "right_arm", 8.0)), NOT_LOW)


def test_the_post_is_not_the_button(press):
    fails(press(("low_button_post", "right_hand", 8.0)), NOT_LOW, NOT_HIGH)
    fails(press(LOW, ("high_button_post", "left_hand", 8.0)), NOT_HIGH)


def test_hands_must_come_off(world, press):
    succeeds(press(LOW, *[HIGH] * 4))
    fails(Played(world, NAME).add(10, [LOW]).add(100, [HIGH]), "hands off")


def test_the_expert_presses_both_and_the_recording_says_so_too(world, tmp_path):
    config = RunConfig((NAME,), seed=1, out=str(tmp_path / "out"), cameras=())
    (episode,) = runner.run(config, world).episodes
    assert episode.success and episode.agrees is True, episode.cause
