"""Where a cell's cameras are: the file that says so, and the pose that follows from what they saw.

File (`calibration` in the cell): format_version 1, `cameras`: name -> {parent: world, left or right
(the tool centre point of that arm), pose: [x, y, z, qw, qx, qy, qz] of the optical frame, m}.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from bench_tasks.errors import UsageError
from bench_tasks.vocabulary import ARMS
from bench_tasks.yaml_file import read_yaml
from bench_tasks.yaml_shape import NAME, NUMBER, POSITIVE, OneOf, check_shape

__all__ = [
    "PARENTS", "Evidence", "Fit", "Mount", "fit", "matrix_of", "pose_of", "read_calibration",
    "read_evidence",
]  # fmt: skip

PARENTS = ("world", *ARMS)
UNIT_WITHIN = 0.01
_ROW7, _ROW14, _ROW2 = (NUMBER,) * 7, (NUMBER,) * 14, (NUMBER,) * 2
_MOUNTS = {"format_version": POSITIVE, "cameras": {"*": {"parent": OneOf(PARENTS), "pose": _ROW7}}}
_EVIDENCE = {
    "format_version": POSITIVE, "camera": NAME, "arm": OneOf(ARMS), "grip_m": NUMBER,
    "looks": [{"q": _ROW14, "opening": _ROW2, "seen": _ROW7}],
}  # fmt: skip


@dataclass(frozen=True)
class Mount:
    """A camera's optical frame: pose (7,) in `parent`, see `PARENTS`."""

    parent: str
    pose: np.ndarray


@dataclass(frozen=True)
class Evidence:
    """What one camera saw of a marker while an arm stood in several poses.

    The marker is in the hand of `arm`, which is closed on it to `grip_m`, or, for a camera on that
    arm, lies still somewhere. q (n, 14): joints of both arms; opening (n, 2); seen (n, 7): the
    marker in the camera's optical frame.
    """

    name: str
    camera: str
    arm: str
    grip_m: float
    q: np.ndarray
    opening: np.ndarray
    seen: np.ndarray


def read_calibration(path: Path) -> dict[str, Mount]:
    """Camera -> mount. UsageError in one line when the file is not as it must be."""
    try:
        raw = read_yaml(path)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    try:
        check_shape(raw, _MOUNTS)
        return {
            camera: Mount(found["parent"], _unit(found["pose"], f"cameras.{camera}.pose"))
            for camera, found in raw["cameras"].items()
        }
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def read_evidence(path: Path) -> Evidence:
    """What a checking node wrote. UsageError in one line when it is not as it must be."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        check_shape(raw, _EVIDENCE)
        looks = raw["looks"]
        seen = [_unit(look["seen"], f"looks[{k}].seen") for k, look in enumerate(looks)]
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, UsageError) as error:
        raise UsageError(f"{path}: {error}") from None
    return Evidence(
        path.name, raw["camera"], raw["arm"], raw["grip_m"], np.array([x["q"] for x in looks]),
        np.array([x["opening"] for x in looks]), np.array(seen),
    )  # fmt: skip


def _unit(pose: list[float], where: str) -> np.ndarray:
    found = np.array(pose, dtype=float)
    length = float(np.linalg.norm(found[3:]))
    if abs(length - 1.0) > UNIT_WITHIN:
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
