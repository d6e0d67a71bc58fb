"""One demonstration, whatever it was read from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from bench_tasks.errors import UsageError

__all__ = ["Demonstration"]


@dataclass(frozen=True, eq=False)
class Demonstration:
    """One episode of T control periods of `period_ns`; `seed` is negative where none is known.

    state (T + 1, 16): measured, in the action's layout: [7 joint positions (rad), gripper opening
    (m)] of the left arm, then of the right. action (T, 16): asked for, action[i] leading from
    state[i] to state[i + 1]; executed (T, 16): what was executed instead, where that was disturbed
    or clipped. pictures: camera -> the indices (F,) of the states shown, and as many pictures, each
    encoded (JPEG or PNG) or (h, w, 3) uint8 RGB; see `picture`.
    """

    task: str
    seed: int
    instruction: str
    success: bool
    period_ns: int
    state: np.ndarray
    action: np.ndarray
    executed: np.ndarray
    pictures: dict[str, tuple[np.ndarray, Sequence[bytes | np.ndarray]]]

    def picture(self, camera: str, k: int) -> np.ndarray:
        """Picture `k` of a camera, (h, w, 3) uint8 RGB; it shows state pictures[camera][0][k]."""
        data = self.pictures[camera][1][k]
        if isinstance(data, np.ndarray):
            return data
        image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
        if image is None:
            raise UsageError(f"{self.task} seed {self.seed}: {camera} picture {k} is broken")
        return cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
