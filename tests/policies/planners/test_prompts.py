"""Prompts: their own examples parse, and each level of help tells what it should and no more."""

from __future__ import annotations

import json

import pytest
import yaml

from bench_tasks import tasks
from bench_tasks.actions import step_from_action
from bench_tasks.errors import UsageError
from bench_tasks.vocabulary import SKILLS, Observation, PlanRequest, Question
from policies.planners.answers import answer_schema, name_finder, plan_schema, read_plan
from policies.planners.jsontext import AnswerError, find_json
from policies.prompts import HELP, Prompts, versions


def turn(world, task, help_, feedback=None, number=0):
    scene, state = world.reset(task, 0)
    request = PlanRequest(scene.instruction, Observation(state), number, feedback or {})
    return scene, Prompts("v1", help_).turn(request, scene, state, False)


@pytest.mark.parametrize("version", versions())
def test_the_example_of_16_numbers_is_right(version):
    system = Prompts(version).plan_system(True, ("move_to",))
    actions = find_json(system[system.index("Answer with one JSON") :]).value["executable_plan"]
    assert len(actions) == 2
    for values in actions:
        assert all(call.skill == "move_to" for call in step_from_action(values))
        for quat in (values[3:7], values[11:15]):
            assert sum(q * q for q in quat) == pytest.approx(1.0, abs=1e-9)
            assert all(0.0 <= values[k] <= 1.0 for k in (7, 15))
    assert read_plan(json.dumps({"executable_plan": actions}), True, str)[0]


@pytest.mark.parametrize("version", versions())
def test_the_example_of_skills_is_right_and_every_skill_is_explained(version):
    system = Prompts(version).plan_system(False, tuple(SKILLS))
    steps, found = read_plan(system[system.index("Answer with one JSON") :], False, str)
    assert len(steps) == 2 and not found.repairs
    assert all(f"- {skill} {{" in system for skill in SKILLS)


@pytest.mark.parametrize("task", tasks.names(None))
def test_levels_of_help_each_tell_more(task, world):
    texts = {}
    for level in HELP:
        scene, texts[level] = turn(world, task, level)
    assert not any(o.name in texts["none"].replace(scene.instruction, "") for o in scene.objects)
    assert all(o.name in texts["names"] for o in scene.objects)
    assert "centre (" not in texts["names"] and "centre (" in texts["poses"]
    assert len(texts["none"]) < len(texts["names"]) < len(texts["poses"]) <= len(texts["recipe"])


def test_recipe_names_the_experts_skills_without_their_numbers(world):
    _, text = turn(world, "lift_pot", "recipe")
    assert "1. left arm: grasp pot by left_handle and, at the same time, right arm: grasp" in text


def test_feedback_does_not_tell_where_an_object_is_unless_that_help_is_given(world):
    failed = {
        "status": "failed", "reason": "unreachable: left arm cannot grasp pot at (0.4, -0.1, 0.2)",
        "call": {"skill": "grasp", "arm": "left", "args": {}}, "completed": 1,
        "held": {"right": "pot"},
    }  # fmt: skip
    _, none = turn(world, "lift_pot", "none", failed)
    assert "unreachable: left arm cannot grasp pot." in none and "0.4, -0.1" not in none
    assert "something in the right hand" in none
    _, poses = turn(world, "lift_pot", "poses", failed)
    assert "(0.4, -0.1, 0.2)" in poses and "pot in the right hand" in poses


def test_names_are_found_by_other_spellings_and_never_guessed(world):
    scene, _ = world.reset("blocks_ranking_rgb", 0)
    find = name_finder(scene, tell=False)
    assert find("The Red Block") == find("red-block") == "red_block"
    with pytest.raises(AnswerError, match="several objects are called 'block'") as caught:
        find("block")
    with pytest.raises(AnswerError, match="choose from .*green_block"):
        name_finder(scene, tell=True)("kettle")
    assert "green_block" not in str(caught.value)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ([[0.0] * 15], "step 1: action must have 16 numbers, got 15"),
        ([[0.4, 0, 0.2, 0, 1, 1, 0, 1] * 2], "quaternion .* has length 1.414, not 1"),
        ([[0.4, 0, 0.2, 0, 1, 0, 0, 2] * 2], "gripper must be in"),
        ([0.4, 0, 0.2, 0, 1, 0, 0, 1] * 2, "list of actions of 16 numbers each"),
        ([["x"] * 16], "must be"), ([[None] * 16], "must be"),
        ([[1.0] * 16] * 41, "at most 40"), ("[]", "a list of steps"),
    ],
)  # fmt: skip
def test_malformed_actions_are_refused_by_name(plan, message):
    with pytest.raises(AnswerError, match=message):
        read_plan(json.dumps({"executable_plan": plan}), True, str)


def test_json_is_found_in_running_text_and_the_last_resort_is_told():
    assert find_json('I think {"a": [1, "}"]} is right').value == {"a": [1, "}"]}
    assert find_json('```\n{"a": 1}\n``` and ```json\n{"b": 2}\n```').repairs == ()
    mended = find_json("{'a': 1, b: [1, 2,],")
    assert mended.value == {"a": 1, "b": [1, 2]} and mended.repairs
    for text in ("", "no braces", "[1]", "{" * 50_000, "x" * 300_000):
        with pytest.raises(AnswerError):
            find_json(text)


def test_schemas_are_of_the_form_that_is_parsed():
    question = Question("arm", "?", {"red": ("left", "right")})
    assert answer_schema(question)["properties"]["answers"]["required"] == ["red"]
    assert plan_schema(True)["properties"]["executable_plan"]["items"]["minItems"] == 16
    assert yaml.safe_dump(plan_schema(False)), "plain data"


def test_unknown_levels_and_versions_list_the_known_ones():
    with pytest.raises(UsageError, match="unknown level of help 'all'"):
        Prompts("v1", "all")
    with pytest.raises(UsageError, match="unknown prompt version 'v9': choose from v1"):
        Prompts("v9")
