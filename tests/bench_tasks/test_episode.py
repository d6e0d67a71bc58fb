"""The conductor on the real simulation: what ends an episode, what is told, what is charged."""

from __future__ import annotations

import re
from dataclasses import replace

import cv2
import numpy as np
import pytest

from bench_tasks import tasks
from bench_tasks.episode import SETTLE_S, Options, run_episode
from bench_tasks.errors import BenchError, GoneNode, SafetyStop, UsageError
from bench_tasks.tasks.base import Check, Goal, Layout, ObjectSpec, Show, Task, Wait
from bench_tasks.tasks.families.layouts import upright
from bench_tasks.vocabulary import Answer, Metadata, Plan, SkillCall
from policies.floors import HoldPolicy
from policies.skills import SkillPolicy
from sim.world import SimWorld

PERIOD_S = 0.02


class Lift(Task):
    """Lift a block; only by grasp and move_by."""

    name, mode, summary = "lift_drill", "single", "lift the block"
    tier = 2
    skills = ("grasp", "move_by", "open")
    time_limit_s = 8.0
    max_plans = 4

    def objects(self):
        return (ObjectSpec("block", "block", "red"),)

    def layout(self, rng, objects):
        return Layout({"block": upright(0.45, 0.2, 0.02)}, "Lift the block.")

    def goal(self, scene):
        return Goal((Check("lifted", lambda v: v.position("block")[2] > 0.1),), hold_s=0.2)

    def prologue(self, scene):
        return (Wait(0.1), Show("before"))

    def expert(self, view, turn):
        return []


GRASP = (SkillCall("grasp", "left", {"object": "block"}),)
RAISE = (SkillCall("move_by", "left", {"offset": [0.0, 0.0, 0.12]}),)
LOWER = (SkillCall("move_by", "left", {"offset": [0.0, 0.0, -0.01]}),)
LIFT = Plan((GRASP, RAISE))


class Scripted:
    """A planner that gives the scripted plans in turn, the last one for ever, and keeps what it
    was asked. Once it gave a plan that lifts, it holds the task to be finished.
    """

    def __init__(self, *script, cameras: tuple[str, ...] = ()) -> None:
        self.metadata = Metadata("scripted", "1", cameras)
        self.script = script
        self.requests, self.seen, self.resets = [], [], 0

    def reset(self, scene, seed):
        self.requests, self.seen = [], []
        self.resets += 1

    def observe(self, observation):
        self.seen.append(observation)

    def plan(self, request):
        self.requests.append(request)
        turn = len(self.requests) - 1
        if turn >= len(self.script) and getattr(self.script[-1], "steps", ()) == LIFT.steps:
            return Plan(())
        item = self.script[min(turn, len(self.script) - 1)]
        if isinstance(item, Exception):
            raise item
        return item

    def ask(self, question, observation):
        return Answer({})


class Sink:
    """Keeps everything."""

    def __init__(self) -> None:
        self.states, self.events, self.pictures, self.verdicts = [], [], [], []

    def scene(self, scene):
        pass

    def state(self, state):
        self.states.append(state)

    def chunk(self, chunk, stamp_ns):
        assert stamp_ns == chunk.seq * 20_000_000

    def event(self, event):
        self.events.append(event)

    def frames(self, frames):
        self.pictures += frames

    def verdict(self, verdict):
        self.verdicts.append(verdict)

    def of(self, kind: str) -> list[dict]:
        return [e.data for e in self.events if e.kind == kind]


@pytest.fixture(scope="module")
def world():
    with pytest.MonkeyPatch.context() as patch:
        known = {**tasks._registry(), Lift.name: Lift()}
        patch.setattr(tasks, "_registry", lambda: known)
        yield SimWorld()


def run(world, planner, task=None, policy=None, **options):
    sink = Sink()
    verdict, wall_s = run_episode(
        task or Lift(), 0, world, planner, policy or SkillPolicy(), sink, Options(**options)
    )
    assert sink.verdicts == [verdict] and wall_s > 0
    assert [s.seq for s in sink.states] == list(range(len(sink.states))), "no state is missing"
    assert sink.events[-1].kind == "end" and verdict.end_seq == sink.states[-1].seq
    return verdict, sink


