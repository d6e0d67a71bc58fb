"""The node `unitree_check`: collects what a tracker sees of a hand that somebody moves.

The robot is heard, and told nothing: let it hang in its frame with its motors damped, fasten a
marker to the hand of `arm`, which the tracker knows as the object `marker`, and bend waist and arm.
After `count` looks it writes the file `out` and ends. What it shows is found by `bench_tasks doctor
--robot unitree --seen FILE ...`.
"""

from __future__ import annotations

import numpy as np

from bench_tasks.errors import BenchError
from bench_tasks.robots import g1
from bench_tasks.ros.node_ros import main as run_node
from bench_tasks.ros.node_ros import parameter
from bench_tasks.view import compose, invert
from hardware.check_ros import LookNode
from hardware.sensors_ros import Sensors
from hardware.unitree.cell import driver_python, read_cell
from hardware.unitree.driver import BusDriver
from hardware.unitree.joints import columns

__all__ = ["CheckNode", "main"]


class CheckNode(LookNode):
    """Collects looks."""

    DONE = "taken: bend waist and arm on, and turn the hand"

    def __init__(self) -> None:
        """Listen to all; UsageError when a parameter cannot be."""
        super().__init__("unitree_check")
        cell = read_cell(parameter(self, "cell", "cell"))
        self._begin({}, columns(self._arm), 16, f"{self._arm}.json")
        self._driver = BusDriver(driver_python(cell), cell.bus())
        self._sensors = Sensors(cell)

    def close(self) -> None:
        """Hear no more."""
        self._driver.close()
        self._sensors.close()

    def _sight(self) -> tuple[dict[str, np.ndarray], float] | str:
        self._driver.poll()
        try:
            q = self._driver.state().q[g1.LEGS :]
            pelvis, marker = (self._sensors.pose(name)[0] for name in (g1.PELVIS, self._marker))
        except BenchError as error:
            return str(error)
        age_s = max(self._sensors.pose_age_s(name) for name in (g1.PELVIS, self._marker))
        return {"q": q, "seen": compose(invert(pelvis), marker)}, age_s


def main(args: list[str] | None = None) -> None:
    """Entry point of `unitree_check_node`."""
    run_node(CheckNode, args)


if __name__ == "__main__":
    main()
