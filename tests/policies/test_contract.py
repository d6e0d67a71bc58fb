"""What every policy and planner in the registry must obey, whatever it does inside."""

from __future__ import annotations

import drill
import numpy as np
import pytest

import policies
from bench_tasks import tasks
from bench_tasks.errors import BenchError
from bench_tasks.tasks.base import Ask
from bench_tasks.vocabulary import (
    ACTION_SIZE,
    ARMS,
    Metadata,
    Observation,
    Plan,
    PlanRequest,
    SkillCall,
)
from sim.scene import CAMERAS
from sim.world import SimWorld

TASK = "blocks_ranking_rgb"
LIFT = Plan(((SkillCall("move_by", "left", {"offset": [0.0, 0.0, -0.05]}),),))
RANDOM = {"random"}
LOCAL_POLICIES = ("skills", "random", "hold")
LOCAL_PLANNERS = ("expert", "random")
"""Those that need no model and no server; others are covered where their model is."""


@pytest.fixture(scope="module")
def world():
    return SimWorld()


@pytest.fixture(scope="module", params=LOCAL_POLICIES)
def policy(request):
    return request.param, policies.make_policy(request.param)


@pytest.fixture(scope="module", params=LOCAL_PLANNERS)
def planner(request):
    return request.param, policies.make_planner(request.param)


def test_the_registry_has_them_all():
    assert set(LOCAL_POLICIES) <= set(policies.POLICIES)
    assert set(LOCAL_PLANNERS) <= set(policies.PLANNERS)


def check_metadata(name: str, metadata: Metadata) -> None:
    assert isinstance(metadata, Metadata) and metadata.name == name and metadata.version
    assert isinstance(metadata.cameras, tuple) and set(metadata.cameras) <= set(CAMERAS)
    assert isinstance(metadata.privileged, bool)


def test_metadata(policy, planner):
    for name, agent in (policy, planner):
        check_metadata(name, agent.metadata)


# -- policies ------------------------------------------------------------------------------------


def roll(world, policy, seed: int, periods: int = 40) -> np.ndarray:
    """The actions of a short episode; a policy that asks gets the same plan each time."""
    scene, _ = world.reset(TASK, 0)
    policy.reset(scene, seed)
    actions, asked = [], 0
    while len(actions) < periods and asked < 3:
        state = world.state
        chunk = policy.infer(Observation(state))
        assert chunk.seq == state.seq, "it answers the state it was shown"
        assert chunk.values.ndim == 2 and chunk.values.shape[1] == ACTION_SIZE
        if chunk.needs_plan:
            assert len(chunk.values) == 0 and chunk.detail["status"] in ("idle", "done", "failed")
            assert isinstance(chunk.detail["completed"], int)
            policy.accept(LIFT)
            asked += 1
            continue
        assert len(chunk.values) > 0 and np.isfinite(chunk.values).all()
        actions += list(chunk.values)
        world.step(chunk)
    assert actions, "it must act once it has a plan"
    return np.array(actions)


def test_policy_obeys_shapes_and_repeats_itself(world, policy):
    name, agent = policy
    first = roll(world, agent, 5)
    assert np.array_equal(first, roll(world, agent, 5)), "after reset with the same seed"
    assert np.array_equal(first, roll(world, policies.make_policy(name), 5)), "a fresh one, too"
    differs = not np.array_equal(first, roll(world, agent, 6))
    assert differs == (name in RANDOM)


def test_policy_actions_are_executable_as_they_are(world, policy):
    _, agent = policy
    asked = roll(world, agent, 3)
    scene, _ = world.reset(TASK, 0)
    agent.reset(scene, 3)
    executed = []
    for k in range(0, len(asked), 10):
        executed += [s.command for s in world.step(drill.ActionChunk(k, asked[k : k + 10]))]
    assert np.array_equal(executed, asked), "nothing had to be clipped"


def test_reset_in_the_middle_forgets_everything(world, policy):
    _, agent = policy
    first = roll(world, agent, 5)
    scene, state = world.reset(TASK, 1)
    agent.reset(scene, 1)
    agent.accept(LIFT)
    agent.infer(Observation(state))
    assert np.array_equal(first, roll(world, agent, 5))


def test_policy_does_not_change_what_it_is_shown(world, policy):
    _, agent = policy
    scene, state = world.reset(TASK, 0)
    copies = {k: np.array(v) for k, v in vars(state).items()}
    agent.reset(scene, 0)
    for _ in range(2):
        agent.infer(Observation(state))
        agent.accept(LIFT)
    assert all(np.array_equal(copies[k], v) for k, v in vars(state).items())


# -- planners ------------------------------------------------------------------------------------


def plans(world, planner, task: str, seed: int, turns: int = 4) -> list[Plan]:
    """The plans of several turns from the first state."""
    scene, state = world.reset(task, 0)
    planner.reset(scene, seed)
    planner.observe(Observation(state))
    found = []
    for turn in range(turns):
        feedback = {"status": "done", "completed": 1} if turn else {"status": "idle"}
        plan = planner.plan(PlanRequest(scene.instruction, Observation(state), turn, feedback))
        assert isinstance(plan, Plan) and plan.checked() is plan
        assert plan.latency_ns >= 0 and Plan.from_json(plan.to_json()).steps == plan.steps
        found.append(plan)
    return found


@pytest.mark.parametrize("task", tasks.names())
def test_planner_gives_valid_plans_and_repeats_itself(world, planner, task):
    name, agent = planner
    first = plans(world, agent, task, 5)
    assert first == plans(world, agent, task, 5)
    assert first == plans(world, policies.make_planner(name), task, 5)
    if name in RANDOM:
        assert first != plans(world, agent, task, 6)
    objects = {o.name for o in world.scene.objects}
    for call in (c for plan in first for step in plan.steps for c in step):
        assert call.arm in ARMS and call.args.get("object", next(iter(objects))) in objects
        if name == "expert":
            assert call.skill in tasks.get(task).skills


@pytest.mark.parametrize("task", ["spatial_sparse", "cover_blocks"])
def test_planner_answers_questions_with_given_choices_only(world, planner, task):
    _, agent = planner
    scene, state = world.reset(task, 0)
    for step in tasks.get(task).prologue(scene):
        if not isinstance(step, Ask):
            continue
        answers = []
        for _ in range(2):
            agent.reset(scene, 3)
            answers.append(agent.ask(step.question, Observation(state)))
        assert answers[0] == answers[1] and answers[0].latency_ns >= 0
        for item, choice in answers[0].values.items():
            assert choice in step.question.choices[item]


def test_planner_refuses_to_plan_before_reset(planner):
    name, _ = planner
    request = PlanRequest("do it", Observation(None), 0)
    with pytest.raises(BenchError, match="before it was reset"):
        policies.make_planner(name).plan(request)
