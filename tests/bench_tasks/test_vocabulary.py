"""Scenes and plans survive the wire; what is wrong with a plan is said in one line."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bench_tasks.errors import UsageError
from bench_tasks.vocabulary import (
    SKILLS,
    Grasp,
    ObjectInfo,
    Plan,
    Scene,
    SkillCall,
    numbers,
)

DOWN = [0.0, 1.0, 0.0, 0.0]


def test_scene_survives_json():
    grasp = Grasp("top", (0.0, 0.0, 0.01, *DOWN), 0.04)
    scene = Scene(
        "t", 2, 5, "Do – it.", (ObjectInfo("b", "block", "red", (0.02,) * 3, (grasp,), True),),
        ("table", "b"), ("j1",), {"gold": {"b": "left"}, "n": [1, 2.5]}, "sim",
        ("light",), 0.02, 10,
    )
    again = Scene.from_json(scene.to_json())
    assert again == scene and again.to_json() == scene.to_json()
    assert hash(again.objects) == hash(scene.objects), "tuples stay tuples"


def test_plan_survives_json():
    plan = Plan(
        ((SkillCall("grasp", "left", {"object": "b"}), SkillCall("home", "right")),),
        raw="{...}", latency_ns=12,
    )
    assert Plan.from_json(plan.to_json()) == plan
    assert Plan.from_json(Plan(()).to_json()) == Plan(())


@pytest.mark.parametrize(
    "text",
    [
        "", "not json", "[]", "null", "3", "{}", '{"steps": 3}', '{"steps": [3]}',
        '{"steps": [[3]]}', '{"steps": [[{"skill": "home"}]]}', '{"steps": [[]]}',
        '{"steps": [[{"skill": "home", "arm": "left", "args": 3}]]}',
        '{"steps": [], "latency_ns": "soon"}', '{"steps": [[{"skill": 1, "arm": "left"}]]}',
        '{"steps": [[{"skill": [], "arm": "left"}]]}',
    ],
)
def test_a_malformed_plan_is_a_usage_error_in_one_line(text):
    with pytest.raises(UsageError) as caught:
        Plan.from_json(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("skill", "arm", "args", "message"),
    [
        ("jump", "left", {}, "unknown skill 'jump': choose from close, grasp, home"),
        ("home", "middle", {}, "unknown arm 'middle': choose from left, right"),
        ("grasp", "left", {}, "grasp: object must be a str, got None"),
        ("grasp", "left", {"object": 3}, "grasp: object must be a str, got 3"),
        ("grasp", "left", {"object": "b", "grasp": 3}, "grasp: grasp must be a str, got 3"),
        ("grasp", "left", {"object": "b", "hard": 1}, "unknown argument of grasp 'hard'"),
        ("home", "left", {"pose": [0] * 7}, "unknown argument of home 'pose'"),
        ("move_by", "left", {"offset": [1, 2]}, "move_by offset must have 3 numbers, got 2"),
        ("move_by", "left", {"offset": "abc"}, "move_by: offset must be a list"),
        ("move_by", "left", {"offset": [1, 2, "x"]}, "move_by offset must be .* numbers"),
        ("move_by", "left", {"offset": [1, 2, float("nan")]}, "move_by offset must be finite"),
        ("move_by", "left", {"offset": [[1], [2], [3]]}, "move_by offset must have"),
        ("move_by", "left", {"offset": [True, None, {}]}, "move_by offset must be .* numbers"),
        ("move_to", "left", {"pose": [0, 0, 0]}, "move_to pose must have 7 numbers, got 3"),
        ("move_to", "left", {"pose": [0.4, 0, 0.2, 1, 1, 0, 0]}, "quaternion .* length 1.414"),
        ("move_to", "left", {"pose": [0.4, 0, 0.2, 0, 0, 0, 0]}, "quaternion .* length 0.000"),
        (
            "move_to", "left", {"pose": [0.4, 0, 0.2, *DOWN], "opening_m": "wide"},
            "move_to: opening_m must be a number, got 'wide'",
        ),
        ("place", "left", {"object": "b", "pose": [0] * 4}, "must have 3 or 7 numbers, got 4"),
        (
            "place", "left", {"object": "b", "pose": [0.4, 0, 0.1], "release": "no"},
            "place: release must be a bool, got 'no'",
        ),
    ],
)
def test_wrong_calls_say_what_is_wrong(skill, arm, args, message):
    with pytest.raises(UsageError, match=message) as caught:
        SkillCall(skill, arm, args).checked()
    assert "\n" not in str(caught.value)


def test_right_calls_pass():
    pose = [0.4, 0.0, 0.2, *DOWN]
    for skill, args in {
        "grasp": {"object": "b", "grasp": "top"}, "move_by": {"offset": [0, 0, 0.1]},
        "place": {"object": "b", "pose": pose[:3], "release": False}, "home": {}, "open": {},
        "close": {}, "move_to": {"pose": pose, "opening_m": 0.05},
    }.items():
        call = SkillCall(skill, "left", args)
        assert call.checked() is call
    assert set(SKILLS) == {"grasp", "place", "move_by", "move_to", "open", "close", "home"}


@pytest.mark.parametrize("arms", [(), ("left", "left"), ("left", "right", "left")])
def test_a_step_uses_each_arm_once(arms):
    with pytest.raises(UsageError, match="a step needs one call per arm"):
        Plan((tuple(SkillCall("home", arm) for arm in arms),)).checked()


def test_numbers_are_checked_and_quaternions_made_unit():
    pose = numbers("pose", [1, 2, 3, 0, 1.005, 0, 0], (7,))
    assert pose.dtype == np.float64 and np.array_equal(pose, [1, 2, 3, 0, 1, 0, 0])
    assert np.array_equal(numbers("offset", (1, 2, 3), (3,)), [1, 2, 3])
    for wrong in (None, "text", [1, 2], [[1, 2, 3]], [1, 2, float("inf")], [1, [2], 3], {}):
        with pytest.raises(UsageError, match="offset"):
            numbers("offset", wrong, (3,))


def test_object_lookup_names_the_choices():
    scene = Scene("t", 1, 0, "", (ObjectInfo("b", "block", "red", (0.02,) * 3),), (), (), {})
    assert scene.object("b") is scene.objects[scene.index("b")]
    with pytest.raises(UsageError, match="unknown object 'c': choose from b"):
        scene.object("c")


def test_scene_json_is_plain():
    scene = Scene("t", 1, 0, "", (), ("table",), (), {"a": 1})
    assert json.loads(scene.to_json())["params"] == {"a": 1}
