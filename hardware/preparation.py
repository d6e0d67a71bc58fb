"""What any cell waits for before an episode, and what breaks that off.

No state is published meanwhile for the safety node to judge, so what may stop the robot is looked
at here: the stop button, the safety node's life, what the driver says. Whatever goes wrong is a
BenchError.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench_tasks.errors import BenchError
from bench_tasks.vocabulary import ObjectInfo, Scene
from hardware.cell import Cell
from hardware.signals import SILENT_S, Signals

__all__ = ["Preparation", "Silent"]

CAMERAS_S, CONFIRM_S, ALIVE_S = 5.0, 600.0, 10.0
STILL_S = 0.1
"""So long objects must lie where they belong."""
LOOK_S = 0.02


class Silent(BenchError):
    """The safety node was not heard while something moved."""


class Preparation:
    """What a cell does before each episode; each robot has its own way home."""

    def __init__(
        self, cell: Cell, drivers: Any, sensors: Any, signals: Signals,
        stopping: threading.Event, event: Callable[[str, str], None], say: Callable[[str], Any],
    ) -> None:  # fmt: skip
        """`event(kind, reason)` puts something on record, `say(text)` tells the human."""
        self._cell, self._drivers, self._sensors = cell, drivers, sensors
        self._signals, self._stopping = signals, stopping
        self._event, self._say = event, say

    def _confirm(self, what: str) -> None:
        """Where the cell wants that: tell a human what is going to move, and wait for a yes."""
        self._wait_for_button()
        if not self._cell.raw["confirm_before_home"]:
            return
        self._signals.ask()
        self._say(f"{what}: stand clear, then call /world/confirm")
        try:
            self._wait(self._signals.confirmed.is_set, CONFIRM_S, "nobody called /world/confirm")
        finally:
            self._signals.ask_no_more()

    def _wait_for_button(self) -> None:
        """A stop button that is pressed already is waited for: else it would cost episodes."""
        if not self._signals.estop.is_set():
            return
        self._say("waiting: /safety/estop says true")
        end = time.monotonic() + CONFIRM_S
        while self._signals.estop.is_set() and time.monotonic() < end:
            if self._stopping.is_set():
                break
            for kind, reason in self._drivers.poll():
                self._event(kind, reason)
            time.sleep(LOOK_S)
        self._heed()

    def _now_s(self) -> float:
        """The robot's time."""
        return time.monotonic()

    def _wait_for_safety(self) -> None:
        self._wait(lambda: self._signals.alive, ALIVE_S, "the safety node was not heard")

    def _moves(self) -> None:
        """BenchError when the robot, which moves, must not: beyond what holds for any."""
        raise NotImplementedError

    def _heed(self, moving: bool = False) -> None:
        """Take in what drivers and others say; BenchError when that ends the preparation."""
        for kind, reason in self._drivers.poll():
            self._event(kind, reason)
            if self._ends(kind, moving):
                raise BenchError(reason)
        if self._signals.estop.is_set():
            raise BenchError("/safety/estop says true: getting ready was broken off")
        if self._stopping.is_set():
            raise BenchError("the node ends: getting ready was broken off")
        if moving:
            self._moves()
            if not self._signals.alive:
                raise Silent(f"no heartbeat of the safety node for {SILENT_S:g} s: the arms hold")

    def _ends(self, kind: str, moving: bool) -> bool:
        """Whether nothing may go on after an event of a driver."""
        return moving and kind == "command_refused"

    def _wait(
        self, true: Callable[[], bool], seconds: float, what: str, moving: bool = False
    ) -> None:
        end = self._now_s() + seconds
        while True:
            self._heed(moving)
            if true():
                return
            if self._now_s() > end:
                raise BenchError(f"{what} within {seconds:g} s")
            time.sleep(LOOK_S)

    def wait_for_objects(self, scene: Scene, wanted: np.ndarray) -> None:
        """Until all of the scene's objects lie at `wanted` (n, 7), as near as the cell says.

        Whoever had to put them there may still have a hand on them: then a human says when it
        begins.
        """
        while self._laid(scene, wanted):
            self._confirm("the objects lie where they must, and the episode is going to begin")
            if not self._cell.raw["confirm_before_home"]:
                return

    def _laid(self, scene: Scene, wanted: np.ndarray) -> bool:
        """Wait until they do; whether one had to be put there. BenchError: it was not."""
        layout = self._cell.raw["layout"]
        end, since, laid = time.monotonic() + layout["wait_s"], float("inf"), False
        while True:
            self._heed()
            try:
                wrong = self._misplaced(scene, wanted)
            except BenchError as error:
                wrong = str(error)
            now, laid = time.monotonic(), laid or bool(wrong)
            since = float("inf") if wrong else min(since, now)
            if now - since >= STILL_S:
                return laid
            if now > end:
                raise BenchError(f"the objects of {scene.task} seed {scene.seed} do not lie as "
                                 f"they must: {wrong}")  # fmt: skip
            time.sleep(LOOK_S)

    def _misplaced(self, scene: Scene, wanted: np.ndarray) -> str:
        """Which object lies wrong, and by how much; "" when none does."""
        for item, target in zip(scene.objects, wanted, strict=True):
            pose, _ = self._sensors.pose(item.name)
            away = float(np.linalg.norm(pose[:3] - target[:3]))
            turned = 2 * float(np.arccos(min(1.0, abs(float(pose[3:] @ target[3:])))))
            if away > self._most(item) or turned > self._cell.raw["layout"]["angle_rad"]:
                to = ", ".join(f"{v:.3f}" for v in target[:3])
                return f"{item.name} is {away:.3f} m and {turned:.2f} rad away from ({to})"
        return ""

    def _most(self, item: ObjectInfo) -> float:
        """How far (m) an object may lie from where it belongs."""
        return self._cell.raw["layout"]["position_m"]

    def wait_for_state(self) -> None:
        """Until the robot is seen to follow, if that is not known by then."""

    def wait_for_cameras(self) -> None:
        """Until each has sent a picture."""
        end = time.monotonic() + CAMERAS_S
        for camera in self._cell.cameras:
            while True:
                self._heed()
                try:
                    self._sensors.picture(camera)
                    break
                except BenchError:
                    if time.monotonic() > end:
                        raise
                    time.sleep(LOOK_S)
