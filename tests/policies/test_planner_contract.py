"""What every planner in the registry must obey, whatever it asks and wherever that is."""

from __future__ import annotations

import copy
import json
from dataclasses import asdict

import numpy as np
import pytest
from planner_cases import CASES, KEY, SLOW, ready, timeless

import policies
from bench_tasks import tasks
from bench_tasks.errors import BenchError, UsageError
from bench_tasks.tasks.base import Ask
from bench_tasks.vocabulary import (
    ARMS,
    Answer,
    Metadata,
    Observation,
    Plan,
    PlanRequest,
    Question,
    SkillCall,
)
from sim.scene import CAMERAS
from sim.world import SimWorld

DO, ASKED = "lift_pot", "spatial_sparse"
QUESTION = Question("side", "Which side?", {"pot": ("left", "right")})


@pytest.fixture(scope="module")
def world():
    return SimWorld(width=64, height=48)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("contract")


@pytest.fixture(
    params=[
        pytest.param(c, marks=[pytest.mark.slow, pytest.mark.timeout(900)] if c in SLOW else ())
        for c in CASES
    ]
)
def case(request, folder, monkeypatch):
    """(name, specification) of a planner that can be asked."""
    with ready(request.param, folder, monkeypatch) as spec:
        yield request.param.partition(":")[0], spec


def see(world, planner) -> Observation:
    """What the planner wants to see of the present state, as nobody may change it."""
    wanted, state = planner.metadata, world.state
    for array in vars(state).values():
        if isinstance(array, np.ndarray):
            array.setflags(write=False)
    frames = world.capture(wanted.cameras, wanted.depth) if wanted.cameras else ()
    return Observation(state, frames)


def plans(world, planner, seed: int = 5, turns: int = 2) -> list[Plan]:
    """The plans of a short episode in a world that stands still."""
    scene, _ = world.reset(DO, 0)
    planner.reset(scene, seed)
    found = []
    for turn in range(turns):
        status = {"status": "done", "completed": 1, "held": {}} if turn else {}
        seen = see(world, planner)
        planner.observe(seen)
        found.append(planner.plan(PlanRequest(scene.instruction, seen, turn, status)))
    return found


def answer(world, planner, seed: int = 5) -> Answer:
    """The answer to the question of a task."""
    scene, _ = world.reset(ASKED, 0)
    (question,) = [s.question for s in tasks.get(ASKED).prologue(scene) if isinstance(s, Ask)]
    planner.reset(scene, seed)
    return planner.ask(question, see(world, planner))


def test_metadata(case):
    name, spec = case
    said = policies.make_planner(spec).metadata
    assert isinstance(said, Metadata) and said.name.startswith(name) and said.version
    assert isinstance(said.cameras, tuple) and set(said.cameras) <= set(CAMERAS)
    assert isinstance(said.privileged, bool) and isinstance(said.depth, bool)
    assert json.loads(json.dumps(asdict(said)))["name"] == said.name
    assert said.depth == ("dialect" in spec) and KEY not in repr(said)


def test_before_reset_it_says_so(case, world):
    _, spec = case
    planner = policies.make_planner(spec)
    scene, state = world.reset(DO, 0)
    for use in (
        lambda: planner.plan(PlanRequest(scene.instruction, Observation(state), 0)),
        lambda: planner.ask(QUESTION, Observation(state)),
    ):
        with pytest.raises(BenchError, match="used before it was reset") as caught:
            use()
        assert not isinstance(caught.value, UsageError), "that would be its answer's fault"


def test_plans_are_plans_and_the_same_again(case, world):
    name, spec = case
    planner = policies.make_planner(spec)
    first = plans(world, planner)
    for plan in first:
        assert isinstance(plan, Plan) and isinstance(plan.steps, tuple) and plan.latency_ns >= 0
        assert Plan.from_json(plan.to_json(), check=False) == plan, "over ROS it is the same"
        assert KEY not in plan.to_json()
        assert not plan.error or not plan.steps
        if not plan.error:
            assert plan.checked() is plan
            assert all(c.arm in ARMS for step in plan.steps for c in step)
    assert bool(first[0].steps) != bool(first[0].error), "it plans, or says what it said instead"
    expected = [timeless(asdict(plan)) for plan in first]
    assert [timeless(asdict(p)) for p in plans(world, planner)] == expected, "reset forgets"
    if name not in ("transformers", "smollm2"):  # they would be loaded again
        fresh = policies.make_planner(spec)
        assert [timeless(asdict(p)) for p in plans(world, fresh)] == expected
    if name == "random":
        assert plans(world, planner, 6) != first


