"""Where a camera or a tracker is, from a marker in a hand whose pose the joints tell.

Poses (7,) are [x, y, z, qw, qx, qy, qz], m.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from bench_tasks.errors import UsageError

__all__ = ["Fit", "apart", "checked_pose", "fit", "matrix_of", "pose_of"]

UNIT_WITHIN = 0.01


def checked_pose(pose: Sequence[float], where: str, most_m: float) -> np.ndarray:
    """The pose (7,), its quaternion of length 1.

    UsageError naming `where` when it has another length, or is further away than any can be.
    """
    found = np.array(pose, dtype=float)
    away, length = float(np.linalg.norm(found[:3])), float(np.linalg.norm(found[3:]))
    if not away <= most_m:
        raise UsageError(f"{where} must be from 0 to {most_m:g} m away, got {away:.4g} m")
    if not abs(length - 1.0) <= UNIT_WITHIN:
        raise UsageError(f"{where} must end in a unit quaternion, got one of length {length:.3f}")
    found[3:] /= length
    return found


def matrix_of(pose: np.ndarray) -> np.ndarray:
    """Homogeneous matrix (4, 4) of a pose (7,)."""
    found = np.eye(4)
    found[:3, :3] = Rotation.from_quat(np.roll(pose[3:], -1)).as_matrix()
    found[:3, 3] = pose[:3]
    return found


def pose_of(matrix: np.ndarray) -> np.ndarray:
    """Pose (7,) of a homogeneous matrix (4, 4), with qw >= 0."""
    x, y, z, w = Rotation.from_matrix(matrix[:3, :3]).as_quat(canonical=True)
    return np.array([*matrix[:3, 3], w, x, y, z])


def apart(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """Between two poses (7,), m and rad."""
    turn = Rotation.from_quat(np.roll(a[3:], -1)).inv() * Rotation.from_quat(np.roll(b[3:], -1))
    return float(np.linalg.norm(a[:3] - b[:3])), float(turn.magnitude())


@dataclass(frozen=True)
class Fit:
    """x, g (4, 4), and how far the equations are from holding: RMS in m and rad.

    `spread`: 0 when the poses leave some of x and g open, about 1 when they turn about all axes.
    """

    x: np.ndarray
    g: np.ndarray
    error_m: float
    error_rad: float
    spread: float


def fit(a: np.ndarray, b: np.ndarray) -> Fit:
    """The constant x and g with a_i g = x b_i for all a, b (n, 4, 4), n >= 3.

    Rotations first, as the null space of their Kronecker equations, then translations by least
    squares: M. Shah, "Solving the Robot-World/Hand-Eye Calibration Problem Using the Kronecker
    Product", J. Mechanisms Robotics 5 (2013).
    """
    ra, rb, eye = a[:, :3, :3], b[:, :3, :3], np.eye(3)
    rows = [np.hstack([np.kron(s.T, eye), -np.kron(eye, r)]) for r, s in zip(ra, rb, strict=True)]
    _, sizes, vectors = np.linalg.svd(np.vstack(rows), full_matrices=False)
    x, g = np.eye(4), np.eye(4)
    for found, part in ((x, vectors[-1, :9]), (g, vectors[-1, 9:])):
        near = part.reshape(3, 3).T  # stacked by columns
        u, _, v = np.linalg.svd(near * np.sign(np.linalg.det(near) or 1.0))
        found[:3, :3] = u @ np.diag([1.0, 1.0, np.linalg.det(u @ v)]) @ v
    left = np.vstack([np.hstack([eye, -r]) for r in ra])
    right = (a[:, :3, 3] - (x[:3, :3] @ b[:, :3, 3].T).T).ravel()
    shifts = np.linalg.lstsq(left, right, rcond=None)[0]
    x[:3, 3], g[:3, 3] = shifts[:3], shifts[3:]
    off = np.linalg.inv(a @ g) @ (x @ b)
    turns = Rotation.from_matrix(off[:, :3, :3]).magnitude()
    return Fit(
        x, g, float(np.sqrt(np.mean(np.sum(off[:, :3, 3] ** 2, axis=1)))),
        float(np.sqrt(np.mean(turns**2))), float(sizes[-2] / np.sqrt(len(a))),
    )  # fmt: skip
