"""Brings situations about in the real simulation, with the task's monitor looking on."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np

from bench_tasks import tasks
from bench_tasks.tasks.base import Ask, MoveObjects, Wait
from bench_tasks.verdicts.monitor import Monitor
from bench_tasks.view import View, quat_from_yaw
from bench_tasks.vocabulary import (
    ActionChunk,
    Event,
    Observation,
    Plan,
    SkillCall,
    Verdict,
    WorldState,
)
from policies import make_policy
from sim.world import SimWorld

PERIOD_S = 0.02


class Stage:
    """One episode under way, whose events the test decides.

    With `answer` (item -> choice) the task's prologue is played and the question answered so;
    "gold" answers rightly, None leaves it unanswered.
    """

    def __init__(self, world: SimWorld, task: str, seed: int = 0, answer="gold") -> None:
        """Reset the world and let the arms act."""
        self.world, self.task = world, tasks.get(task)
        self.scene, state = world.reset(task, seed)
        self.monitor = Monitor(self.task, self.scene)
        self.policy = make_policy("skills")
        self.policy.reset(self.scene, seed)
        self.start = state
        self.monitor.on_state(state)
        for step in self.task.prologue(self.scene):
            if isinstance(step, Wait):
                self.hold(step.duration_s)
            elif isinstance(step, MoveObjects):
                world.move_objects({name: np.array(pose) for name, pose in step.poses.items()})
            elif isinstance(step, Ask) and answer is not None:
                values = step.gold if answer == "gold" else answer
                self.event("answer", name=step.question.name, values=values)
        if self.task.goal(self.scene) is not None:
            self.event("act")
            self.start = self.state

    # -- looking ---------------------------------------------------------------------------------

    @property
    def state(self) -> WorldState:
        """The present state."""
        return self.world.state

    @property
    def view(self) -> View:
        """The present state, seen as the task's checks see it."""
        return View(self.scene, self.state, self.start)

    @property
    def verdict(self) -> Verdict:
        """The verdict if the episode ended now."""
        return self.monitor.verdict()

    def unmet(self) -> list[str]:
        """The goal's checks that do not hold now."""
        goal = self.task.goal(self.scene)
        assert goal is not None
        return [check.name for check in goal.checks if not check.holds(self.view)]

    # -- acting ----------------------------------------------------------------------------------

    def event(self, kind: str, **data: object) -> None:
        """Tell the monitor that something happened."""
        self.monitor.on_event(Event(kind, self.state.seq, self.state.stamp_ns, data))

    def act(self, values: np.ndarray) -> None:
        """Execute actions (k, 16)."""
        for state in self.world.step(ActionChunk(self.state.seq, values)):
            self.monitor.on_state(state)

    def hold(self, duration_s: float) -> Stage:
        """Let time pass, the arms where they are told to be."""
        self.act(np.tile(self.state.command, (round(duration_s / PERIOD_S), 1)))
        return self

    def hold_until(self, condition, limit_s: float = 3.0) -> Stage:
        """Let time pass until `condition()`."""
        for _ in range(round(limit_s / PERIOD_S)):
            if condition():
                return self
            self.hold(PERIOD_S)
        raise AssertionError("the situation to be staged did not come about")

    def grip(self, arm: str, opening_m: float, duration_s: float = 0.4) -> Stage:
        """Open or close one hand, the arms where they are."""
        command = np.tile(self.state.command, (round(duration_s / PERIOD_S), 1))
        k = 7 if arm == "left" else 15
        command[:, k] = np.linspace(command[0, k], opening_m, len(command))
        self.act(command)
        return self

    def put(self, name: str, position, yaw: float = 0.0, quat=None) -> Stage:
        """Put an object at a position, at rest."""
        quat = quat_from_yaw(yaw) if quat is None else np.asarray(quat, dtype=float)
        pose = np.concatenate([np.asarray(position, dtype=float), quat])
        self.world.move_objects({name: pose})
        return self

    def throw(self, name: str, linear=(0.0, 0.0, 0.0), angular=(0.0, 0.0, 0.0)) -> Stage:
        """Give an object a velocity."""
        self.world.data.joint(f"{name}_free").qvel[:] = [*linear, *angular]
        return self

    def run(self, *steps, fails: str = "", until=None) -> Stage:
        """Carry out steps (a SkillCall, or a tuple of two) until done, or until `until()`.

        `fails` must be part of the reason why the policy gives up, if it is to do so.
        """
        steps = tuple((step,) if isinstance(step, SkillCall) else step for step in steps)
        self.policy.accept(Plan(steps))
        while True:
            chunk = self.policy.infer(Observation(self.state))
            if chunk.needs_plan:
                reason = chunk.detail.get("reason", "")
                assert fails in reason if fails else not reason, reason
                return self
            for action in chunk.values:
                self.act(action[None])
                if until is not None and until():
                    return self

    def expert(self, until=None) -> Stage:
        """Let the task's expert work until it is finished, or until `until()` at a plan's end."""
        for turn in range(self.task.max_plans):
            steps = self.task.expert(self.view, turn)
            if not steps or (until is not None and until()):
                return self.hold(1.0)
            self.run(*steps)
        raise AssertionError("the expert did not finish")

    def lift_once(self, arm: str, name: str, **grasp: str) -> Stage:
        """Let an arm take an object, lift it, let it fall and go home, as a carry that fails."""
        self.run(call("grasp", arm, object=name, **grasp))
        self.run(call("move_by", arm, offset=[0.0, 0.0, 0.06]), call("open", arm))
        return self.run(call("home", arm))

    # -- branching -------------------------------------------------------------------------------

    def branch(self):
        """A function that returns to this moment and gives a fresh stage that goes on from it."""
        saved, kept = self.world.save(), self._copy()

        def resume() -> Stage:
            self.world.restore(saved)
            return kept._copy()

        return resume

    def _copy(self) -> Stage:
        other = copy.copy(self)
        other.monitor, other.policy = copy.copy(self.monitor), copy.copy(self.policy)
        other.monitor._stages = dict(self.monitor._stages)
        other.monitor._since_ns = dict(self.monitor._since_ns)
        other.monitor._answers = dict(self.monitor._answers)
        other.monitor._coordination = copy.copy(self.monitor._coordination)
        own = other.policy._own = copy.copy(self.policy._own)
        if hasattr(own, "_held"):
            own._held = dict(own._held)
        return other


