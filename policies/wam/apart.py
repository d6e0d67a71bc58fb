"""What one of two agents knows: its own arm, what it and the head camera see, the partner's past.

The partner's wrist picture is grey, and the partner's joints and opening are those of one look
before: two that decide at the same time cannot know each other's present move. In training the look
before is one stride away; in the window of the model the partner's moves are thus a history that
ends there, and how fast or how able the partner is must be read from it and from the head camera.

One network is the joint policy and either agent: the grey place tells it which one it is.
"""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np

from bench_tasks.vocabulary import ARMS, CameraFrame, Observation, WorldState
from policies.wam.shape import VIEWS

__all__ = ["blanked", "columns", "seen_by", "told"]

GREY = 128


def columns(k: int) -> slice:
    """Columns of an action or state (.., 16) that are of arm `k` of `ARMS`."""
    return slice(8 * k, 8 * k + 8)


def _wrist(k: int) -> str:
    return f"{ARMS[k]}_wrist"


def blanked(pixels: np.ndarray, k: int) -> np.ndarray:
    """Mosaics (n, 144, 128, 3) as agent `k` sees them: the partner's wrist picture is grey."""
    row, column, height, width = VIEWS[_wrist(1 - k)]
    seen = np.array(pixels)
    seen[:, row : row + height, column : column + width] = GREY
    return seen


def told(states: np.ndarray, before: np.ndarray, k: int) -> np.ndarray:
    """States (.., 16) as agent `k` knows them: its own now, the partner's of `before` (.., 16)."""
    known = np.array(states)
    known[..., columns(1 - k)] = before[..., columns(1 - k)]
    return known


def seen_by(k: int, observation: Observation, before: WorldState) -> Observation:
    """The observation of agent `k`, `before` being the state of the look before this one.

    Nothing else about the partner is left in it, nor what only a simulation knows: the poses of
    objects and contacts.
    """
    now, other = observation.state, 1 - k

    def mixed(name: str) -> np.ndarray:
        own = np.array(getattr(now, name))
        parts = own.reshape(2, -1)
        parts[other] = getattr(before, name).reshape(2, -1)[other]
        return own

    names = ("joint_position", "joint_velocity", "joint_effort", "gripper_opening", "ee_pose",
             "command")  # fmt: skip
    state = replace(
        now, **{name: mixed(name) for name in names},
        object_pose=np.full_like(now.object_pose, np.nan),
        object_twist=np.full_like(now.object_twist, np.nan),
        contact_pair=now.contact_pair[:0], contact_force=now.contact_force[:0],
    )  # fmt: skip
    frames = [_grey(f) if f.camera == _wrist(other) else f for f in observation.frames]
    return Observation(state, tuple(frames))


def _grey(frame: CameraFrame) -> CameraFrame:
    _, data = cv2.imencode(".png", np.full((frame.height, frame.width, 3), GREY, np.uint8))
    return replace(frame, format="png", data=data.tobytes(), depth=None)
