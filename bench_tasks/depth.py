"""Depth as a picture: 16-bit grey PNG in mm. Apart from `images`, since scoring needs no OpenCV."""

from __future__ import annotations

import cv2
import numpy as np

__all__ = ["MAX_DEPTH_M", "depth_m", "depth_png"]

MAX_DEPTH_M = 10.0
"""Beyond this a depth camera sees nothing: 0 in its picture."""


def depth_png(depth_m: np.ndarray) -> bytes:
    """Depth (height, width) in m as a 16-bit PNG in mm; 0 for what is not within 10 m."""
    valid = np.isfinite(depth_m) & (depth_m > 0.0) & (depth_m <= MAX_DEPTH_M)
    millimetres = np.where(valid, np.rint(np.where(valid, depth_m, 0.0) * 1e3), 0)
    _, encoded = cv2.imencode(".png", millimetres.astype(np.uint16))
    return encoded.tobytes()


def depth_m(png: bytes) -> np.ndarray:
    """Inverse of `depth_png`: (height, width) float64, NaN where there is none.

    ValueError when it is no 16-bit grey PNG.
    """
    pixels = None
    if png:
        pixels = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_UNCHANGED)
    if pixels is None or pixels.dtype != np.uint16 or pixels.ndim != 2:
        raise ValueError(f"depth must be a 16-bit grey PNG, got {len(png)} bytes")
    return np.where(pixels > 0, pixels / 1e3, np.nan)
