"""The two planners that need no model: the random floor and the expert ceiling."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bench_tasks.tasks as tasks
from bench_tasks.errors import BenchError, UsageError
from bench_tasks.tasks.base import Ask, Layout, Task
from bench_tasks.vocabulary import (
    ObjectInfo,
    Observation,
    PlanRequest,
    Question,
    Scene,
    SkillCall,
    WorldState,
)
from policies.planners.expert import ExpertPlanner
from policies.planners.random import RandomPlanner

BLOCK = ObjectInfo("block", "block", "red", (0.02, 0.02, 0.02))
SCENE = Scene("drill", 1, 0, "lift", (BLOCK,), ("block", "table"), (), {"gold": "left"})
QUESTION = Question("side", "Which side?", {"block": ("left", "right"), "tray": ("near", "far")})


class Drill(Task):
    """Tells in its plan what it was given: turn, height now and height at the start."""

    name, mode, summary = "drill", "single", ""

    def objects(self):
        return ()

    def layout(self, rng, objects):
        return Layout({}, "")

    def expert(self, view, turn):
        if turn == 9:
            return []
        heights = [float(view.position("block")[2]), float(view.start.position("block")[2]), turn]
        return [(SkillCall("move_by", "left", {"offset": heights}),)]

    def prologue(self, scene):
        return (Ask(QUESTION, {"block": scene.params["gold"], "tray": "far"}, 0.5),)


@pytest.fixture(autouse=True)
def drill(monkeypatch):
    monkeypatch.setattr(tasks, "_registry", lambda: {"drill": Drill()})


def observation(height_m: float) -> Observation:
    zeros = np.zeros
    pose = np.array([[0.5, 0.0, height_m, 1.0, 0.0, 0.0, 0.0]])
    return Observation(
        WorldState(
            0, 0, zeros(14), zeros(14), zeros(14), zeros(2), zeros((2, 7)), zeros(16),
            pose, zeros((1, 6)), zeros((0, 2), np.uint16), zeros(0),
        )
    )


def request(height_m: float, turn: int) -> PlanRequest:
    return PlanRequest("lift", observation(height_m), turn)


def test_expert_sees_the_state_and_the_start_of_the_first_turn():
    planner = ExpertPlanner()
    planner.reset(SCENE, 0)
    planner.plan(request(0.1, 0))
    (step,) = planner.plan(request(0.2, 1)).steps
    assert step[0].args["offset"] == [0.2, 0.1, 1]
    assert planner.plan(request(0.2, 9)).steps == ()


def test_expert_starts_afresh_after_reset():
    planner = ExpertPlanner()
    for height in (0.1, 0.3):
        planner.reset(SCENE, 0)
        (step,) = planner.plan(request(height, 0)).steps
        assert step[0].args["offset"][1] == height


def test_expert_answers_the_gold_and_refuses_other_questions():
    planner = ExpertPlanner()
    planner.reset(SCENE, 0)
    assert planner.ask(QUESTION, observation(0)).values == {"block": "left", "tray": "far"}
    with pytest.raises(UsageError, match="no question 'colour'"):
        planner.ask(replace(QUESTION, name="colour"), observation(0))


@pytest.mark.parametrize("planner", [ExpertPlanner(), RandomPlanner()])
def test_planner_before_reset_says_so(planner):
    with pytest.raises(BenchError, match="before it was reset"):
        planner.plan(request(0, 0))


def test_expert_for_an_unknown_task_lists_the_tasks():
    with pytest.raises(UsageError, match="unknown task 'juggle'"):
        ExpertPlanner().reset(replace(SCENE, task="juggle"), 0)


def test_random_planner_repeats_itself_and_is_always_valid():
    def run(seed: int) -> list:
        planner = RandomPlanner()
        planner.reset(SCENE, seed)
        plans = [planner.plan(request(0, turn)).checked() for turn in range(60)]
        return [plans, [planner.ask(QUESTION, observation(0)).values for _ in range(20)]]

    assert run(5) == run(5)
    assert run(5) != run(6)
    plans, answers = run(5)
    assert {call.skill for plan in plans for step in plan.steps for call in step} == {
        "move_by", "move_to", "open", "close", "home",
    }, "an object without grasps is left alone"
    assert any(not plan.steps for plan in plans) and plans[0].steps
    for item, choices in QUESTION.choices.items():
        assert {answer[item] for answer in answers} == set(choices)


def test_random_planner_uses_objects_that_can_be_grasped():
    from bench_tasks.vocabulary import Grasp

    block = replace(BLOCK, grasps=(Grasp("top", (0, 0, 0, 1, 0, 0, 0), 0.04),))
    planner = RandomPlanner()
    planner.reset(replace(SCENE, objects=(block,)), 0)
    calls = [
        call
        for turn in range(60)
        for step in planner.plan(request(0, turn)).steps
        for call in step
    ]
    assert {"grasp", "place"} <= {call.skill for call in calls}
    assert {call.args["object"] for call in calls if "object" in call.args} == {"block"}


def test_random_planner_keeps_to_the_skills_of_the_task(monkeypatch):
    monkeypatch.setattr(Drill, "skills", ("move_to",))
    planner = RandomPlanner()
    planner.reset(SCENE, 0)
    plans = [planner.plan(request(0, turn)) for turn in range(30)]
    assert {c.skill for plan in plans for step in plan.steps for c in step} == {"move_to"}
