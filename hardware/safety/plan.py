"""What a robot has been seen to do, and what it is going to do: until it stands still."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from bench_tasks.vocabulary import ARMS, ActionChunk, WorldState
from hardware.safety.limits import Limits
from hardware.safety.motion import Moving, brake, breach
from hardware.safety.sent import MOST_LEAD, SAME, Sent

__all__ = ["MOST_GAP", "Plan"]

HOLD_ACTIONS = 10
"""What stands in lockstep for a command that is not even readable, so that time goes on; in
realtime the end of every stop, so that one that comes this much late is still taken."""
HEED_PERIODS = 3
"""A stop that the robot is not seen to follow by then is sent again: it has not reached it."""
IGNORED_PERIODS, SLOWING = 5, 0.9
"""A robot that was told to stop and after so many periods still moves at this share of its speed
does not listen; heartbeats cease (see `Plan.heeded`)."""
RUNNING_RAD_S = 0.1
"""Joints that are measured to move faster, so long after they were to be at rest, run away."""
MOST_GAP = 250
"""A state that claims to be farther from the one before is not believed."""


class Plan:
    """Of one motion, from its first state on. Mutates no array, so that a copy is independent.

    `state` is the newest one, or what is presumed in its place while none comes.
    """

    def __init__(self, limits: Limits, realtime: bool) -> None:
        """`realtime`: states come by themselves; else each follows from an action passed on."""
        self.limits, self.realtime = limits, realtime
        self.state: WorldState | None = None
        self.executed: list[np.ndarray] = []
        """The commands executed last, oldest first: those of `lag_s`, and the one before."""
        self._lag = int(limits.measured["lag_s"] / limits.period_s + 1e-6)
        self.rows, self.seq = np.zeros((0, limits.size)), 0
        """What the arms do from state `seq` on; it ends at rest."""
        self._sent = Sent(limits.lead_periods if realtime else 0)
        self._seen: tuple[WorldState, list[np.ndarray]] | None = None
        """The newest state that came and what was executed by then, while a later one is presumed
        in its place."""
        self._presumed = self.rows
        """What is taken to have been executed since."""
        self._strange: list[WorldState] = []
        """The newest states, two at most, if nothing that was sent explains their commands."""
        self._stopping = False
        """Whether the rows are a stop."""
        self._ignored: tuple[int, float] | None = None
        """State from which on, and speed (rad/s) with which, a stop has not been followed."""
        self._rest_seq: int | None = None
        """State from which on what was stopped is at rest."""
        self._running = 0
        """So many states running joints have been measured to move long after that."""

    def __copy__(self) -> Plan:
        """Independent of this one."""
        other = object.__new__(type(self))
        vars(other).update(vars(self), _sent=copy.copy(self._sent))
        return other

    @property
    def lead(self) -> int:
        """At most so many periods later the robot does what it is sent (`Sent.lead`)."""
        return self._sent.lead

    @lead.setter
    def lead(self, periods: int) -> None:
        self._sent.lead = periods

    # -- what is seen ----------------------------------------------------------------------------

    @property
    def newest(self) -> WorldState | None:
        """The newest state that has come."""
        return self._seen[0] if self._seen else self.state

    @property
    def recent(self) -> list[np.ndarray]:
        """All actions (size,) that the arms may have been told in the last `lag_s`."""
        told = self.executed[-1 - self._lag :]
        return [*told, *(state.command for state in self._doubted)]

    @property
    def heeded(self) -> bool:
        """Whether the robot heeds a stop, by its commands and as it is measured."""
        if self._running >= IGNORED_PERIODS:
            return False
        if self._ignored is None or self.state is None:
            return True
        since, speed = self._ignored
        return self._speed < SLOWING * speed or self.state.seq - since < IGNORED_PERIODS

    @property
    def _speed(self) -> float:
        """Of the fastest joint, as commands were executed last, rad/s."""
        if len(self.executed) < 2:
            return 0.0
        step = np.abs(self.executed[-1] - self.executed[-2])[self.limits.columns]
        return float(step.max()) / self.limits.period_s

    @property
    def moves(self) -> bool:
        """Whether any joint does, as commands were executed last."""
        return self._speed > 0.0

    def go_on(self, state: WorldState) -> None:
        """Nothing of before is known of a first state, but that arms were in motion.

        Those that are measured to be are, and what is sent next must go on from that.
        """
        step = np.zeros(self.limits.size)
        step[self.limits.columns] = self.limits.commanded(state.joint_velocity)
        if np.abs(step).max() > RUNNING_RAD_S:
            step *= self.limits.period_s
            self.executed = [state.command - 2 * step, state.command - step]

    def see(
        self, state: WorldState, stopped: bool, age_s: float | None = None
    ) -> tuple[str, dict[str, Any]] | None:
        """A state has come, later than the newest, by `age_s`; `stopped`: nothing may move.

        Returns why its command is not believed, if it is not: nothing that was sent explains it.
        One message may be wrong; when the one before was no other, the robot is elsewhere indeed.
        """
        before, self._strange = self.newest, self._strange_with(state)
        if self._strange and not self._consistent():
            self.miss(state.seq, age_s)
            told = self._sent.row(state.seq - 1)
            return self._off(self.executed[-1] if told is None else told, state.command)
        self._see_again(state.seq)
        if self._strange and self._strange[0] is not before:
            first = self._strange[0]  # it was so: that is how the arms have come here
            step = (state.command - first.command) / (state.seq - first.seq)
            self._execute(state.command - 2 * step, state.command - step)
        else:
            self._execute(*self._between(state))
        self._execute(np.array(state.command))
        self.state = state
        self._sent.look()
        self._look_for_running(state, before, stopped)
        return None

    def _execute(self, *rows: np.ndarray) -> None:
        """The arms have done those actions."""
        self.executed = [*self.executed, *rows][-max(3, 1 + self._lag) :]

    def _strange_with(self, state: WorldState) -> list[WorldState]:
        """With a state that has come, the newest two if nothing explains their commands."""
        if not self.realtime or self.state is None or not self.executed:
            return []
        seen = self._seen[1] if self._seen else self.executed
        if self._sent.late(state.seq, state.command, seen[-1]) is not None:
            return []
        return [*self._strange[-1:], state]

    def _consistent(self) -> bool:
        """Whether there are two strange states, and arms can get from the one to the other."""
        if len(self._strange) < 2:
            return False
        first, second = self._strange
        jump = np.abs(second.command - first.command)[self.limits.columns]
        gap = second.seq - first.seq
        return gap > 0 and bool(
            (jump <= self.limits.fastest * self.limits.period_s * gap * 1.01).all()
        )

    def _between(self, state: WorldState) -> list[np.ndarray]:
        """What was done, last of all, between the newest state that is known and this one."""
        if self.state is None or not self.executed or state.seq <= self.state.seq + 1:
            return []
        last, gap = self.executed[-1], state.seq - self.state.seq
        late = self._sent.late(state.seq, state.command, last) if self.realtime else None
        if late is None:  # the command changed evenly, for all that is known
            return list(np.linspace(last, state.command, gap + 1)[1:-1])
        rows = [self._sent.row(seq, late) for seq in range(self.state.seq, state.seq - 1)]
        return [last if row is None else row for row in rows]

    def miss(self, seq: int, age_s: float | None = None) -> None:
        """State `seq` has come, by `age_s` later than the newest, but cannot be used.

        Its number may be wrong, too: it is believed as far as the time that has passed allows.
        """
        if self.newest is None:
            return
        if age_s is not None:
            periods = int(np.ceil(age_s / self.limits.period_s - 1e-6))
            seq = min(seq, self.newest.seq + max(0, periods))
        self._presume(seq)

    def wait(self, age_s: float) -> None:
        """The newest state came so long ago: others should have."""
        if self.newest is not None:
            periods = min(int(age_s / self.limits.period_s + 1e-6), MOST_GAP)
            self._presume(self.newest.seq + periods)

    def _presume(self, seq: int) -> None:
        """State `seq` is not known: take it that what was sent has been done until then."""
        if self.state is None or seq <= self.state.seq:
            return
        if self._seen is None:
            self._seen = self.state, self.executed
        for k in range(self.state.seq + 1 - self.seq, seq + 1 - self.seq):
            row = self.rows[k - 1] if 0 < k <= len(self.rows) else self.executed[-1]
            self._execute(row.copy())
            self._presumed = np.concatenate([self._presumed, row[None]])
        self.state = replace(self.state, seq=seq, command=self.executed[-1])

    def _see_again(self, seq: int) -> None:
        """State `seq` has come: what was presumed holds no longer, unless that is what it was."""
        if self._seen is None or self.state is None:
            return
        if seq <= self.state.seq:
            self.state, self.executed = self._seen
        self._seen, self._presumed = None, self._presumed[:0]

    def _look_for_running(
        self, state: WorldState, before: WorldState | None, stopped: bool
    ) -> None:
        """Count the states in which joints that were told to stop, and should have, move on."""
        if self._rest_seq is None and stopped:
            self._rest_seq = state.seq
        rest = self._rest_seq
        if rest is None or before is None or state.seq < rest + IGNORED_PERIODS:
            self._running = 0
            return
        passed_s = (state.seq - before.seq) * self.limits.period_s
        moved = (state.joint_position - before.joint_position) / passed_s
        speed = np.abs([self.limits.commanded(v) for v in (state.joint_velocity, moved)]).max()
        self._running = self._running + 1 if speed > RUNNING_RAD_S else 0

    @property
    def settled(self) -> bool:
        """Whether commands may come: the robot is not astray (`Sent.settled`).

        While its newest state is doubted nobody knows where they would begin.
        """
        return self._sent.settled and not self._doubted

    @property
    def _doubted(self) -> list[WorldState]:
        """The newest state, if its command is not believed."""
        return [state for state in self._strange[-1:] if state is not self.newest]

    # -- what is to come -------------------------------------------------------------------------

    def coming(self) -> np.ndarray:
        """Actions (lead, size) that the robot does before anything that is sent now.

        None (0, size) when that cannot be said, since it has not done what it was sent lately.
        """
        assert self.state is not None
        command, done = self.state.command, self.executed
        before = done[-2] if len(done) > 1 else command
        rows = self._sent.coming(self.state.seq, command, before)
        return np.array(rows).reshape(-1, self.limits.size)

    def begin(self, coming: np.ndarray) -> np.ndarray:
        """The action (size,) that what is sent now follows on."""
        assert self.state is not None
        return coming[-1] if len(coming) else self.state.command

    def moving(self, coming: np.ndarray) -> Moving:
        """How the arms move when what is sent now begins."""
        before = [*self.executed, *coming]
        columns = self.limits.columns
        return Moving.after([row[columns] for row in before], self.limits.period_s)

    def _ahead(self, coming: np.ndarray) -> np.ndarray:
        """What of the rows is left behind those, if the arms are where they say."""
        assert self.state is not None
        done = self.state.seq - self.seq + len(coming)
        if not 0 <= done < len(self.rows):
            return self.rows[:0]
        if done and np.abs(self.rows[done - 1] - self.begin(coming)).max() > SAME:
            return self.rows[:0]
        return self.rows[done:]

    # -- what it is told -------------------------------------------------------------------------

    def go(self, send: ActionChunk, rows: np.ndarray) -> ActionChunk:
        """From now on the robot does these rows; returns what is sent for that."""
        self._follow(send, rows)
        self._stopping, self._ignored = False, None
        self._rest_seq, self._running = None, 0
        return self._since_newest() if self.realtime else send

    def _follow(self, send: ActionChunk, rows: np.ndarray) -> None:
        self.rows, self.seq = rows, send.seq
        self._sent.add(send)

    def _since_newest(self) -> ActionChunk:
        """The rows as they are sent: what is presumed to have been done goes before them.

        A world that has stalled is still at the state that it told of last, and refuses what
        answers a later one.
        """
        assert self.newest is not None
        if self._seen is not None:
            self.rows = np.concatenate([self._presumed, self.rows])
            self.seq = self.newest.seq
        return ActionChunk(self.seq, self.rows)

    def halt(
        self, still: bool, asked: int = 0, free: Callable[[np.ndarray], int] = len
    ) -> ActionChunk | None:
        """Brake from the present state on, and hold: what to send for that, if anything is.

        In lockstep: nothing if the world may stand `still`, else as many actions as were `asked`.
        `free`: how many of actions (n, size), the first being where the arms are, may be done.
        """
        if self.state is None or not self.executed:
            return None
        coming = self.coming()
        moving, begin = self.moving(coming), self.begin(coming)
        if (np.abs(moving.velocity) > self.limits.velocity).any():
            # So fast nobody was told to be: nothing is to be concluded from that but to hold.
            moving = Moving(moving.position, 0.0 * moving.velocity, 0.0 * moving.acceleration)

        def free_of(joints: np.ndarray) -> int:
            return free(np.concatenate([begin[None], self.limits.actions(joints, begin)])) - 1

        ahead = self._ahead(coming)[:, self.limits.columns]
        joints = brake(self.limits, moving, ahead, free_of)
        rows = np.concatenate([coming, self.limits.actions(joints, begin)])
        if self._rest_seq is None or len(joints):
            self._rest_seq = self.state.seq + len(rows)
        last = rows[-1] if len(rows) else begin
        if not self.realtime:
            if still:
                return None
            count = max(len(rows), min(asked, HOLD_ACTIONS) or HOLD_ACTIONS)
            rows = np.concatenate([rows, np.tile(last, (count - len(rows), 1))])
            self._follow(ActionChunk(self.state.seq, rows), rows)
        else:
            assert self.newest is not None
            seq = self.newest.seq
            rest = moving.at_rest and np.abs(rows - begin).max(initial=0.0) == 0.0
            if rest and not len(self.rows[max(0, seq - self.seq) :]):
                # At rest, with nothing under way: there it is to stay.
                self.rows, self.seq = self.rows[:0], seq
                self._sent.clear()
                return None
            # It ends in a hold: the world takes a stop that comes late only if there is still
            # something in it to do, and would follow the plan before it otherwise.
            rows = np.concatenate([rows, np.tile(last, (HOLD_ACTIONS, 1))])
            self._follow(ActionChunk(self.state.seq, rows), rows)
        self._stopping = True
        return self._since_newest() if self.realtime else ActionChunk(self.seq, rows)

    # -- whether it is done ----------------------------------------------------------------------

    def astray(self) -> tuple[str, dict[str, Any]] | None:
        """In realtime: why what comes next is not right, since what was sent is not what was done.

        A command that came a moment too late leaves the arms a period behind: they may go on if
        that is within the limits. A stop that did not arrive is sent again, and so is one when
        the arms are anywhere but where the last plan has ended.
        """
        assert self.state is not None
        done, command = self.state.seq - self.seq, self.state.command
        if not self.realtime or done <= 0 or len(self.executed) < 2:
            return None
        over = done >= len(self.rows)
        told = self.rows[min(done, len(self.rows)) - 1] if len(self.rows) else self.executed[-2]
        if np.abs(told - command).max() <= SAME:
            self._ignored = None
            self._sent.done(not self._stopping and self.moves)
            return None
        if self._stopping:
            self._ignored = self._ignored or (self.state.seq, self._speed)
        self._sent.not_done(self.state.seq, command)
        since = self._sent.ago(self.state.seq)
        if not self._sent.settled and self._stopping and since < MOST_LEAD:
            return None  # what was sent last may not have reached it yet
        moving, ahead = self.moving(self.rows[:0]), self.rows[done:, self.limits.columns]
        found = None if over else breach(self.limits, moving, ahead)
        if found is not None:
            return (f"the robot did not do what was sent; going on, {found.said(self.limits)}",
                    found.detail(self.limits))  # fmt: skip
        if not over and not (self._stopping and since >= HEED_PERIODS):
            return None
        return self._off(told, command)

    def _off(self, told: np.ndarray, command: np.ndarray) -> tuple[str, dict[str, Any]]:
        """In words, how far a robot is from what it was told."""
        away = np.abs(told - command)
        column = int(away.argmax())
        name, value = self._name_of(column), float(away[column])
        return (f"the robot does not do what was sent: {name} is {value:.4g} off it",
                {"joint": name, "value": value})  # fmt: skip

    def _name_of(self, column: int) -> str:
        """Of a number of an action."""
        for k, arm in zip(self.limits.openings, ARMS, strict=True):
            if column == k:
                return f"the {arm} hand"
        return self.limits.joint_names[int(np.searchsorted(self.limits.columns, column))]
