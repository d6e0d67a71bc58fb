"""What looks like the memory probes done and is not: without hands, in a wrong place, too often."""

from __future__ import annotations

import pytest
from staging import Stage, call, fails, fails_with, succeeds

from bench_tasks.tasks.families.memory import MATS
from bench_tasks.tasks.families.trying import SIGN, SIGN_AWAY_M, TryTask
from bench_tasks.tasks.reopen_drawer import DRAWERS

CARRIES = ("put_back_block", "moved_while_away", "watch_then_repeat", "battery_try",
           "blocks_ranking_try")  # fmt: skip
ALL = (*CARRIES, "reopen_drawer", "press_button")


def put(stage: Stage, name: str, xy) -> Stage:
    return stage.put(name, [*xy, stage.scene.object(name).half_size_m[2]])


def goal_of(stage: Stage) -> list[tuple[str, tuple[float, float]]]:
    """What is to be where in the end, in the order in which it is brought there."""
    params, task = stage.scene.params, stage.task
    if task.name == "put_back_block":
        return [("red_block", MATS[params["target"]])]
    if task.name == "moved_while_away":
        name, mat = task._carried(stage.scene)
        return [(name, tuple(stage.view.position(mat)[:2]))]
    if task.name == "watch_then_repeat":
        return [(block, tuple(params["on"][block][:2])) for block in params["order"]]
    assert isinstance(task, TryTask)
    return [(SIGN, SIGN_AWAY_M), (task.thing, task.places[params["right"]])]


@pytest.mark.parametrize("name", ALL)
def test_nothing_done(world, name):
    fails(Stage(world, name).hold(1.0))


@pytest.mark.parametrize("name", CARRIES)
def test_all_in_its_place_without_hands(world, name):
    stage = Stage(world, name)
    for thing, xy in goal_of(stage):
        put(stage, thing, xy).hold(0.1)
    stage.hold(1.0)
    (last,) = stage.unmet() or [""]
    assert last == "", "it looks right"
    fails_with(stage, "goal not reached: ")
    assert "before" in stage.verdict.cause


def test_the_block_on_another_mat_and_then_on_its_own(world):
    stage = Stage(world, "put_back_block")
    wrong = next(mat for mat in MATS if mat != stage.scene.params["target"])
    put(stage, "red_block", MATS[wrong]).hold(0.5)
    fails_with(stage, "invariant broken: put on no other mat")


def test_the_block_over_its_mat_in_the_hand(world):
    stage = Stage(world, "put_back_block")
    x, y = MATS[stage.scene.params["target"]]
    arm = "left" if y > 0 else "right"
    pose = [x, y, stage.scene.object("red_block").half_size_m[2] - 0.001]
    take = call("grasp", arm, object="red_block")
    stage.run(take, call("place", arm, object="red_block", pose=pose, release=False)).hold(1.0)
    fails(stage, "let go")
    succeeds(stage.run(call("open", arm)).hold(1.0))


def test_the_wrong_answer_and_the_right_deed(world):
    stage = Stage(world, "put_back_block", answer={"answer": "on the pink mat"})
    fails_with(stage.expert(), "wrong answer: remembered")


def test_another_block_than_that_which_was_moved(world):
    stage = Stage(world, "moved_while_away")
    name, _ = stage.task._carried(stage.scene)
    other = next(b for b in ("red_block", "green_block", "blue_block") if b != name)
    arm = "left" if stage.view.position(other)[1] > 0 else "right"
    stage.run(call("grasp", arm, object=other))
    fails_with(stage, "invariant broken: no other block touched")


def test_in_another_order(world):
    stage = Stage(world, "watch_then_repeat")
    for thing, xy in goal_of(stage)[::-1]:
        put(stage, thing, xy).hold(0.1)
    fails_with(stage, "invariant broken: in their order")


@pytest.mark.parametrize("name", ["battery_try", "blocks_ranking_try"])
def test_trying_is_free_until_it_was_right_and_then_no_more(world, name):
    stage = Stage(world, name)
    task, right = stage.task, stage.scene.params["right"]
    for option in task.places:
        put(stage, task.thing, task.places[option]).hold(0.1)
        (said, *_) = task.react(stage.view, 0)
        assert said.lines[0][1] == f"The {option} is {'right' if option == right else 'wrong'}."
    fails_with(stage, "goal not reached: ")
    put(stage, SIGN, SIGN_AWAY_M)
    put(stage, task.thing, task.begin_m).hold(0.1)
    assert task.react(stage.view, 0) == () and task.recall(stage.view) is not None
    wrong = next(option for option in task.places if option != right)
    put(stage, task.thing, task.places[wrong]).hold(0.1)
    fails_with(stage, "invariant broken: at once")


def test_the_row_is_to_stay(world):
    stage = Stage(world, "blocks_ranking_try")
    x, y, _ = stage.view.position("green_block")
    put(stage, "green_block", (x + 0.05, y)).hold(0.1)
    fails_with(stage, "invariant broken: all else in its place")


def test_a_drawer_that_opens_without_a_hand(world):
    stage = Stage(world, "reopen_drawer")
    target = stage.scene.params["target"]
    put(stage, target, (stage.scene.params["closed_x_m"] - 0.07, DRAWERS[target])).hold(1.0)
    assert stage.unmet() == []
    fails(stage, "pulled by its knob before")


def test_another_drawer_touched(world):
    stage = Stage(world, "reopen_drawer")
    other = next(drawer for drawer in DRAWERS if drawer != stage.scene.params["target"])
    arm = "left" if DRAWERS[other] >= 0 else "right"
    stage.run(call("grasp", arm, object=other))
    fails_with(stage, "invariant broken: no other drawer touched")


@pytest.mark.parametrize(("more", "cause"), [
    (0, ""), (1, "invariant broken: not more often"), (-1, "invariant broken: not ended before"),
])  # fmt: skip
def test_pressed_too_often_or_too_seldom(world, more, cause):
    seed = next(s for s in range(20) if Stage(world, "press_button", s).scene.params["times"] > "1")
    stage = Stage(world, "press_button", seed)
    times = int(stage.scene.params["times"]) + more
    stage.run(*stage.task.act(stage.view, 0, str(times))).hold(1.0)
    fails_with(stage, cause) if cause else succeeds(stage)


def test_a_press_that_goes_on_is_one(world):
    seed = next(
        s for s in range(20) if Stage(world, "press_button", s).scene.params["times"] == "2"
    )
    stage = Stage(world, "press_button", seed)
    steps = stage.task.act(stage.view, 0, "1")
    stage.run(*steps[:2]).hold(1.0)
    stage.run(*steps[1:]).hold(0.5)
    fails_with(stage, "invariant broken: not ended before")
