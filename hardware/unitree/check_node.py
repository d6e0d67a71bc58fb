"""The node `unitree_check`: collects what a tracker sees of a hand that somebody moves.

The robot is heard, and told nothing: let it hang in its frame with its motors damped, fasten a
marker to the hand of `arm`, which the tracker knows as the object `marker`, and bend waist and arm.
After `count` looks it writes the file `out` and ends. What it shows is found by `bench_tasks doctor
--robot unitree --seen FILE ...`.
"""

from __future__ import annotations

import json
from pathlib import Path

from bench_tasks.errors import BenchError, UsageError, unknown
from bench_tasks.robots import g1
from bench_tasks.ros.node_ros import BenchNode, parameter, steady_timer
from bench_tasks.ros.node_ros import main as run_node
from bench_tasks.view import compose, invert
from bench_tasks.vocabulary import ARMS
from hardware.looks import Looks
from hardware.sensors_ros import Sensors
from hardware.unitree.cell import driver_python, read_cell
from hardware.unitree.driver import BusDriver
from hardware.unitree.joints import columns

__all__ = ["CheckNode", "main"]

LOOK_S = 0.1


class CheckNode(BenchNode):
    """Collects looks."""

    def __init__(self) -> None:
        """Listen to all; UsageError when a parameter cannot be."""
        super().__init__("unitree_check")
        arm = parameter(self, "arm", "left")
        if arm not in ARMS:
            raise unknown("arm", arm, ARMS)
        cell = read_cell(parameter(self, "cell", "cell"))
        self._marker = parameter(self, "marker", "marker")
        self._out = Path(parameter(self, "out", f"{arm}.json"))
        if self._out.exists():
            raise UsageError(f"out: {self._out} is there already")
        about = {"format_version": 1, "arm": arm}
        self._looks = Looks(about, columns(arm), parameter(self, "count", 16))
        self._said = ""
        self._driver = BusDriver(driver_python(cell), cell.bus())
        self._sensors = Sensors(cell)
        steady_timer(self, LOOK_S, self._look)

    def close(self) -> None:
        """Hear no more."""
        self._driver.close()
        self._sensors.close()

    def _look(self) -> None:
        self._driver.poll()
        said = self._try()
        if said and said != self._said:
            self.get_logger().info(f"{self._looks.left} looks to take: {said}")
        self._said = said
        if not self._looks.left:
            self._out.write_text(json.dumps(self._looks.to_dict()), encoding="utf-8")
            self.get_logger().info(f"written: {self._out}")
            self.stop()

    def _try(self) -> str:
        """Take a look; says why not."""
        try:
            q = self._driver.state().q[g1.LEGS :]
            pelvis, marker = (self._sensors.pose(name)[0] for name in (g1.PELVIS, self._marker))
        except BenchError as error:
            return str(error)
        age_s = max(self._sensors.pose_age_s(name) for name in (g1.PELVIS, self._marker))
        why = self._looks.offer({"q": q, "seen": compose(invert(pelvis), marker)}, age_s)
        return why or "taken: bend waist and arm on, and turn the hand"


def main(args: list[str] | None = None) -> None:
    """Entry point of `unitree_check_node`."""
    run_node(CheckNode, args)


if __name__ == "__main__":
    main()
