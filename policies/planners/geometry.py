"""From a place in a picture to a place in the world, through depth and calibration."""

from __future__ import annotations

import numpy as np

from bench_tasks.errors import BenchError
from bench_tasks.view import rotation_matrix

__all__ = ["depth_at", "pixel_of", "world_point"]


def pixel_of(u: float, v: float, width: int, height: int) -> tuple[float, float]:
    """Pixel (x, y) of a normalised point; pixel centres are at integers, as in ROS images.

    0 and 1 are the picture's edges, half a pixel outside the first and last centre.
    """
    return u * width - 0.5, v * height - 0.5


def depth_at(depth: np.ndarray, x: float, y: float, radius: int = 1) -> float:
    """Median of the valid depths (height, width), m, in a square around pixel (x, y).

    BenchError when the pixel is outside the image or no depth there is positive and finite.
    """
    height, width = depth.shape
    if not (-0.5 <= x <= width - 0.5 and -0.5 <= y <= height - 0.5):
        raise BenchError(f"pixel ({x:.1f}, {y:.1f}) is outside the {width} x {height} image")
    column, row = min(round(x), width - 1), min(round(y), height - 1)
    column, row = max(column, 0), max(row, 0)
    patch = depth[max(row - radius, 0) : row + radius + 1,
                  max(column - radius, 0) : column + radius + 1]  # fmt: skip
    valid = patch[np.isfinite(patch) & (patch > 0.0)]
    if valid.size == 0:
        raise BenchError(f"there is no depth at pixel ({column}, {row})")
    return float(np.median(valid))


def world_point(
    x: float, y: float, depth_m: float, matrix: np.ndarray, pose_world_camera: np.ndarray
) -> np.ndarray:
    """World position (3,), m, of what pixel (x, y) shows.

    `depth_m` is the distance along the optical axis; `matrix` (3, 3) the pinhole intrinsics in
    pixels; `pose_world_camera` (7,) the pose of the optical frame (z forward, x right, y down).
    BenchError when the depth is not a positive number.
    """
    if not (np.isfinite(depth_m) and depth_m > 0.0):
        raise BenchError(f"depth must be a positive number of metres, got {depth_m}")
    fx, fy, cx, cy = matrix[0, 0], matrix[1, 1], matrix[0, 2], matrix[1, 2]
    ray = np.array([(x - cx) / fx, (y - cy) / fy, 1.0])
    pose = np.asarray(pose_world_camera, dtype=np.float64)
    return pose[:3] + rotation_matrix(pose[3:]) @ (ray * depth_m)
