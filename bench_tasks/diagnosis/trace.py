"""What happened in an episode, read from its record: turns, holds, closings of the hands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from bench_tasks.diagnosis.reference import Reference, imagine
from bench_tasks.targets import resolved, standing_on
from bench_tasks.tasks.base import Task
from bench_tasks.view import View
from bench_tasks.vocabulary import ARMS, Event, Scene, SkillCall, Verdict, WorldState

__all__ = ["Closing", "Hold", "Trace", "Turn"]

CLOSED_M = 0.002
LOOK_EVERY = 5
"""States between two looks at who holds what (0.1 s)."""
SHORT_LOOKS = 2
"""A hold that breaks for no more looks than this goes on."""
SETTLE_STATES = 50


@dataclass(frozen=True)
class Turn:
    """One plan, from the state it was made in to that in which its result was known.

    `status` is "done", "failed", "refused", or "running" when the episode ended before; `call`
    is the one that failed and `completed` counts the steps before it.
    """

    number: int
    seq: int
    end: int
    steps: tuple[tuple[SkillCall, ...], ...] = ()
    refused: str = ""
    status: str = "running"
    reason: str = ""
    call: SkillCall | None = None
    completed: int = 0
    latency_ns: int = 0

    @property
    def begun(self) -> tuple[tuple[SkillCall, ...], ...]:
        """The steps that were carried out, the one that failed or was cut off included."""
        if self.status == "running":
            return self.steps
        return self.steps[: self.completed + (self.status == "failed")]


@dataclass(frozen=True)
class Hold:
    """An arm's grip on an object; `end` is None when it lasted to the end of the episode."""

    object: str
    arm: str
    begin: int
    end: int | None


@dataclass(frozen=True)
class Closing:
    """An arm told its open fingers to close, its TCP at `hand` (7,)."""

    arm: str
    seq: int
    hand: np.ndarray


def _calls(raw: Any) -> tuple[tuple[SkillCall, ...], ...]:
    return tuple(
        tuple(SkillCall(c["skill"], c["arm"], dict(c["args"])) for c in step) for step in raw
    )


