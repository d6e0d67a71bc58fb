"""Tier 3's raw actions: 16 numbers for both hands, turned into plan steps, never guessed at."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_tasks.errors import UsageError
from bench_tasks.vocabulary import ARMS, MAX_OPENING_M, SkillCall, numbers

__all__ = ["action_from_state", "step_from_action"]


def step_from_action(values: Any) -> tuple[SkillCall, SkillCall]:
    """Turn [x y z (m), quaternion w x y z, gripper 0 closed ... 1 open] x 2 into one plan step.

    Left hand first, TCP poses in the world frame. UsageError names a wrong length, a number that
    is not finite, a quaternion that is not unit, or a gripper outside [0, 1].
    """
    action = numbers("action", values, (16,))
    calls = []
    for k, arm in enumerate(ARMS):
        pose = numbers(f"{arm} pose", action[8 * k : 8 * k + 7], (7,))
        gripper = float(action[8 * k + 7])
        if not 0.0 <= gripper <= 1.0:
            raise UsageError(f"{arm} gripper must be in [0, 1], got {gripper:g}")
        calls.append(
            SkillCall(
                "move_to", arm, {"pose": pose.tolist(), "opening_m": gripper * MAX_OPENING_M}
            )
        )
    left, right = calls
    return left, right


def action_from_state(ee_pose: np.ndarray, opening_m: np.ndarray) -> np.ndarray:
    """The action (16,) that leaves both hands, poses (2, 7) and openings (2,), where they are."""
    share = np.clip(np.asarray(opening_m) / MAX_OPENING_M, 0.0, 1.0)
    return np.concatenate([np.append(ee_pose[k], share[k]) for k in range(2)])
