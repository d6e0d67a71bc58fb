"""Camera pictures as policies take them in."""

from __future__ import annotations

import cv2
import numpy as np

from bench_tasks.errors import BenchError
from bench_tasks.vocabulary import CameraFrame

__all__ = ["rgb"]


def rgb(frame: CameraFrame) -> np.ndarray:
    """The picture (h, w, 3) uint8 RGB; BenchError when it cannot be decoded."""
    pixels = cv2.imdecode(np.frombuffer(frame.data, np.uint8), cv2.IMREAD_COLOR)
    if pixels is None:
        raise BenchError(f"the picture of {frame.camera} cannot be decoded")
    return cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB)
