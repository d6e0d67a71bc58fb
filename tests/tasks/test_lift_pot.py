"""What looks like a lifted pot and is not, each with its twin that is."""

from __future__ import annotations

import numpy as np
import pytest
from staging import Stage, both, call, fails, fails_with, succeeds

from bench_tasks.view import compose

UP = [0.0, 0.0, 0.12]


@pytest.fixture(scope="module")
def gripped(world):
    """Both hands on the handles, the pot on the table."""
    stage = Stage(world, "lift_pot")
    stage.run(*stage.task.expert(stage.view, 0))
    assert all(stage.view.grasped("pot", arm) for arm in ("left", "right"))
    return stage.branch()


def height(stage: Stage) -> float:
    return stage.view.position("pot")[2] - 0.05


def test_lifted_by_both(gripped):
    succeeds(gripped().run(both("move_by", offset=UP)).hold(1.0))


def test_gripped_but_not_lifted(gripped):
    fails(gripped().hold(2.0), "10 cm up", "on the fingers alone")


@pytest.mark.parametrize(("rise", "good"), [(0.05, False), (0.09, False), (0.11, True)])
def test_height(gripped, rise, good):
    stage = gripped().run(both("move_by", offset=[0.0, 0.0, rise])).hold(1.0)
    assert abs(height(stage) - rise) < 0.008
    succeeds(stage) if good else fails(stage, "10 cm up")


@pytest.mark.parametrize("arm", ["left", "right"])
def test_one_hand_alone(world, arm):
    stage = Stage(world, "lift_pot")
    stage.run(call("grasp", arm, object="pot", grasp=f"{arm}_handle"))
    # Tipped as it is, it may slip from the hand further up.
    stage.run(call("move_by", arm, offset=UP), until=lambda: height(stage) > 0.03)
    fails_with(stage, "invariant broken: pot not tipped")


def test_second_hand_lets_go_on_the_way(gripped):
    stage = gripped().run(both("move_by", offset=[0.0, 0.0, 0.08]))
    stage.run(call("open", "right"))
    stage.run(call("move_by", "left", offset=[0.0, 0.0, 0.06])).hold(1.0)
    fails_with(stage, "invariant broken: pot not tipped")


def test_given_into_both_hands_in_the_air(world):
    stage, s = Stage(world, "lift_pot"), np.sqrt(0.5)
    raised = stage.view.pose("pot") + [0.0, 0.0, 0.15, 0.0, 0.0, 0.0, 0.0]
    poses = {
        arm: compose(raised, np.array([0.0, y, 0.03, 0.0, s, s, 0.0]))
        for arm, y in (("left", 0.116), ("right", -0.116))
    }
    stage.run(both("move_to", pose=poses, opening_m=0.06))
    command = stage.state.command.copy()
    for opening in np.linspace(0.06, 0.0, 25):
        command[[7, 15]] = opening
        stage.put("pot", raised[:3], quat=raised[3:]).act(command[None])
    stage.hold(1.0)
    assert stage.unmet() == []
    fails(stage, "off the table in both hands before")


@pytest.mark.parametrize(("more", "good"), [(0.01, True), (0.05, False)])
def test_lifted_askew(gripped, more, good):
    stage = gripped()
    offset = {"left": [0.0, 0.0, 0.11 + more], "right": [0.0, 0.0, 0.11]}
    stage.run(both("move_by", offset=offset)).hold(1.0)
    succeeds(stage) if good else fails(stage, "level")


def test_tipped_then_levelled(world):
    stage = Stage(world, "lift_pot")
    x, y, _ = stage.view.position("pot")
    lean = np.radians(25)
    stage.put("pot", [x, y, 0.10], quat=[np.cos(lean / 2), np.sin(lean / 2), 0.0, 0.0]).hold(0.02)
    stage.put("pot", [x, y, 0.05]).hold(0.5)
    stage.expert()
    assert stage.unmet() == []
    fails_with(stage, "invariant broken: pot not tipped")


@pytest.mark.parametrize("degrees", [15, 18])
def test_leaning_less_may_be_levelled(world, degrees):
    stage = Stage(world, "lift_pot")
    x, y, _ = stage.view.position("pot")
    lean = np.radians(degrees)
    stage.put("pot", [x, y, 0.10], quat=[np.cos(lean / 2), np.sin(lean / 2), 0.0, 0.0]).hold(0.02)
    stage.put("pot", [x, y, 0.05]).hold(0.5)
    succeeds(stage.expert())


