"""Answers that look right and are not, and what they score."""

from __future__ import annotations

import pytest
from staging import Stage, fails_with, succeeds

TASK = "spatial_sparse"
OTHER = {"left": "right", "right": "left"}


@pytest.fixture
def gold(world) -> dict[str, str]:
    scene, _ = world.reset(TASK, 0)
    return dict(scene.params["gold"])


def answered(world, values) -> Stage:
    return Stage(world, TASK, answer=values)


def change(gold, count, to) -> dict[str, str]:
    """The gold answer with its first `count` items changed by `to`."""
    return {k: to(v) if i < count else v for i, (k, v) in enumerate(gold.items())}


@pytest.mark.parametrize("seed", range(5))
def test_all_right(world, seed):
    succeeds(Stage(world, TASK, seed))


@pytest.mark.parametrize(("wrong", "progress"), [(1, 1 / 3), (2, 0.0), (3, 0.0)])
def test_some_wrong(world, gold, wrong, progress):
    stage = answered(world, change(gold, wrong, OTHER.get))
    fails_with(stage, "wrong answer: arm")
    # 2 of 3 right is (2/3 - 1/2) / (1 - 1/2); 1 of 3 is below chance and scores nothing.
    assert stage.verdict.progress == pytest.approx(progress)
    accuracy = stage.verdict.details["questions"]["arm"]["accuracy"]
    assert accuracy == pytest.approx(1 - wrong / 3)


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_items_missing(world, gold, kept):
    fails_with(answered(world, dict(list(gold.items())[:kept])), "wrong answer: arm")


def test_items_of_unknown_names(world, gold):
    renamed = {name.replace("_", " "): arm for name, arm in gold.items()}
    stage = answered(world, renamed)
    fails_with(stage, "wrong answer: arm")
    assert stage.verdict.progress == 0.0


def test_items_that_were_not_asked_for_change_nothing(world, gold):
    succeeds(answered(world, {**gold, "yellow_block": "left"}))
    one_missing = dict(list(gold.items())[1:])
    stage = answered(world, {**one_missing, "yellow_block": "left", "table": "right"})
    fails_with(stage, "wrong answer: arm")
    assert stage.verdict.details["questions"]["arm"]["accuracy"] == pytest.approx(2 / 3)


@pytest.mark.parametrize("to", [
    str.upper, str.title, lambda v: f" {v}", lambda v: f"{v}\n", lambda v: f"{v} arm",
    lambda v: "left or right", lambda v: "both", lambda v: "", lambda v: v[0],
], ids=["upper", "title", "space", "newline", "words", "hedge", "both", "empty", "letter"])
def test_only_the_choices_themselves_count(world, gold, to):
    # Whoever reads a model's text turns it into a choice; a score is no place for guessing.
    fails_with(answered(world, change(gold, 1, to)), "wrong answer: arm")
    succeeds(answered(world, change(gold, 1, str)))


@pytest.mark.parametrize("same", ["left", "right"])
def test_the_same_arm_for_all(world, same):
    # Of many layouts some have all blocks on one side: take one that has not.
    for seed in range(10):
        scene, _ = world.reset(TASK, seed)
        gold = scene.params["gold"]
        if len(set(gold.values())) == 2:
            break
    stage = Stage(world, TASK, seed, answer=dict.fromkeys(gold, same))
    fails_with(stage, "wrong answer: arm")
    succeeds(Stage(world, TASK, seed, answer=gold))


def test_unanswered(world):
    stage = answered(world, None)
    assert fails_with(stage, "") == "unanswered: arm"
    assert stage.verdict.progress == 0.0


def test_planner_crashed_before_it_answered(world):
    stage = answered(world, None)
    stage.event("end", cause="planner error: connection refused")
    assert fails_with(stage, "") == "planner error: connection refused"
    assert stage.verdict.progress == 0.0


def test_the_answer_to_another_question(world, gold):
    stage = answered(world, None)
    stage.event("answer", name="where", values=gold)
    fails_with(stage, "unanswered: arm")
    stage.event("answer", name="arm", values=gold)
    succeeds(stage)


def test_the_side_of_the_table_is_not_the_answer_everywhere(world):
    # Gold is reachability; guessing by side must not be what is asked for, word by word.
    from bench_tasks.tasks.spatial_sparse import reaching_arms

    for seed in range(5):
        scene, state = world.reset(TASK, seed)
        for name, arm in scene.params["gold"].items():
            x, y, _ = state.object_pose[scene.index(name)][:3]
            assert reaching_arms(x, y) == (arm,)
