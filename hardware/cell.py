"""What the file of any robot's cell says of what is seen there, and the checks of that."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_tasks.errors import UsageError
from bench_tasks.yaml_shape import FLAG, Kind, between, matching

__all__ = ["JUMP", "LAYOUT", "ROS_NAME", "SEEN", "Cell", "check_cell", "environment_python"]

# Wider ranges than any cell asks for: degrees, milliseconds and millimetres are beyond them.
JUMP = between(0.001, 1.0)
"""rad, from where a joint is told to be."""
_AGE = between(0.001, 60.0)
_PART = r"[A-Za-z_]\w*"
ROS_NAME = matching("a ROS name, such as image_raw or /left/image_raw", rf"/?{_PART}(/{_PART})*")
# In full: what is relative would be under this package's own names.
_FULL = matching("a ROS name in full, such as /cameras/left/image_raw", rf"(/{_PART})+")
_FULL_OR_NONE = Kind(f"empty or {_FULL.says}", lambda v: v == "" or _FULL.fits(v))
_FRAME = matching("a tf frame, without spaces or / in front", r"[^\s/]\S*")
LAYOUT: dict[str, Any] = {
    "service": _FULL, "wait_s": between(0.1, 86400.0),
    "position_m": between(0.0001, 1.0), "angle_rad": between(0.001, 3.15),
}  # fmt: skip
SEEN: dict[str, Any] = {
    "confirm_before_home": FLAG,
    "layout": LAYOUT,
    "cameras": {"*": {"image": _FULL, "info": _FULL}},
    "camera_age_s": _AGE,
    "objects": {"world_frame": _FRAME, "frame": _FRAME, "age_s": _AGE},
    "contacts": {"topic": _FULL_OR_NONE, "age_s": _AGE},
}


@dataclass(frozen=True)
class Cell:
    """What the file says, as it says it; every key is documented in the robot's `cell.yaml`."""

    name: str
    raw: dict[str, Any]

    @property
    def cameras(self) -> dict[str, dict[str, str]]:
        """Camera -> topics of its pictures (`image`) and calibration (`info`)."""
        return self.raw["cameras"]

    def frame(self, name: str) -> str:
        """The tf frame of an object."""
        return self.raw["objects"]["frame"].replace("{name}", name)


def environment_python(cell: Cell, name: str) -> str:
    """The interpreter that the cell names, or that of the environment which `make NAME` makes.

    UsageError when there is none.
    """
    given = cell.raw["python"]
    path = Path(given) if given else Path(sys.prefix) / name / "bin/python"
    if not path.is_file():
        raise UsageError(
            f"the {name.capitalize()} driver has no Python at {path}: run make {name}"
            + (f", or correct python in {cell.name}" if given else "")
        )
    return str(path)


def check_cell(raw: dict[str, Any]) -> None:
    """UsageError in one line when what is seen cannot be."""
    if "{name}" not in raw["objects"]["frame"]:
        raise UsageError(f"objects.frame must hold {{name}}, got {raw['objects']['frame']!r}")
    for camera, topics in raw["cameras"].items():
        for topic in topics.values():
            if topic.startswith(f"/{camera}/"):
                raise UsageError(
                    f"cameras.{camera}: {topic} is what this package publishes itself: let the "
                    "camera's driver publish in another namespace"
                )
