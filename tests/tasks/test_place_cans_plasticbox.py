"""What looks like two cans in the box and is not; each situation has its twin that is."""

from __future__ import annotations

import numpy as np
import pytest
from staging import Stage, call, fails, fails_with, succeeds

from bench_tasks.view import compose

TASK = "place_cans_plasticbox"
CANS = {"red_can": "left", "green_can": "right"}
FLOOR = 0.008


@pytest.fixture(scope="module")
def carried(world):
    """Each arm has had its can in the air and let it fall; both are home."""
    stage = Stage(world, TASK)
    for can, arm in CANS.items():
        stage.lift_once(arm, can, grasp="across_y")
    return stage.hold(0.2).branch()


@pytest.fixture
def stage(carried) -> Stage:
    return carried()


def box_point(stage: Stage, x: float, y: float, can: str, up: float = 0.0) -> list[float]:
    half = stage.scene.object("box").half_size_m[2]
    z = FLOOR - half + stage.scene.object(can).half_size_m[2] + up
    return compose(stage.view.pose("box"), np.array([x, y, z, 1, 0, 0, 0]))[:3].tolist()


def fill(stage: Stage, *cans: str) -> Stage:
    for can in cans:
        stage.put(can, box_point(stage, 0.0, 0.06 if can == "red_can" else -0.06, can))
    return stage


def test_both_in_the_box(stage):
    succeeds(fill(stage, *CANS).hold(1.0))


@pytest.mark.parametrize("can", CANS)
def test_only_one_in_the_box(stage, can):
    other = next(name for name in CANS if name != can)
    fails(fill(stage, can).hold(1.0), f"{other} in the box")


def test_one_beside_the_box(stage):
    fill(stage, "green_can")
    stage.put("red_can", box_point(stage, 0.11, 0.0, "red_can", up=-FLOOR)).hold(1.0)
    fails(stage, "red_can in the box")


def test_one_lying_on_the_rim(stage):
    fill(stage, "green_can")
    on = box_point(stage, 0.0, 0.07, "red_can", up=0.08)
    stage.put("red_can", on, quat=[np.sqrt(0.5), 0.0, np.sqrt(0.5), 0.0]).hold(1.5)
    fails(stage, "red_can in the box")


def test_one_upside_down_is_not_upright(stage):
    fill(stage, *CANS).put(
        "red_can", box_point(stage, 0.0, 0.06, "red_can"), quat=[0.0, 1.0, 0.0, 0.0]
    ).hold(1.0)
    fails(stage, "red_can in the box")


def test_one_is_still_held(stage):
    fill(stage, "red_can")
    stage.put("green_can", [0.45, -0.3, 0.05]).hold(0.1)
    stage.run(call("grasp", "right", object="green_can", grasp="across_y"))
    x, y, z = box_point(stage, 0.0, -0.06, "green_can")
    place = call(
        "place", "right", object="green_can", pose=[x, y, z - 0.002, 1, 0, 0, 0], release=False
    )
    stage.run(place).hold(1.0)
    fails(stage, "let go")
    succeeds(stage.run(call("open", "right")).hold(1.0))


def test_one_flies_out(stage):
    fill(stage, *CANS).throw("red_can", [0.0, 0.0, 2.0]).hold(0.3)
    fails(stage)


def test_filled_by_the_expert(world):
    succeeds(Stage(world, TASK, 1).expert())


def test_put_there_by_nobody(world):
    stage = fill(Stage(world, TASK), *CANS).hold(1.0)
    assert stage.unmet() == []
    fails(stage, *(f"{can} carried by the {arm} arm before" for can, arm in CANS.items()))


def test_each_brought_by_the_other_arm(world):
    stage = Stage(world, TASK)
    reds, greens = (stage.view.position(can).copy() for can in CANS)
    stage.put("red_can", greens).put("green_can", reds).hold(0.1)
    stage.lift_once("right", "red_can", grasp="across_y")
    fill(stage, *CANS).hold(1.0)
    assert stage.unmet() == []
    fails_with(stage, "invariant broken: red_can not taken by the right arm")


@pytest.mark.parametrize(("shift", "good"), [(0.03, True), (0.09, False)])
def test_the_box_is_brought_to_the_cans(stage, shift, good):
    stage.put("box", stage.view.position("box") + [0.0, shift, 0.0]).hold(0.02)
    fill(stage, *CANS).hold(1.0)
    succeeds(stage) if good else fails(stage, "box in its place")