@dataclass
class Trace:
    """The record of one episode with what can be asked of it. States are numbered from 0."""

    task: Task
    scene: Scene
    states: Sequence[WorldState]
    events: Sequence[Event]
    verdict: Verdict
    _references: dict[int, Reference] = field(default_factory=dict)

    @cached_property
    def last(self) -> int:
        """The last state that counts."""
        return min(self.verdict.end_seq, len(self.states) - 1)

    @cached_property
    def act_seq(self) -> int | None:
        """The state from which on the arms might move; None when it never came to that."""
        return next((e.seq for e in self.events if e.kind == "act"), None)

    @cached_property
    def latency(self) -> str:
        """What thinking cost, as the run was told; "free" in records that do not say."""
        begun = [e.data for e in self.events if e.kind == "begin"]
        return str(begun[0].get("latency", "free")) if begun else "free"

    @cached_property
    def turns(self) -> list[Turn]:
        """Every plan, in order."""
        found: list[Turn] = []
        events = [e for e in self.events if e.kind in ("plan", "plan_result", "end")]
        for k, event in enumerate(events):
            if event.kind != "plan":
                continue
            data = event.data
            then = events[k + 1] if k + 1 < len(events) else None
            end, status, rest = self.last, "running", {}
            if data["refused"]:
                status, end = "refused", event.seq
            elif then is not None and then.kind == "plan_result":
                rest, end = then.data, then.seq
                status = str(rest["status"])
            failed = rest.get("call")
            found.append(Turn(
                int(data["turn"]), event.seq, end, self._meant(event), str(data["refused"]),
                status, str(rest.get("reason", "")), _calls([[failed]])[0][0] if failed else None,
                int(rest.get("completed", 0)), int(data.get("latency_ns", 0)),
            ))  # fmt: skip
        return found

    def _meant(self, event: Event) -> tuple[tuple[SkillCall, ...], ...]:
        """The steps of a plan, objects and poses in the place of points."""
        steps, view = _calls(event.data["steps"]), self.view(event.seq)
        if event.data["refused"]:
            return steps
        has = {arm: o.name for arm in ARMS for o in self.scene.objects if view.grasped(o.name, arm)}
        found = []
        for step in steps:
            calls = []
            for call in step:
                if call.skill == "place" and "point" in call.args:
                    name, point = has.get(call.arm, ""), np.asarray(call.args["point"])
                    args = {k: v for k, v in call.args.items() if k != "point"}
                    pose = standing_on(view, name, point) if name else point.tolist()
                    call = SkillCall("place", call.arm, {"object": name, "pose": pose, **args})
                call = resolved(view, call)
                if call.skill == "grasp":
                    has[call.arm] = call.args["object"]
                calls.append(call)
            found.append(tuple(calls))
        return tuple(found)

    def view(self, seq: int) -> View:
        """The scene in one state, compared with the one in which the arms first might move."""
        start = self.states[self.act_seq or 0]
        return View(self.scene, self.states[max(0, min(seq, self.last))], start)

    def reference(self, seq: int, turn: int = 1) -> Reference:
        """What knowing everything would do from a state."""
        seq = max(0, min(seq, self.last))
        if seq not in self._references:
            start = self.states[self.act_seq or 0]
            self._references[seq] = imagine(self.task, self.scene, start, self.states[seq], turn)
        return self._references[seq]

    @cached_property
    def first(self) -> Reference:
        """The reference from the start: all that has to be moved."""
        return self.reference(self.act_seq or 0, 0)

    @cached_property
    def commands(self) -> np.ndarray:
        """(n, 16): what the arms were told, state by state."""
        return np.array([s.command for s in self.states[: self.last + 1]])

    @cached_property
    def holds(self) -> list[Hold]:
        """Who held what, in order of beginning."""
        begun: dict[tuple[str, str], tuple[int, int]] = {}
        found: list[Hold] = []
        movable = [o.name for o in self.scene.objects if not o.fixed]
        for seq in range(self.act_seq or 0, self.last + 1, LOOK_EVERY):
            state = self.states[seq]
            wide = state.gripper_opening - state.command[[7, 15]] > CLOSED_M
            if wide.any() and len(state.contact_pair):
                view = View(self.scene, state)
                for k, arm in enumerate(ARMS):
                    if wide[k]:
                        for name in movable:
                            if view.grasped(name, arm):
                                key = (name, arm)
                                begun[key] = (begun.get(key, (seq, 0))[0], seq)
            for key, (begin, latest) in list(begun.items()):
                if seq - latest > SHORT_LOOKS * LOOK_EVERY:
                    found.append(Hold(*key, begin, latest))
                    del begun[key]
        ended = self.last - (SHORT_LOOKS + 1) * LOOK_EVERY
        for key, (begin, latest) in begun.items():
            found.append(Hold(*key, begin, None if latest >= ended else latest))
        return sorted(found, key=lambda hold: hold.begin)

    def held_later(self, name: str, seq: int) -> bool:
        """Whether any hand came to hold the object after this state."""
        return any(hold.object == name and hold.begin > seq for hold in self.holds)

    @cached_property
    def closings(self) -> list[Closing]:
        """When hands were closed."""
        found = []
        for k, arm in enumerate(ARMS):
            told = self.commands[:, 8 * k + 7]
            shut = np.flatnonzero((told[1:] <= CLOSED_M) & (told[:-1] > CLOSED_M)) + 1
            for seq in shut.tolist():
                if seq >= (self.act_seq or 0):
                    hand = self.states[seq].ee_pose[k]
                    found.append(Closing(arm, seq, hand))
        return sorted(found, key=lambda closing: closing.seq)

    def told_shut(self, arm: str, seq: int) -> bool:
        """Whether the fingers were told to be closed in this state."""
        return bool(self.commands[min(seq, self.last), 8 * ARMS.index(arm) + 7] <= CLOSED_M)

    def settled(self, hold: Hold) -> int:
        """The state in which to look where a thing came to rest once its hold had ended."""
        assert hold.end is not None
        seq = hold.end + SETTLE_STATES
        again = [h.begin for h in self.holds if h.object == hold.object and h.begin > hold.end]
        turn = self.turn_at(hold.end)
        seq = max(seq, turn.end) if turn is not None else seq
        return min([self.last, seq, *(b - LOOK_EVERY for b in again)])

    def turn_at(self, seq: int) -> Turn | None:
        """The plan that was being carried out in a state."""
        found = [turn for turn in self.turns if turn.seq <= seq and turn.status != "refused"]
        return found[-1] if found else None

    def stood_still_s(self, turn: Turn) -> float:
        """The longest time for which the command did not change while a plan was to be done."""
        waited = 0
        if self.latency != "free":
            told = turn.latency_ns if self.latency == "measured" else float(self.latency) * 1e9
            waited = round(told / self.scene.control_period_ns)
        rows = self.commands[turn.seq + waited : turn.end + 1]
        if len(rows) < 2:
            return 0.0
        same = np.concatenate([[0], (np.abs(np.diff(rows, axis=0)).max(axis=1) < 1e-9), [0]])
        edges = np.flatnonzero(np.diff(same))
        longest = int((edges[1::2] - edges[::2]).max()) if len(edges) else 0
        return longest * self.scene.control_period_ns / 1e9