def test_a_good_plan_succeeds_and_the_record_tells_the_story(world):
    verdict, sink = run(world, Scripted(LIFT))
    assert verdict.success and verdict.cause == "" and verdict.progress == 1.0
    kinds = [e.kind for e in sink.events]
    plan = ["plan_request", "plan"]
    assert kinds == ["begin", "show", "act", *plan, "plan_result", *plan, "end"]
    assert sink.of("plan")[0]["steps"][0][0]["skill"] == "grasp"
    assert sink.of("begin")[0]["planner"]["name"] == "scripted"


def test_the_same_episode_twice_gives_the_same_states(world):
    _, first = run(world, Scripted(LIFT))
    _, second = run(world, Scripted(LIFT))
    for a, b in zip(first.states, second.states, strict=True):
        for x, y in zip(vars(a).values(), vars(b).values(), strict=True):
            assert np.array_equal(x, y)


def test_a_planner_error_fails_the_episode_and_the_run_goes_on(world):
    verdict, sink = run(world, Scripted(BenchError("server at :8000 gave up")))
    assert not verdict.success
    assert verdict.cause == "planner error: server at :8000 gave up"
    assert sink.of("planner_error")[0]["error"] == "server at :8000 gave up"
    assert run(world, Scripted(LIFT))[0].success


class Stopped:
    """A world whose arms are stopped: behind its last state of a step, or told of at the end."""

    def __init__(self, world, when):
        self.world, self.when, self.lifted = world, when, False
        self.reset, self.capture = world.reset, world.capture

    def step(self, chunk):
        for state in self.world.step(chunk):
            self.lifted = self.lifted or float(state.object_pose[0, 2]) > 0.1
            yield state
        if self.when == "in a step" and self.lifted:
            raise SafetyStop("the button")

    def report(self):
        if self.when == "behind the last step":
            raise SafetyStop("the button")


@pytest.mark.parametrize("when", ["in a step", "behind the last step", "never"])
def test_an_episode_in_which_the_arms_were_stopped_is_no_success(world, when):
    verdict, sink = run(Stopped(world, when), Scripted(LIFT))
    stopped = when != "never"
    assert verdict.success is not stopped
    assert verdict.cause == ("safety stop: the button" if stopped else "")
    assert sink.of("end") == [{"cause": verdict.cause, **({"stopped": True} if stopped else {})}]
    if when == "in a step":  # what led to the stop is seen, all of it
        assert sink.states[-1].object_pose[0, 2] > 0.1


def test_a_planner_that_cannot_begin_fails_the_episode(world):
    class Refuses(Scripted):
        def reset(self, scene, seed):
            raise BenchError("no model")

    verdict, sink = run(world, Refuses(LIFT))
    assert verdict.cause == "planner error: no model" and verdict.end_seq == 0


def test_a_policy_error_fails_the_episode(world):
    class Breaks(SkillPolicy):
        def infer(self, observation):
            if observation.state.seq > 40:
                raise BenchError("lost the arm")
            return super().infer(observation)

    verdict, sink = run(world, Scripted(LIFT), policy=Breaks())
    assert verdict.cause == "policy error: lost the arm"
    assert sink.of("policy_error")[0]["error"] == "lost the arm"


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda c: replace(c, values=_with_nan(c.values)), "a number that is not finite"),
        (lambda c: replace(c, seq=c.seq - 1), r"answers state \d+, now is \d+"),
        (lambda c: replace(c, values=c.values[:, :15]), r"must be \(k, 16\), got \(\d+, 15\)"),
        (lambda c: replace(c, values=c.values[:0]), r"must be \(k, 16\), got \(0, 16\)"),
        (lambda c: replace(c, values="none"), "what is not a number"),
        (lambda c: None, "crash: AttributeError"),
    ],
)
def test_a_wrong_chunk_is_the_policys_failure_and_none_of_it_is_executed(world, spoil, reason):
    class Spoils(SkillPolicy):
        def infer(self, observation):
            chunk = super().infer(observation)
            if observation.state.seq < 40 or chunk.needs_plan:
                return chunk
            self.at = observation.state.seq
            return spoil(chunk)

    policy = Spoils()
    verdict, sink = run(world, Scripted(LIFT), policy=policy)
    assert re.match(f"policy error: .*{reason}", verdict.cause), verdict.cause
    assert verdict.end_seq == policy.at == sink.states[-1].seq
    assert f"policy error: {sink.of('policy_error')[0]['error']}" == verdict.cause


