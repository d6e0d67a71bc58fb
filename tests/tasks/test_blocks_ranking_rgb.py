"""What looks like three ranked blocks and is not, each with its twin that is."""

from __future__ import annotations

import numpy as np
import pytest
from staging import Stage, call, fails, succeeds

COLORS = ("red", "green", "blue")
RIGHT = {"red": 0.09, "green": 0.0, "blue": -0.09}
X, Z = 0.45, 0.02


@pytest.fixture
def stage(world) -> Stage:
    return Stage(world, "blocks_ranking_rgb")


def line_up(stage: Stage, y=RIGHT, x=None, z=None) -> Stage:
    for color in COLORS:
        position = [(x or {}).get(color, X), y[color], (z or {}).get(color, Z)]
        stage.put(f"{color}_block", position)
    return stage


def test_the_row_itself(stage):
    succeeds(line_up(stage).hold(1.0))


@pytest.mark.parametrize("order", ["rbg", "grb", "gbr", "brg", "bgr"])
def test_wrong_order(stage, order):
    by_letter = {color[0]: color for color in COLORS}
    y = {by_letter[letter]: RIGHT[c] for letter, c in zip(order, COLORS, strict=True)}
    fails(line_up(stage, y).hold(1.0), "ordered")


def test_one_block_on_top_of_another(stage):
    # Its y is still between those of its neighbours, so order alone would be satisfied.
    y = {"red": 0.05, "green": 0.005, "blue": -0.005}
    on_top = line_up(stage, y, z={"green": Z + 0.04}).hold(1.0)
    assert stage.view.supported_by("green_block", "blue_block")
    fails(on_top, "standing on the table")


@pytest.mark.parametrize(("x", "good"), [(0.48, True), (0.50, False)])
def test_crooked_row(stage, x, good):
    line_up(stage, x={"green": x}).hold(1.0)
    succeeds(stage) if good else fails(stage, "in a row")


@pytest.mark.parametrize(("gap", "good"), [(0.043, True), (0.13, True), (0.15, False)])
def test_gaps(stage, gap, good):
    line_up(stage, {"red": gap, "green": 0.0, "blue": -gap}).hold(1.0)
    succeeds(stage) if good else fails(stage, "in a row")


@pytest.mark.parametrize("turn", [np.pi, np.pi / 2, -np.pi / 2])
def test_a_block_on_another_of_its_faces_looks_the_same(stage, turn):
    line_up(stage)
    stage.put("red_block", [X, 0.09, Z], quat=[np.cos(turn / 2), np.sin(turn / 2), 0.0, 0.0])
    succeeds(stage.hold(1.0))


def test_last_block_still_in_the_gripper(stage):
    line_up(stage)
    stage.put("blue_block", [X, -0.25, Z]).hold(0.1)
    place = call("place", "right", object="blue_block", pose=[X, -0.09, Z - 0.002], release=False)
    stage.run(call("grasp", "right", object="blue_block"), place).hold(1.0)
    assert stage.view.grasped("blue_block", "right")
    fails(stage, "let go")
    succeeds(stage.run(call("open", "right")).hold(1.0))


def test_a_fist_rests_on_a_block(stage):
    stage.put("blue_block", [X, -0.09, Z])
    above, on = ([X, -0.09, z, 0.0, 1.0, 0.0, 0.0] for z in (0.12, 0.037))
    stage.run(*(call("move_to", "right", pose=pose, opening_m=0.0) for pose in (above, on)))
    for color in ("red", "green"):
        stage.put(f"{color}_block", [X, RIGHT[color], Z])
    fails(stage.hold(1.0), "let go")
    # Both fingers press on it, which is not yet a grasp.
    assert all(stage.view.touching("blue_block", f"right_finger{k}", 0.5) for k in (1, 2))
    assert not stage.view.grasped("blue_block", "right")
    succeeds(stage.run(call("move_to", "right", pose=above)).hold(1.0))


@pytest.mark.parametrize(("speed", "good"), [(0.4, True), (1.4, False)])
def test_a_block_slides_through_its_place(stage, speed, good):
    line_up(stage, {**RIGHT, "blue": -0.06}).hold(0.1)
    stage.throw("blue_block", [0.0, -speed, 0.0])
    met = []
    for _ in range(60):
        stage.hold(0.02)
        met.append(not stage.unmet())
    assert any(met)
    succeeds(stage) if good else fails(stage, "in a row")


def test_a_block_falls_into_its_place(stage):
    line_up(stage, z={"blue": 0.2})
    fails(stage.hold(0.1), "standing on the table")
    fails(stage.hold(0.4))  # just landed
    succeeds(stage.hold(1.0))


@pytest.mark.parametrize(("duration_s", "good"), [(0.4, False), (0.6, True)])
def test_right_only_for_a_moment_then_knocked_away(stage, duration_s, good):
    line_up(stage).hold(duration_s)
    stage.throw("green_block", [1.0, 0.0, 0.0]).hold(1.0)
    succeeds(stage) if good else fails(stage, "in a row")


def test_a_block_on_the_floor(stage):
    line_up(stage)
    for color in COLORS:
        stage.put(f"{color}_block", [1.2, RIGHT[color], -0.73])
    fails(stage.hold(1.0), "standing on the table")


def test_a_block_spinning_in_its_place(stage):
    line_up(stage)
    for _ in range(50):
        stage.throw("green_block", angular=[0.0, 0.0, 3.0]).hold(0.02)
    assert stage.unmet() == []
    fails(stage, "at rest")
    succeeds(stage.hold(1.5))