def test_answers_are_answers_and_the_same_again(case, world):
    _, spec = case
    planner = policies.make_planner(spec)
    first = answer(world, planner)
    assert isinstance(first, Answer) and first.latency_ns >= 0
    assert Answer.from_json(first.to_json()) == first, "over ROS it is the same"
    assert KEY not in first.to_json()
    scene, _ = world.reset(ASKED, 0)
    (question,) = [s.question for s in tasks.get(ASKED).prologue(scene) if isinstance(s, Ask)]
    assert bool(first.values) != bool(first.error)
    assert all(choice in question.choices[item] for item, choice in first.values.items())
    assert timeless(asdict(answer(world, planner))) == timeless(asdict(first))


def test_what_it_is_shown_stays_as_it_was(case, world):
    _, spec = case
    planner = policies.make_planner(spec)
    scene, _ = world.reset(DO, 0)
    planner.reset(scene, 0)
    told = scene.to_json()
    feedback = {"status": "done", "completed": 1, "held": {"left": "pot"}}
    seen = see(world, planner)
    request = PlanRequest(scene.instruction, seen, 0, feedback)
    before = copy.deepcopy((seen, request.feedback))
    planner.observe(seen)
    planner.plan(request)
    (old, old_feedback) = before
    assert seen.frames == old.frames and request.feedback == old_feedback
    assert scene.to_json() == told
    for key, value in vars(old.state).items():
        assert np.array_equal(getattr(seen.state, key), value), key


class NeedsMore:
    """A planner whose author forgot that nobody gives it anything."""

    def __init__(self, model):
        self.model = model


class Breaks(NeedsMore):
    """One that looks for a file when it is made."""

    def __init__(self):
        raise FileNotFoundError("weights.bin")


@pytest.mark.parametrize(
    ("role", "make"), [("planner", policies.make_planner), ("policy", policies.make_policy)]
)
def test_a_class_that_cannot_be_made_is_one_line(role, make, monkeypatch):
    registry = policies.PLANNERS if role == "planner" else policies.POLICIES
    for kind, why in ((NeedsMore, "TypeError: .*'model'"), (Breaks, "FileNotFoundError: weights")):
        monkeypatch.setitem(registry, "mine", f"{__name__}:{kind.__name__}")
        with pytest.raises(UsageError, match=f"^{role} mine cannot be made from '.*': {why}"):
            make("mine")


def test_a_back_end_without_a_model_call_cannot_be_made():
    from policies.planners.chat import ChatPlanner

    with pytest.raises(TypeError, match="abstract method '?_complete"):
        ChatPlanner()


def test_numbers_of_numpy_are_numbers_and_what_is_no_json_is_named():
    args = {"offset": np.array([0.0, 0.0, 0.1], np.float32), "count": np.int64(3)}
    call = SkillCall("move_by", "left", {"offset": args["offset"]}).checked()
    assert call.args == {"offset": [0.0, 0.0, float(np.float32(0.1))]}
    assert SkillCall("place", "left", {"object": np.str_("a"), "pose": (1, 2, 3)}).args == {
        "object": "a", "pose": [1, 2, 3],
    }  # fmt: skip
    plan = Plan(((call,),), latency_ns=np.int64(5), transcript={"a": (np.float64(0.5), {1: None})})
    assert Plan.from_json(plan.to_json()) == plan
    assert plan.transcript == {"a": [0.5, {"1": None}]}
    given = Answer({"pot": np.str_("left")}, transcript={"n": args["count"]})
    assert Answer.from_json(given.to_json()) == given and given.transcript == {"n": 3}
    with pytest.raises(TypeError, match="{1, 2} cannot be written as JSON"):
        SkillCall("grasp", "left", {"object": {1, 2}})
