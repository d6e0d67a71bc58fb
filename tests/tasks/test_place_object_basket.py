"""What looks like a filled basket held up and is not, each with its twin that is."""

from __future__ import annotations

import numpy as np
import pytest
from staging import Stage, call, fails, fails_with, succeeds

from bench_tasks.view import compose

FILLED = "block put into the standing basket before"


@pytest.fixture(scope="module")
def begun(world):
    """Nothing done yet."""
    return Stage(world, "place_object_basket").branch()


@pytest.fixture(scope="module")
def filled(world):
    """The block is in the basket, which stands; both arms are home."""
    stage = Stage(world, "place_object_basket")
    stage.run(*stage.task.expert(stage.view, 0)).hold(0.1)
    assert stage.verdict.stages[FILLED.removesuffix(" before")]
    return stage.branch()


@pytest.fixture(scope="module")
def taken(filled):
    """The lifter has the handle, the basket still stands."""
    stage = filled()
    return stage.run(call("grasp", lifter(stage), object="basket")).branch()


def placer(stage: Stage) -> str:
    return stage.scene.params["placer"]


def lifter(stage: Stage) -> str:
    return stage.scene.params["lifter"]


def rise(stage: Stage, height: float, arm: str = "") -> Stage:
    return stage.run(call("move_by", arm or lifter(stage), offset=[0.0, 0.0, height])).hold(1.0)


@pytest.mark.parametrize(("height", "good"), [(0.03, False), (0.07, True)])
def test_lifted(taken, height, good):
    stage = rise(taken(), height)
    succeeds(stage) if good else fails(stage, "5 cm up")


def test_filled_but_left_standing(filled):
    fails(filled().hold(1.0), "5 cm up", "in the lifting hand alone")


def test_lifted_empty(begun):
    stage = begun()
    rise(stage.run(call("grasp", lifter(stage), object="basket")), 0.08)
    fails(stage, "block in the basket", FILLED)


def test_filled_in_the_air(begun):
    stage = begun()
    rise(stage.run(call("grasp", lifter(stage), object="basket")), 0.08)
    block = compose(stage.view.pose("basket"), np.array([-0.05, 0, -0.038, 1, 0, 0, 0]))
    stage.put("block", block[:3]).hold(1.0)
    assert stage.unmet() == []
    fails(stage, FILLED)


def test_lifted_by_the_arm_that_filled_it(filled):
    stage = filled()
    arm = placer(stage)
    rise(stage.run(call("grasp", arm, object="basket")), 0.08, arm)
    fails_with(stage, f"invariant broken: basket not taken by the {arm} arm")


def test_filled_by_the_arm_that_lifts(begun):
    stage = begun()
    arm = lifter(stage)
    x, y, z = stage.view.position("block")
    stage.put("block", [x, -y, z]).hold(0.1).lift_once(arm, "block", grasp="across_y")
    fails_with(stage, f"invariant broken: block not taken by the {arm} arm")


def test_lifted_by_its_side(filled):
    stage = filled()
    arm, half = lifter(stage), stage.scene.object("basket").half_size_m
    y = half[1] if arm == "left" else -half[1]
    wall = compose(
        stage.view.pose("basket"), np.array([0.05, 0.97 * y, -0.03, 0.0, 1.0, 0.0, 0.0])
    )
    for up in (0.12, 0.0):
        pose = wall + [0, 0, up, 0, 0, 0, 0]
        stage.run(call("move_to", arm, pose=pose, opening_m=0.06))
    stage.run(call("close", arm))
    assert stage.view.grasped("basket", arm)
    fails(rise(stage, 0.12), "held by the handle")


def test_set_down_again(taken):
    stage = taken()
    stage.run(call("move_by", lifter(stage), offset=[0.0, 0.0, 0.06]))
    stage.run(call("move_by", lifter(stage), offset=[0.0, 0.0, -0.058])).hold(1.0)
    fails(stage, "5 cm up")


def test_let_go_in_the_air(taken):
    stage = taken()
    stage.run(call("move_by", lifter(stage), offset=[0.0, 0.0, 0.08]))
    stage.run(call("open", lifter(stage))).hold(1.0)
    fails(stage, "5 cm up", "in the lifting hand alone")


def test_the_block_falls_out_on_the_way(taken):
    stage = taken()
    stage.throw("block", [-0.6, 0.0, 1.6]).hold(0.6)
    fails(rise(stage, 0.08), "block in the basket")


@pytest.mark.parametrize(("z", "good"), [(-0.038, True), (-0.12, False)])
def test_the_block_under_the_basket(taken, z, good):
    stage = taken()
    block = compose(stage.view.pose("basket"), np.array([-0.05, 0, z, 1, 0, 0, 0]))
    stage.run(call("move_by", lifter(stage), offset=[0.0, 0.0, 0.049]))
    block[2] += 0.049
    stage.put("block", [*block[:2], max(block[2], 0.02)])
    rise(stage, 0.015)
    succeeds(stage) if good else fails(stage, "block in the basket")