def _with_nan(values):
    values = np.array(values)
    values[-1, 3] = np.nan
    return values


@pytest.mark.parametrize("method", ["reset", "observe", "plan"])
def test_a_crash_of_the_planner_is_its_failure_with_a_traceback_on_record(world, method):
    def crash(self, *_):
        raise ValueError("x" * 3)

    planner = type("Crashes", (Scripted,), {method: crash})(LIFT)
    verdict, sink = run(world, planner)
    assert verdict.cause == "planner error: crash: ValueError('xxx')"
    (event,) = sink.of("planner_error")
    assert "in crash" in event["traceback"] and event["error"] == "crash: ValueError('xxx')"


def test_a_node_that_is_gone_is_nobodys_failure(world):
    with pytest.raises(GoneNode):
        run(world, Scripted(GoneNode("node /planner is gone")))


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (Plan(((SkillCall("home", "left"),),)), "unknown skill for lift_drill 'home': choose from"),
        (Plan(((SkillCall("jump", "left"),),)), "unknown skill 'jump'"),
        (Plan(((SkillCall("grasp", "left", {"object": "mug"}),),)), "unknown object 'mug'"),
        (UsageError("malformed plan: no steps"), "malformed plan: no steps"),
    ],
)
def test_a_wrong_plan_is_refused_and_the_planner_is_told(world, wrong, reason):
    planner = Scripted(wrong, LIFT)
    verdict, sink = run(world, planner)
    assert verdict.success
    assert [r.turn for r in planner.requests] == [0, 1, 2]
    feedback = planner.requests[1].feedback
    assert feedback["status"] == "refused" and feedback["reason"].startswith(reason)
    assert sink.of("plan")[0]["refused"] == feedback["reason"] and not sink.of("plan")[1]["refused"]
    before, after = (r.observation.state.seq for r in planner.requests[:2])
    assert before == after, "nothing moved meanwhile"


def test_a_failed_skill_is_told_with_its_reason(world):
    far = Plan(((SkillCall("move_by", "left", {"offset": [0.9, 0, 0]}),),))
    planner = Scripted(far, LIFT)
    verdict, sink = run(world, planner)
    assert verdict.success
    feedback = planner.requests[1].feedback
    assert feedback["status"] == "failed" and feedback["reason"].startswith("unreachable")
    assert sink.of("plan_result")[0] == feedback


def test_wrong_plans_for_ever_end_with_the_reason(world):
    planner = Scripted(Plan(((SkillCall("home", "left"),),)))
    verdict, _ = run(world, planner)
    assert len(planner.requests) == Lift.max_plans
    assert verdict.cause.startswith("malformed plan: unknown skill for lift_drill 'home'")


def test_plan_limit(world):
    planner = Scripted(Plan((LOWER,)))
    verdict, _ = run(world, planner)
    assert verdict.cause == "plan limit: 4 plans" and len(planner.requests) == 4


def test_time_limit_is_in_simulated_time(world):
    class Short(Lift):
        time_limit_s = 1.0

    verdict, sink = run(world, Scripted(LIFT), task=Short())
    assert verdict.cause == "time limit: 1 s of simulated time"
    assert 1.0 <= verdict.sim_s <= 1.0 + 10 * PERIOD_S


def test_an_empty_plan_ends_the_episode_after_settling(world):
    verdict, sink = run(world, Scripted(Plan(())))
    assert not verdict.success and verdict.cause == "goal not reached: lifted"
    acted = next(e for e in sink.events if e.kind == "act")
    assert sink.states[-1].seq - acted.seq == round(SETTLE_S / PERIOD_S)


def asked_at(sink) -> int:
    return next(e.seq for e in sink.events if e.kind == "plan")


