"""A cell gets ready for an episode: hands open, arms home, and all that is needed is seen.

No state is published meanwhile for the safety node to judge, so what may stop the arms is looked
at here: the stop button, the safety node's life, what the arms feel. Whatever goes wrong is a
BenchError, and both arms hold.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench_tasks.errors import BenchError
from bench_tasks.robots.fr3 import HOME_RAD
from bench_tasks.robots.kinematics import DualArm
from bench_tasks.vocabulary import ARMS, MAX_OPENING_M, Scene
from hardware.franka.cell import Cell
from hardware.franka.drivers import Drivers
from hardware.franka.motion import strain
from hardware.franka.signals import SILENT_S, Signals

__all__ = ["FATAL", "Preparation"]

FATAL = ("driver_lost", "robot_fault")
"""Events of drivers after which nothing may go on."""
HOME_WITHIN_RAD, SENT_WITHIN_RAD, REST_RAD = 0.02, 1e-4, 1e-7
HOME_S, HANDS_S, CAMERAS_S, CONFIRM_S, ALIVE_S, REST_S = 60.0, 10.0, 5.0, 600.0, 10.0, 5.0
STILL_S = 0.1
"""So long objects must lie where they belong."""
TRIES = 3
WAY_STEPS = 60
LOOK_S = 0.02


class _Silent(BenchError):
    """The safety node was not heard while an arm moved."""


class Preparation:
    """What a cell does before each episode."""

    def __init__(
        self, cell: Cell, drivers: Drivers, sensors: Any, kinematics: DualArm, signals: Signals,
        stopping: threading.Event, event: Callable[[str, str], None], say: Callable[[str], Any],
    ) -> None:  # fmt: skip
        """`event(kind, reason)` puts something on record, `say(text)` tells the human."""
        self._cell, self._drivers, self._sensors = cell, drivers, sensors
        self._kinematics, self._signals, self._stopping = kinematics, signals, stopping
        self._event, self._say = event, say

    def go_home(self) -> None:
        """Arms to their starting pose, one after the other, and hands open."""
        try:
            if self._cell.raw["confirm_before_home"]:
                self._signals.confirmed.clear()
                self._say("the hands are going to open and the arms to go to their starting pose: "
                          "stand clear, then call /world/confirm")  # fmt: skip
                self._wait(
                    self._signals.confirmed.is_set, CONFIRM_S, "nobody called /world/confirm"
                )
            self._wait_for_safety()
            self._drivers.ready(self._heed)
            for arm in ARMS:
                self._drivers.open_to(arm, MAX_OPENING_M, anew=True)
            self._wait(
                lambda: all(self._drivers.width(arm) > 0.9 * MAX_OPENING_M for arm in ARMS),
                HANDS_S, "the hands do not open",
            )  # fmt: skip
            for arm in ARMS:
                self._bring_home(arm)
        except BaseException:
            self._drivers.hold()  # going home has no end of its own
            raise

    def _wait_for_safety(self) -> None:
        self._wait(lambda: self._signals.alive, ALIVE_S, "the safety node was not heard")

    def _bring_home(self, arm: str) -> None:
        """One arm; when the safety node is not heard it holds, and goes on when it is again."""
        for again in range(TRIES):
            self._wait(self._rests(arm), REST_S, f"the {arm} arm did not come to rest")
            self._check_way(arm)
            self._drivers.go_to(arm, HOME_RAD, self._cell.raw["arms"]["home_share"])
            try:
                self._wait(
                    lambda: self._is_home(arm), HOME_S, f"the {arm} arm is not home", moving=True
                )
                return
            except _Silent as error:
                self._drivers.hold()
                self._event("heartbeat_lost", str(error))
                if again + 1 == TRIES:
                    raise
                self._wait_for_safety()

    def _rests(self, arm: str) -> Callable[[], bool]:
        """Whether what the arm is told to be stays the same from look to look."""
        last: list[np.ndarray] = []

        def rests() -> bool:
            now = self._drivers.arm(arm).q_sent
            if last and last[-1] is now:
                return False  # nothing new
            last.append(now)
            return len(last) > 1 and bool(np.abs(last[-1] - last[-2]).max() < REST_RAD)

        return rests

    def _check_way(self, arm: str) -> None:
        """BenchError when the arm would hit something on its straight way home."""
        q = {name: self._drivers.arm(name).q for name in ARMS}
        # It is from where it is told to be that it goes.
        start = q[arm] = self._drivers.arm(arm).q_sent
        if np.abs(start - HOME_RAD).max() <= HOME_WITHIN_RAD:
            return
        for s in np.linspace(0.0, 1.0, WAY_STEPS):
            way = {**q, arm: start + s * (HOME_RAD - start)}
            hit = self._kinematics.collision(way["left"], way["right"], (MAX_OPENING_M,) * 2)
            if hit is not None:
                raise BenchError(f"the {arm} arm cannot go straight home: {hit}. Guide it by hand "
                                 "to where it can")  # fmt: skip

    def _is_home(self, arm: str) -> bool:
        state = self._drivers.arm(arm)
        if self._drivers.mode(arm) != "following":
            raise BenchError(f"the {arm} arm is stopped: {self._drivers.faults()}")
        return bool(
            np.abs(state.q - HOME_RAD).max() < HOME_WITHIN_RAD
            and np.abs(state.q_sent - HOME_RAD).max() < SENT_WITHIN_RAD
        )

    # -- what is waited for ----------------------------------------------------------------------

    def _heed(self, moving: bool = False) -> None:
        """Take in what drivers and others say; BenchError when that ends the preparation."""
        for kind, reason in self._drivers.poll():
            self._event(kind, reason)
            if moving and kind in (*FATAL, "command_refused"):
                raise BenchError(reason)
        if self._signals.estop.is_set():
            raise BenchError("/safety/estop says true: getting ready was broken off")
        if self._stopping.is_set():
            raise BenchError("the node ends: getting ready was broken off")
        if not moving:
            return
        for arm in ARMS:
            if felt := strain(arm, self._drivers.arm(arm).wrench, self._cell.raw["arms"]):
                raise BenchError(felt)
        if not self._signals.alive:
            raise _Silent(f"no heartbeat of the safety node for {SILENT_S:g} s: the arms hold")

    def _wait(
        self, true: Callable[[], bool], seconds: float, what: str, moving: bool = False
    ) -> None:
        end = time.monotonic() + seconds
        while True:
            self._heed(moving)
            if true():
                return
            if time.monotonic() > end:
                raise BenchError(f"{what} within {seconds:g} s")
            time.sleep(LOOK_S)

    def wait_for_objects(self, scene: Scene, wanted: np.ndarray) -> None:
        """Until all of the scene's objects lie at `wanted` (n, 7), as near as the cell says."""
        layout = self._cell.raw["layout"]
        end, since = time.monotonic() + layout["wait_s"], float("inf")
        while True:
            self._heed()
            try:
                wrong = self._misplaced(scene, wanted)
            except BenchError as error:
                wrong = str(error)
            now = time.monotonic()
            since = float("inf") if wrong else min(since, now)
            if now - since >= STILL_S:
                return
            if now > end:
                raise BenchError(f"the objects of {scene.task} seed {scene.seed} do not lie as "
                                 f"they must: {wrong}")  # fmt: skip
            time.sleep(LOOK_S)

    def _misplaced(self, scene: Scene, wanted: np.ndarray) -> str:
        """Which object lies wrong, and by how much; "" when none does."""
        layout = self._cell.raw["layout"]
        for item, target in zip(scene.objects, wanted, strict=True):
            pose, _ = self._sensors.pose(item.name)
            away = float(np.linalg.norm(pose[:3] - target[:3]))
            turned = 2 * float(np.arccos(min(1.0, abs(float(pose[3:] @ target[3:])))))
            if away > layout["position_m"] or turned > layout["angle_rad"]:
                to = ", ".join(f"{v:.3f}" for v in target[:3])
                return f"{item.name} is {away:.3f} m and {turned:.2f} rad away from ({to})"
        return ""

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
