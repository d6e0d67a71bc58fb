"""What a world-action model looks at, predicts and is made of: the numbers of one checkpoint."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

import cv2
import numpy as np

from bench_tasks.errors import UsageError, unknown
from bench_tasks.vocabulary import CONTROL_PERIOD_NS
from policies.wam.attention import ATTENTIONS

__all__ = ["LARGEST", "MOSAIC", "VIEWS", "Shape", "mosaic"]

MOSAIC = (144, 128)
"""Height and width of the picture that the model sees: the head camera above both wrists."""
VIEWS = {"head": (0, 0, 96, 128), "left_wrist": (96, 0, 48, 64), "right_wrist": (96, 64, 48, 64)}
"""Camera -> row, column, height and width of its place in the mosaic."""
PREDICTED = ("velocity", "data")
RATES_HZ = tuple(hz for hz in range(1, 1000) if 1_000_000_000 % (hz * CONTROL_PERIOD_NS) == 0)
"""Rows a second that are whole numbers of control periods apart: else times would be wrong."""

LARGEST = 4096
"""Of each number of a shape: beyond it is a slip of the finger, found before memory is gone."""


def mosaic(pictures: dict[str, np.ndarray]) -> np.ndarray:
    """One picture (144, 128, 3) uint8 RGB from those of the three cameras (h, w, 3), any size."""
    canvas = np.zeros((*MOSAIC, 3), np.uint8)
    for camera, (row, column, height, width) in VIEWS.items():
        small = cv2.resize(pictures[camera], (width, height), interpolation=cv2.INTER_AREA)
        canvas[row : row + height, column : column + width] = small
    return canvas


@dataclass(frozen=True)
class Shape:
    """Sizes of a model; times are counted in rows, one picture and one action each.

    A chunk has `frames` future pictures, `stride` rows apart, and an action for each row between.
    The model remembers the present and up to `history` - 1 earlier observations, one a stride.
    With `video` false it is a behaviour-cloning transformer: the same without the video tokens.
    `predicts` is what the network itself puts out, see `policies.wam.model`.
    """

    rows_hz: int = 10
    stride: int = 5
    frames: int = 2
    history: int = 4
    dim: int = 192
    layers: int = 6
    heads: int = 6
    latent: int = 8
    video: bool = True
    attention: str = "sdpa"
    predicts: str = "velocity"

    cameras = tuple(VIEWS)
    grid = (MOSAIC[0] // 8, MOSAIC[1] // 8)
    """Latent rows and columns of one picture."""
    patch = (6, 4)
    """Latent rows and columns that make up a token."""

    def __post_init__(self) -> None:
        """UsageError names a wrong number."""
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type == "int" and (type(value) is not int or not 1 <= value <= LARGEST):
                raise UsageError(
                    f"{field.name} must be a whole number from 1 to {LARGEST}, got {value!r}"
                )
            if field.type == "bool" and type(value) is not bool:
                raise UsageError(f"{field.name} must be true or false, got {value!r}")
        if self.chunk > LARGEST:
            raise UsageError(
                f"a chunk of stride x frames must have at most {LARGEST} rows, got {self.chunk}"
            )
        if self.rows_hz not in RATES_HZ:
            rates = ", ".join(map(str, RATES_HZ))
            raise UsageError(f"rows_hz must be one of {rates}, got {self.rows_hz}")
        if self.dim % self.heads or self.dim // self.heads % 8:
            raise UsageError(
                f"dim must be a multiple of heads and 8, got {self.dim} for {self.heads} heads"
            )
        if self.attention not in ATTENTIONS:
            raise unknown("attention", self.attention, ATTENTIONS)
        if self.predicts not in PREDICTED:
            raise unknown("predicts", self.predicts, PREDICTED)

    @property
    def chunk(self) -> int:
        """Actions of one chunk."""
        return self.stride * self.frames

    @property
    def patches(self) -> tuple[int, int]:
        """Rows and columns of tokens of one picture."""
        return self.grid[0] // self.patch[0], self.grid[1] // self.patch[1]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the checkpoint."""
        return asdict(self)
