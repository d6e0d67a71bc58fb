"""Client of RoboArena's policy servers, DreamZero among them: OpenPI's framing with end points.

The server speaks first and says what it wants to be sent. Every request names its `endpoint`,
"infer" or "reset", and the session that it belongs to; an answer is a bare array or a dict.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench_tasks.vocabulary import Scene
from policies.remote.client import ServerOptions
from policies.remote.codec import WireError
from policies.remote.openpi import OpenPIPolicy
from policies.remote.websocket import said

__all__ = ["DreamZeroOptions", "DreamZeroPolicy"]

SPACES = {
    ("joint", "absolute"): "joint_position", ("joint", "velocity"): "joint_velocity",
    ("cartesian", "absolute"): "cartesian_position",
    ("cartesian", "velocity"): "cartesian_velocity",
}  # fmt: skip
"""(space, mode) of an embodiment -> what RoboArena calls it."""


@dataclass(frozen=True)
class DreamZeroOptions(ServerOptions):
    """The same for one of DROID's arms."""

    embodiment: str = "roboarena_left"


class DreamZeroPolicy(OpenPIPolicy):
    """`dreamzero:host=...,port=8000,embodiment=roboarena_left`."""

    NAME = "dreamzero"
    Options = DreamZeroOptions
    _session = ""

    def reset(self, scene: Scene, seed: int) -> None:
        """Begin an episode under a session id that no episode had before."""
        self._session = uuid.uuid4().hex
        super().reset(scene, seed)

    def _announced(self) -> dict[str, Any]:
        images, action = self.embodiment.images, self.embodiment.action
        sizes: list[Any] = sorted({(picture.height, picture.width) for picture in images})
        # A server whose resolution is None takes pictures of any size; (0, 0) is as it was taken.
        any_size = self.server_metadata.get("image_resolution") is None or not sizes
        any_size = any_size or (0, 0) in sizes
        space = (action.space, action.mode)
        return {
            **super()._announced(),
            "image_resolution": None if any_size else sizes[0] if len(sizes) == 1 else sizes,
            "n_external_cameras": sum("exterior" in picture.key[-1] for picture in images),
            "needs_wrist_camera": any("wrist" in picture.key[-1] for picture in images),
            "needs_stereo_camera": False,
            "action_space": SPACES.get(space, " ".join(space)),
        }

    def _begin(self, deadline_s: float) -> None:
        message = {"endpoint": "reset", "session_id": self._session}
        answer = self._exchange(message, deadline_s)
        if not isinstance(answer, str):
            raise WireError("its answer to reset is no text")
        if "success" not in answer:
            raise WireError(f"it did not reset: {said(answer)}")

    def _call(self, message: dict[str, Any], deadline_s: float) -> dict[str, Any]:
        message = {**message, "endpoint": "infer", "session_id": self._session}
        value = self._value(self._exchange(message, deadline_s))
        if isinstance(value, np.ndarray):
            key = self.embodiment.action.vectors[0].key
            for name in reversed(key):
                value = {name: value}
        if not isinstance(value, dict):
            raise WireError(f"its answer is no array or dict but a {type(value).__name__}")
        return value
