"""What looks like a row by size and is not; each situation has its twin that is."""

from __future__ import annotations

import itertools

import pytest
from staging import Stage, call, fails, succeeds

ORDER = ("large_block", "medium_block", "small_block")
X, STEP = 0.45, 0.09


@pytest.fixture
def stage(world) -> Stage:
    return Stage(world, "blocks_ranking_size")


def row(stage: Stage, order=ORDER, x=(X, X, X), step=STEP) -> Stage:
    for k, name in enumerate(order):
        half = stage.scene.object(name).half_size_m[2]
        stage.put(name, [x[k], (1 - k) * step, half])
    return stage


def test_the_row_itself(stage):
    succeeds(row(stage).hold(1.0))


@pytest.mark.parametrize("order", [o for o in itertools.permutations(ORDER) if o != ORDER])
def test_every_other_order(stage, order):
    fails(row(stage, order).hold(1.0), "ordered")


@pytest.mark.parametrize(("bend", "good"), [(0.03, True), (0.06, False)])
def test_a_bent_row(stage, bend, good):
    row(stage, x=(X, X + bend, X)).hold(1.0)
    succeeds(stage) if good else fails(stage, "in a row")


@pytest.mark.parametrize(("step", "good"), [(0.12, True), (0.16, False)])
def test_gaps(stage, step, good):
    row(stage, step=step).hold(1.0)
    succeeds(stage) if good else fails(stage, "in a row")


def test_one_on_top_of_another(stage):
    row(stage)
    large, small = (stage.scene.object(n).half_size_m[2] for n in (ORDER[0], ORDER[2]))
    stage.put(ORDER[2], [X, STEP - 0.005, 2 * large + small]).hold(1.0)
    fails(stage, "standing on the table")


def test_the_last_one_is_still_held(stage):
    row(stage).put("small_block", [X, -0.28, 0.015]).hold(0.1)
    stage.run(call("grasp", "right", object="small_block"))
    there = [X, -STEP, 0.014]
    stage.run(call("place", "right", object="small_block", pose=there, release=False)).hold(1.0)
    fails(stage, "let go")
    succeeds(stage.run(call("open", "right")).hold(1.0))
