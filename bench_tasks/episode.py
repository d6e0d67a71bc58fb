"""One episode: couples a world, a planner and a policy, watched by the task. No middleware here.

The ROS task node runs this same code over proxies, so both ways of running give the same record.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Protocol

import numpy as np

from bench_tasks.errors import BenchError, GoneNode, SafetyStop, UsageError, trace_of, unknown
from bench_tasks.execution import CALL, Execution
from bench_tasks.protocols import Planner, Policy, World
from bench_tasks.tasks.base import Ask, Happening, MoveObjects, Show, Task, Tell, Wait
from bench_tasks.verdicts.afterwards import (
    ANSWER_AFTER,
    NOT_ASKED,
    OVER,
    QUESTION_AFTER,
    asks_among,
)
from bench_tasks.verdicts.dreams import DREAM
from bench_tasks.verdicts.monitor import Monitor
from bench_tasks.verdicts.teamwork import PARTNER
from bench_tasks.view import View
from bench_tasks.vocabulary import (
    ActionChunk,
    Answer,
    CameraFrame,
    Event,
    Observation,
    Plan,
    PlanRequest,
    Scene,
    Verdict,
    WorldState,
)

__all__ = ["Options", "Sink", "run_episode"]

HOLD_CHUNK = 10
SETTLE_S = 1.0
"""After the planner holds the task to be finished, the world runs on this long."""


class Sink(Protocol):
    """Where the record goes: a bag, or the topics that the recorder node listens to."""

    def scene(self, scene: Scene) -> None:
        """Take the scene, first of all."""
        ...

    def state(self, state: WorldState) -> None:
        """Take one state."""
        ...

    def chunk(self, chunk: ActionChunk, stamp_ns: int) -> None:
        """Take the actions that a policy asked for."""
        ...

    def event(self, event: Event) -> None:
        """Take one event."""
        ...

    def frames(self, frames: tuple[CameraFrame, ...]) -> None:
        """Take pictures."""
        ...

    def verdict(self, verdict: Verdict) -> None:
        """Take the live verdict, last of all."""
        ...


@dataclass(frozen=True)
class Options:
    """How to run: `keyframe_cameras` are pictured at the start, at each plan and at the end.

    `latency` charges the planner's time in simulated time: "free" (none), "measured", or a
    number of seconds for each plan. `vary` names axes of scene randomisation. `execution` is how
    the policy executes its chunks, for the record: it does so itself.
    """

    keyframe_cameras: tuple[str, ...] = ()
    latency: str = "free"
    vary: tuple[str, ...] = ()
    execution: Execution = Execution()


class _End(Exception):
    """Ends the episode with a cause."""


class _Failed(_End):
    """The same, where an agent failed: nothing more can be asked of it."""


class _Run:
    def __init__(
        self, task: Task, seed: int, world: World, planner: Planner, policy: Policy, sink: Sink,
        options: Options, progress: Callable[[WorldState], None] | None,
    ) -> None:
        self.task, self.seed, self.world = task, seed, world
        self.planner, self.policy, self.sink, self.options = planner, policy, sink, options
        self.progress, self.was_stopped, self.asked = progress, False, False
        self.began: WorldState | None = None
        """The state from which on the arms might move."""
        self.over = False
        self.scene, self.state = world.reset(task.name, seed, options.vary)
        self.monitor = Monitor(task, self.scene)
        sink.scene(self.scene)
        sink.state(self.state)
        self.monitor.on_state(self.state)

    def event(self, kind: str, **data: object) -> None:
        event = Event(kind, self.state.seq, self.state.stamp_ns, data)
        self.sink.event(event)
        self.monitor.on_event(event)

    def execute(self, chunk: ActionChunk) -> None:
        try:
            for state in self.world.step(chunk):
                self.state = state
                self.sink.state(state)
                self.monitor.on_state(state)
        except SafetyStop as stop:
            raise _End(self.stopped(stop)) from None
        if self.progress is not None:
            self.progress(self.state)

    def finish(self, cause: str) -> Verdict:
        """End the episode, with what the world has said of itself since the last state."""
        try:
            getattr(self.world, "report", lambda: None)()
        except SafetyStop as stop:
            cause = self.stopped(stop)
        # Whatever was reached: an episode in which the arms had to be stopped is no success.
        self.event("end", cause=cause, **({"stopped": True} if self.was_stopped else {}))
        return self.monitor.verdict()

    def stopped(self, stop: SafetyStop) -> str:
        """The cause of an episode whose arms were stopped."""
        self.was_stopped = True
        return f"safety stop: {stop}"

    def hold(self, duration_s: float) -> None:
        """Repeat the last command for a time."""
        left = max(1, round(duration_s * 1e9 / self.scene.control_period_ns))
        while left > 0 and (self.over or not self.monitor.finished):
            count = min(left, HOLD_CHUNK)
            values = np.tile(self.state.command, (count, 1))
            chunk = ActionChunk(self.state.seq, values)
            self.sink.chunk(chunk, self.state.stamp_ns)
            self.execute(chunk)
            left -= count

    def keyframe(self) -> None:
        if self.options.keyframe_cameras:
            self.sink.frames(self.world.capture(self.options.keyframe_cameras))

    def observe(self, agent: Planner | Policy) -> Observation:
        cameras = agent.metadata.cameras
        if not cameras:
            return Observation(self.state)
        depth = {"depth": True} if agent.metadata.depth else {}
        if getattr(agent, "sees_by_itself", False):
            agent.ask(self.state)  # type: ignore[union-attr]
            self.world.show(cameras, **depth)  # type: ignore[attr-defined]
            return Observation(self.state)
        frames = self.world.capture(cameras, **depth)
        self.sink.frames(frames)
        return Observation(self.state, frames)

    def begin(self) -> None:
        for role, agent in (("planner", self.planner), ("policy", self.policy)):
            self._call(role, partial(agent.reset, self.scene, self.seed))
        self.event(
            "begin", planner=asdict(self.planner.metadata), policy=asdict(self.policy.metadata),
            latency=self.options.latency, execution=self.options.execution.to_dict(),
        )
        self.keyframe()

    def play(self, steps: Iterable[Happening]) -> None:
        """Let happen what the task says, whoever does it."""
        for step in steps:
            if isinstance(step, Wait):
                self.hold(step.duration_s)
            elif isinstance(step, MoveObjects):
                poses = {name: np.asarray(pose, dtype=float) for name, pose in step.poses.items()}
                self.world.move_objects(poses)
                self.event("move_objects", poses={k: list(v) for k, v in step.poses.items()})
            elif isinstance(step, Show):
                self.event("show", name=step.name)
                seen = self.observe(self.planner)
                self._call("planner", partial(self.planner.observe, seen))
                self.keyframe()
            elif isinstance(step, Tell):
                self.event("said", lines=[list(line) for line in step.lines])
                heard = Observation(self.state, heard=step.lines)
                self._call("planner", partial(self.planner.observe, heard))
            elif isinstance(step, Ask):
                self._ask(step)

    def _call(self, role: str, call: Callable):
        """An agent that fails or crashes ends the episode with its reason, never the run.

        `call` must not reach for the world: what that raises is not the agent's fault.
        """
        try:
            return call()
        except GoneNode:
            raise
        except BenchError as error:
            reason, data = str(error), {"transcript": getattr(error, "transcript", {})}
        except Exception as error:  # noqa: BLE001 - other people's code: anything can come
            reason, data = f"crash: {error!r}", {"traceback": trace_of(error)}
        self.event(f"{role}_error", error=reason, **data)
        raise _Failed(f"{role} error: {reason}")

    def _ask(self, step: Ask) -> None:
        question = step.question
        asks, answers = (QUESTION_AFTER, ANSWER_AFTER) if self.over else ("question", "answer")
        self.event(
            asks, name=question.name, text=question.text,
            choices={k: list(v) for k, v in question.choices.items()},
        )
        seen = self.observe(self.planner)

        def ask() -> Answer:
            try:
                return self.planner.ask(question, seen)
            except UsageError as error:
                return Answer({}, error=str(error))

        answer = self._call("planner", ask)
        given = {
            "raw": answer.raw, "latency_ns": answer.latency_ns, "transcript": answer.transcript,
        }  # fmt: skip
        if answer.error:
            self.event(f"{answers}_refused", name=question.name, refused=answer.error, **given)
            raise _End(f"malformed answer: {answer.error}")
        self.event(answers, name=question.name, values=answer.values, **given)
        self.charge(answer.latency_ns)

    def charge(self, latency_ns: int) -> None:
        """Let the world wait for a slow planner, as the options say."""
        if self.options.latency == "free":
            return
        if self.options.latency == "measured":
            self.hold(latency_ns / 1e9)
        else:
            self.hold(float(self.options.latency))

    def act(self) -> None:
        if self.task.goal(self.scene) is None:
            return
        self.event("act")
        self.began, turn, after = self.state, 0, -1
        """`after` is the turn of the last plan that the task reacted to."""
        refusal: dict = {}
        while not self.monitor.finished:
            if self.state.stamp_ns >= self.task.time_limit_s * 1e9:
                raise _End(f"time limit: {self.task.time_limit_s:g} s of simulated time")
            observation = self.observe(self.policy)
            chunk = self._call("policy", partial(self._infer, observation))
            if not chunk.needs_plan:
                for kind in (CALL, DREAM, PARTNER):
                    if kind in chunk.detail:
                        self.event(kind, **chunk.detail[kind])
                self.sink.chunk(chunk, self.state.stamp_ns)
                self.execute(chunk)
                continue
            if chunk.detail.get("status") != "idle":
                self.event("plan_result", **chunk.detail)
            if after < turn - 1 and not refusal:
                after = turn - 1
                self.react(after)
            if turn >= self.task.max_plans:
                if refusal:
                    raise _End(f"malformed plan: {refusal['reason']}")
                raise _End(f"plan limit: {self.task.max_plans} plans")
            answer = self._replan(turn, refusal or chunk.detail)
            if answer is None:
                self.hold(SETTLE_S)
                break
            refusal = answer
            turn += 1
        if after < turn - 1:
            self.react(turn - 1)

    def afterwards(self) -> str:
        """Ask a planner that remembers of what was, as the task says.

        An agent that fails here leaves questions unanswered, and nothing more; a world that must
        stop the arms ends the episode with the cause that is returned.
        """
        if self.began is None:
            return ""
        view = View(self.scene, self.state, self.began, self.monitor.history)
        steps = self.task.afterwards(view)
        if not asks_among(steps):
            return ""
        who = self.planner.metadata
        if not who.memory:
            self.event(NOT_ASKED, reason=f"planner {who.name} has no memory")
            return ""
        self.event(OVER)
        self.over = True
        try:
            self.play(steps)
        except _End as end:
            return str(end) if self.was_stopped else ""
        return ""

    def react(self, turn: int) -> None:
        """Let people comment on what was done."""
        view = View(self.scene, self.state, self.began, self.monitor.history)
        self.play(self.task.react(view, turn))

    def _infer(self, observation: Observation) -> ActionChunk:
        state = observation.state
        return self.policy.infer(observation).checked(state.seq, len(state.command))

    def _replan(self, turn: int, feedback: dict) -> dict | None:
        """Ask for the next steps and hand them to the policy.

        Returns None when the planner holds the task to be finished, {} when a plan was accepted,
        else the feedback that tells the planner why its plan was refused.
        """
        request = PlanRequest(
            self.scene.instruction, self.observe(self.planner), turn, dict(feedback)
        )
        self.event("plan_request", turn=turn, instruction=request.instruction, feedback=feedback)

        def ask() -> Plan:
            try:
                return self.planner.plan(request)
            except UsageError as error:
                return Plan((), error=str(error))

        plan = self._call("planner", ask)
        refused = self._call("planner", partial(_refusal, self._check_plan, plan))
        if plan.steps and not refused and not plan.asks:
            refused = self._call("policy", partial(_refusal, self.policy.accept, plan))
        if plan.asks and self.asked:
            refused = refused or "one question alone may be asked"
        self.event(
            "plan", turn=turn, raw=plan.raw, latency_ns=plan.latency_ns, refused=refused,
            transcript=plan.transcript,
            steps=[[asdict(call) for call in step] for step in plan.steps],
            **({"asks": plan.asks} if plan.asks else {}),
        )
        self.keyframe()
        self.charge(plan.latency_ns)
        if refused:
            return {"status": "refused", "reason": refused}
        if plan.asks:
            self.asked = True
            self.play(self.task.clarify(self.scene, plan.asks))
            return {"status": "asked", "reason": "a question, and no plan"}
        return {} if plan.steps else None

    def _check_plan(self, plan: Plan) -> None:
        plan.checked()
        for call in (call for step in plan.steps for call in step):
            if call.skill not in self.task.skills:
                raise unknown(f"skill for {self.task.name}", call.skill, self.task.skills)


def _refusal(take: Callable[[Plan], object], plan: Plan) -> str:
    """Why `take` does not take the plan; "" when it does."""
    try:
        take(plan)
    except UsageError as error:
        return str(error)
    return ""


def run_episode(
    task: Task, seed: int, world: World, planner: Planner, policy: Policy, sink: Sink,
    options: Options | None = None, progress: Callable[[WorldState], None] | None = None,
) -> tuple[Verdict, float]:
    """Run one episode and return the live verdict and the wall time (s) it took.

    A failure of planner or policy is a failed episode with its cause; BenchError from the world
    (a layout that cannot be set up) and GoneNode are raised, since then nothing was evaluated.
    """
    begun = time.perf_counter()
    run = _Run(task, seed, world, planner, policy, sink, options or Options(), progress)
    cause, able = "", True
    try:
        run.begin()
        run.play(task.prologue(run.scene))
        run.act()
    except _End as end:
        cause, able = str(end), not isinstance(end, _Failed) and not run.was_stopped
    run.keyframe()
    if able:
        cause = run.afterwards() or cause
    verdict = run.finish(cause)
    sink.verdict(verdict)
    return verdict, time.perf_counter() - begun
