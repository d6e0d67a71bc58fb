"""What looks like three nested bowls and is not; each situation has its twin that is."""

from __future__ import annotations

import itertools

import pytest
from staging import Stage, call, fails, succeeds

X, Y = 0.45, 0.0
HALF, RISE = 0.03, 0.37 * 0.06
BOWLS = ("red_bowl", "green_bowl", "blue_bowl")
UPSIDE_DOWN = [0.0, 1.0, 0.0, 0.0]


@pytest.fixture
def stage(world) -> Stage:
    return Stage(world, "stack_bowls_three")


def nest(stage: Stage, order=BOWLS, at=(X, Y), rise=RISE, shift=(0.0, 0.0, 0.0)) -> Stage:
    """From the bottom up, each moved aside along y by its `shift`."""
    for k, (bowl, y) in enumerate(zip(order, shift, strict=False)):
        stage.put(bowl, [at[0], at[1] + y, HALF + k * rise])
    return stage


@pytest.mark.parametrize("order", list(itertools.permutations(BOWLS)), ids="-".join)
def test_nested_in_any_order(stage, order):
    succeeds(nest(stage, order).hold(1.0))


def test_dropped_a_little_off_the_axis_it_slides_home(stage):
    nest(stage, BOWLS[:2]).put("blue_bowl", [X, Y + 0.008, HALF + 2 * RISE + 0.02])
    succeeds(stage.hold(1.5))


def test_only_two_nested(stage):
    fails(nest(stage, BOWLS[:2]).hold(1.0), "nested", "carried by the bowl below")


def test_two_nested_and_one_beside(stage):
    nest(stage, BOWLS[:2]).put("blue_bowl", [X, Y - 0.15, HALF])
    fails(stage.hold(1.0), "nested", "carried by the bowl below")


def test_the_top_one_upside_down(stage):
    nest(stage, BOWLS[:2]).put("blue_bowl", [X, Y, HALF + RISE + 0.06], quat=UPSIDE_DOWN)
    stage.hold(1.0)
    assert stage.view.supported_by("blue_bowl", "green_bowl")
    fails(stage, "nested")


def test_all_upside_down(stage):
    for k, bowl in enumerate(BOWLS):
        stage.put(bowl, [X, Y, HALF + k * RISE], quat=UPSIDE_DOWN)
    stage.hold(1.5)
    assert stage.view.supported_by("blue_bowl", "green_bowl")
    fails(stage, "nested", "lowest upright on the table")


def test_the_top_one_stands_askew_on_the_rim(stage):
    nest(stage, BOWLS[:2]).put("blue_bowl", [X, Y + 0.05, HALF + RISE + 0.062]).hold(1.5)
    assert stage.view.touching("blue_bowl", "green_bowl")
    fails(stage, "nested")


def test_falling_into_place(stage):
    nest(stage, rise=RISE + 0.008)
    fails(stage.hold(0.02), "nested")
    succeeds(stage.hold(1.5))


@pytest.mark.parametrize(("y", "good"), [(0.05, True), (0.08, False)])
def test_away_from_the_middle(stage, y, good):
    nest(stage, at=(X, Y + y)).hold(1.0)
    succeeds(stage) if good else fails(stage, "in the middle")


def test_the_last_one_still_held(stage):
    nest(stage, BOWLS[:2]).put("blue_bowl", [X, -0.25, HALF]).hold(0.1)
    there = [X, Y, HALF + 2 * RISE - 0.001]
    stage.run(
        call("grasp", "right", object="blue_bowl", grasp="right_rim"),
        call("place", "right", object="blue_bowl", pose=there, release=False),
    ).hold(1.0)
    assert stage.view.grasped("blue_bowl", "right")
    fails(stage, "let go")
    succeeds(stage.run(call("open", "right")).hold(1.0))


@pytest.mark.parametrize(("duration_s", "good"), [(0.4, False), (0.6, True)])
def test_only_for_a_moment(stage, duration_s, good):
    nest(stage).hold(duration_s)
    stage.throw("blue_bowl", [0.0, 1.0, 2.0]).hold(1.0)
    succeeds(stage) if good else fails(stage, "nested")
