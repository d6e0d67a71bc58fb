"""What looks like a tray carried and is not, each with its twin that is."""

from __future__ import annotations

import numpy as np
import pytest
from staging import Stage, both, call, fails, fails_with, succeeds

from bench_tasks.view import compose, invert

TASK = "carry_tray"
BY_AIR = "carried over the mark in both hands before"
DOWN = [0.0, 0.0, -0.098]


@pytest.fixture
def stage(world) -> Stage:
    return Stage(world, TASK)


@pytest.fixture(scope="module")
def lifted(world):
    """The tray is up in both hands, where it was."""
    stage = Stage(world, TASK)
    stage.run(*stage.task.expert(stage.view, 0))
    stage.run(both("move_by", offset=[0.0, 0.0, 0.1]))
    assert stage.verdict.stages["lifted in both hands where it was"]
    return stage.branch()


@pytest.fixture(scope="module")
def over_mark(lifted):
    stage = lifted()
    stage.run(both("move_by", offset=[*way(stage), 0.0]))
    return stage.branch()


def way(stage: Stage) -> list[float]:
    """From the tray to the mark, horizontally."""
    return (stage.view.position("mark") - stage.view.position("tray"))[:2].tolist()


def move_tray(stage: Stage, x: float, y: float, z: float | None = None) -> Stage:
    """Put the tray there, with what stands on it where it stands."""
    tray = stage.view.pose("tray")
    local = compose(invert(tray), stage.view.pose("can"))
    there = np.concatenate([[x, y, tray[2] if z is None else z], tray[3:]])
    can = compose(there, local)
    stage.put("tray", there[:3], quat=there[3:])
    return stage.put("can", can[:3], quat=can[3:])


def let_go(stage: Stage) -> Stage:
    return stage.run(both("open"), both("move_by", offset=[0.0, 0.0, 0.1]))


def test_carried(over_mark):
    succeeds(let_go(over_mark().run(both("move_by", offset=DOWN))).hold(1.0))


def test_put_there_by_nobody(stage):
    mark = stage.view.position("mark")
    move_tray(stage, mark[0], mark[1]).hold(1.0)
    assert stage.unmet() == []
    fails(stage, BY_AIR)


def test_slid_along_the_table(stage):
    """Both hands pull it along, lifted by no more than takes the weight off the table."""
    stage.run(*stage.task.expert(stage.view, 0))
    stage.run(both("move_by", offset=[0.0, 0.0, 0.008]))
    stage.run(both("move_by", offset=[*way(stage), 0.0]))
    let_go(stage).hold(1.0)
    assert "on the mark" not in stage.unmet()
    fails(stage, BY_AIR)


def test_lifted_for_show_and_then_slid(lifted):
    stage = lifted().run(both("move_by", offset=DOWN))
    stage.run(both("move_by", offset=[*way(stage), 0.0]))
    let_go(stage).hold(1.0)
    assert "on the mark" not in stage.unmet()
    fails(stage, BY_AIR)


def test_slid_on_by_both_hands_between_two_hops(lifted):
    """Up where it was, on the table on the way: what comes later makes no carrying of it."""
    stage = lifted().run(both("move_by", offset=[0.0, 0.0, -0.1005]))
    slid = "invariant broken: tray not slid"
    stage.run(both("move_by", offset=[*way(stage), 0.0]), until=lambda: stage.verdict.cause == slid)
    fails_with(stage, slid)


def test_still_held(over_mark):
    stage = over_mark().run(both("move_by", offset=DOWN)).hold(1.0)
    fails(stage, "let go")
    succeeds(stage.run(both("open")).hold(0.7))


def test_held_above_the_mark(over_mark):
    fails(over_mark().hold(1.0), "tray on the table", "let go")


@pytest.mark.parametrize(("short", "good"), [(0.025, True), (0.06, False)])
def test_put_down_too_early(lifted, short, good):
    stage = lifted()
    dx, dy = way(stage)
    stage.run(both("move_by", offset=[dx - np.sign(dx) * short, dy, 0.0]))
    let_go(stage.run(both("move_by", offset=DOWN))).hold(1.0)
    succeeds(stage) if good else fails(stage, "on the mark")


@pytest.mark.parametrize("opening", ["left", "right"])
def test_one_hand_lets_go_in_the_air(over_mark, opening):
    stage = over_mark()
    stage.run(call("open", opening), call("move_by", opening, offset=[0.0, 0.0, 0.1]))
    other = "right" if opening == "left" else "left"
    stage.run(call("move_by", other, offset=[0.0, 0.0, 0.08])).hold(1.0)
    fails_with(stage, "invariant broken: can not")


def test_the_can_falls_over_on_the_tray(over_mark):
    stage = over_mark()
    stage.throw("can", [0.0, 0.0, 0.8], angular=[10.0, 0.0, 0.0]).hold(1.0)
    let_go(stage.run(both("move_by", offset=DOWN))).hold(1.0)
    fails_with(stage, "invariant broken: can not")


def test_the_can_is_set_up_again(over_mark):
    stage = over_mark()
    pose = stage.view.pose("can").copy()
    stage.put("can", pose[:3] + [0.0, 0.0, 0.1], quat=[0.8, 0.6, 0.0, 0.0]).hold(0.02)
    stage.put("can", pose[:3], quat=pose[3:]).hold(0.2)
    let_go(stage.run(both("move_by", offset=DOWN))).hold(1.0)
    assert stage.unmet() == []
    fails_with(stage, "invariant broken: can not fallen")


def test_the_can_is_carried_by_itself(stage):
    stage.run(call("grasp", "left", object="can"))
    fails_with(stage, "invariant broken: can not touched")


@pytest.mark.parametrize(("duration_s", "good"), [(0.3, False), (0.7, True)])
def test_there_only_for_a_moment(over_mark, duration_s, good):
    stage = over_mark().run(both("move_by", offset=DOWN))
    stage.run(both("open"), until=lambda: not stage.unmet() and stage.view.all_at_rest())
    stage.hold(duration_s)
    stage.throw("tray", [0.8, 0.0, 0.0]).throw("can", [0.8, 0.0, 0.0]).hold(0.5)
    if good:
        succeeds(stage)
    else:
        assert not stage.verdict.success
