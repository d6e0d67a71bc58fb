"""What every policy in the registry must obey, whatever it does inside; then two planners' plans.

What every planner must obey is in test_planner_contract.py.
"""

from __future__ import annotations

import contextlib
import copy
from pathlib import Path

import drill
import numpy as np
import pytest

import policies
from bench_tasks import tasks
from bench_tasks.robots.fr3 import HOME_RAD
from bench_tasks.tasks.base import Ask
from bench_tasks.vocabulary import (
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
RANDOM = {"random", "excite", "wam", "pair"}
LOCAL_PLANNERS = ("expert", "random")
"""Those that plan for every task without a model."""


@pytest.fixture(scope="module")
def world():
    return SimWorld()


def turn_joint(observation) -> np.ndarray:
    """What a RoboArena server says: 15 actions that turn joint 1 a little, the gripper open."""
    joints = np.asarray(observation["observation/joint_position"], np.float64)
    rows = np.tile(np.append(joints, 0.0), (15, 1))
    rows[:, 0] += 0.01 * np.arange(1, 16)
    return rows


@contextlib.contextmanager
def spec_of(name: str, folder: Path):
    """A specification that makes the policy, with the server or the checkpoint that it needs."""
    if name in ("skills", "humanoid", "random", "hold", "excite"):
        yield name
        return
    if name in ("wam", "pair"):
        pytest.importorskip("torch")
        from tiny_wam import fake_embed, steady_checkpoint

        checkpoint = steady_checkpoint(folder / "tiny.safetensors", apart=0.5)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("policies.wam.policy.embed", fake_embed)
            yield f"{name}:checkpoint={checkpoint}"
        return
    peers = pytest.importorskip("peers")
    from peers import Gr00tPeer, OpenPIPeer, good_values, gr00t_answer

    if name == "openpi":
        peer = OpenPIPeer(lambda seen, _: {"actions": good_values(seen["command"])})
    elif name == "dreamzero":
        config = {
            "image_resolution": [180, 320], "n_external_cameras": 2, "needs_wrist_camera": True,
            "needs_stereo_camera": False, "needs_session_id": True,
            "action_space": "joint_position",
        }  # fmt: skip
        peer = OpenPIPeer(lambda seen, _: turn_joint(seen), metadata=config, endpoints=True)
    elif name == "gr00t":
        held = np.tile(np.concatenate([HOME_RAD, [0.08]]), 2)
        peer = Gr00tPeer(lambda *_: gr00t_answer(good_values(held)))
    else:
        pytest.fail(f"policy {name} is registered but has no place in the contract suite")
    with peer:
        yield f"{name}:port={peer.port},deadline_s={peers.SAFE_S}"


@pytest.fixture(scope="module", params=policies.POLICIES)
def policy(request, tmp_path_factory):
    """(name, specification, a policy made from it)."""
    with spec_of(request.param, tmp_path_factory.mktemp("policy")) as spec:
        yield request.param, spec, policies.make_policy(spec)


@pytest.fixture(scope="module", params=LOCAL_PLANNERS)
def planner(request):
    return request.param, policies.make_planner(request.param)


def check_metadata(name: str, metadata: Metadata) -> None:
    assert isinstance(metadata, Metadata) and metadata.name.startswith(name) and metadata.version
    assert isinstance(metadata.cameras, tuple) and set(metadata.cameras) <= set(CAMERAS)
    assert isinstance(metadata.privileged, bool)


def test_metadata(policy):
    name, _, agent = policy
    check_metadata(name, agent.metadata)


def see(world, agent) -> Observation:
    """What the policy wants to see of the present state."""
    cameras = agent.metadata.cameras
    return Observation(world.state, world.capture(cameras) if cameras else ())


# -- policies ------------------------------------------------------------------------------------

REACH = Plan((tuple(
    SkillCall("move_to", arm, {"pose": [0.35, y, 0.3, 0.7071, 0.0, 0.7071, 0.0]})
    for arm, y in (("left", 0.2), ("right", -0.2))
),))  # fmt: skip


def task_of(agent) -> tuple[str, Plan]:
    """A task for the policy's robot, and a plan that can be executed there."""
    return ("reach_both_hands", REACH) if agent.metadata.name == "humanoid" else (TASK, LIFT)


def roll(world, policy, seed: int, periods: int = 40) -> np.ndarray:
    """The actions of a short episode; a policy that asks gets the same plan each time."""
    task, plan = task_of(policy)
    scene, _ = world.reset(task, 0)
    policy.reset(scene, seed)
    actions, asked = [], 0
    while len(actions) < periods and asked < 3:
        state = world.state
        chunk = policy.infer(see(world, policy))
        assert chunk.seq == state.seq, "it answers the state it was shown"
        assert chunk.values.ndim == 2 and chunk.values.shape[1] == len(state.command)
        if chunk.needs_plan:
            assert len(chunk.values) == 0 and chunk.detail["status"] in ("idle", "done", "failed")
            assert isinstance(chunk.detail["completed"], int)
            policy.accept(plan)
            asked += 1
            continue
        assert len(chunk.values) > 0 and np.isfinite(chunk.values).all()
        actions += list(chunk.values)
        world.step(chunk)
    assert actions, "it must act once it has a plan"
    return np.array(actions)


def test_policy_obeys_shapes_and_repeats_itself(world, policy):
    name, spec, agent = policy
    first = roll(world, agent, 5)
    assert np.array_equal(first, roll(world, agent, 5)), "after reset with the same seed"
    assert np.array_equal(first, roll(world, policies.make_policy(spec), 5)), "a fresh one, too"
    differs = not np.array_equal(first, roll(world, agent, 6))
    assert differs == (name in RANDOM)


def test_policy_actions_are_executable_as_they_are(world, policy):
    _, _, agent = policy
    asked = roll(world, agent, 3)
    scene, _ = world.reset(task_of(agent)[0], 0)
    agent.reset(scene, 3)
    executed = []
    for k in range(0, len(asked), 10):
        executed += [s.command for s in world.step(drill.ActionChunk(k, asked[k : k + 10]))]
    assert np.array_equal(executed, asked), "nothing had to be clipped"


def test_reset_in_the_middle_forgets_everything(world, policy):
    _, _, agent = policy
    first = roll(world, agent, 5)
    task, plan = task_of(agent)
    scene, _ = world.reset(task, 1)
    agent.reset(scene, 1)
    agent.accept(plan)
    agent.infer(see(world, agent))
    assert np.array_equal(first, roll(world, agent, 5))


def test_policy_does_not_change_what_it_is_shown(world, policy):
    _, _, agent = policy
    task, plan = task_of(agent)
    scene, state = world.reset(task, 0)
    copies = {k: np.array(v) for k, v in vars(state).items()}
    agent.reset(scene, 0)
    seen = see(world, agent)
    frames = copy.deepcopy(seen.frames)
    for _ in range(2):
        agent.infer(seen)
        agent.accept(plan)
    assert seen.frames == frames
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


@pytest.mark.parametrize("task", tasks.names(None))
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
