"""One G1 at a table: how it is reached, settings, and the names of what is seen of the cell."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_tasks.errors import UsageError
from bench_tasks.yaml_shape import (
    FLAG,
    NAME,
    NUMBER,
    POSITIVE,
    SHARE,
    TEXT,
    OneOf,
    read_shaped,
    shipped,
)

__all__ = ["Cell", "driver_python", "read_cell", "shipped_cells"]

FORMAT_VERSION = 1
_SHAPE: dict[str, Any] = {
    "format_version": POSITIVE, "robot": OneOf(("g1",)), "python": TEXT,
    "transport": OneOf(("dds", "ros2")), "interface": NAME, "domain": NUMBER,
    "accept_cyclonedds": TEXT,
    "hands": OneOf(("rubber",)),
    "bus": {
        "rate_hz": POSITIVE, "speed": SHARE, "max_jump_rad": POSITIVE, "stale_s": POSITIVE,
        "release_s": POSITIVE, "ramp_s": POSITIVE,
    },
    "home_rad_s": POSITIVE, "confirm_before_home": FLAG, "gravity": FLAG,
    "table": dict.fromkeys(("edge_m", "depth_m", "width_m", "thickness_m"), POSITIVE),
    "layout": {"service": NAME, "wait_s": POSITIVE, "position_m": POSITIVE, "angle_rad": POSITIVE,
               "pelvis_m": POSITIVE},
    "cameras": {"*": {"image": NAME, "info": NAME}},
    "camera_age_s": POSITIVE,
    "objects": {"world_frame": NAME, "frame": NAME, "age_s": POSITIVE},
    "contacts": {"topic": TEXT, "age_s": POSITIVE},
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """What the file says, as it says it; every key is documented in `cell.yaml`."""

    name: str
    raw: dict[str, Any]

    def bus(self) -> dict[str, Any]:
        """Settings for the process of the bus, which reports every fourth of its turns."""
        return {
            **self.raw["bus"],
            **{key: self.raw[key] for key in ("transport", "interface", "accept_cyclonedds")},
            "domain": self.domain, "control": "arm_sdk", "hands": "none", "report_every": 4,
        }  # fmt: skip

    @property
    def domain(self) -> int:
        """DDS domain of the robot's topics; -1 in the file is this launch's ROS domain."""
        given = self.raw["domain"]
        return given if given >= 0 else int(os.environ.get("ROS_DOMAIN_ID") or 0)

    @property
    def cameras(self) -> dict[str, dict[str, str]]:
        """Camera -> topics of its pictures (`image`) and calibration (`info`)."""
        return self.raw["cameras"]

    def frame(self, name: str) -> str:
        """The tf frame of an object."""
        return self.raw["objects"]["frame"].replace("{name}", name)


def driver_python(cell: Cell) -> str:
    """The interpreter of the driver's environment; UsageError when there is none."""
    given = cell.raw["python"]
    if cell.raw["transport"] == "ros2" and not given:
        return sys.executable  # ROS is where this runs
    path = Path(given) if given else Path(sys.prefix) / "unitree/bin/python"
    if not path.exists():
        raise UsageError(f"the Unitree driver has no Python at {path}: run make unitree"
                         + (f", or correct python in {cell.name}" if given else ""))  # fmt: skip
    return str(path)


def shipped_cells() -> list[str]:
    """Names of the cells that come with the package."""
    return shipped("hardware.unitree")


def read_cell(name: str) -> Cell:
    """The cell in a file, or of a name that comes with the package.

    UsageError in one line: no such file, a key that is missing or unknown, or a wrong value.
    """
    return read_shaped("cell", name, "hardware.unitree", _SHAPE, _made)


def _made(path: Path, raw: dict[str, Any]) -> Cell:
    if raw["format_version"] != FORMAT_VERSION:
        raise UsageError(f"format_version must be {FORMAT_VERSION}, got {raw['format_version']}")
    if type(raw["domain"]) is not int or not -1 <= raw["domain"] <= 232:
        raise UsageError(f"domain must be a whole number from -1 to 232, got {raw['domain']}")
    if raw["domain"] == -1 and raw["interface"] != "lo":
        raise UsageError(f"domain must be the robot's own (0) on interface {raw['interface']}, "
                         "got -1")  # fmt: skip
    if not raw["bus"]["rate_hz"] >= 50.0:
        raise UsageError(f"bus.rate_hz must be at least 50, got {raw['bus']['rate_hz']:g}")
    if "{name}" not in raw["objects"]["frame"]:
        raise UsageError(f"objects.frame must hold {{name}}, got {raw['objects']['frame']!r}")
    for camera, topics in raw["cameras"].items():
        for topic in topics.values():
            if topic.startswith(f"/{camera}/"):
                raise UsageError(
                    f"cameras.{camera}: {topic} is what this package publishes itself: let the "
                    "camera's driver publish in another namespace"
                )
    return Cell(path.stem, raw)
