"""What looks like two cans in the box and is not; each situation has its twin that is."""

from __future__ import annotations

import numpy as np
import pytest
from staging import Stage, call, fails, succeeds

from bench_tasks.view import compose

CANS = ("red_can", "green_can")
FLOOR = 0.008


@pytest.fixture
def stage(world) -> Stage:
    return Stage(world, "place_cans_plasticbox")


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
    (other,) = set(CANS) - {can}
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
