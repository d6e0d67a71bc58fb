"""The arms of a dry run: as they would be, had they done what would have been sent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bench_tasks.vocabulary import ActionChunk, WorldState
from hardware.safety.limits import Limits

__all__ = ["Imagined", "in_words"]


class Imagined:
    """Arms that do at once what would be sent. All but joints and hands is as it is measured."""

    def __init__(self, limits: Limits) -> None:
        """Nothing is sent yet: they are where they are."""
        self._limits = limits
        self._chunk: ActionChunk | None = None
        self._real: WorldState | None = None

    def begin(self) -> None:
        """They are where they are again."""
        self._chunk = None

    def send(self, chunk: ActionChunk) -> None:
        """From the state that it answers on they do this."""
        self._chunk = chunk

    def state(self, real: WorldState) -> WorldState:
        """What would have come instead of a state."""
        if real.seq == 0:
            self.begin()
        self._real = real
        command = self._row(real.seq)
        if command is None:
            return real
        before, limits = self._row(real.seq - 1), self._limits
        step = command - (command if before is None else before)
        joints, speeds = real.joint_position.copy(), real.joint_velocity.copy()
        limits.commanded(joints)[:] = command[limits.columns]
        limits.commanded(speeds)[:] = step[limits.columns] / limits.period_s
        return replace(real, command=command, joint_position=joints, joint_velocity=speeds,
                       gripper_opening=command[limits.openings])  # fmt: skip

    def left(self, chunk: ActionChunk) -> WorldState | None:
        """The real state, if it is from there that a command goes on.

        As those of a policy do that looks at the arms each time: it sees that they have stayed.
        """
        real = self._real
        imagined = None if real is None else self._row(real.seq)
        if real is None or imagined is None or not 0 <= real.seq - chunk.seq < len(chunk.values):
            return None
        asked, columns = chunk.values[real.seq - chunk.seq], self._limits.columns
        if asked.shape != imagined.shape:
            return None
        here, there = (np.abs(asked - at)[columns].max() for at in (real.command, imagined))
        return real if here < there else None

    def _row(self, seq: int) -> np.ndarray | None:
        """The command that state `seq` would tell of; None when nothing was to be done by then."""
        if self._chunk is None or seq <= self._chunk.seq:
            return None
        return self._chunk.values[min(seq - self._chunk.seq, len(self._chunk.values)) - 1]


def in_words(limits: Limits, chunk: ActionChunk) -> str:
    """What would be sent, in a line: how long it is, how fast at most, and where it ends."""
    joints = chunk.values[:, limits.columns]
    steps = np.abs(np.diff(joints, axis=0))
    said = ""
    if steps.size and steps.max() > 0.0:
        joint = limits.joint_names[int(steps.max(axis=0).argmax())]
        said = f", {joint} at up to {steps.max() / limits.period_s:.2f} rad/s"
    end = " ".join(f"{v:.2f}" for v in joints[-1])
    hands = " ".join(f"{1e3 * v:.0f}" for v in chunk.values[-1, limits.openings])
    return (f"would send {len(joints)} actions answering state {chunk.seq}{said}, to rest at "
            f"{end} rad, hands {hands} mm")  # fmt: skip
