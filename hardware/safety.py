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

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bench_tasks.bags import cdr
from bench_tasks.vocabulary import (
    ACTION_SIZE,
    ARMS,
    ActionChunk,
    Scene,
    WorldState,
)
from hardware.safety_clearance import Clearance
from hardware.safety_limits import Limits
from hardware.safety_motion import Breach, Moving, brake, breach, slowed, stopped_at_end

__all__ = ["Decision", "Intervention", "Supervisor"]

HOLD_ACTIONS = 10
"""What stands in lockstep for a command that is not even readable, so that time goes on; in
realtime the end of every stop, so that one that comes this much late is still taken."""
HEED_PERIODS = 3
"""A stop that the robot is not seen to follow by then is sent again: it has not reached it."""
IGNORED_PERIODS, SLOWING = 5, 0.9
"""A robot that was told to stop and after so many periods still moves at this share of its speed
does not listen; heartbeats cease (see `Supervisor.vouches`)."""
RUNNING_RAD_S = 0.1
"""Joints that are measured to move faster, so long after they were to be at rest, run away."""
MOST_GAP = 250
"""A state that claims to be farther from the one before is not believed."""
MOST_LEAD = 5
NEGLIGIBLE_RAD = 3e-3
"""Arms that are less far off what they were told are where they were told to be: 3 mm at most."""
SIMULATED = "sim"
"""What a scene calls the robot of a simulation, which does what it is told."""
_UNITS = {"velocity": "rad/s", "acceleration": "rad/s^2", "jerk": "rad/s^3", "position": "rad"}
_ORDERS = {
    "left and right swapped": np.r_[8:16, 0:8],
    "the joints of each arm reversed": np.r_[6:-1:-1, 7, 14:7:-1, 15],
    "all joints reversed": np.r_[14:7:-1, 7, 6:-1:-1, 15],
    "both grippers behind both arms": np.r_[0:7, 14, 7:14, 15],
    "the grippers before their arms": np.r_[1:8, 0, 9:16, 8],
}
"""How wrong orders are undone, to name them."""
_HARD = frozenset(f"{arm}_{part}" for arm in ARMS for part in ("arm", "hand"))
_FINGERS = frozenset(f"{arm}_finger{k}" for arm in ARMS for k in (1, 2))
"""The parties of contacts that belong to the robot."""


@dataclass(frozen=True)
class Intervention:
    """What was done about a command or a measurement, and why; `command` are its actions."""

    action: str
    kind: str
    reason: str
    detail: dict[str, Any] = field(default_factory=dict)
    command: list[Any] | None = None

    def data(self) -> dict[str, Any]:
        """What its event holds: JSON without any number that JSON has not."""
        detail = {name: _number(value) for name, value in self.detail.items()}
        return {"what": self.kind, "reason": self.reason, **detail, "command": self.command}


@dataclass(frozen=True)
class Decision:
    """What to send (None: nothing) and what is to be put on record."""

    send: ActionChunk | None = None
    interventions: tuple[Intervention, ...] = ()


