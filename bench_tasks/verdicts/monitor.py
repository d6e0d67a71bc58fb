"""The verdict as a function of scene, states and events: the same live and offline."""

from __future__ import annotations

import math

from bench_tasks.errors import UnscoredError
from bench_tasks.robots.embodiments import misfit
from bench_tasks.tasks.base import Ask, Task
from bench_tasks.verdicts.afterwards import ANSWER_AFTER, NOT_ASKED, OVER, asks_among, judged
from bench_tasks.verdicts.coordination import Coordination
from bench_tasks.view import View
from bench_tasks.vocabulary import Event, Scene, Verdict, WorldState

__all__ = ["Monitor"]

MAX_GAP_PERIODS = 3
"""A longer gap between stamps is time in which nobody looked: the goal's hold starts anew."""


class Monitor:
    """Watches one episode; feed it every state in order and every event, then ask `verdict`."""

    def __init__(self, task: Task, scene: Scene) -> None:
        """Start watching `task` in `scene`; UnscoredError when that is of another robot."""
        if scene.embodiment != task.embodiment:
            raise UnscoredError(
                f"unscored: the scene's robot is {scene.embodiment}, {task.name} is for "
                f"{task.embodiment}"
            )
        self._task, self._scene = task, scene
        self._goal = task.goal(scene)
        self._stages = {check.name: False for check in task.stages(scene)}
        self._stage_checks = task.stages(scene)
        self._since_ns: dict[str, int] = {}
        """Since when what is about to reach or lose a stage, or break an invariant, has gone on."""
        self._invariants = task.invariants(scene)
        self._asks = asks_among(task.prologue(scene))
        self._answers: dict[str, dict[str, str]] = {}
        self._over: WorldState | None = None
        """The state in which the arms were done, where something is asked after that."""
        self._asks_after: dict[str, Ask] = {}
        self._answers_after: dict[str, dict[str, str]] = {}
        self._not_asked = ""
        self._coordination = Coordination(task, scene) if self._goal is not None else None
        self.history = task.history(scene)
        """What the task notes of all states and events since the arms may move, if anything."""
        self._acting = False
        self._start: WorldState | None = None
        self._last: WorldState | None = None
        self._held_since_ns: int | None = None
        self._reached = False
        self._broken: str | None = None
        self._unjudged = ""
        """Why there will be no verdict: the episode goes on, since it may be worth recording."""
        self._cause, self._stopped = "", False
        self._unmet: list[str] = []

    @property
    def finished(self) -> bool:
        """Whether the goal has been held or can no longer be reached."""
        return self._reached or self._broken is not None

    def on_event(self, event: Event) -> None:
        """Take notice of `act` (the arms may move), `over` (they are done), answers, the end."""
        if event.kind == "act":
            self._acting = True
            # What the prologue did (objects put in place) is the start that stages compare with.
            self._start = self._last
        elif self.history is not None and self._acting:
            self.history.on_event(event)
        if event.kind == "answer":
            self._answers[event.data["name"]] = event.data["values"]
        elif event.kind == OVER and self._last is not None:
            self._acting, self._over = False, self._last
            view = View(self._scene, self._last, self._start, self.history)
            self._asks_after = asks_among(self._task.afterwards(view))
        elif event.kind == ANSWER_AFTER:
            self._answers_after[event.data["name"]] = event.data["values"]
        elif event.kind == NOT_ASKED:
            self._not_asked = str(event.data["reason"])
        elif event.kind == "end":
            if not isinstance(event.data["cause"], str):
                raise ValueError("the cause in the end event is not a text")
            self._cause = event.data["cause"]
            self._stopped = event.data.get("stopped") is True

    def on_state(self, state: WorldState) -> None:
        """Take the next state. ValueError when one is missing or time does not go on.

        A state with a number that is not finite fails the episode: no check can be trusted then.
        """
        if self._last is not None and state.seq != self._last.seq + 1:
            raise ValueError(f"state {self._last.seq + 1} is missing: {state.seq} came instead")
        gap_ns = 0 if self._last is None else state.stamp_ns - self._last.stamp_ns
        if self._last is not None and gap_ns <= 0:
            raise ValueError(f"state {state.seq} is not later than state {self._last.seq}")
        if gap_ns > MAX_GAP_PERIODS * self._scene.control_period_ns:
            self._held_since_ns = None
            self._since_ns.clear()
            gap_ns = 0
        self._last = state
        if self._start is None:
            self._start = state
        if self.finished:
            return
        wrong = "" if self._unjudged else misfit(self._scene, state)
        if wrong:
            self._unjudged = f"unscored: {wrong}"
        if not _finite(state):
            self._broken = "every number finite"
            return
        if not self._acting or self._goal is None or self._unjudged or self._late(state):
            return
        try:
            self._judge(state, gap_ns)
        except UnscoredError as error:
            self._unjudged = str(error)

    def _late(self, state: WorldState) -> bool:
        """Whether a state is past the time limit, as the end of a long chunk may be."""
        return state.stamp_ns > self._task.time_limit_s * 1e9

    def _judge(self, state: WorldState, gap_ns: int) -> None:
        """Check invariants, stages and goal at a state."""
        assert self._goal is not None
        view = View(self._scene, state, self._start, self.history)
        if self.history is not None:
            self.history.on_state(view)
        if self._coordination is not None:
            self._coordination.on_state(view, gap_ns)
        for check in self._invariants:
            fails = not self._stages.get(check.until, False) and not check.holds(view)
            if self._lasts(f"not {check.name}", fails, check.hold_s):
                self._broken = check.name
                return
        before = {name for name, reached in self._stages.items() if reached}
        for check in self._stage_checks:
            if check.name in before:
                lost = check.lost
                if lost and self._lasts(check.name, lost.holds(view), lost.hold_s):
                    self._stages[check.name] = False
                    del self._since_ns[check.name]
                continue
            holds = before.issuperset(check.after) and check.holds(view)
            if self._lasts(check.name, holds, check.hold_s):
                self._stages[check.name] = True
                del self._since_ns[check.name]
        self._unmet = [check.name for check in self._goal.checks if not check.holds(view)]
        self._unmet += [f"{name} before" for name in self._goal.after if not self._stages[name]]
        if not self._unmet and not view.all_at_rest():
            self._unmet = ["at rest"]
        if self._unmet:
            self._held_since_ns = None
            return
        if self._held_since_ns is None:
            self._held_since_ns = state.stamp_ns
        self._reached = state.stamp_ns - self._held_since_ns >= round(self._goal.hold_s * 1e9)

    def _lasts(self, name: str, now: bool, hold_s: float) -> bool:
        """Whether what goes on `now` has done so for a time without a break."""
        assert self._last is not None
        if not now:
            self._since_ns.pop(name, None)
            return False
        since_ns = self._since_ns.setdefault(name, self._last.stamp_ns)
        return self._last.stamp_ns - since_ns >= round(hold_s * 1e9)

    def verdict(self) -> Verdict:
        """Judge what has been seen so far; UnscoredError when what counts was not measured."""
        if self._unjudged:
            raise UnscoredError(self._unjudged)
        state = self._over or self._last
        if state is None:
            raise ValueError("no state was recorded")
        scores, details = self._question_scores()
        stages = dict(self._stages)
        parts = [*scores.values()]
        if self._goal is not None:
            if self._reached:
                stages = dict.fromkeys(stages, True)
            marks = [*stages.values(), self._reached]
            parts.append(sum(marks) / len(marks))
        measured = {} if self._coordination is None else self._coordination.result()
        if measured:
            details["coordination"] = measured
        if self.history is not None:
            done = self.history.result()
            details |= {"done": done} if done else {}
        if self._asks_after:
            details["afterwards"] = judged(self._asks_after, self._answers_after)
        if self._not_asked:
            details["not_asked"] = self._not_asked
        cause = self._why(scores)
        return Verdict(
            task=self._task.name,
            seed=self._scene.seed,
            success=cause == "",
            progress=sum(parts) / len(parts) if parts else 0.0,
            cause=cause,
            stages={**stages, **({"goal held": self._reached} if self._goal else {})},
            end_seq=state.seq,
            sim_s=state.stamp_ns / 1e9,
            details=details,
        )

    def _question_scores(self) -> tuple[dict[str, float], dict]:
        """Score per question: share of right answers, 0 at chance and 1 when all are right."""
        details = judged(self._asks, self._answers)
        scores = {
            name: max(0.0, (one["accuracy"] - one["chance"]) / (1.0 - one["chance"]))
            for name, one in details.items()
        }
        return scores, ({"questions": details} if details else {})

    def _why(self, scores: dict[str, float]) -> str:
        if self._broken is not None:
            return f"invariant broken: {self._broken}"
        if self._stopped:  # also when the goal was reached, be it by what had to be stopped
            return self._cause
        for name, score in scores.items():
            if name not in self._answers:
                return self._cause or f"unanswered: {name}"
            if score < 1.0:
                return f"wrong answer: {name}"
        if self._goal is None and not scores:
            return self._cause or "nothing to check"
        if self._goal is None or self._reached:
            return ""
        last = self._over or self._last
        if last is not None and self._late(last):
            return self._cause or f"time limit: {self._task.time_limit_s:g} s of simulated time"
        brief = "never checked" if self._held_since_ns is None else "held too briefly"
        return self._cause or f"goal not reached: {', '.join(self._unmet) or brief}"


def _finite(state: WorldState) -> bool:
    """Whether no number of the state is NaN or infinite (either makes its array's sum so)."""
    return math.isfinite(
        sum(
            float(array.sum())
            for array in (
                state.joint_position, state.joint_velocity, state.joint_effort,
                state.gripper_opening, state.ee_pose, state.command, state.object_pose,
                state.object_twist, state.contact_force,
            )
        )
    )
