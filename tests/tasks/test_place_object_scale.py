"""What looks like bread on a scale and is not, each with its twin that is."""

from __future__ import annotations

import numpy as np
import pytest
from staging import Stage, call, fails, succeeds

from bench_tasks.view import compose

CARRIED = "bread carried through the air before"


@pytest.fixture(scope="module")
def begun(world):
    """Nothing done yet."""
    return Stage(world, "place_object_scale").branch()


@pytest.fixture(scope="module")
def carried(world):
    """The bread was in the air once and fell on the table; the arm is home."""
    stage = Stage(world, "place_object_scale")
    return stage.lift_once(arm_of(stage), "bread").hold(0.2).branch()


def arm_of(stage: Stage) -> str:
    return "left" if stage.view.start.position("bread")[1] > 0 else "right"


def on_scale(stage: Stage, x: float = 0.0, y: float = 0.0, up: float = 0.0005) -> np.ndarray:
    """Pose (7,) of the bread lying on the plate, turned like the scale."""
    top = stage.scene.object("scale").half_size_m[2] + stage.scene.object("bread").half_size_m[2]
    return compose(stage.view.pose("scale"), np.array([x, y, top + up, 1, 0, 0, 0]))


def put(stage: Stage, pose: np.ndarray) -> Stage:
    return stage.put("bread", pose[:3], quat=pose[3:])


def test_the_bread_on_the_scale(carried):
    stage = carried()
    succeeds(put(stage, on_scale(stage)).hold(1.0))


def test_brought_by_the_expert(begun):
    succeeds(begun().expert())


def test_put_there_by_nobody(begun):
    stage = begun()
    put(stage, on_scale(stage)).hold(1.0)
    assert stage.unmet() == []
    fails(stage, CARRIED)


def test_carried_and_left_on_the_table(carried):
    fails(carried().hold(1.0), "bread on the scale")


@pytest.mark.parametrize(("y", "good"), [(0.05, True), (0.10, False)])
def test_leaning_on_the_scale(carried, y, good):
    stage = carried()
    pose = on_scale(stage, y=y)
    if not good:
        half = stage.scene.object("bread").half_size_m
        pose[2] = half[2]
        lean = compose(pose, np.array([0, 0, 0.03, np.cos(0.45), -np.sin(0.45), 0, 0]))
        put(stage, lean).hold(1.0)
        assert stage.view.touching("bread", "table")
        fails(stage, "bread on the scale")
    else:
        succeeds(put(stage, pose).hold(1.0))


@pytest.mark.parametrize(("sink", "released"), [(0.002, "let go"), (-0.03, "bread on the scale")])
def test_still_in_the_hand(carried, sink, released):
    stage = carried()
    arm = arm_of(stage)
    stage.run(call("grasp", arm, object="bread"))
    pose = on_scale(stage, up=-sink)[:3]
    stage.run(call("place", arm, object="bread", pose=pose, release=False)).hold(1.0)
    fails(stage, released, "let go")
    succeeds(stage.run(call("open", arm), call("home", arm)).hold(1.0))


@pytest.mark.parametrize(("clear", "good"), [(0.02, True), (-0.004, False)])
def test_a_fist_that_weighs_too(carried, clear, good):
    stage = carried()
    arm = arm_of(stage)
    fist = on_scale(stage, up=0.0)
    fist[2] += stage.scene.object("bread").half_size_m[2] + 0.01
    down = [0.0, 1.0, 0.0, 0.0]
    for up in (0.03, clear):
        pose = [*fist[:2], fist[2] + up, *down]
        stage.run(call("move_to", arm, pose=pose, opening_m=0.0))
        if up == 0.03:
            put(stage, on_scale(stage)).hold(0.02)
    stage.hold(1.0)
    succeeds(stage) if good else fails(stage, "let go")


@pytest.mark.parametrize(("duration_s", "good"), [(0.3, False), (0.7, True)])
def test_only_for_a_moment(carried, duration_s, good):
    stage = carried()
    put(stage, on_scale(stage)).hold(duration_s)
    stage.throw("bread", [1.5, 0.0, 0.5]).hold(1.0)
    succeeds(stage) if good else fails(stage, "bread on the scale")