class Played:
    """An episode whose states the test writes down, from the present one of `world` on.

    For what a humanoid cannot be brought to do at will.
    """

    def __init__(self, world: SimWorld, task: str) -> None:
        """Let the arms act."""
        self.scene, self._state = world.scene, world.state
        self.monitor = Monitor(tasks.get(task), self.scene)
        self.monitor.on_state(self._state)
        self.monitor.on_event(Event("act", 0, 0, {}))

    def add(self, periods: int = 1, contacts=(), **changes: np.ndarray) -> Played:
        """So many states alike; `contacts` are (party, party, force N), nothing else touches."""
        pairs = [[self.scene.entity(a), self.scene.entity(b)] for a, b, _ in contacts]
        for _ in range(periods):
            seq = self._state.seq + 1
            self._state = replace(
                self._state, seq=seq, stamp_ns=seq * 20_000_000,
                contact_pair=np.array(pairs, np.uint16).reshape(-1, 2),
                contact_force=np.array([force for *_, force in contacts], float), **changes,
            )  # fmt: skip
            self.monitor.on_state(self._state)
        return self

    @property
    def verdict(self) -> Verdict:
        """The verdict if the episode ended now."""
        return self.monitor.verdict()


def call(skill: str, arm: str, **args) -> SkillCall:
    """A skill call; arrays may be given as arguments."""
    plain = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in args.items()}
    return SkillCall(skill, arm, plain)


def both(skill: str, **args) -> tuple[SkillCall, SkillCall]:
    """The same skill with both arms; an argument may be given per arm as a dict."""
    return tuple(
        call(skill, arm, **{k: v[arm] if isinstance(v, dict) else v for k, v in args.items()})
        for arm in ("left", "right")
    )


def succeeds(stage: Stage | Played) -> None:
    """Assert that the episode so far is a success."""
    verdict = stage.verdict
    assert verdict.success, verdict.cause
    assert verdict.cause == ""
    assert verdict.progress == 1.0


def fails(stage: Stage | Played, *unmet: str) -> None:
    """Assert that the episode so far is a failure and that these conditions are among the cause."""
    cause = fails_with(stage, "goal not reached: ")
    named = cause.removeprefix("goal not reached: ").split(", ")
    assert set(unmet) <= set(named), cause
    assert stage.verdict.stages["goal held"] is False


def fails_with(stage: Stage | Played, cause: str) -> str:
    """Assert that the episode so far is a failure whose cause begins with `cause`; return it."""
    verdict = stage.verdict
    assert not verdict.success
    assert verdict.cause.startswith(cause), verdict.cause
    assert 0.0 <= verdict.progress < 1.0
    return verdict.cause
