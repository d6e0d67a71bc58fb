"""The arms of a dry run: as they would be, had they done what would have been sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from bench_tasks.robots.g1_kinematics import upper_body
from bench_tasks.robots.kinematics import dual_arm
from bench_tasks.view import compose, invert
from bench_tasks.vocabulary import ARMS, FR3_PAIR, ActionChunk, WorldState
from hardware.safety.limits import Limits

__all__ = ["Imagined", "in_words"]


class Imagined:
    """Arms that do at once what would be sent.

    All but their joints and hands is as it is measured.
    """

    def __init__(self, limits: Limits) -> None:
        """Nothing is sent yet: they are where they are."""
        self._limits, self._hands = limits, _hands_of(limits)
        self._chunk: ActionChunk | None = None

    def send(self, chunk: ActionChunk) -> None:
        """From the state that it answers on they do this."""
        self._chunk = chunk

    def state(self, real: WorldState) -> WorldState:
        """What would have come instead of a state."""
        if real.seq == 0:
            self._chunk = None
        command = self._row(real.seq)
        joints, speeds = real.joint_position.copy(), real.joint_velocity.copy()
        names = self._limits.joint_names
        alike = len(joints) >= len(names) and len(real.command) == self._limits.size
        if command is None or not alike:  # what is no state of this robot is refused as it is
            return real
        before, limits = self._row(real.seq - 1), self._limits
        step = command - (command if before is None else before)
        limits.commanded(joints)[:] = command[limits.columns]
        limits.commanded(speeds)[:] = step[limits.columns] / limits.period_s
        hands = [
            compose(seen, compose(invert(here), there)) for seen, here, there in zip(
                real.ee_pose, self._hands(limits.commanded(real.joint_position)),
                self._hands(limits.commanded(joints)), strict=True,
            )
        ]  # fmt: skip
        return replace(
            real, command=command, joint_position=joints, joint_velocity=speeds,
            gripper_opening=command[limits.openings], ee_pose=np.stack(hands),
        )  # fmt: skip

    def _row(self, seq: int) -> np.ndarray | None:
        """The command that state `seq` would tell of; None when nothing was to be done by then."""
        if self._chunk is None or seq <= self._chunk.seq:
            return None
        return self._chunk.values[min(seq - self._chunk.seq, len(self._chunk.values)) - 1]


def _hands_of(limits: Limits) -> Callable[[np.ndarray], Sequence[np.ndarray]]:
    """What says where both hands are, in whatever frame, when the commanded joints are so."""
    if limits.robot != FR3_PAIR:
        return upper_body().forward
    arms = dual_arm()
    return lambda joints: [
        arms.forward(arm, q) for arm, q in zip(ARMS, joints.reshape(2, -1), strict=True)
    ]


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
    return (f"would send {len(joints)} actions{said}, to rest at "
            f"{end} rad, hands {hands} mm")  # fmt: skip
