"""What nodes `world` of real robots have in common, above their drivers.

Fifty times a second, on a thread of its own, a period of the robot is gone through; cameras,
tracker, the stop button, the safety node's life and whoever confirms are heard in a node of the
sensors', because this one's thread may be waiting for what is said there.
"""

from __future__ import annotations

import json
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from bench_interfaces.srv import MoveObjects
from std_msgs.msg import Bool, UInt64
from std_srvs.srv import Trigger

from bench_tasks.errors import BenchError
from bench_tasks.images import DEFAULT_SIZE
from bench_tasks.ros.node_ros import BUTTON, LATEST, parameter
from bench_tasks.ros.world_ros import WorldBase
from bench_tasks.vocabulary import CONTROL_PERIOD_NS, CameraFrame, Scene, WorldState
from hardware.cell import Cell
from hardware.pictures_ros import Pictures
from hardware.sensors_ros import Sensors
from hardware.signals import SILENT_S, Signals

__all__ = ["PERIOD_S", "RealWorld"]

PERIOD_S = CONTROL_PERIOD_NS / 1e9
DIAGNOSE_S = 1.0


class RealWorld(WorldBase):
    """A node `world` with a cell, its sensors and its signals; each robot has its own drivers."""

    ROBOT, MOVED = "", ""
    """What a scene calls the robot, and what of it moves, in words."""
    FATAL: tuple[str, ...] = ()
    """Events of its drivers with which an episode cannot go on."""
    drivers: Any
    _preparation: Any
    _look_s = float("inf")
    """How often to look at a time that may pass slower than the wall's."""

    def __init__(self, read_cell: Callable[[str], Cell]) -> None:
        """Listen to the sensors; UsageError when the cell is not right."""
        # Of its own, not by a launch file's remapping: nothing unchecked must ever move these arms.
        super().__init__(clocks=("realtime",), commands="/safety/action_chunk")
        self._cell = read_cell(parameter(self, "cell", "cell"))
        self._begun_ns = self._late = 0
        self._held = self._loading = self._laying = False
        self._trouble = ""
        self._diagnosed_s = float("-inf")
        self._signals = Signals(lambda: self._now_ns() / 1e9)
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

    def load(self, task: str, seed: int, config: dict[str, Any]) -> tuple[Scene, WorldState]:
        """The robot to its starting pose, then the objects where they belong."""
        raw, preparation = self._cell.raw, self._preparation
        self._loading, self._trouble = True, ""
        try:
            preparation.go_home()
            self._came_home()
            # From here on the ticking thread hears what the drivers say.
            self._laying = True
            told = self.sensors.lay_out(task, seed, json.dumps(config), raw["layout"]["wait_s"])
            self._laying = False
            contacts = "all" if raw["contacts"]["topic"] else "hands"
            scene = replace(Scene.from_json(told.scene), robot=self.ROBOT, contacts=contacts)
            self._take_scene(scene)
            wanted = np.asarray(told.state.object_pose).reshape(-1, 7)
            preparation.wait_for_objects(scene, wanted)
            preparation.wait_for_cameras()
            preparation.wait_for_state()
            self._begun_ns, self._held = self._now_ns(), False
            self._signals.begin()
            return scene, self._measured(scene, 0, 0)
        except BaseException:
            self._hold()
            raise
        finally:
            self._loading = self._laying = False

    # -- of each robot ---------------------------------------------------------------------------

    def _came_home(self) -> None:
        """The robot is in its starting pose."""

    def _take_scene(self, scene: Scene) -> None:
        """A scene is laid out; BenchError when it is none for this robot."""
        raise NotImplementedError

    def _measured(self, scene: Scene, seq: int, stamp_ns: int) -> WorldState:
        """The state now; BenchError when any of it is not known."""
        raise NotImplementedError

    def _act(self, seq: int, at_s: float, safe: bool) -> None:
        """Have it do in the period that began at `at_s` what is due in state `seq`, if `safe`."""
        raise NotImplementedError

    def _hold(self) -> None:
        """Bring it to rest."""
        raise NotImplementedError

    def _stay(self) -> None:
        """It has refused a command, and comes to rest: that is where it goes on from."""
        raise NotImplementedError

    def _still_held(self) -> None:
        """It has been brought to rest, and is not to go on yet, or only now."""
        self.chunk = None

    def _diagnose(self) -> None:
        """Publish what a technician wants to know."""
        raise NotImplementedError

    # -- 50 times a second -----------------------------------------------------------------------

    def _now_ns(self) -> int:
        """The robot's time, by which commands are due: a real one's is CLOCK_MONOTONIC."""
        return time.monotonic_ns()

    def _tick_on(self) -> None:
        due = self._now_ns() / 1e9
        while not self.stopping.is_set():
            while (left_s := due - self._now_ns() / 1e9) > 0.0:
                time.sleep(min(left_s, self._look_s))
            if -left_s > PERIOD_S:
                self._late += 1
                due -= left_s  # what was missed is not made up for in haste
            now = time.monotonic()
            try:
                self._turn(due)
                if now >= self._diagnosed_s + DIAGNOSE_S:  # a load may keep the node's own thread
                    self._diagnosed_s = now
                    self._diagnose()
            except Exception:  # noqa: BLE001 - arms must not be left to a thread that has died
                self._give_up(traceback.format_exc())
            due += PERIOD_S

    def _turn(self, at_s: float) -> None:
        """All of a period that began at `at_s`, also between episodes."""
        if self.ticking:
            self._tick(at_s)
        elif self._laying or not self._loading:  # who gets it ready hears of it himself
            for kind, reason in self.drivers.poll():
                self._record(kind, reason)
                if kind == "command_refused":
                    self._hold()  # or it would be refused fifty times a second

    def _tick(self, at_s: float) -> None:
        """The state now, and the action from now on."""
        state, scene = self.state, self.scene
        assert state is not None and scene is not None
        try:
            self._heed()
            stamp = max(self._now_ns() - self._begun_ns, state.stamp_ns + 1)
            safe = self._safe()
            measured = self._measured(scene, state.seq + 1, stamp)
            self._act(measured.seq, at_s, safe)
            self.publish(measured)
            self._pictures.stream(measured)
        except BenchError as error:
            self._give_up(str(error))

    def _heed(self) -> None:
        """Put on record what drivers say; BenchError when the episode cannot go on."""
        for kind, reason in self.drivers.poll():
            if kind in self.FATAL:
                raise BenchError(reason)
            self._record(kind, reason)
            if kind == "command_refused":
                self._stay()

    def _safe(self) -> bool:
        """Whether the safety node sees what the robot does; if it does not, it is held."""
        safe = self._signals.watching
        if not safe and not self._held:
            self._hold()
            self._record("heartbeat_lost", f"no heartbeat of the safety node for {SILENT_S:g} s: "
                         f"{self.MOVED} hold")  # fmt: skip
        if not safe or self._held:
            self._still_held()
        self._held = not safe
        return safe

    def _give_up(self, reason: str) -> None:
        """Hold; the conductor ends the episode without a verdict. Said once of what goes on."""
        if not self.ticking and reason == self._trouble:
            return
        self.ticking, self.chunk, self._trouble = False, None, reason
        self._hold()
        self.get_logger().error(reason)
        self.event("world_lost", reason=reason, fatal=True)

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
