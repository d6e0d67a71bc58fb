"""An ideal robot: it does what the safety supervisor sends, in time or some periods late."""

from __future__ import annotations

import copy

import numpy as np

from bench_tasks.robots.fr3 import JOINT_NAMES
from bench_tasks.vocabulary import ActionChunk, Scene, WorldState
from hardware.safety import Decision, Supervisor

__all__ = ["DT", "HANDS", "JOINTS", "SCENE", "Robot", "speed"]

DT = 0.02
JOINTS, HANDS = np.r_[0:7, 8:15], np.array([7, 15])
"""Columns of an action."""
ENTITIES = ("table", "left_hand", "left_finger1", "block") + tuple(
    f"right_{part}" for part in ("arm", "hand", "finger1", "finger2")
)
SCENE = Scene(
    "fuzz", 1, 0, "", (), ENTITIES, JOINT_NAMES, {}, control_period_ns=20_000_000
)  # fmt: skip


class Robot:
    """Executes what the supervisor sends; holds its last command when there is nothing."""

    def __init__(self, supervisor: Supervisor, command: np.ndarray) -> None:
        """At rest at `command` (16,), with its first state told."""
        self.supervisor, self.seq, self.now_s = supervisor, 0, 0.0
        self.executed = [command.copy()]
        self.chunk: ActionChunk | None = None
        self.late_periods, self.expected = 0, True
        """How late orders come, and whether the supervisor knows it."""
        self.misread = np.zeros(16)
        """How far the command that a state tells of is off the one that was executed."""
        self.mail: list[tuple[int, ActionChunk]] = []
        self.decisions: list[Decision] = []
        supervisor.begin(SCENE)
        self.tell(self.state())

    def state(self, **changed) -> WorldState:
        """The present state: the arms are where they were told to be."""
        command = self.executed[-1]
        before = self.executed[-2] if len(self.executed) > 1 else command
        known = {
            "joint_position": command[JOINTS], "joint_effort": np.zeros(14),
            "joint_velocity": (command - before)[JOINTS] / DT,
            "gripper_opening": command[HANDS], "ee_pose": np.zeros((2, 7)),
            "command": command + self.misread,
            "object_pose": np.zeros((0, 7)), "object_twist": np.zeros((0, 6)),
            "contact_pair": np.zeros((0, 2), np.uint16), "contact_force": np.zeros(0),
        }  # fmt: skip
        return WorldState(self.seq, self.seq * 20_000_000, **{**known, **changed})

    def take(self, decision: Decision) -> Decision:
        """Follow a decision; a chunk that is sent replaces the one before."""
        self.decisions.append(decision)
        if decision.send is not None:
            self.mail.append((self.seq + self.late_periods, decision.send))
            self.open_mail()
        return decision

    def open_mail(self) -> None:
        """Take what has come by now, as a world's node does: not what is over already."""
        while self.mail and self.mail[0][0] <= self.seq:
            chunk = self.mail.pop(0)[1]
            if 0 <= self.seq - chunk.seq < len(chunk.values):
                self.chunk = chunk

    def tell(self, state: WorldState) -> Decision:
        """Publish a state."""
        return self.take(self.supervisor.on_state(state, self.now_s))

    def ask(self, seq: int, values) -> Decision:
        """Somebody's command."""
        return self.take(self.supervisor.on_chunk(ActionChunk(seq, values), self.now_s))

    def step(self, publish: bool = True, tick: bool = True, **changed) -> None:
        """One control period; without `tick` the supervisor's timer does not run."""
        self.open_mail()
        action = self.executed[-1]
        if self.chunk is not None:
            index = self.seq - self.chunk.seq
            if 0 <= index < len(self.chunk.values):
                action = self.chunk.values[index]
        self.executed.append(np.array(action, dtype=float))
        self.seq, self.now_s = self.seq + 1, self.now_s + DT
        if publish:
            self.tell(self.state(**changed))
        if tick:
            self.take(self.supervisor.on_time(self.now_s))

    def twin(self) -> Robot:
        """The same situation, to be continued otherwise. The supervisor mutates no array."""
        other = copy.copy(self)
        other.supervisor = copy.copy(self.supervisor)
        other.supervisor._plan = copy.copy(self.supervisor._plan)
        other.executed, other.decisions, other.mail = list(self.executed), [], list(self.mail)
        return other


def speed(executed: list[np.ndarray]) -> float:
    """Of the fastest joint (rad/s), by the last of the commands that were executed."""
    return float(np.abs(executed[-1] - executed[-2])[JOINTS].max() / DT) if len(executed) > 1 else 0
