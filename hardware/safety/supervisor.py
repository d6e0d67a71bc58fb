"""Judges every command before it reaches a robot: passed on, slowed, or refused and stopped.

What is passed on has been checked whole, from the command executed last to standstill: whatever
is sent ends in a stop (in realtime it carries that stop with it, so that arms whose commander has
died come to rest by themselves). What could not be checked is not passed on.

An intervention is `slowed` (the same path, at a pace within the limits), `dropped` (the command
comes at the wrong time; what is under way goes on, which ends by itself), `refused` (it is not
executed; the arms slow down and hold; the next one is judged afresh) or `stopped` (as refused, and
nothing is passed on until a human has released it).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_tasks.bags import cdr
from bench_tasks.vocabulary import ACTION_SIZE, ActionChunk, Scene, WorldState
from hardware.safety.clearance import Clearance, TooNear
from hardware.safety.command import (
    answered,
    at_rest_after,
    for_this_robot,
    labelled,
    plausible,
    slower,
    timely,
    well_formed,
)
from hardware.safety.decision import Decision, Intervention, Refusal, plain
from hardware.safety.limits import Limits
from hardware.safety.measured import danger, off, unlikely, unreadable, usable
from hardware.safety.motion import breach
from hardware.safety.plan import MOST_GAP, Plan

__all__ = ["Supervisor"]

NEGLIGIBLE_RAD = 3e-3
"""Arms that are less far off what they were told are where they were told to be: 3 mm at most."""


class Supervisor:
    """Stands between whatever commands two arms and the arms. Not thread-safe; times in s.

    Tell it the scene and every state, ask it about every command, and call `on_time` at least once
    a control period. Without limits it passes nothing on.
    """

    def __init__(
        self, limits: Limits | None, realtime: bool = False, confirmed: bool = False
    ) -> None:
        """`realtime`: states come by themselves; else each follows from an action passed on."""
        self._limits, self._realtime, self._confirmed = limits, realtime, confirmed
        self._clearance = _clearance(limits) if limits is not None else None
        self._scene: Scene | None = None
        self._stop_reason = ""
        self._dangers: frozenset[str] = frozenset()
        """The kinds of those that are on record since it was stopped."""
        self._overdue = False
        self._forget()

    def _forget(self) -> None:
        self._plan = Plan(self._limits, self._realtime) if self._limits is not None else None
        self._seen_s = 0.0
        self._far: int | None = None
        """The number of a state that was not believed, if it came last."""
        self._answered = -1

    # -- what it is told -------------------------------------------------------------------------

    @property
    def why_not(self) -> str:
        """Why no command at all would be passed on; "" when one may."""
        if self._limits is None:
            return "no limits are loaded"
        if not self._confirmed:
            return "no human has confirmed motion (/safety/confirm, or confirm:=true)"
        if self._stop_reason:
            return f"stopped: {self._stop_reason} (/safety/release)"
        return ""

    def confirm(self) -> None:
        """A human says that the arms may move."""
        self._confirmed = True

    def release(self) -> None:
        """A human says that what stopped the arms is over; they stay where they are."""
        self._stop_reason, self._dangers = "", frozenset()

    @property
    def overdue(self) -> bool:
        """Whether states of the robot have failed to come."""
        return self._overdue

    @property
    def sees(self) -> bool:
        """Whether it looks at what the robot does: states come."""
        known = self._plan is not None and self._plan.state is not None
        return not self._realtime or (known and not self._overdue)

    @property
    def vouches(self) -> bool:
        """Whether the robot may move, as far as this goes: heartbeats say so, and end when not.

        While states come: unless it does not heed a stop, by its commands or as it is measured.
        While none come it may be getting ready by itself: if motion is confirmed and nothing has
        stopped it.
        """
        if not self.sees:
            return not self.why_not
        return self._plan is None or self._plan.heeded

    def begin(self, scene: Scene) -> None:
        """A scene is set up: its base height and the parties of its contacts hold from now on.

        ValueError when it cannot be used; then none is known.
        """
        self._scene = None
        usable(scene)
        self._scene = scene
        if self._clearance is not None:
            self._clearance.begin(scene)

    def end(self) -> None:
        """No scene is known any more: nothing is passed on until one is."""
        self._scene = None

    def on_state(self, state: WorldState, now_s: float) -> Decision:
        """Take the newest state; stop when it tells of a danger or cannot be read."""
        if self._limits is None or self._plan is None:
            return Decision()
        newest, age_s = self._plan.newest, now_s - self._seen_s
        if newest is not None and 0 < state.seq <= newest.seq:
            return Decision()  # overtaken by a later one
        if newest is not None and state.seq - newest.seq > MOST_GAP:
            far, self._far = self._far, state.seq
            if far is None or not 0 < state.seq - far <= MOST_GAP:
                return self.stop("state", f"a state claims to be {state.seq}, "
                                 f"the newest is {newest.seq}", now_s)  # fmt: skip
            newest = None  # a second one says so, too: it is another motion
        self._far = None
        known, moving = self._plan.executed, self._plan.moves
        if newest is None or state.seq == 0:
            known = []
            self._forget()
        wrong = unreadable(self._limits, self._scene, state)
        if not wrong and known and newest is not None:
            wrong = unlikely(self._limits, state, known[-1], state.seq - newest.seq)
        if wrong:
            self._plan.miss(state.seq, age_s)
            return self.stop("state", f"state {state.seq}: {wrong}", now_s)
        if moving and not known:
            self._plan.go_on(state)
        doubt = self._plan.see(state, bool(self._stop_reason), age_s)
        if doubt is None:
            self._seen_s, self._overdue = now_s, False
        found = danger(self._limits, self._scene, state, self._plan.recent)
        if found is not None and not self._stop_reason:
            return self.stop(found.kind, found.reason, now_s, **found.detail)
        followed = self._look_after(now_s) if doubt is None else _doubted(state, *doubt)
        if found is None or found.kind in self._dangers:
            return followed
        self._dangers |= {found.kind}  # stopped already, but it belongs on record
        told = Intervention("stopped", found.kind, found.reason, found.detail)
        return Decision(followed.send, (told, *followed.interventions))

    def _look_after(self, now_s: float) -> Decision:
        """Stop anew when the robot has not done what it was told."""
        assert self._plan is not None and self._plan.state is not None
        found = self._plan.astray()
        if found is None:
            return Decision()
        ahead = self._plan.rows[self._plan.state.seq - self._plan.seq :]
        return self._halt(Intervention("refused", "execution", *found, ahead.tolist()), now_s)

    def on_time(self, now_s: float) -> Decision:
        """Stop when states no longer come; call it at least once a control period."""
        if self._overdue or not self._realtime or not self.sees:
            return Decision()
        assert self._limits is not None
        age_s, most_s = now_s - self._seen_s, self._limits.measured["state_age_s"]
        if age_s <= most_s:
            return Decision()
        self._overdue = True
        return self._halt(
            Intervention("refused", "heartbeat", f"no state from the robot for {age_s:.3f} s",
                         {"value": age_s, "limit": most_s}),
            now_s,
        )  # fmt: skip

    def stop(self, kind: str, reason: str, now_s: float, **detail: Any) -> Decision:
        """Slow down, hold, and pass nothing on until `release`."""
        self._stop_reason, self._dangers = self._stop_reason or reason, self._dangers | {kind}
        plan = self._plan.rows.tolist() if self._plan is not None else None
        return self._halt(Intervention("stopped", kind, reason, detail, plan or None), now_s)

    def lost(self, reason: str, now_s: float) -> Decision:
        """Slow down and hold, since whoever commands is gone."""
        return self._halt(Intervention("refused", "commander", reason), now_s)

    # -- commands --------------------------------------------------------------------------------

    def on_message(self, data: bytes, now_s: float) -> Decision:
        """As `on_chunk`, for a message of bench_interfaces/ActionChunk as it came."""
        size = self._limits.size if self._limits is not None else ACTION_SIZE
        try:
            raw = cdr.decode("bench_interfaces/msg/ActionChunk", data)
        except ValueError as error:
            return self._refused(Refusal("malformed", str(error)), None, now_s)
        values = np.asarray(raw["values"], dtype=np.float64)
        try:
            labelled(raw, size, self._scene)
        except Refusal as no:
            return self._refused(no, values, now_s)
        return self.on_chunk(ActionChunk(raw["seq"], values.reshape(-1, size)), now_s)

    def on_chunk(self, chunk: ActionChunk, now_s: float) -> Decision:
        """Judge consecutive actions that answer a state, whatever they are made of."""
        try:
            return self._judge(chunk, now_s)
        except Refusal as no:
            return self._refused(no, getattr(chunk, "values", None), now_s)

    def _judge(self, chunk: ActionChunk, now_s: float) -> Decision:
        if self.why_not:
            raise Refusal("not_ready", self.why_not, "stopped")
        limits, plan = self._limits, self._plan
        assert limits is not None and plan is not None
        state = self._known_state(now_s)
        seq, values = answered(chunk), well_formed(limits, chunk.values)
        if not plan.settled:
            raise Refusal("execution", "the robot has not been seen to do what it was sent last",
                          "dropped")  # fmt: skip
        coming = plan.coming()
        late = timely(seq, len(values), state.seq, self._answered, self._realtime,
                      len(coming))  # fmt: skip
        skipped = late + len(coming)
        path, begin, moving = values[skipped:], plan.begin(coming), plan.moving(coming)
        plausible(limits, path, begin)
        found = breach(limits, moving, path[:, limits.columns])
        passed = path if found is None else slower(limits, found, moving, path, begin)
        end = plan.moving(np.concatenate([coming, passed]))
        whole = np.concatenate([coming, passed, at_rest_after(limits, end, passed)])
        near = self._near(state, whole)
        if near is not None:
            kind = "workspace" if "workspace" in near.text else "distance"
            raise Refusal(
                kind, f"{near.text}: {near.distance_m * 1e3:.1f} mm, at least "
                f"{near.limit_m * 1e3:.1f} mm" if kind == "distance" else near.text,
                row=near.row + late, value=near.distance_m, limit=near.limit_m,
            )  # fmt: skip
        self._answered = seq
        send = plan.go(ActionChunk(state.seq, whole if self._realtime else passed), whole)
        if found is None:
            return Decision(send)
        reason = f"{found.said(limits)}: {len(passed)} periods instead of {len(path)}"
        detail = {**found.detail(limits, skipped), "periods": len(passed), "asked": len(path)}
        told = Intervention("slowed", found.kind, reason, detail, plain(values))
        return Decision(send, (told,))

    def _known_state(self, now_s: float) -> WorldState:
        assert self._limits is not None and self._plan is not None
        state = self._plan.state
        if self._scene is None or state is None:
            missing = "scene" if self._scene is None else "state"
            raise Refusal("no_state", f"no {missing} has come from the robot yet")
        for_this_robot(self._limits, self._scene)
        age_s, most_s = now_s - self._seen_s, self._limits.measured["state_age_s"]
        if not self._realtime:
            return state
        if not age_s <= most_s:
            self._overdue = True
            raise Refusal("old_state", f"the newest state is {age_s:.3f} s old", value=age_s,
                          limit=most_s)  # fmt: skip
        self._plan.wait(age_s)
        assert self._plan.state is not None
        return self._plan.state

    def _near(self, state: WorldState, path: np.ndarray) -> TooNear | None:
        """Where along the path (n, size) the arms are too near to something, told or measured."""
        assert self._limits is not None and self._plan is not None and self._clearance is not None
        self._clearance.look(state)
        near = self._clearance.check(state.command, path)
        away = off(self._limits, state, self._plan.recent)
        if near is None and np.abs(away).max() > NEGLIGIBLE_RAD:
            near = self._clearance.check_off(state.command, path, away)
        return near

    def _refused(self, no: Refusal, values: Any, now_s: float) -> Decision:
        told = no.told(values)
        if no.action == "dropped" or (no.action == "stopped" and not self._realtime):
            return Decision(None, (told,))
        asked = len(values) if isinstance(values, np.ndarray) and values.ndim else 0
        return self._halt(told, now_s, asked)

    def _halt(self, told: Intervention, now_s: float, asked: int = 0) -> Decision:
        """Brake from where the arms are by now, as far as they do what was sent, and hold."""
        if self._plan is None:
            return Decision(None, (told,))
        if self._realtime:
            self._plan.wait(now_s - self._seen_s)
        send = self._plan.halt(told.action == "stopped", asked, self._free)
        return Decision(send, (told,))

    def _free(self, actions: np.ndarray) -> int:
        """How many of them (n, size) the arms can do in turn: the first is where they are."""
        assert self._clearance is not None and self._plan is not None
        assert self._plan.state is not None
        self._clearance.look(self._plan.state)
        near = self._clearance.check(actions[0], actions[1:])
        return len(actions) if near is None else 1 + near.row


def _doubted(state: WorldState, reason: str, detail: dict[str, Any]) -> Decision:
    """A state that is not believed."""
    told = f"state {state.seq} is not believed unless the next one says so, too: {reason}"
    return Decision(
        None, (Intervention("dropped", "state", told, detail, [state.command.tolist()]),)
    )


def _clearance(limits: Limits) -> Any:
    """What knows the distances of the robot that the limits are for."""
    if limits.robot == "g1":
        from hardware.safety.humanoid import HumanoidClearance  # its model is in a wheel of its own

        return HumanoidClearance(limits)
    return Clearance(limits)
