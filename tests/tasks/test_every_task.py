"""What holds for every registered task, so that a new one is tested as it comes in."""

from __future__ import annotations

import re

import numpy as np
import pytest
from staging import Stage

from bench_tasks import tasks
from bench_tasks.errors import UsageError
from bench_tasks.robots import embodiments
from bench_tasks.tasks.base import Ask, MoveObjects, Show, Wait
from bench_tasks.tasks.families.humanoid import HEIGHTS_M
from bench_tasks.verdicts.monitor import Monitor
from bench_tasks.view import View, compose, invert
from bench_tasks.vocabulary import ROBOT_PART, SKILLS, Event, Plan, Scene

SEEDS = range(8)
ALL_SEEDS = range(50)
TABLE_X, TABLE_Y = (-0.1, 1.0), (-0.85, 0.85)


@pytest.fixture(scope="module", params=tasks.names(None))
def task(request):
    return tasks.get(request.param)


@pytest.fixture(scope="module")
def layouts(task, world):
    """Scene and first state of every seed."""
    return [world.reset(task.name, seed) for seed in SEEDS]


def test_it_says_what_it_is(task):
    assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", task.name)
    assert type(task).__module__ == f"bench_tasks.tasks.{task.name}"
    assert task.kind in ("task", "probe")
    assert task.tier in ((1, 2, 3) if task.kind == "task" else (None,))
    assert task.mode in ("single", "parallel", "sequential", "simultaneous")
    assert task.summary
    assert task.summary == task.summary.strip()
    assert task.summary[0].islower()
    assert len(task.summary) <= 100
    assert isinstance(task.version, int)
    assert task.version >= 1
    assert set(task.skills) <= set(SKILLS)
    assert 0 < task.time_limit_s <= 600
    assert 0 < task.max_plans <= 200


def test_it_is_found_by_its_name(task):
    assert tasks.get(task.name) is task
    assert tasks.names(None).count(task.name) == tasks.names(task.embodiment).count(task.name) == 1


def test_a_wrong_name_lists_the_right_ones(task):
    with pytest.raises(UsageError, match=task.name):
        tasks.get(f"{task.name}x")


def test_objects_have_names_of_their_own(task, layouts):
    names = [item.name for item in task.objects()]
    # Without any it is about where the hands are to be.
    assert names or "targets" in layouts[0][0].params
    assert len(set(names)) == len(names)
    assert len({item.name for item in layouts[0][0].objects}) >= len(names)


def drawn(layouts) -> set:
    """What the seeds drew: how things lie, and what is told."""
    return {(state.object_pose.round(4).tobytes(), scene.instruction) for scene, state in layouts}


def test_same_seed_same_layout_other_seed_another(task, world, layouts):
    again, state = world.reset(task.name, 7)
    scene, first = layouts[7]
    assert again == scene
    assert state.object_pose.tobytes() == first.object_pose.tobytes()
    assert len(drawn(layouts)) == len(SEEDS)


def test_layouts_keep_clear_of_each_other_and_of_the_arms(task, layouts):
    for scene, state in layouts:
        view = View(scene, state)
        loose = [o for o in scene.objects if not o.fixed and o.kind != ROBOT_PART]
        for item in loose:
            x, y, z = view.position(item.name)
            assert TABLE_X[0] < x < TABLE_X[1], (scene.seed, item.name)
            assert TABLE_Y[0] < y < TABLE_Y[1], (scene.seed, item.name)
            assert 0.0 < z < 0.5, (scene.seed, item.name)
            assert view.at_rest(item.name), (scene.seed, item.name)
            assert not view.touched_by_robot(item.name), (scene.seed, item.name)
            for other in loose:
                if other is not item and not nested(task, item.name, other.name):
                    assert not view.touching(item.name, other.name), (scene.seed, item.name)
                    apart = np.linalg.norm((view.position(other.name) - [x, y, z])[:2])
                    # Their circumscribed circles do not even overlap by half.
                    least = min(item.half_size_m[:2]) + min(other.half_size_m[:2])
                    assert apart > least, (scene.seed, item.name, other.name)


def nested(task, one: str, other: str) -> bool:
    """Whether one stands on or in the other, or both on or in the same thing."""
    on = task.rests_on
    return on.get(one) == other or on.get(other) == one or (one in on and on[one] == on.get(other))


def test_what_rests_on_something_is_within_its_outline(task, layouts):
    names = {item.name for item in task.objects()}
    assert set(task.rests_on) | set(task.rests_on.values()) <= names
    for scene, state in layouts:
        view = View(scene, state)
        for upper, lower in task.rests_on.items():
            half = np.array(scene.object(lower).half_size_m)
            local = compose(invert(view.pose(lower)), view.pose(upper))[:3]
            assert (np.abs(local[:2]) < half[:2]).all(), (scene.seed, upper)
            assert view.position(upper)[2] > view.position(lower)[2] - half[2]
            assert not view.touching(upper, "table"), (scene.seed, upper)