def test_thrown_up(world):
    stage = Stage(world, "lift_pot")
    stage.throw("pot", [0.0, 0.0, 2.2])
    top = 0.0
    for _ in range(50):
        stage.hold(0.02)
        top = max(top, height(stage))
        assert "in both hands" in stage.unmet()
    assert top > 0.15
    fails(stage, "10 cm up", "in both hands")


@pytest.mark.parametrize(("duration_s", "good"), [(0.3, False), (0.6, True)])
def test_up_only_for_a_moment(gripped, duration_s, good):
    stage = gripped()
    stage.run(both("move_by", offset=UP), until=lambda: at_rest_up(stage))
    stage.hold(duration_s).run(both("move_by", offset=[0.0, 0.0, -0.11])).hold(0.5)
    succeeds(stage) if good else fails(stage, "10 cm up")


def at_rest_up(stage: Stage) -> bool:
    return not stage.unmet() and stage.view.all_at_rest()


def test_never_at_rest(gripped):
    stage = gripped()
    stage.run(both("move_by", offset=[0.0, 0.0, 0.14]), until=lambda: height(stage) > 0.13)
    for _ in range(6):
        for dz in (0.03, -0.03):
            stage.run(both("move_by", offset=[0.0, 0.0, dz]))
    assert stage.unmet() == []
    fails_with(stage, "goal not reached")
    succeeds(stage.hold(1.0))


def test_pushed_with_a_fist(world):
    stage = Stage(world, "lift_pot")
    before = stage.view.position("pot")
    behind = compose(stage.view.pose("pot"), np.array([-0.14, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]))
    for above in (0.15, 0.0):
        pose = behind + [0.0, 0.0, above, 0.0, 0.0, 0.0, 0.0]
        stage.run(call("move_to", "left", pose=pose, opening_m=0.0))
    stage.run(call("move_by", "left", offset=[0.08, 0.0, 0.0])).hold(1.0)
    assert np.linalg.norm(stage.view.position("pot") - before) > 0.01
    fails(stage, "10 cm up", "in both hands")


@pytest.mark.parametrize(("opening_m", "z", "good"), [(0.0, 0.046, False), (0.06, 0.03, True)])
def test_fists_on_the_handles_do_not_hold(world, opening_m, z, good):
    stage, s = Stage(world, "lift_pot"), np.sqrt(0.5)
    pressed = set()

    def look() -> bool:
        for arm in ("left", "right"):
            if all(stage.view.touching("pot", f"{arm}_finger{k}", 0.5) for k in (1, 2)):
                pressed.add(arm)
        return False

    pot = stage.view.pose("pot")
    for above in (0.12, 0.0):
        poses = {
            arm: compose(pot, np.array([0.0, sign * 0.116, z + above, 0.0, s, s, 0.0]))
            for arm, sign in (("left", 1.0), ("right", -1.0))
        }
        stage.run(both("move_to", pose=poses, opening_m=opening_m), until=look)
    stage.run(both("close"), until=look)
    assert pressed == {"left", "right"}
    marks = stage.verdict.stages
    assert marks["left hand on"] == marks["right hand on"] == good
    stage.run(both("move_by", offset=UP)).hold(1.0)
    succeeds(stage) if good else fails(stage, "in both hands")


@pytest.mark.parametrize(("at", "good"), [("rim", False), ("handle", True)])
def test_one_hand_at_the_rim(world, at, good):
    stage = Stage(world, "lift_pot")
    stage.run(call("grasp", "left", object="pot", grasp="left_handle"))
    s = np.sqrt(0.5)
    local = [0.0, -0.116, 0.03] if good else [-0.077, 0.0, 0.035]
    pose = compose(stage.view.pose("pot"), np.array([*local, 0.0, s, s, 0.0]))
    for above in (0.12, 0.0):
        shifted = pose + [0.0, 0.0, above, 0.0, 0.0, 0.0, 0.0]
        stage.run(call("move_to", "right", pose=shifted, opening_m=0.06))
    stage.run(call("close", "right"), both("move_by", offset=UP)).hold(1.0)
    assert all(stage.view.grasped("pot", arm) for arm in ("left", "right"))
    succeeds(stage) if good else fails(stage, "one hand on each handle")
