"""Answers that look right and are not, and what they score."""

from __future__ import annotations

import numpy as np
import pytest
from staging import Stage, fails_with, succeeds

from bench_tasks import tasks
from bench_tasks.tasks.families.spatial import ANSWERS, arm_answer
from bench_tasks.tasks.spatial_depth import EYE_M

TASK = "spatial_sparse"
OTHER = {"left": "right", "right": "left", "either": "neither", "neither": "either"}


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


@pytest.mark.parametrize(("wrong", "progress"), [(1, 5 / 9), (2, 1 / 9), (3, 0.0)])
def test_some_wrong(world, gold, wrong, progress):
    stage = answered(world, change(gold, wrong, OTHER.get))
    fails_with(stage, "wrong answer: arm")
    # Four answers each: 2 of 3 right is (2/3 - 1/4) / (1 - 1/4).
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


SPATIAL = [name for name in tasks.names() if name.startswith("spatial_")]


@pytest.mark.parametrize("task", SPATIAL)
def test_the_answer_is_what_the_kinematics_say(world, task):
    for seed in range(2):
        scene, state = world.reset(task, seed)
        for name, answer in scene.params["gold"].items():
            pose = state.object_pose[scene.index(name)]
            assert arm_answer(scene.object(name), pose) == answer


@pytest.mark.slow
@pytest.mark.parametrize("task", SPATIAL)
@pytest.mark.parametrize("answer", [*ANSWERS, "side"])
def test_one_rule_for_all_is_not_the_answer(world, task, answer):
    """Neither a constant nor the side of the table passes: 12 layouts are never all alike."""
    right = 0
    for seed in range(12):
        scene, state = world.reset(task, seed)
        right += all(
            gold == (answer if answer != "side" else "left" if state.object_pose[i, 1] > 0
                     else "right")
            for i, gold in enumerate(scene.params["gold"].values())
        )  # fmt: skip
    assert right <= 2


def test_of_a_pair_on_one_line_of_sight_the_answers_differ(world):
    for seed in range(2):
        scene, state = world.reset("spatial_depth", seed)
        gold, at = list(scene.params["gold"].values()), state.object_pose
        for near, far in ((0, 1), (2, 3)):
            assert gold[near] != gold[far]
            a, b = at[near, :2] - EYE_M, at[far, :2] - EYE_M
            assert abs(a[0] * b[1] - a[1] * b[0]) / np.linalg.norm(a) / np.linalg.norm(b) < 0.02
            assert np.linalg.norm(b) > 1.25 * np.linalg.norm(a)


def test_an_occluded_block_is_seen_in_part(world):
    """The can hides some of the block from the head camera, never all of it."""
    for seed in range(4):
        scene, state = world.reset("spatial_occluded", seed)
        hidden = [
            np.count_nonzero(
                world.cameras.segmentation(world.data, "head") == scene.entities.index(name)
            )
            for name in scene.params["gold"]
        ]
        away = {o.name: np.array([3.0 + i, 0, 0, 1.0, 0, 0, 0]) for i, o in
                enumerate(scene.objects) if o.kind == "can"}  # fmt: skip
        world.move_objects(away)
        for name, pixels in zip(scene.params["gold"], hidden, strict=True):
            seen = np.count_nonzero(
                world.cameras.segmentation(world.data, "head") == scene.entities.index(name)
            )
            assert 0.1 * seen < pixels < 0.95 * seen, name
