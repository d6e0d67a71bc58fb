"""The node `world` made of a Unitree G1: the same topics and services as the simulated one.

The robot's own controller keeps it on its feet; waist and arms follow the actions by arm_sdk. Fifty
times a second, on a thread of its own, the state is put together from what was measured, published,
and the next action handed on. What is not known ends the episode without a verdict, with its
reason.
"""

from __future__ import annotations

import os
import time
from collections import deque

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

from bench_tasks.errors import BenchError, UsageError
from bench_tasks.robots import embodiments, g1
from bench_tasks.robots.g1_kinematics import UpperBody
from bench_tasks.ros.node_ros import main as run_node
from bench_tasks.view import compose
from bench_tasks.vocabulary import Scene, WorldState
from hardware.unitree import network
from hardware.unitree.cell import Cell, driver_python, read_cell
from hardware.unitree.driver import BusDriver
from hardware.unitree.narrowed import ROBOT
from hardware.unitree.ready import FATAL, Preparation
from hardware.unitree.steering import Steering
from hardware.world_ros import RealWorld

__all__ = ["UnitreeWorldNode", "main"]

KEPT_GAPS = 50


class UnitreeWorldNode(RealWorld):
    """A G1 with rubber hands, cameras and a tracker."""

    ROBOT, MOVED, FATAL = ROBOT, "waist and arms", FATAL
    _cell: Cell

    def __init__(self) -> None:
        """Start the driver and listen to the sensors; UsageError when the cell is not right."""
        super().__init__(read_cell)
        if self._cell.raw["hands"] != "rubber":
            raise UsageError(f"hands: {self._cell.raw['hands']} are not in the model of the tasks, "
                             "nor in that of collisions: only rubber are")  # fmt: skip
        if self._cell.raw["transport"] == "dds":
            if wrong := network.domain_fault(os.environ, self._cell.domain):
                raise UsageError(f"{wrong}: {network.OTHER_DOMAIN}")
        self._body, self._robot = UpperBody(), embodiments.get("g1")
        self._gaps: deque[str] = deque(maxlen=KEPT_GAPS)
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self.drivers = BusDriver(driver_python(self._cell), self._cell.bus())
        self._steering = Steering(
            self.drivers, self._cell.raw["bus"]["max_jump_rad"], self._cell.raw["gravity"]
        )
        self._preparation = Preparation(
            self._cell, self.drivers, self.sensors, self._signals, self.stopping, self._record,
            self.get_logger().warning, steering=self._steering,
        )  # fmt: skip
        self._start()

    def close(self) -> None:
        """Give waist and arms back to the robot's own controller."""
        self._ticker.join(timeout=1.0)
        self.drivers.close()
        self.sensors.close()

    def _record(self, kind: str, reason: str) -> None:
        if kind == "robot_gap":
            self._gaps.append(reason)
        self.event(kind, reason=reason)

    def _take_scene(self, scene: Scene) -> None:
        if scene.embodiment != self._robot.name:
            raise BenchError(f"{scene.task} is a task of {scene.embodiment}, not of the G1")

    # -- 50 times a second -----------------------------------------------------------------------

    def _turn(self, at_s: float) -> None:
        ticking = self.ticking
        super()._turn(at_s)
        if not ticking:  # keep them where they are, or else the driver would give them back
            self._steering.tell(0, time.monotonic())

    def _act(self, seq: int, at_s: float, safe: bool) -> None:
        if safe:
            self._follow(self.due(seq))
        self._steering.tell(seq, at_s)

    def _follow(self, due: np.ndarray) -> None:
        """The first action that is due; the last one when none is."""
        refused = self._steering.follow(due[0]) if len(due) else ""
        if refused:
            self.chunk = None
            self.refuse("bad_chunk", refused)

    def _hold(self) -> None:
        """Waist and arms brake, and stay where they come to rest."""
        self.chunk = None
        self._steering.stay()

    def _stay(self) -> None:
        self._hold()

    def _measured(self, scene: Scene, seq: int, stamp_ns: int) -> WorldState:
        """The state now; BenchError when any of it is not known."""
        if self.drivers.mode != "following":
            raise BenchError(f"waist and arms are not under control: {self.drivers.mode}")
        state = self.drivers.state()
        seen = [self.sensors.pose(item.name) for item in scene.objects]
        poses = np.array([pose for pose, _ in seen]).reshape(-1, 7)
        names = [item.name for item in scene.objects]
        pelvis = poses[names.index(self._robot.base)]
        hands = [compose(pelvis, hand) for hand in self._body.forward(state.q[g1.LEGS :])]
        if scene.contacts == "all":
            pairs, forces = self.sensors.contacts()
        else:  # rubber hands feel nothing
            pairs, forces = np.zeros((0, 2), np.uint16), np.zeros(0)
        return WorldState(
            seq=seq, stamp_ns=stamp_ns, joint_position=state.q, joint_velocity=state.dq,
            joint_effort=state.tau, gripper_opening=np.zeros(2), ee_pose=np.stack(hands),
            command=self._steering.last.copy(), object_pose=poses,
            object_twist=np.array([twist for _, twist in seen]).reshape(-1, 6),
            contact_pair=pairs, contact_force=forces,
        )  # fmt: skip

    def _diagnose(self) -> None:
        """What a technician wants to know, once a second."""
        driver, values = self.drivers, {"mode": self.drivers.mode}
        good, text = driver.mode in ("idle", "engaging", "following"), driver.fault or driver.mode
        try:
            state = driver.state()
            values |= {
                "weight": f"{state.weight:.2f}", "rate_hz": f"{state.rate_hz:.0f}",
                "heard_hz": f"{state.heard_hz:.0f}", "messages_not_used": str(state.bad),
            }  # fmt: skip
        except BenchError as error:
            good, text = False, str(error)
        values |= {"gaps": str(len(self._gaps)), "late_periods": str(self._late),
                   "newest_gap": self._gaps[-1] if self._gaps else "none"}  # fmt: skip
        array = DiagnosticArray()
        array.header.stamp = self.get_clock().now().to_msg()
        array.status.append(DiagnosticStatus(
            level=DiagnosticStatus.OK if good else DiagnosticStatus.ERROR, message=text,
            name="bench_tasks: robot",
            values=[KeyValue(key=key, value=value) for key, value in values.items()],
        ))  # fmt: skip
        self._diagnostics.publish(array)


def main(args: list[str] | None = None) -> None:
    """Entry point of `unitree_world_node`."""
    run_node(UnitreeWorldNode, args)


if __name__ == "__main__":
    main()
