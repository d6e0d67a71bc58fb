"""The world-action model seen from inside: how its commands change with the pictures it looks at.

For attacks (`policies.apgd`): the way from the cameras' pictures to the commands as `WamPolicy`
goes it, but with gradients. What comes of an attack is measured with the policy itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import torch
from torch import Tensor

from bench_tasks.vocabulary import CameraFrame, Observation
from policies.pictures import rgb
from policies.wam.flow import sampled
from policies.wam.model import Cache, joined
from policies.wam.policy import WamPolicy
from policies.wam.shape import MOSAIC, VIEWS

__all__ = ["Looks", "WhiteBox", "frames_of", "pictures_of"]


@dataclass(frozen=True)
class Looks:
    """Observations that a policy looks at in turn: numbers of rows, and states (16,)."""

    rows: tuple[int, ...]
    states: tuple[np.ndarray, ...]
    pictures: tuple[Tensor, ...]
    """Of all cameras in the order of `VIEWS`, (cameras, 3, h, w) uint8."""


def pictures_of(observation: Observation) -> Tensor:
    """What the cameras show (cameras, 3, h, w) uint8 RGB."""
    frames = {frame.camera: rgb(frame) for frame in observation.frames}
    return torch.from_numpy(np.stack([frames[camera] for camera in VIEWS])).permute(0, 3, 1, 2)


def frames_of(pictures: Tensor, like: Sequence[CameraFrame], quality: int = 0
              ) -> tuple[CameraFrame, ...]:
    """The frames with other pictures: PNG, or JPEG of that quality."""
    found = []
    kind, how = (".jpg", [cv2.IMWRITE_JPEG_QUALITY, quality]) if quality else (".png", [])
    for camera, picture in zip(VIEWS, pictures, strict=True):
        pixels = cv2.cvtColor(picture.permute(1, 2, 0).numpy(), cv2.COLOR_RGB2BGR)
        data = cv2.imencode(kind, pixels, how)[1].tobytes()
        frame = next(frame for frame in like if frame.camera == camera)
        found.append(
            CameraFrame(**{**vars(frame), "data": data, "format": kind[1:].replace("jpg", "jpeg")})
        )
    return tuple(found)


class WhiteBox:
    """Commands of a reset policy as functions of pictures. The policy itself does not change."""

    def __init__(self, policy: WamPolicy) -> None:
        """`policy` has been reset: its instruction counts, and its next noise."""
        self._policy, self._made = policy, policy._made
        self._model, self._text = policy._made.model, policy._text
        self._noise = policy._generator.get_state()
        self._areas: dict[tuple[int, int], Tensor] = {}
        low, high = policy._made.scaler.action
        self._low, self._span = torch.from_numpy(low), torch.from_numpy(high - low)

    def commands(self, looks: Looks) -> list[Tensor]:
        """Joint commands (rows, 16) of each look in turn, arms relative to the look's state."""
        generator = torch.Generator()
        generator.set_state(self._noise)
        window: list[Cache] = []
        found = []
        for row, state, pictures in zip(looks.rows, looks.states, looks.pictures, strict=True):
            latents = self._made.autoencoder.encode(self._mosaic(pictures.float()))
            scaled = torch.from_numpy(self._made.scaler.states(state))[None]
            got = sampled(self._model, joined(window) if window else [], row, self._text,
                          self._policy._steps, generator, present=(latents, scaled))  # fmt: skip
            window = [*window, got.seen][-(self._model.shape.history - 1) :]
            found.append(self._low + (got.actions[0] + 1.0) * self._span / 2)
        return found

    def _mosaic(self, pictures: Tensor) -> Tensor:
        """As `shape.mosaic`, without rounding: (1, 3, 144, 128)."""
        canvas = torch.zeros(1, 3, *MOSAIC)
        for picture, (row, column, height, width) in zip(pictures, VIEWS.values(), strict=True):
            down, across = self._area(picture.shape[1], height), self._area(picture.shape[2], width)
            canvas[0, :, row : row + height, column : column + width] = down @ picture @ across.T
        return canvas

    def _area(self, size: int, to: int) -> Tensor:
        """(to, size): what OpenCV's resizing by area does along one side."""
        if (size, to) not in self._areas:
            rows = [cv2.resize(unit[:, None], (1, to), interpolation=cv2.INTER_AREA)[:, 0]
                    for unit in np.eye(size, dtype=np.float32)]  # fmt: skip
            self._areas[size, to] = torch.from_numpy(np.stack(rows, 1))
        return self._areas[size, to]
