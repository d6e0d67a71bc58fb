"""Where a cell's cameras are, by the file that says so; and what one of them saw, by another.

File (`calibration` in the cell): format_version 1, `cameras`: name -> {parent: world, left or right
(the tool centre point of that arm), pose: [x, y, z, qw, qx, qy, qz] of the optical frame, m}. In
the world a camera is at most `MOST_M` away, on an arm `ARM_MOST_M`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench_tasks.errors import UsageError
from bench_tasks.vocabulary import ARMS
from bench_tasks.yaml_file import read_yaml
from bench_tasks.yaml_shape import NAME, NUMBER, OneOf, between, check_shape, exactly
from hardware.hand_eye import checked_pose

__all__ = ["PARENTS", "Evidence", "Mount", "read_calibration", "read_evidence"]

PARENTS = ("world", *ARMS)
FORMAT_VERSION = 1
MOST_M, ARM_MOST_M = 10.0, 1.0
# What hands say may be of any size: that it is millimetres is for the check-up to find out.
_ROW7, _ROW14, _ROW2 = (NUMBER,) * 7, (between(-7.0, 7.0),) * 14, (NUMBER,) * 2
_MOUNTS = {
    "format_version": exactly(FORMAT_VERSION),
    "cameras": {"*": {"parent": OneOf(PARENTS), "pose": _ROW7}},
}
_EVIDENCE = {
    "format_version": exactly(FORMAT_VERSION), "camera": NAME, "arm": OneOf(ARMS),
    "grip_m": between(0.0, 0.2),
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
            camera: Mount(found["parent"], checked_pose(
                found["pose"], f"cameras.{camera}.pose",
                MOST_M if found["parent"] == "world" else ARM_MOST_M,
            )) for camera, found in raw["cameras"].items()
        }  # fmt: skip
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def read_evidence(path: Path) -> Evidence:
    """What a checking node wrote. UsageError in one line when it is not as it must be."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        check_shape(raw, _EVIDENCE)
        looks = raw["looks"]
        seen = [checked_pose(look["seen"], f"looks[{k}].seen", MOST_M)
                for k, look in enumerate(looks)]  # fmt: skip
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, UsageError) as error:
        raise UsageError(f"{path}: {error}") from None
    return Evidence(
        path.name, raw["camera"], raw["arm"], raw["grip_m"], np.array([x["q"] for x in looks]),
        np.array([x["opening"] for x in looks]), np.array(seen),
    )  # fmt: skip