def first_move(sink) -> int:
    """The first state whose command differs from the one before."""
    changed = np.diff([s.command for s in sink.states], axis=0).any(axis=1)
    return int(np.flatnonzero(changed)[0]) + 1


@pytest.mark.parametrize(
    ("latency", "periods"), [("free", 0), ("measured", 25), ("1.0", 50), ("0.1", 5)]
)
def test_latency_is_charged_in_simulated_time(world, latency, periods):
    slow = Plan(LIFT.steps, latency_ns=500_000_000)
    _, sink = run(world, Scripted(slow), latency=latency)
    assert first_move(sink) - asked_at(sink) == 1 + periods


def test_a_planner_with_cameras_gets_pictures_of_the_state_it_is_asked_about(world):
    planner = Scripted(LIFT, cameras=("head", "left_wrist"))
    _, sink = run(world, planner)
    for observation in [*planner.seen, *(r.observation for r in planner.requests)]:
        assert [f.camera for f in observation.frames] == ["head", "left_wrist"]
        for frame in observation.frames:
            assert frame.seq == observation.state.seq
            picture = cv2.imdecode(np.frombuffer(frame.data, np.uint8), cv2.IMREAD_COLOR)
            assert picture.shape == (frame.height, frame.width, 3) and picture.std() > 10
    assert len(planner.seen) == 1 and len(planner.requests) == 2
    assert len(sink.pictures) == 6, "the record has them, too"
    assert run(world, Scripted(LIFT))[1].pictures == [], "none where nobody asks"


def test_key_frames_are_taken_at_the_start_at_each_plan_and_at_the_end(world):
    verdict, sink = run(world, Scripted(LIFT), keyframe_cameras=("third",))
    shots = [f.seq for f in sink.pictures]
    plans = [e.seq for e in sink.events if e.kind == "plan"]
    assert shots == [0, 5, *plans, verdict.end_seq]


def test_a_layout_that_fails_is_raised_since_nothing_was_evaluated(world):
    class Broken(Lift):
        def layout(self, rng, objects):
            return Layout({"block": upright(0.45, 0.2, 0.5)}, "")

    known = {**tasks._registry(), "broken_drill": Broken()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Broken, "name", "broken_drill")
        patch.setattr(tasks, "_registry", lambda: known)
        with pytest.raises(BenchError, match="block moved .* before the start"):
            run(world, Scripted(LIFT), task=known["broken_drill"])
    assert run(world, Scripted(LIFT))[0].success


@pytest.mark.parametrize("error", [BenchError("blind"), UsageError("blind")])
def test_a_planner_that_fails_to_look_fails_the_episode(world, error):
    class Blind(Scripted):
        def observe(self, observation):
            raise error

    verdict, _ = run(world, Blind(LIFT))
    assert not verdict.success and verdict.cause == "planner error: blind"


def test_a_camera_that_fails_is_not_the_planners_fault(world):
    class NoCamera:
        def __getattr__(self, name):
            return getattr(world, name)

        def capture(self, cameras):
            raise BenchError("the renderer is gone")

    with pytest.raises(BenchError, match="the renderer is gone"):
        run(NoCamera(), Scripted(LIFT, cameras=("head",)))


def test_a_policy_that_sees_by_itself_is_asked_while_it_is_shown(world):
    """Question and pictures are under way together; a camera that fails is not its fault."""
    told: list = []

    class SeesByItself(HoldPolicy):
        metadata = Metadata("sees", "1", ("head",))
        sees_by_itself = True

        def ask(self, state):
            told.append(("ask", state.seq))

        def infer(self, observation):
            told.append(("infer", observation.state.seq))
            return super().infer(observation)

    class Shows:
        def __getattr__(self, name):
            return getattr(world, name)

        def show(self, cameras):
            told.append(("show", *cameras))
            if told.count(("show", "head")) == 3:
                raise BenchError("the renderer is gone")

    with pytest.raises(BenchError, match="the renderer is gone"):
        run(Shows(), Scripted(LIFT), policy=SeesByItself())
    show = ("show", "head")
    assert told == [
        ("ask", 5), show, ("infer", 5), ("ask", 15), show, ("infer", 15), ("ask", 25), show
    ]  # fmt: skip
