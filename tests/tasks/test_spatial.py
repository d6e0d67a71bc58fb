"""Answers that look right and are not, and what they score."""

from __future__ import annotations

import numpy as np
import pytest
from staging import Stage, fails_with, succeeds

from bench_tasks.tasks.families.spatial import ANSWERS, arm_answer
from bench_tasks.tasks.spatial_depth import EYE_M

SPATIAL = (
    "spatial_cluttered", "spatial_dense", "spatial_depth", "spatial_occluded", "spatial_sparse",
)  # fmt: skip
OTHER = {"left": "right", "right": "left", "either": "neither", "neither": "either"}


@pytest.fixture(scope="module", params=SPATIAL)
def asked(world, request):
    """A function that gives a fresh stage of one layout, its question not yet answered."""
    return Stage(world, request.param, answer=None).branch()


@pytest.fixture
def gold(asked) -> dict[str, str]:
    return dict(asked().scene.params["gold"])


def answered(stage: Stage, values) -> Stage:
    stage.event("answer", name="arm", values=values)
    return stage


def change(gold, count, to) -> dict[str, str]:
    """The gold answer with its first `count` items changed by `to`."""
    return {k: to(v) if i < count else v for i, (k, v) in enumerate(gold.items())}


def test_all_right(asked, gold):
    succeeds(answered(asked(), gold))


@pytest.mark.parametrize("wrong", [1, 2, 3])
def test_some_wrong(asked, gold, wrong):
    stage = answered(asked(), change(gold, wrong, OTHER.get))
    fails_with(stage, "wrong answer: arm")
    # Four answers each: of 2 of 3 right it is (2/3 - 1/4) / (1 - 1/4).
    share = 1 - wrong / len(gold)
    assert stage.verdict.progress == pytest.approx(max(0.0, (share - 0.25) / 0.75))
    assert stage.verdict.details["questions"]["arm"]["accuracy"] == pytest.approx(share)


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_items_missing(asked, gold, kept):
    fails_with(answered(asked(), dict(list(gold.items())[:kept])), "wrong answer: arm")


def test_items_of_unknown_names(asked, gold):
    renamed = {name.replace("_", " "): arm for name, arm in gold.items()}
    stage = answered(asked(), renamed)
    fails_with(stage, "wrong answer: arm")
    assert stage.verdict.progress == 0.0


def test_items_that_were_not_asked_for_change_nothing(asked, gold):
    succeeds(answered(asked(), {**gold, "pink_block": "left"}))
    one_missing = dict(list(gold.items())[1:])
    stage = answered(asked(), {**one_missing, "pink_block": "left", "table": "right"})
    fails_with(stage, "wrong answer: arm")
    accuracy = stage.verdict.details["questions"]["arm"]["accuracy"]
    assert accuracy == pytest.approx(1 - 1 / len(gold))


@pytest.mark.parametrize("to", [
    str.upper, str.title, lambda v: f" {v}", lambda v: f"{v}\n", lambda v: f"{v} arm",
    lambda v: "left or right", lambda v: "both", lambda v: "", lambda v: v[0],
], ids=["upper", "title", "space", "newline", "words", "hedge", "both", "empty", "letter"])
def test_only_the_choices_themselves_count(asked, gold, to):
    # Whoever reads a model's text turns it into a choice; a score is no place for guessing.
    fails_with(answered(asked(), change(gold, 1, to)), "wrong answer: arm")
    succeeds(answered(asked(), change(gold, 1, str)))


def test_the_golds_of_other_items(asked, gold):
    """Right answers, each given for the next item: wrong where the two differ."""
    turned = dict(zip(gold, [*list(gold.values())[1:], next(iter(gold.values()))], strict=True))
    stage = answered(asked(), turned)
    if turned == gold:
        succeeds(stage)
    else:
        fails_with(stage, "wrong answer: arm")


def test_left_and_right_swapped(asked, gold):
    """What someone says who faces the robot."""
    swap = {"left": "right", "right": "left"}
    swapped = {item: swap.get(arm, arm) for item, arm in gold.items()}
    stage = answered(asked(), swapped)
    if swapped == gold:
        succeeds(stage)
    else:
        fails_with(stage, "wrong answer: arm")


@pytest.mark.parametrize("same", ANSWERS)
def test_the_same_answer_for_all(asked, gold, same):
    stage = answered(asked(), dict.fromkeys(gold, same))
    if set(gold.values()) == {same}:
        succeeds(stage)
    else:
        fails_with(stage, "wrong answer: arm")


def test_unanswered(asked):
    stage = asked()
    assert fails_with(stage, "") == "unanswered: arm"
    assert stage.verdict.progress == 0.0


def test_planner_crashed_before_it_answered(asked):
    stage = asked()
    stage.event("end", cause="planner error: connection refused")
    assert fails_with(stage, "") == "planner error: connection refused"
    assert stage.verdict.progress == 0.0


def test_the_answer_to_another_question(asked, gold):
    stage = asked()
    stage.event("answer", name="where", values=gold)
    fails_with(stage, "unanswered: arm")
    succeeds(answered(stage, gold))


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