class _No(Exception):
    """The command must not be executed."""

    def __init__(self, kind: str, reason: str, action: str = "refused", **detail: Any) -> None:
        super().__init__(reason)
        self.kind, self.reason, self.action, self.detail = kind, reason, action, detail


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
        self._size = limits.size if limits is not None else ACTION_SIZE
        if limits is not None:
            self._columns, self._openings = limits.columns, limits.openings
        self._scene: Scene | None = None
        self._stop_reason = ""
        self._dangers: frozenset[str] = frozenset()
        """The kinds of those that are on record since it was stopped."""
        self._overdue = False
        self._forget()

    def _forget(self) -> None:
        self._state: WorldState | None = None
        self._seen_s = 0.0
        self._seen: tuple[WorldState, list[np.ndarray]] | None = None
        """The newest state that came and what was executed by then, while a later one is presumed
        in its place."""
        self._presumed = np.zeros((0, self._size))
        """What is taken to have been executed since."""
        self._far: int | None = None
        """The number of a state that was not believed, if it came last."""
        self._executed: list[np.ndarray] = []
        """The last three commands executed, oldest first."""
        self._recent: list[np.ndarray] = []
        """Those of the last `lag_s`, and the one before, oldest first."""
        self._plan, self._plan_seq = np.zeros((0, self._size)), 0
        """What the arms do from state `_plan_seq` on; it ends at rest."""
        self._sent: list[ActionChunk] = []
        """What was sent last, oldest first."""
        self._lead = self._limits.lead_periods if self._limits and self._realtime else 0
        """So many periods later the robot does what it is sent: till then what was sent before."""
        self._missed = False
        self._answered = -1
        self._stopping = False
        """Whether the plan is a stop."""
        self._ignored: tuple[int, float] | None = None
        """State from which on, and speed (rad/s) with which, a stop has not been followed."""
        self._rest_seq: int | None = None
        """State from which on what was stopped is at rest."""
        self._running = 0
        """So many states running joints have been measured to move long after that."""

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
        return not self._realtime or (self._state is not None and not self._overdue)

    @property
    def vouches(self) -> bool:
        """Whether the robot may move, as far as this goes: heartbeats say so, and end when not.

        While states come: unless it does not heed a stop, by its commands or as it is measured.
        While none come it may be getting ready by itself: if motion is confirmed and nothing has
        stopped it.
        """
        if not self.sees:
            return not self.why_not
        if self._running >= IGNORED_PERIODS:
            return False
        if self._ignored is None or self._state is None:
            return True
        since, speed = self._ignored
        slows = self._speed < SLOWING * speed
        return slows or self._state.seq - since < IGNORED_PERIODS

    @property
    def _speed(self) -> float:
        """Of the fastest joint, as commands were executed last, rad/s."""
        if len(self._executed) < 2:
            return 0.0
        step = np.abs(self._executed[-1] - self._executed[-2])[self._columns]
        return float(step.max()) / self._period_s

    def not_sent(self) -> None:
        """What was decided last did not reach the arms: they do not follow it."""
        self._plan, self._sent = self._plan[:0], []

    def begin(self, scene: Scene) -> None:
        """A scene is set up: its base height and the parties of its contacts hold from now on."""
        self._scene = scene
        if self._clearance is not None:
            self._clearance.begin(scene)

    def end(self) -> None:
        """No scene is known any more: nothing is passed on until one is."""
        self._scene = None

    def on_state(self, state: WorldState, now_s: float) -> Decision:
        """Take the newest state; stop when it tells of a danger or cannot be read."""
        if self._limits is None:
            return Decision()
        seen = self._seen[0] if self._seen else self._state
        if seen is not None and 0 < state.seq <= seen.seq:
            return Decision()  # overtaken by a later one
        if seen is not None and state.seq - seen.seq > MOST_GAP:
            far, self._far = self._far, state.seq
            if far is None or not 0 < state.seq - far <= MOST_GAP:
                return self.stop("state", f"a state claims to be {state.seq}, "
                                 f"the newest is {seen.seq}")  # fmt: skip
            seen = None  # a second one says so, too: it is another motion
        self._far = None
        if seen is None or state.seq == 0:
            self._forget()
        self._see_again(state.seq)
        before = self._state
        unreadable = self._unreadable(state)
        if unreadable:
            self._presume(state.seq)
            return self.stop("state", f"state {state.seq}: {unreadable}")
        gap = state.seq - before.seq if before is not None and self._executed else 1
        if gap > 1:  # the command changed evenly in the meantime, for all that is known
            last = self._executed[-1]
            steps = np.linspace(last, state.command, gap + 1)[1:-1]
            self._executed = [*self._executed, *steps[-2:]]
        self._executed = [*self._executed[-2:], np.array(state.command)]
        lag = int(self._limit("lag_s") / self._period_s + 1e-6)
        self._recent = [*self._recent, self._executed[-1]][-1 - lag :]
        self._state, self._seen_s, self._overdue = state, now_s, False
        self._look_for_running(state, seen if before is not None else None)
        danger = self._danger(state)
        if danger is not None and not self._stop_reason:
            return self.stop(danger.kind, danger.reason, **danger.detail)
        followed = self._follow()
        if danger is None or danger.kind in self._dangers:
            return followed
        self._dangers |= {danger.kind}  # stopped already, but it belongs on record
        told = Intervention("stopped", danger.kind, danger.reason, danger.detail)
        return Decision(followed.send, (told, *followed.interventions))

    def on_time(self, now_s: float) -> Decision:
        """Stop when states no longer come; call it at least once a control period."""
        if self._state is None or self._overdue or not self._realtime:
            return Decision()
        age_s = now_s - self._seen_s
        if age_s <= self._limit("state_age_s"):
            return Decision()
        self._overdue = True
        self._presume_for(age_s)
        return self._halt(
            Intervention("refused", "heartbeat", f"no state from the robot for {age_s:.3f} s",
                         {"value": age_s, "limit": self._limit("state_age_s")})
        )  # fmt: skip

    def stop(self, kind: str, reason: str, **detail: Any) -> Decision:
        """Slow down, hold, and pass nothing on until `release`."""
        self._stop_reason, self._dangers = self._stop_reason or reason, self._dangers | {kind}
        plan = self._plan.tolist() or None
        return self._halt(Intervention("stopped", kind, reason, detail, plan))

    def lost(self, reason: str) -> Decision:
        """Slow down and hold, since whoever commands is gone."""
        return self._halt(Intervention("refused", "commander", reason))

    # -- commands --------------------------------------------------------------------------------

    def on_message(self, data: bytes, now_s: float) -> Decision:
        """As `on_chunk`, for a message of bench_interfaces/ActionChunk as it came."""
        try:
            raw = cdr.decode("bench_interfaces/msg/ActionChunk", data)
        except ValueError as error:
            return self._refused(_No("malformed", str(error)), None)
        values = np.asarray(raw["values"], dtype=np.float64)
        try:
            wanted = cdr.layout(self._size)
            if raw["layout"] != wanted:
                raise _No("layout", f"the layout is {raw['layout']!r}, not {wanted!r}")
            if self._scene is not None and raw["period_ns"] != self._scene.control_period_ns:
                raise _No("period", f"an action lasts {raw['period_ns']} ns, "
                          f"not {self._scene.control_period_ns} ns")  # fmt: skip
            if len(values) % self._size:
                raise _No("length", f"{len(values)} numbers are no actions of {self._size}")
        except _No as no:
            return self._refused(no, values)
        return self.on_chunk(ActionChunk(raw["seq"], values.reshape(-1, self._size)), now_s)

    def on_chunk(self, chunk: ActionChunk, now_s: float) -> Decision:
        """Judge consecutive actions that answer a state."""
        try:
            return self._judge(chunk, now_s)
        except _No as no:
            return self._refused(no, chunk.values)

    def _judge(self, chunk: ActionChunk, now_s: float) -> Decision:
        if self.why_not:
            raise _No("not_ready", self.why_not, "stopped")
        assert self._limits is not None and self._clearance is not None
        state = self._known_state(now_s)
        values = self._well_formed(chunk.values)
        lead = self._coming()
        late = self._timely(chunk.seq, len(values) - len(lead), state)
        skipped = late + len(lead)
        path, begin = values[skipped:], self._from(lead)
        self._plausible(path, begin)
        moving = self._moving(lead)
        found = breach(self._limits, moving, path[:, self._columns])
        passed = path if found is None else self._slower(found, moving, path, begin)
        tail = self._tail(lead, passed)
        whole = np.concatenate([lead, passed, tail])
        off = self._off(state)
        self._clearance.look(state)
        near = self._clearance.check(state.command, whole)
        if near is None and np.abs(off).max() > NEGLIGIBLE_RAD:
            near = self._clearance.check_off(state.command, whole, off)
        if near is not None:
            kind = "workspace" if "workspace" in near.text else "distance"
            raise _No(
                kind, f"{near.text}: {near.distance_m * 1e3:.1f} mm, at least "
                f"{near.limit_m * 1e3:.1f} mm" if kind == "distance" else near.text,
                row=near.row + late, value=near.distance_m, limit=near.limit_m,
            )  # fmt: skip
        self._answered = chunk.seq
        send = ActionChunk(state.seq, whole if self._realtime else passed)
        self._follows(send, whole)
        self._stopping, self._ignored = False, None
        self._rest_seq, self._running = None, 0
        if found is None:
            return Decision(send)
        reason = f"{self._said(found)}: {len(passed)} periods instead of {len(path)}"
        told = Intervention(
            "slowed", found.kind, reason,
            {**self._particulars(found, skipped), "periods": len(passed), "asked": len(path)},
            _plain(values),
        )  # fmt: skip
        return Decision(send, (told,))

    def _known_state(self, now_s: float) -> WorldState:
        if self._scene is None or self._state is None:
            missing = "scene" if self._scene is None else "state"
            raise _No("no_state", f"no {missing} has come from the robot yet")
        self._for_this_robot(self._scene)
        age_s, most_s = now_s - self._seen_s, self._limit("state_age_s")
        if self._realtime and not age_s <= most_s:
            if not self._overdue:
                self._overdue = True
                self._presume_for(age_s)
            raise _No("old_state", f"the newest state is {age_s:.3f} s old", value=age_s,
                      limit=most_s)  # fmt: skip
        return self._state

    def _for_this_robot(self, scene: Scene) -> None:
        """_No unless the limits are for the robot whose scene it is, joint by joint."""
        assert self._limits is not None
        if scene.robot not in (SIMULATED, self._limits.cell):
            raise _No("cell", f"the cell of the robot {scene.robot!r} is not known (parameter "
                      "cell): what its drivers do with a command cannot be foreseen")  # fmt: skip
        names = scene.joint_names[-len(self._columns) :]
        if names != self._limits.joint_names:
            pairs = zip(names, self._limits.joint_names, strict=False)
            wrong = next((f"{a!r}, not {b!r}" for a, b in pairs if a != b), "fewer or more")
            raise _No("joint_order", f"the robot's joints are not those of the limits: {wrong}")
        if scene.control_period_ns != round(self._period_s * 1e9):
            raise _No("period", f"the robot's control period is {scene.control_period_ns} ns, the "
                      f"limits are for {self._period_s:g} s")  # fmt: skip

    def _well_formed(self, given: Any) -> np.ndarray:
        assert self._limits is not None
        try:
            values = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise _No("malformed", "what should be actions are not numbers") from None
        most = self._limits.commands["max_actions"]
        if values.ndim != 2 or values.shape[1] != self._size or not 0 < len(values) <= most:
            raise _No("length", f"actions must be (1 to {most}, {self._size}), got {values.shape}")
        if not np.isfinite(values).all():
            row, column = np.argwhere(~np.isfinite(values))[0]
            raise _No("not_finite", f"action {row}, number {column} is {values[row, column]}")
        return values

    def _timely(self, seq: int, count: int, state: WorldState) -> int:
        """How many of the actions are over; refused, but nothing is stopped, when all are."""
        late = state.seq - seq
        if late < 0:
            raise _No("future", f"it answers state {seq}, the newest is {state.seq}", "dropped")
        if late >= count or (late > 0 and not self._realtime):
            raise _No("stale", f"it answers state {seq} with {count} actions, now is {state.seq}",
                      "dropped")  # fmt: skip
        if seq <= self._answered:
            raise _No("out_of_order", f"it answers state {seq}, {self._answered} was answered",
                      "dropped")  # fmt: skip
        return late

    def _plausible(self, path: np.ndarray, command: np.ndarray) -> None:
        """_No when the path is none from `command`: other units, another order, somewhere else."""
        assert self._limits is not None
        limits, first = self._limits, path[0]
        most = limits.commands["jump_rad"]
        joints = path[:, self._columns]
        jumps = np.abs(np.diff(joints, axis=0, prepend=command[None, self._columns]))
        reach = np.minimum(most, limits.velocity * self._period_s)
        for within in (np.full_like(reach, most), reach):
            if not (jumps[0] <= within).all():
                self._name_mistake(first, command, within)
        openings = path[:, self._openings]
        wrong = np.maximum(limits.opening[0] - openings, openings - limits.opening[1]) > 1e-6
        if wrong.any():
            row, k = np.argwhere(wrong)[0]
            raise _No(
                "gripper", f"the {ARMS[k]} hand cannot open {openings[row, k]:g} m "
                f"({limits.opening[0]:g} to {limits.opening[1]:g})", row=int(row),
                value=float(openings[row, k]),
            )  # fmt: skip
        if not (jumps <= most).all():
            row, joint = np.unravel_index(int(np.argmax(jumps)), jumps.shape)
            name, value = limits.joint_names[joint], float(jumps[row, joint])
            raise _No(
                "jump", f"{name} would jump by {value:.3f} rad in action {row} (at most {most:g})",
                joint=name, row=int(row), value=value, limit=most,
            )  # fmt: skip

    def _name_mistake(self, first: np.ndarray, command: np.ndarray, within: np.ndarray) -> None:
        """_No when `first`, put right, would be `within` (n,) rad of the command."""
        arms = command[self._columns]
        if (np.abs(np.deg2rad(first[self._columns]) - arms) <= within).all():
            raise _No("units", "the joint positions look like degrees")
        before = self._size - ACTION_SIZE  # numbers of a waist
        for name, undo in _ORDERS.items():
            again = np.concatenate([first[:before], first[before:][undo]])
            if (np.abs(again[self._columns] - arms) <= within).all():
                raise _No("joint_order", f"the order looks wrong: {name}")

    def _slower(
        self, found: Breach, moving: Moving, path: np.ndarray, begin: np.ndarray
    ) -> np.ndarray:
        assert self._limits is not None
        if found.kind != "position":
            joints, index = slowed(self._limits, moving, path[:, self._columns])
            if len(joints):
                passed = np.empty((len(joints), self._size))
                passed[:, self._columns] = joints
                grid = np.arange(-1, len(path))
                for column in self._openings:
                    known = np.append(begin[column], path[:, column])
                    passed[:, column] = np.interp(index, grid, known)
                return passed
        raise _No(found.kind, self._said(found), **self._particulars(found, 0))

    def _coming(self) -> np.ndarray:
        """Actions (lead, size) that the robot does before anything that is sent now.

        None (0, size) when that cannot be said, since it has not done what it was sent lately.
        """
        assert self._state is not None
        seq, command = self._state.seq, self._state.command
        last = self._sent_for(seq - 1, self._lead)
        if self._speed > 0.0 if last is None else np.abs(last - command).max() > 1e-6:
            return np.zeros((0, self._size))
        rows = [self._sent_for(seq + k, self._lead) for k in range(self._lead)]
        known = [command if row is None else row for row in rows]
        return np.array(known).reshape(-1, self._size)

    def _sent_for(self, seq: int, lead: int) -> np.ndarray | None:
        """The action that answers state `seq` for a robot with so long a lead, if one was sent."""
        newest = next((c for c in reversed(self._sent) if c.seq <= seq - lead), None)
        return newest.values[min(seq - newest.seq, len(newest.values) - 1)] if newest else None

    def _from(self, lead: np.ndarray) -> np.ndarray:
        """The action (size,) that what is sent now follows on."""
        assert self._state is not None
        return lead[-1] if len(lead) else self._state.command

    def _moving(self, lead: np.ndarray) -> Moving:
        """How the arms move when what is sent now begins."""
        before = [*self._executed, *lead]
        return Moving.after([row[self._columns] for row in before], self._period_s)

    def _follows(self, send: ActionChunk, plan: np.ndarray) -> None:
        """From now on the robot does this."""
        self._plan, self._plan_seq = plan, send.seq
        before = [chunk for chunk in self._sent if chunk.seq < send.seq]
        self._sent = [*before[-MOST_LEAD - 2 :], send]

    def _tail(self, lead: np.ndarray, passed: np.ndarray) -> np.ndarray:
        """How the arms come to rest after `passed`; _No when that is beyond a limit."""
        assert self._limits is not None
        end = self._moving(np.concatenate([lead, passed]))
        joints = stopped_at_end(self._limits, end)
        found = breach(self._limits, end, joints) if len(joints) else None
        if found is not None:
            raise _No(found.kind, f"no stop is possible behind it: {self._said(found)}",
                      **self._particulars(found, len(passed)))  # fmt: skip
        return self._with_hands(joints, passed[-1])

    def _said(self, found: Breach) -> str:
        assert self._limits is not None
        name, unit = self._limits.joint_names[found.joint], _UNITS[found.kind]
        return (f"{name}: {found.kind} {found.value:.4g} {unit} in action {found.row} "
                f"(limit {found.limit:.4g})")  # fmt: skip

    def _particulars(self, found: Breach, late: int) -> dict[str, Any]:
        assert self._limits is not None
        return {
            "joint": self._limits.joint_names[found.joint], "row": found.row + late,
            "value": found.value, "limit": found.limit,
        }  # fmt: skip

    # -- stopping --------------------------------------------------------------------------------

    def _refused(self, no: _No, values: Any) -> Decision:
        told = Intervention(no.action, no.kind, no.reason, no.detail, _plain(values))
        if no.action == "dropped":
            return Decision(None, (told,))
        if no.action == "stopped" and not self._realtime:
            return Decision(None, (told,))
        return self._halt(told, len(values) if isinstance(values, np.ndarray) else 0)

    def _halt(self, told: Intervention, asked: int = 0) -> Decision:
        """Brake from the present state on, and hold."""
        if self._state is None or self._limits is None or not self._executed:
            return Decision(None, (told,))
        lead = self._coming()
        moving, begin = self._moving(lead), self._from(lead)
        if (np.abs(moving.velocity) > self._limits.velocity).any():
            # So fast nobody was told to be: nothing is to be concluded from that but to hold.
            moving = Moving(moving.position, 0.0 * moving.velocity, 0.0 * moving.acceleration)
        joints = brake(self._limits, moving, self._ahead(lead)[:, self._columns])
        rows = np.concatenate([lead, self._with_hands(joints, begin)])
        seen_seq = self._seen[0].seq if self._seen else self._state.seq
        if self._rest_seq is None or len(joints):
            self._rest_seq = self._state.seq + len(rows)
        if not self._realtime:
            if told.action == "stopped":
                return Decision(None, (told,))  # the world stands still
            count = max(len(rows), min(asked, HOLD_ACTIONS) or HOLD_ACTIONS)
            last = rows[-1] if len(rows) else begin
            rows = np.concatenate([rows, np.tile(last, (count - len(rows), 1))])
        else:
            rest = not len(joints) and np.abs(rows - begin).max(initial=0.0) == 0.0
            if rest and not len(self._plan[max(0, seen_seq - self._plan_seq) :]):
                # At rest, with nothing under way: there it is to stay.
                self._plan, self._plan_seq, self._sent = self._plan[:0], seen_seq, []
                return Decision(None, (told,))
            # It ends in a hold: the world takes a stop that comes late only if there is still
            # something in it to do, and would follow the plan before it otherwise.
            last = rows[-1] if len(rows) else begin
            rows = np.concatenate([rows, np.tile(last, (HOLD_ACTIONS, 1))])
        self._follows(ActionChunk(self._state.seq, rows), rows)
        self._stopping = True
        # A world that has stalled is still at the state that it told of last, and refuses what
        # answers a later one: what it would have done since goes before the stop.
        if self._realtime:
            self._plan, self._plan_seq = np.concatenate([self._presumed, rows]), seen_seq
        return Decision(ActionChunk(self._plan_seq, self._plan), (told,))

    def _presume(self, seq: int) -> None:
        """State `seq` is not known: take it that what was sent has been done until then."""
        if self._state is None or seq <= self._state.seq:
            return
        if self._seen is None:
            self._seen = self._state, self._executed
        for k in range(self._state.seq + 1 - self._plan_seq, seq + 1 - self._plan_seq):
            row = self._plan[k - 1] if 0 < k <= len(self._plan) else self._executed[-1]
            self._executed = [*self._executed[-2:], row.copy()]
            self._presumed = np.concatenate([self._presumed, row[None]])
        self._state = replace(self._state, seq=seq, command=self._executed[-1])

    def _presume_for(self, age_s: float) -> None:
        """As `_presume`, of a state that should have come `age_s` after the newest."""
        assert self._state is not None
        seq = (self._seen[0] if self._seen else self._state).seq
        self._presume(seq + min(int(age_s / self._period_s + 1e-6), MOST_GAP))

    def _see_again(self, seq: int) -> None:
        """State `seq` has come: what was presumed holds no longer, unless that is what it was."""
        if self._seen is None or self._state is None:
            return
        if seq <= self._state.seq:
            self._state, self._executed = self._seen
        self._seen, self._presumed = None, self._presumed[:0]

    def _look_for_running(self, state: WorldState, before: WorldState | None) -> None:
        """Count the states in which joints that were told to stop, and should have, move on."""
        if self._rest_seq is None and self._stop_reason:
            self._rest_seq = state.seq
        rest = self._rest_seq
        if rest is None or before is None or state.seq < rest + IGNORED_PERIODS:
            self._running = 0
            return
        passed_s = (state.seq - before.seq) * self._period_s
        moved = (state.joint_position - before.joint_position) / passed_s
        speed = np.abs([self._told_joints(v) for v in (state.joint_velocity, moved)]).max()
        self._running = self._running + 1 if speed > RUNNING_RAD_S else 0

    def _ahead(self, lead: np.ndarray) -> np.ndarray:
        """What of the plan is to come behind `lead`, if the arms are where it says."""
        assert self._state is not None
        done = self._state.seq - self._plan_seq + len(lead)
        if not 0 <= done < len(self._plan):
            return self._plan[:0]
        if done and np.abs(self._plan[done - 1] - self._from(lead)).max() > 1e-6:
            return self._plan[:0]
        return self._plan[done:]

    def _follow(self) -> Decision:
        """In realtime: has the robot done what it was told, and is what comes next still right?

        A command that came a moment too late leaves the arms a period behind: they may go on if
        that is within the limits. A stop that did not arrive is sent again, and so is one when
        the arms are anywhere but where the last plan has ended.
        """
        assert self._state is not None and self._limits is not None
        done, command = self._state.seq - self._plan_seq, self._state.command
        if not self._realtime or done <= 0 or len(self._executed) < 2:
            return Decision()
        over = done >= len(self._plan)
        told = self._plan[min(done, len(self._plan)) - 1] if len(self._plan) else self._executed[-2]
        if np.abs(told - command).max() <= 1e-6:
            self._ignored, self._missed = None, False
            return Decision()
        if self._stopping:
            self._ignored = self._ignored or (self._state.seq, self._speed)
        again = self._missed
        self._missed = True
        if again:
            self._learn_lead(command)
        ahead = self._plan[done:]
        moving = self._moving(self._plan[:0])
        found = None if over else breach(self._limits, moving, ahead[:, self._columns])
        if found is not None:
            reason = f"the robot did not do what was sent; going on, {self._said(found)}"
            detail = self._particulars(found, 0)
        elif over or (self._stopping and self._state.seq - self._sent[-1].seq >= HEED_PERIODS):
            away = np.abs(told - command)
            column = int(away.argmax())
            hands = {k: f"the {arm} hand" for k, arm in zip(self._openings, ARMS, strict=True)}
            name = hands.get(column) or self._joint_of(column)
            detail = {"joint": name, "value": float(away[column])}
            reason = f"the robot does not do what was sent: {name} is {away[column]:.4g} off it"
        else:
            return Decision()
        return self._halt(Intervention("refused", "execution", reason, detail, ahead.tolist()))

    def _joint_of(self, column: int) -> str:
        assert self._limits is not None
        return self._limits.joint_names[int(np.searchsorted(self._columns, column))]

    def _learn_lead(self, command: np.ndarray) -> None:
        """Twice running the robot was not where it was sent: it may do things later than thought.

        A stop that is made anew for arms that have not got the one before yet would come too late
        as well, and so would the next: they would be thrown to and fro.
        """
        assert self._state is not None
        for lead in range(self._lead + 1, MOST_LEAD + 1):
            sent = self._sent_for(self._state.seq - 1, lead)
            if sent is not None and np.abs(sent - command).max() <= 1e-6:
                self._lead = lead
                return

    # -- measurements ----------------------------------------------------------------------------

    @property
    def _period_s(self) -> float:
        assert self._limits is not None
        return self._limits.period_s

    def _limit(self, name: str) -> float:
        assert self._limits is not None
        return self._limits.measured[name]

    def _danger(self, state: WorldState) -> _No | None:
        """What is measured and must not be."""
        assert self._limits is not None
        limits = self._limits
        tracking = self._off(state)[self._columns]
        for kind, unit, value, most in (
            ("torque", "Nm", self._told_joints(state.joint_effort),
             self._limit("torque_share") * limits.torque),
            ("overspeed", "rad/s", self._told_joints(state.joint_velocity),
             self._limit("velocity_share") * limits.fastest),
            ("tracking", "rad from what it was told", tracking, self._limit("tracking_rad")),
        ):  # fmt: skip
            over = np.abs(value) / most
            if not (over <= 1.0).all():
                joint = int(np.argmax(over))
                limit = float(np.broadcast_to(most, over.shape)[joint])
                name = limits.joint_names[joint]
                return _No(kind, f"{name}: {value[joint]:.4g} {unit} (limit {limit:.4g})",
                           joint=name, value=float(value[joint]), limit=limit)  # fmt: skip
        return self._touching(state)

    def _off(self, state: WorldState) -> np.ndarray:
        """How far (size,) the arms are from all that they were told within the time they may lag.

        The hands follow at their own pace, and what they hold keeps them open: as measured.
        """
        told = np.array(self._recent)
        off = np.zeros(self._size)
        low, high = told.min(axis=0)[self._columns], told.max(axis=0)[self._columns]
        joints = self._told_joints(state.joint_position)
        off[self._columns] = joints - np.clip(joints, low, high)
        off[self._openings] = state.gripper_opening - state.command[self._openings]
        return off

    def _touching(self, state: WorldState) -> _No | None:
        if self._scene is None or not len(state.contact_force):
            return None
        names = self._scene.entities
        for pair, force in zip(state.contact_pair, state.contact_force, strict=True):
            parties = [names[k] if k < len(names) else "?" for k in pair]
            if not any(party in _HARD or party in _FINGERS or party == "?" for party in parties):
                continue
            finger = any(party in _FINGERS for party in parties)
            most = self._limit("finger_force_n" if finger else "contact_force_n")
            if not force <= most:
                return _No("force", f"{' and '.join(parties)} press with {force:.0f} N "
                           f"(limit {most:g})", value=float(force), limit=most)  # fmt: skip
        return None

    def _with_hands(self, joints: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Actions (m, size) of joint positions (m, n), the hands staying as in action `last`."""
        rows = np.tile(last, (len(joints), 1))
        rows[:, self._columns] = joints
        return rows

    def _unreadable(self, state: WorldState) -> str:
        """What of a state cannot be used; "" when all can."""
        assert self._limits is not None
        # A humanoid's legs come before what is commanded; how many, only the scene says.
        least = max(len(self._limits.joint_names), np.size(state.joint_position))
        joints = len(self._scene.joint_names) if self._scene else least
        sizes = {"joint_position": joints, "joint_velocity": joints, "joint_effort": joints,
                 "gripper_opening": 2, "command": self._size}  # fmt: skip
        for name, size in sizes.items():
            value = np.asarray(getattr(state, name))
            if value.shape != (size,):
                return f"{name} has shape {value.shape}, not ({size},)"
            if not np.isfinite(value).all():
                return f"{name} holds a number that is not finite"
        return ""

    def _told_joints(self, values: np.ndarray) -> np.ndarray:
        """Of a state's joints (k,) those that are commanded (n,): the last ones."""
        return values[-len(self._columns) :]


def _clearance(limits: Limits) -> Any:
    """What knows the distances of the robot that the limits are for."""
    if limits.robot == "g1":
        from hardware.safety_humanoid import HumanoidClearance  # its model is in a wheel of its own

        return HumanoidClearance(limits)
    return Clearance(limits)


def _number(value: Any) -> Any:
    """The same, or its text if it is a number that JSON has not."""
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


def _plain(values: Any) -> list[Any] | None:
    """Numbers as JSON can hold them: what is not finite as text."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return [repr(values)[:1000]]
    if values is None:
        return None
    flat = [_number(v) for v in array.ravel().tolist()]
    if array.ndim != 2 or not array.size:
        return flat
    width = array.shape[1]
    return [flat[k : k + width] for k in range(0, len(flat), width)]
