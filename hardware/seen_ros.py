"""What of a cell is seen: python -m hardware.seen_ros MODULE CELL SECONDS [OBJECT ...].

MODULE has `read_cell`. One line of JSON on stdout: `objects`, name -> its pose (7,) in the world,
or why there is none; `cameras`, name -> why there is no picture, "" when there is one.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import rclpy

from bench_tasks.errors import BenchError
from hardware.sensors_ros import Sensors

__all__ = ["main"]

LOOK_S = 0.05


def _until(look: Callable[[], Any], end_s: float) -> Any:
    """What it returns, or why it returns nothing until then."""
    while True:
        try:
            return look()
        except BenchError as error:
            if time.monotonic() > end_s:
                return str(error)
            time.sleep(LOOK_S)


def main() -> None:
    """Look, and print what was seen."""
    module, name, seconds, *objects = sys.argv[1:]
    cell = importlib.import_module(module).read_cell(name)
    rclpy.init()
    sensors, end_s = Sensors(cell), time.monotonic() + float(seconds)
    seen = {item: _until(lambda item=item: sensors.pose(item)[0].tolist(), end_s)
            for item in objects}  # fmt: skip
    cameras = {camera: _until(lambda camera=camera: sensors.picture(camera) and "", end_s)
               for camera in cell.cameras}  # fmt: skip
    sys.stdout.write(json.dumps({"objects": seen, "cameras": cameras}) + "\n")
    sys.stdout.flush()
    os._exit(0)  # as nodes do: what listens is still at it


if __name__ == "__main__":
    main()
