"""What looks like three bottles in the bin and is not; each situation has its twin that is."""

from __future__ import annotations

import numpy as np
import pytest
from staging import Stage, call, fails, succeeds

from bench_tasks.tasks.put_bottles_dustbin import BOTTLES, FLOOR_M, SLOTS
from bench_tasks.view import compose

LYING = (np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0)


@pytest.fixture
def stage(world) -> Stage:
    return Stage(world, "put_bottles_dustbin")


def in_bin(stage: Stage, x: float, y: float, up: float = 0.0) -> np.ndarray:
    """Where a bottle standing on the bin's floor has its middle."""
    half = stage.scene.object(BOTTLES[0]).half_size_m[2]
    z = FLOOR_M + half - stage.scene.object("dustbin").half_size_m[2] + up
    return compose(stage.view.pose("dustbin"), np.array([x, y, z, 1, 0, 0, 0]))[:3]


def fill(stage: Stage, *bottles: str) -> Stage:
    for name in bottles:
        stage.put(name, in_bin(stage, *SLOTS[BOTTLES.index(name)]))
    return stage


def test_all_in_the_bin(stage):
    succeeds(fill(stage, *BOTTLES).hold(1.0))


@pytest.mark.parametrize("bottle", BOTTLES)
def test_one_is_missing(stage, bottle):
    fails(fill(stage, *set(BOTTLES) - {bottle}).hold(1.0), f"{bottle} in the bin")


def test_one_stands_beside_the_bin(stage):
    fill(stage, *BOTTLES).put(BOTTLES[0], in_bin(stage, 0.14, 0.0, up=-FLOOR_M)).hold(1.0)
    fails(stage, f"{BOTTLES[0]} in the bin")


@pytest.mark.parametrize(("moved_m", "good"), [(0.07, True), (0.13, False)])
def test_the_bin_was_brought_nearer(stage, moved_m, good):
    stage.put("dustbin", stage.view.position("dustbin") - [0.0, moved_m, 0.0]).hold(0.2)
    fill(stage, *BOTTLES).hold(1.0)
    succeeds(stage) if good else fails(stage, "bin in its place")


def test_one_lies_across_the_rim(stage):
    rim = in_bin(stage, 0.062, 0.0)  # beside the two that stand there
    rim[2] = 2 * stage.scene.object("dustbin").half_size_m[2] + 0.031
    fill(stage, BOTTLES[1], BOTTLES[2]).put(BOTTLES[0], rim, quat=LYING)
    stage.hold(1.0)
    fails(stage, f"{BOTTLES[0]} in the bin")


def test_the_bin_is_turned_over_on_a_bottle(stage):
    fill(stage, *BOTTLES)
    x, y, z = stage.view.position("dustbin")
    stage.put("dustbin", [x, y, z + 0.12], quat=[0.0, 1.0, 0.0, 0.0]).hold(1.0)
    fails(stage, "bin upright on the table")


def test_the_bin_lies_on_its_side_with_all_of_them_in_it(stage):
    half = stage.scene.object("dustbin").half_size_m
    x, y, _ = stage.view.position("dustbin")
    stage.put("dustbin", [x, y, half[1]], quat=LYING)
    for name, at in zip(BOTTLES, ((-0.034, -0.059), (0.034, -0.059), (0.0, -0.006)), strict=True):
        stage.put(name, in_bin(stage, *at), quat=LYING)
    stage.hold(1.5)
    fails(stage, "bin upright on the table")


def test_one_is_still_held(stage):
    name = BOTTLES[0]
    fill(stage, *BOTTLES[1:]).put(name, [0.45, 0.2, 0.09]).hold(0.1)
    spot = in_bin(stage, *SLOTS[0])
    over = [*spot[:2], spot[2] + 0.16]
    stage.run(
        call("grasp", "left", object=name),
        call("place", "left", object=name, pose=over, release=False),
        call("place", "left", object=name, pose=[*spot[:2], spot[2] - 0.002], release=False),
    ).hold(1.0)
    fails(stage, "let go")
    stage.run(call("open", "left"), call("move_by", "left", offset=[0.0, 0.0, 0.15])).hold(1.0)
    succeeds(stage)


def test_one_flies_out(stage):
    fill(stage, *BOTTLES).throw(BOTTLES[2], [0.0, 0.0, 2.5]).hold(0.3)
    fails(stage)
