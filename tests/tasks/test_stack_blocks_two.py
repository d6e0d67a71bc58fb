"""What looks like a stack of red on green and is not, each with its twin that is."""

from __future__ import annotations

import numpy as np
import pytest
from staging import Stage, call, fails, succeeds

SIZE = 0.045
LOW, HIGH = SIZE / 2, 1.5 * SIZE
MIDDLE = (0.45, 0.0)
DOWN = [0.0, 1.0, 0.0, 0.0]


@pytest.fixture
def stage(world) -> Stage:
    return Stage(world, "stack_blocks_two")


def stack(stage: Stage, lower="green", upper="red", at=MIDDLE, shift=(0.0, 0.0)) -> Stage:
    stage.put(f"{lower}_block", [*at, LOW])
    return stage.put(f"{upper}_block", [at[0] + shift[0], at[1] + shift[1], HIGH])


def test_the_stack_itself(stage):
    succeeds(stack(stage).hold(1.0))


def test_nothing_done(stage):
    fails(stage.hold(1.0), "red on green", "in the middle")


def test_green_on_red(stage):
    fails(stack(stage, "red", "green").hold(1.0), "red on green", "green on the table")


def test_side_by_side(stage):
    stage.put("green_block", [*MIDDLE, LOW]).put("red_block", [0.45, 0.047, LOW])
    fails(stage.hold(1.0), "red on green", "red carried by green", "red off the table")


@pytest.mark.parametrize(("shift", "good"), [(0.010, True), (0.018, False)])
def test_overhanging(stage, shift, good):
    stack(stage, shift=(0.0, shift)).hold(1.0)
    assert stage.view.supported_by("red_block", "green_block")
    succeeds(stage) if good else fails(stage, "red on green")


@pytest.mark.parametrize(("y", "good"), [(0.04, True), (0.06, False), (-0.3, False)])
def test_away_from_the_middle(stage, y, good):
    stack(stage, at=(0.45, y)).hold(1.0)
    succeeds(stage) if good else fails(stage, "in the middle")


def test_still_held(stage):
    stage.put("green_block", [*MIDDLE, LOW]).put("red_block", [0.45, -0.25, LOW]).hold(0.1)
    stage.run(call("grasp", "right", object="red_block"))
    on = [*MIDDLE, HIGH - 0.002]
    stage.run(call("place", "right", object="red_block", pose=on, release=False)).hold(1.0)
    assert stage.unmet() == ["let go"]
    fails(stage, "let go")
    succeeds(stage.run(call("open", "right")).hold(1.0))


def test_held_just_above(stage):
    stage.put("green_block", [*MIDDLE, LOW]).put("red_block", [0.45, -0.25, LOW]).hold(0.1)
    stage.run(call("grasp", "right", object="red_block"))
    above = [*MIDDLE, HIGH + 0.003]
    stage.run(call("place", "right", object="red_block", pose=above, release=False)).hold(1.0)
    fails(stage, "red carried by green", "let go")


@pytest.mark.parametrize(("clear", "good"), [(0.01, True), (-0.003, False)])
def test_a_fist_on_top_of_the_stack(stage, clear, good):
    stage.put("green_block", [*MIDDLE, LOW]).hold(0.1)
    near, end = ([*MIDDLE, 2 * SIZE + z, *DOWN] for z in (0.03, clear))
    stage.run(call("move_to", "right", pose=near, opening_m=0.0))
    stage.put("red_block", [*MIDDLE, HIGH])
    stage.run(call("move_to", "right", pose=end)).hold(1.0)
    succeeds(stage) if good else fails(stage, "let go")


def test_passing_over(stage):
    stage.put("green_block", [*MIDDLE, LOW]).put("red_block", [0.45, -0.25, LOW]).hold(0.1)
    stage.run(call("grasp", "right", object="red_block"))
    heights = []

    def look() -> bool:
        offset = stage.view.position("red_block") - stage.view.position("green_block")
        heights.append(np.linalg.norm(offset[:2]) < SIZE / 3)
        return False

    for y in (0.0, 0.05):
        pose = [0.45, y, HIGH + 0.004]
        place = call("place", "right", object="red_block", pose=pose, release=False)
        stage.run(place, until=look)
    assert any(heights)
    fails(stage.hold(0.5), "red on green", "red carried by green", "let go")


@pytest.mark.parametrize(("height", "good"), [(0.002, True), (0.15, False)])
def test_red_flies_over_green(stage, height, good):
    stack(stage).put("red_block", [*MIDDLE, HIGH + height])
    if not good:
        stage.throw("red_block", [0.0, 0.7, 0.0])
    stage.hold(1.5)
    succeeds(stage) if good else fails(stage, "red on green")


def test_falling_onto_green(stage):
    stack(stage).put("red_block", [*MIDDLE, HIGH + 0.08])
    fails(stage.hold(0.1), "red on green")
    assert stage.verdict.stages["red on green"] is False
    succeeds(stage.hold(1.5))


@pytest.mark.parametrize(("duration_s", "good"), [(0.4, False), (0.6, True)])
def test_only_for_a_moment(stage, duration_s, good):
    stack(stage).hold(duration_s)
    stage.throw("red_block", [0.0, 1.5, 0.0]).hold(1.0)
    succeeds(stage) if good else fails(stage, "red on green")


@pytest.mark.parametrize("turn", [np.pi / 2, np.pi])
def test_another_face_up_looks_the_same(stage, turn):
    stack(stage)
    quat = [np.cos(turn / 2), 0.0, np.sin(turn / 2), 0.0]
    succeeds(stage.put("red_block", [*MIDDLE, HIGH], quat=quat).hold(1.0))


def test_both_held_in_the_air_as_a_stack(stage):
    stage.put("green_block", [0.45, -0.12, LOW]).hold(0.1)
    stage.run(call("grasp", "right", object="green_block"))
    lifted = [*MIDDLE, 0.2]
    stage.run(call("place", "right", object="green_block", pose=lifted, release=False))
    x, y, z = stage.view.position("green_block")
    stage.put("red_block", [x, y, z + SIZE]).hold(0.2)
    fails(stage.hold(1.0), "green on the table", "let go")
