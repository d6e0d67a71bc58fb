"""What looks like a cross and is not; each situation has its twin that is."""

from __future__ import annotations

import pytest
from staging import Stage, call, fails, succeeds

X, Y, H, D = 0.46, 0.0, 0.018, 0.085
SIDES = ((0.0, D), (0.0, -D), (D, 0.0), (-D, 0.0))


@pytest.fixture
def stage(world) -> Stage:
    return Stage(world, "blocks_cross_shape")


def cross(stage: Stage, center="red_block", sides=SIDES) -> Stage:
    blue = [f"blue_block_{k}" for k in (1, 2, 3, 4)]
    around = [name for name in ("red_block", *blue) if name != center]
    stage.put(center, [X, Y, H])
    for name, (dx, dy) in zip(around, sides, strict=True):
        stage.put(name, [X + dx, Y + dy, H])
    return stage


def test_the_cross_itself(stage):
    succeeds(cross(stage).hold(1.0))


def test_the_red_one_is_not_in_the_middle(stage):
    fails(cross(stage, center="blue_block_1").hold(1.0), "a cross")


@pytest.mark.parametrize(("shift", "good"), [(0.012, True), (0.03, False)])
def test_one_out_of_line(stage, shift, good):
    cross(stage, sides=((shift, D), *SIDES[1:])).hold(1.0)
    succeeds(stage) if good else fails(stage, "a cross")


def test_two_on_one_side_and_none_on_another(stage):
    fails(cross(stage, sides=((0.0, D), (0.0, D + 0.045), *SIDES[2:])).hold(1.0), "a cross")


@pytest.mark.parametrize(("reach", "good"), [(0.11, True), (0.14, False)])
def test_too_wide(stage, reach, good):
    cross(stage, sides=((0.0, reach), *SIDES[1:])).hold(1.0)
    succeeds(stage) if good else fails(stage, "a cross")


@pytest.mark.parametrize(("short", "good"), [(0.085, True), (0.065, False)])
def test_arms_of_different_length(stage, short, good):
    """Each arm alone is of a length that a cross may have."""
    cross(stage, sides=((0.0, 0.105), (0.0, -short), *SIDES[2:])).hold(1.0)
    succeeds(stage) if good else fails(stage, "a cross")


def test_a_corner_shape(stage):
    fails(cross(stage, sides=((0.0, D), (D, D), (D, 0.0), (-D, 0.0))).hold(1.0), "a cross")


def test_the_last_one_is_still_held(stage):
    cross(stage).put("blue_block_2", [X, -0.3, H]).hold(0.1)
    stage.run(call("grasp", "right", object="blue_block_2", grasp="across_x"))
    there = [X, -D, H - 0.001]
    stage.run(call("place", "right", object="blue_block_2", pose=there, release=False)).hold(1.0)
    fails(stage, "let go")
    succeeds(stage.run(call("open", "right")).hold(1.0))