def test_the_scene_survives_being_written_down(task, layouts):
    for scene, _ in layouts:
        restored = Scene.from_json(scene.to_json())
        assert restored == Scene.from_json(restored.to_json())
        assert restored.params == scene.params
        # The goal can be built from what the recording holds.
        Monitor(task, restored)


def test_the_instruction_is_plain(task, layouts):
    for scene, _ in layouts:
        assert 20 < len(scene.instruction) < 600
        assert scene.instruction[0].isupper()
        assert scene.instruction.rstrip()[-1] in ".?"
        assert "{" not in scene.instruction


def test_there_is_something_to_fail_and_names_refer_to_what_exists(task, layouts):
    scene, _ = layouts[0]
    goal = task.goal(scene)
    asks = [step for step in task.prologue(scene) if isinstance(step, Ask)]
    assert goal is not None or asks
    stages = [check.name for check in task.stages(scene)]
    assert len(set(stages)) == len(stages)
    assert "goal held" not in stages
    for check in task.stages(scene):
        assert set(check.after) <= set(stages) - {check.name}
    if goal is not None:
        assert set(goal.after) <= set(stages)
        names = [check.name for check in goal.checks]
        assert len(set(names)) == len(names)
        assert stages, "progress needs stages"
    names = {item.name for item in scene.objects}
    for step in task.prologue(scene):
        if isinstance(step, MoveObjects):
            assert set(step.poses) <= names
        elif isinstance(step, Wait):
            assert step.duration_s > 0
        elif isinstance(step, Show):
            assert step.name
    questions = [ask.question.name for ask in asks]
    assert len(set(questions)) == len(questions)


def test_no_layout_is_a_success_already(task, layouts):
    for scene, state in layouts:
        goal = task.goal(scene)
        if goal is not None:
            view = View(scene, state)
            # Where hands come off in the end, it is the stages before that are to be done.
            assert goal.after or not all(check.holds(view) for check in goal.checks), scene.seed
            for check in task.invariants(scene):
                assert check.holds(view), (scene.seed, check.name)
        assert not judged_at_once(task, scene, state).success


def judged_at_once(task, scene, state):
    monitor = Monitor(task, scene)
    monitor.on_state(state)
    monitor.on_event(Event("act", 0, 0, {}))
    return monitor.verdict()


@pytest.mark.slow
def test_guessing_is_worth_what_it_is_said_to_be(task, world):
    """Over many layouts no constant answer beats the chance level by much."""
    layouts = [world.reset(task.name, seed) for seed in ALL_SEEDS]
    golds: dict[tuple[str, str], list[str]] = {}
    chance = {}
    for scene, _ in layouts:
        for step in task.prologue(scene):
            if isinstance(step, Ask):
                for item, gold in step.gold.items():
                    golds.setdefault((step.question.name, "any"), []).append(gold)
                    chance[step.question.name] = step.chance
                    choices = step.question.choices[item]
                    assert step.chance >= 1.0 / len(choices) - 1e-9
    for (question, _), values in golds.items():
        shares = [values.count(value) / len(values) for value in set(values)]
        assert len(shares) > 1, question
        spread = 3.0 * np.sqrt(chance[question] * (1 - chance[question]) / len(values))
        assert max(shares) < chance[question] + spread, (question, shares)


def test_doing_nothing_fails(task, world):
    stage = Stage(world, task.name, answer=None).hold(1.5)
    verdict = stage.verdict
    assert not verdict.success
    assert verdict.cause
    assert 0.0 <= verdict.progress < 0.5


def test_the_expert_starts_with_a_plan_that_is_allowed(task, world):
    for seed in range(5):
        stage = Stage(world, task.name, seed)
        plan = Plan(tuple(task.expert(stage.view, 0))).checked()
        assert bool(plan.steps) is (task.goal(stage.scene) is not None), seed
        for call in (call for step in plan.steps for call in step):
            assert call.skill in task.skills
            if "object" in call.args:
                assert stage.scene.object(call.args["object"]).grasps


@pytest.mark.slow
def test_fifty_layouts_can_be_set_up(task, world):
    assert len(drawn([world.reset(task.name, seed) for seed in ALL_SEEDS])) == len(ALL_SEEDS)


@pytest.mark.slow
def test_layouts_can_be_set_up_with_everything_randomised(task, world):
    axes = embodiments.get(task.embodiment).axes
    scenes = [world.reset(task.name, seed, axes)[0] for seed in range(20)]
    assert all(any(o.name.startswith("clutter_") for o in scene.objects) for scene in scenes)
    heights = {scene.base_height_m for scene in scenes}
    assert len(heights) == (20 if "table_height" in axes else len(HEIGHTS_M))
