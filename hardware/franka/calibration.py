"""Where a cell's cameras are, by the file that says so; and what one of them saw, by another.

File (`calibration` in the cell): format_version 1, `cameras`: name -> {parent: world, left or right
(the tool centre point of that arm), pose: [x, y, z, qw, qx, qy, qz] of the optical frame, m}.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench_tasks.errors import UsageError
from bench_tasks.vocabulary import ARMS
from bench_tasks.yaml_file import read_yaml
from bench_tasks.yaml_shape import NAME, NUMBER, POSITIVE, OneOf, check_shape

__all__ = ["PARENTS", "Evidence", "Mount", "read_calibration", "read_evidence", "unit"]

PARENTS = ("world", *ARMS)
FORMAT_VERSION = 1
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
        _known(raw)
        return {
            camera: Mount(found["parent"], unit(found["pose"], f"cameras.{camera}.pose"))
            for camera, found in raw["cameras"].items()
        }
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def read_evidence(path: Path) -> Evidence:
    """What a checking node wrote. UsageError in one line when it is not as it must be."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        check_shape(raw, _EVIDENCE)
        _known(raw)
        looks = raw["looks"]
        seen = [unit(look["seen"], f"looks[{k}].seen") for k, look in enumerate(looks)]
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, UsageError) as error:
        raise UsageError(f"{path}: {error}") from None
    return Evidence(
        path.name, raw["camera"], raw["arm"], raw["grip_m"], np.array([x["q"] for x in looks]),
        np.array([x["opening"] for x in looks]), np.array(seen),
    )  # fmt: skip


def _known(raw: dict[str, Any]) -> None:
    if raw["format_version"] != FORMAT_VERSION:
        raise UsageError(f"format_version must be {FORMAT_VERSION}, got {raw['format_version']}")


def unit(pose: list[float], where: str) -> np.ndarray:
    """Pose (7,) with a quaternion of length 1; UsageError naming `where` when it is none."""
    found = np.array(pose, dtype=float)
    length = float(np.linalg.norm(found[3:]))
    if abs(length - 1.0) > UNIT_WITHIN:
        raise UsageError(f"{where} must end in a unit quaternion, got one of length {length:.3f}")
    found[3:] /= length
    return found
