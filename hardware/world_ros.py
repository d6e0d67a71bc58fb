"""What nodes `world` of real robots have in common, above their drivers.

Fifty times a second, on a thread of its own, a period of the robot is gone through; cameras,
tracker, the stop button, the safety node's life and whoever confirms are heard in a node of the
sensors', because this one's thread may be waiting for what is said there.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
from bench_interfaces.srv import MoveObjects
from std_msgs.msg import Bool, UInt64
from std_srvs.srv import Trigger

from bench_tasks.images import DEFAULT_SIZE
from bench_tasks.ros.node_ros import BUTTON, LATEST, parameter
from bench_tasks.ros.world_ros import WorldBase
from bench_tasks.vocabulary import CONTROL_PERIOD_NS, CameraFrame
from hardware.cell import Cell
from hardware.pictures_ros import Pictures
from hardware.sensors_ros import Sensors
from hardware.signals import Signals

__all__ = ["PERIOD_S", "RealWorld"]

PERIOD_S = CONTROL_PERIOD_NS / 1e9
DIAGNOSE_S = 1.0


class RealWorld(WorldBase):
    """A node `world` with a cell, its sensors and its signals; each robot has its own drivers."""

    def __init__(self, read_cell: Callable[[str], Cell]) -> None:
        """Listen to the sensors; UsageError when the cell is not right."""
        # Of its own, not by a launch file's remapping: nothing unchecked must ever move these arms.
        super().__init__(clocks=("realtime",), commands="/safety/action_chunk")
        self._cell = read_cell(parameter(self, "cell", "cell"))
        self._begun_ns = self._late = 0
        self._held = self._loading = False
        self._diagnosed_s = float("-inf")
        self._signals = Signals()
        self.sensors = Sensors(self._cell)
        self._pictures = Pictures(
            self, self._cell, self.sensors, parameter(self, "streams", ""),
            parameter(self, "image_size", DEFAULT_SIZE),
        )  # fmt: skip

    def _start(self) -> None:
        """Hear what is said, and begin to tick; the drivers are there."""
        self._listen()
        self._ticker = threading.Thread(target=self._tick_on, daemon=True)
        self._ticker.start()

    def _listen(self) -> None:
        signals = self._signals
        self.sensors.hear(
            UInt64, "/safety/heartbeat", lambda beat: signals.on_beat(beat.data), LATEST
        )
        # Heard from who speaks once, and from who does not care whether he is heard.
        for qos in BUTTON:
            self.sensors.hear(Bool, "/safety/estop", lambda m: signals.on_estop(m.data), qos)
        self.sensors.offer(Trigger, "/world/confirm", self._confirm)

    def _confirm(self, _: Trigger.Request, response: Trigger.Response):
        response.success = self._signals.on_confirm()
        response.message = "" if response.success else "nothing is to be confirmed now"
        return response

    def _record(self, kind: str, reason: str) -> None:
        self.event(kind, reason=reason)

    # -- 50 times a second -----------------------------------------------------------------------

    def _tick_on(self) -> None:
        due = time.monotonic()
        while not self.stopping.is_set():
            time.sleep(max(0.0, due - time.monotonic()))
            now = time.monotonic()
            if now - due > PERIOD_S:
                self._late += 1
                due = now  # what was missed is not made up for in haste
            try:
                self._turn(due)
                if now >= self._diagnosed_s + DIAGNOSE_S:  # a load may keep the node's own thread
                    self._diagnosed_s = now
                    self._diagnose()
            except Exception:  # noqa: BLE001 - arms must not be left to a thread that has died
                self._failed(traceback.format_exc())
            due += PERIOD_S

    def _turn(self, at_s: float) -> None:
        """All of a period that began at `at_s`, also between episodes."""
        raise NotImplementedError

    def _diagnose(self) -> None:
        """Publish what a technician wants to know."""
        raise NotImplementedError

    def _failed(self, trouble: str) -> None:
        """Something is wrong with the program itself; it may be in each period from here on."""
        raise NotImplementedError

    # -- the other services ----------------------------------------------------------------------

    def capture(self, cameras: tuple[str, ...], depth: bool) -> tuple[CameraFrame, ...]:
        """The newest picture of each camera, at the size asked for, stamped with the state."""
        return self._pictures.take(cameras, depth, self.state)

    def publish_pictures(self, frames: tuple[CameraFrame, ...]) -> None:
        """Publish pictures with their calibration."""
        self._pictures.publish(frames)

    def picture_publishers(self) -> list[Any]:
        """What a recorder listens to."""
        return self._pictures.publishers

    def move(self, poses: dict[str, np.ndarray]) -> None:
        """Have whoever lays things out put objects elsewhere."""
        numbers = np.concatenate(list(poses.values())).tolist()
        request = MoveObjects.Request(names=list(poses), poses=numbers)
        self.sensors.move(request, self._cell.raw["layout"]["wait_s"])
