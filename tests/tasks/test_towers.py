"""What looks like a tower of three and is not; each situation has its twin that is."""

from __future__ import annotations

import pytest
from staging import Stage, call, fails, succeeds

from bench_tasks import tasks

X, Y = 0.45, 0.0
TASKS = ("stack_blocks_three", "blocks_tower")


@pytest.fixture(params=TASKS)
def stage(world, request) -> Stage:
    return Stage(world, request.param)


def names(stage: Stage) -> list[str]:
    return list(tasks.get(stage.scene.task).order)


def half(stage: Stage, name: str) -> float:
    return stage.scene.object(name).half_size_m[2]


def build(stage: Stage, order=None, at=(X, Y), skip=0, lean=0.0) -> Stage:
    """Put the blocks onto each other from the bottom up, each `lean` m further to the side."""
    height = 0.0
    for k, name in enumerate((order or names(stage))[: 3 - skip]):
        h = half(stage, name)
        stage.put(name, [at[0], at[1] + k * lean, height + h])
        height += 2 * h
    return stage


def test_the_tower_itself(stage):
    succeeds(build(stage).hold(1.0))


@pytest.mark.parametrize("swap", [(0, 1), (1, 2), (0, 2)])
def test_wrong_order(stage, swap):
    order = names(stage)
    order[swap[0]], order[swap[1]] = order[swap[1]], order[swap[0]]
    build(stage, order).hold(1.0)
    assert stage.view.all_at_rest()
    assert not stage.monitor.finished
    fails(stage)


def test_the_top_one_lies_beside(stage):
    build(stage, skip=1)
    top = names(stage)[2]
    stage.put(top, [X, Y + 0.1, half(stage, top)])
    fails(stage.hold(1.0), f"{top.split('_')[0]} off the table")


@pytest.mark.parametrize(("y", "good"), [(0.03, True), (0.08, False)])
def test_away_from_the_middle(stage, y, good):
    build(stage, at=(X, y)).hold(1.0)
    succeeds(stage) if good else fails(stage, "in the middle")


@pytest.mark.parametrize(("lean", "good"), [(0.006, True), (0.0165, False)])
def test_a_leaning_tower(stage, lean, good):
    build(stage, lean=lean).hold(1.0)
    succeeds(stage) if good else fails(stage)


def test_the_top_one_is_still_held(stage):
    top = names(stage)[2]
    build(stage, skip=1).put(top, [X, -0.25, half(stage, top)]).hold(0.1)
    stage.run(call("grasp", "right", object=top))
    height = sum(2 * half(stage, n) for n in names(stage)[:2]) + half(stage, top)
    on = [X, Y, height - 0.002]
    stage.run(call("place", "right", object=top, pose=on, release=False)).hold(1.0)
    fails(stage, "let go")
    succeeds(stage.run(call("open", "right")).hold(1.0))


@pytest.mark.parametrize(("duration_s", "good"), [(0.4, False), (0.6, True)])
def test_it_falls_too_soon(stage, duration_s, good):
    build(stage).hold(duration_s)
    stage.throw(names(stage)[2], [0.0, 1.5, 0.0]).hold(1.0)
    succeeds(stage) if good else fails(stage)


def test_the_top_one_flies_over(stage):
    build(stage)
    top = names(stage)[2]
    x, y, z = stage.view.position(top)
    stage.put(top, [x, y, z + 0.15]).throw(top, [0.0, 0.8, 0.0]).hold(1.5)
    fails(stage)


def test_an_expert_whose_plans_keep_failing_tries_the_other_arm(stage):
    top = names(stage)[2]
    build(stage, skip=1).put(top, [X, 0.2, half(stage, top)]).hold(0.1)
    arms = [stage.task.expert(stage.view, turn)[0][0].arm for turn in range(10)]
    assert arms == ["left"] * 6 + ["right", "left"] * 2
