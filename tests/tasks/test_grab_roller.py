"""What looks like a lifted roller and is not, each with its twin that is."""

from __future__ import annotations

import numpy as np
import pytest
from staging import Stage, both, call, fails, succeeds

from bench_tasks.view import compose

UP = [0.0, 0.0, 0.12]


@pytest.fixture(scope="module")
def gripped(world):
    """Both hands on the handles, the roller on the table."""
    stage = Stage(world, "grab_roller")
    stage.run(*stage.task.expert(stage.view, 0))
    assert all(stage.view.grasped("roller", arm) for arm in ("left", "right"))
    return stage.branch()


@pytest.mark.parametrize(("rise", "good"), [(0.0, False), (0.085, False), (0.115, True)])
def test_height(gripped, rise, good):
    stage = gripped().run(both("move_by", offset=[0.0, 0.0, rise])).hold(1.0)
    succeeds(stage) if good else fails(stage, "10 cm up")


@pytest.mark.parametrize("arm", ["left", "right"])
def test_one_hand_alone(world, arm):
    stage = Stage(world, "grab_roller")
    stage.run(call("grasp", arm, object="roller", grasp=f"{arm}_handle"))
    stage.run(call("move_by", arm, offset=[0.0, 0.0, 0.2])).hold(1.0)
    assert stage.view.position("roller")[2] > 0.08
    fails(stage, "in both hands")


def test_second_hand_lets_go_on_the_way(gripped):
    stage = gripped().run(both("move_by", offset=[0.0, 0.0, 0.08]))
    stage.run(call("open", "right"))
    stage.run(call("move_by", "left", offset=[0.0, 0.0, 0.08])).hold(1.0)
    fails(stage, "in both hands")


@pytest.mark.parametrize(("more", "good"), [(0.02, True), (0.08, False)])
def test_lifted_askew(gripped, more, good):
    stage = gripped()
    offset = {"left": [0.0, 0.0, 0.11 + more], "right": [0.0, 0.0, 0.11]}
    stage.run(both("move_by", offset=offset)).hold(1.0)
    succeeds(stage) if good else fails(stage, "level")


def test_thrown_up(world):
    stage = Stage(world, "grab_roller").throw("roller", [0.0, 0.0, 2.2])
    top = 0.0
    for _ in range(50):
        stage.hold(0.02)
        top = max(top, float(stage.view.position("roller")[2]))
        assert "in both hands" in stage.unmet()
    assert top > 0.15
    fails(stage, "10 cm up", "in both hands")


@pytest.mark.parametrize(("duration_s", "good"), [(0.3, False), (0.6, True)])
def test_up_only_for_a_moment(gripped, duration_s, good):
    stage = gripped()
    stage.run(
        both("move_by", offset=UP),
        until=lambda: not stage.unmet() and stage.view.all_at_rest(),
    )
    stage.hold(duration_s).run(both("move_by", offset=[0.0, 0.0, -0.11])).hold(0.5)
    succeeds(stage) if good else fails(stage, "10 cm up")


@pytest.mark.parametrize(("y", "good"), [(-0.085, False), (-0.14, True)])
def test_one_hand_on_the_thick_middle(world, y, good):
    stage, s = Stage(world, "grab_roller"), np.sqrt(0.5)
    stage.run(call("grasp", "left", object="roller", grasp="left_handle"))
    pose = compose(stage.view.pose("roller"), np.array([0.0, y, 0.0, 0.0, s, s, 0.0]))
    for above in (0.12, 0.0):
        shifted = pose + [0.0, 0.0, above, 0.0, 0.0, 0.0, 0.0]
        stage.run(call("move_to", "right", pose=shifted, opening_m=0.07))
    stage.run(call("close", "right"), both("move_by", offset=UP)).hold(1.0)
    assert all(stage.view.grasped("roller", arm) for arm in ("left", "right"))
    succeeds(stage) if good else fails(stage, "one hand on each handle")


@pytest.mark.parametrize(("axis", "level"), [(2, True), (1, False)])
def test_only_a_turn_about_its_own_length_is_level(world, axis, level):
    stage = Stage(world, "grab_roller")
    quat = np.array([np.cos(0.3), 0.0, 0.0, 0.0])
    quat[axis] = np.sin(0.3)
    stage.put("roller", [0.45, 0.0, 0.3], quat=quat).hold(0.02)
    assert stage.view.tilt("roller") > 0.5
    assert ("level" not in stage.unmet()) is level
