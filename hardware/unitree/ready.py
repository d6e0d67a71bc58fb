"""A G1 gets ready for an episode: waist and arms taken over and home, all that is needed seen."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from bench_tasks.errors import BenchError
from bench_tasks.robots import embodiments, g1
from bench_tasks.vocabulary import ROBOT_PART, ObjectInfo
from hardware import preparation as base
from hardware.unitree.clearance import BodyClearance
from hardware.unitree.driver import BusDriver
from hardware.unitree.steering import PERIOD_S, Steering

__all__ = ["FATAL", "Preparation"]

FATAL = ("driver_lost",)
"""Events of the driver after which nothing may go on."""
HOME_WITHIN_RAD = 0.05
LEAST_M = 0.01
PELVIS_M = 0.03
"""So far the pelvis may move while waist and arms are on the way that was checked."""
SETTLE_S, FRESH_S = 10.0, 5.0
_PEAK = 15 / 8
"""The greatest speed of a minimum jerk profile, of its mean."""


class Preparation(base.Preparation):
    """Waist and arms of a robot that stands by itself."""

    _drivers: BusDriver

    def __init__(self, *common: Any, steering: Steering) -> None:
        """`common` as any cell's preparation. Loads the model (about 0.2 s)."""
        super().__init__(*common)
        self._steering, self._clearance = steering, BodyClearance()
        self._pelvis = np.zeros(3)

    def go_home(self) -> None:
        """Take waist and arms over and bring them to their starting pose.

        In a straight line of joint positions, gently at both ends. Until somebody has confirmed,
        whoever has them keeps them where they are. BenchError when something is in the way.
        """
        steering, home = self._steering, self._steering.home
        self._confirm("waist and arms are going to go to their starting pose")
        self._wait_for_safety()
        steering.engaged = False
        self._drivers.ready(self._heed, steering.torque)
        start = self._drivers.told
        self._check_way_home(start, home)
        fastest = self._cell.raw["home_rad_s"]
        seconds = max(PERIOD_S, _PEAK * float(np.abs(home - start).max()) / fastest)
        begun, done = time.monotonic(), 0.0
        while done < 1.0:
            self._heed(moving=True)
            done = min(1.0, (time.monotonic() - begun) / seconds)
            share = done**3 * (10 - 15 * done + 6 * done**2)
            steering.send(0, start + share * (home - start), time.monotonic())
            time.sleep(PERIOD_S)

        def is_home() -> bool:
            steering.send(0, home, time.monotonic())
            away = np.abs(self._drivers.state().q[g1.LEGS :] - home)
            return bool(away.max() < HOME_WITHIN_RAD)

        self._wait(is_home, SETTLE_S, "waist and arms are not home", moving=True)
        steering.take(embodiments.get("g1").home)

    def _check_way_home(self, start: np.ndarray, home: np.ndarray) -> None:
        """BenchError when something is in the way, or when nobody sees where the table is."""
        pelvis, _ = self._sensors.pose(g1.PELVIS)
        self._pelvis = np.array(pelvis[:3])
        self._clearance.set_table(pelvis, self._cell.raw["table"])
        least = dict.fromkeys(("hands", "arms", "itself", "table"), LEAST_M)
        if blocked := self._clearance.blocked(start, home[None], least):
            raise BenchError(f"waist and arms cannot go straight home: {blocked}. Have the robot "
                             "step back, or move its arms by hand, to where they can")  # fmt: skip

    def wait_for_state(self) -> None:
        """Until the robot is heard, and follows."""
        self._wait(self._fresh, FRESH_S, "the robot is not heard, or does not follow")

    def _fresh(self) -> bool:
        try:
            self._drivers.state()
        except BenchError:
            return False
        return self._drivers.mode == "following"

    def _ends(self, kind: str, moving: bool) -> bool:
        return super()._ends(kind, moving) or kind in FATAL

    def _moves(self) -> None:
        if self._drivers.mode != "following":
            raise BenchError(f"waist and arms are not under control: {self._drivers.mode}")
        self._drivers.state()  # nothing goes on blindly
        pelvis, _ = self._sensors.pose(g1.PELVIS)
        moved = float(np.linalg.norm(pelvis[:3] - self._pelvis))
        if not moved <= PELVIS_M:
            raise BenchError(f"the pelvis moved by {moved:.3f} m while waist and arms went home, "
                             f"more than {PELVIS_M:g} m: what was free may not be")  # fmt: skip

    def _most(self, item: ObjectInfo) -> float:
        layout = self._cell.raw["layout"]
        return layout["pelvis_m"] if item.kind == ROBOT_PART else layout["position_m"]
