"""One G1 at a table: how it is reached, settings, and the names of what is seen of the cell."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from bench_tasks.errors import UsageError
from bench_tasks.ros.domain import robot_domain, ros_domain
from bench_tasks.yaml_shape import (
    FLAG,
    PATH,
    SHARE,
    OneOf,
    between,
    exactly,
    matching,
    read_shaped,
    shipped,
    whole,
)
from hardware import cell as base

__all__ = ["Cell", "driver_python", "read_cell", "shipped_cells"]

FORMAT_VERSION = 1
_SHAPE: dict[str, Any] = {
    "format_version": exactly(FORMAT_VERSION), "robot": OneOf(("g1",)), "python": PATH,
    "transport": OneOf(("dds", "ros2")), "domain": whole(-1, 232),
    "interface": matching("a network card's name", r"[^\s/]{1,15}"),
    "accept_cyclonedds": matching("empty or a version", r"\S*"),
    "hands": OneOf(("rubber", "dex3")),
    "bus": {
        # Wider ranges than any cell asks for: degrees and milliseconds are beyond them.
        "rate_hz": between(50.0, 1000.0), "speed": SHARE, "max_jump_rad": base.JUMP,
        "stale_s": between(0.02, 1.0), "release_s": between(0.02, 60.0),
        "ramp_s": between(0.1, 60.0),
    },
    "home_rad_s": between(0.01, 2.0), "gravity": FLAG,
    "table": {
        "edge_m": between(0.01, 1.0), "depth_m": between(0.1, 5.0), "width_m": between(0.1, 5.0),
        "thickness_m": between(0.001, 1.0),
    },
    **base.SEEN, "layout": {**base.LAYOUT, "pelvis_m": between(0.001, 1.0)},
}  # fmt: skip


class Cell(base.Cell):
    """One robot at a table."""

    def bus(self) -> dict[str, Any]:
        """Settings for the process of the bus, which reports every fourth of its turns."""
        return {
            **self.raw["bus"],
            **{key: self.raw[key] for key in ("transport", "interface", "accept_cyclonedds")},
            "domain": self.domain, "control": "arm_sdk", "hands": "none", "report_every": 4,
        }  # fmt: skip

    @property
    def domain(self) -> int:
        """DDS domain of the robot's topics; -1 in the file is the one beside this launch's own."""
        if self.raw["domain"] >= 0:
            return self.raw["domain"]
        return robot_domain() if self.raw["transport"] == "dds" else ros_domain()


def driver_python(cell: Cell) -> str:
    """The interpreter of the driver's environment; UsageError when there is none."""
    if cell.raw["transport"] == "ros2" and not cell.raw["python"]:
        return sys.executable  # ROS is where this runs
    return base.environment_python(cell, "unitree")


def shipped_cells() -> list[str]:
    """Names of the cells that come with the package."""
    return shipped("hardware.unitree")


def read_cell(name: str) -> Cell:
    """The cell in a file, or of a name that comes with the package.

    UsageError in one line: no such file, a key that is missing or unknown, or a wrong value.
    """
    return read_shaped("cell", name, "hardware.unitree", _SHAPE, _made)


def _made(path: Path, raw: dict[str, Any]) -> Cell:
    base.check_cell(raw)
    if raw["domain"] == -1 and raw["interface"] != "lo":
        raise UsageError(f"domain must be the robot's own (0) on interface {raw['interface']}, "
                         "got -1")  # fmt: skip
    if raw["bus"]["release_s"] < raw["bus"]["stale_s"]:
        raise UsageError(f"bus.release_s must be at least stale_s, got {raw['bus']['release_s']:g} "
                         f"and {raw['bus']['stale_s']:g}")  # fmt: skip
    return Cell(path.stem, raw)
