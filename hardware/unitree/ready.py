"""A G1 gets ready for an episode: waist and arms taken over and home, all that is needed seen."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from bench_tasks.errors import BenchError
from bench_tasks.robots import embodiments, g1
from bench_tasks.vocabulary import CONTROL_PERIOD_NS, ROBOT_PART, ObjectInfo
from hardware import preparation as base
from hardware.unitree.clearance import BodyClearance
from hardware.unitree.driver import BusDriver

__all__ = ["FATAL", "Preparation"]

FATAL = "driver_lost"
HOME_WITHIN_RAD = 0.05
LEAST_M = 0.01
SETTLE_S, FRESH_S = 10.0, 5.0
PERIOD_S = CONTROL_PERIOD_NS / 1e9
_PEAK = 15 / 8
"""The greatest speed of a minimum jerk profile, of its mean."""


class Preparation(base.Preparation):
    """Waist and arms of a robot that stands by itself."""

    _drivers: BusDriver
    _clearance: BodyClearance | None = None

    def go_home(self, send: Callable[[np.ndarray], None] | None = None) -> None:
        """Take waist and arms over and bring them to their starting pose by `send(joints)`.

        In a straight line of joint positions, gently at both ends. BenchError when something is in
        the way of that; then they are held where they are, until the driver gives them back.
        """
        assert send is not None
        self._confirm("waist and arms are going to go to their starting pose")
        self._wait_for_safety()
        self._drivers.ready(self._heed)
        robot = embodiments.get("g1")
        home, start = robot.home[robot.joint_columns], self._drivers.told
        self._check_way_home(start, home)
        fastest = self._cell.raw["home_rad_s"]
        seconds = max(PERIOD_S, _PEAK * float(np.abs(home - start).max()) / fastest)
        begun, done = time.monotonic(), 0.0
        while done < 1.0:
            self._heed(moving=True)
            done = min(1.0, (time.monotonic() - begun) / seconds)
            share = done**3 * (10 - 15 * done + 6 * done**2)
            send(start + share * (home - start))
            time.sleep(PERIOD_S)

        def is_home() -> bool:
            send(home)
            away = np.abs(self._drivers.state().q[g1.LEGS :] - home) if self._fresh() else None
            return away is not None and bool(away.max() < HOME_WITHIN_RAD)

        self._wait(is_home, SETTLE_S, "waist and arms are not home")

    def _check_way_home(self, start: np.ndarray, home: np.ndarray) -> None:
        """BenchError when something is in the way, or when nobody sees where the table is."""
        if self._clearance is None:
            self._clearance = BodyClearance()
        pelvis, _ = self._sensors.pose(g1.PELVIS)
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
        return super()._ends(kind, moving) or kind == FATAL

    def _moves(self) -> None:
        if self._drivers.mode != "following":
            raise BenchError(f"waist and arms are not under control: {self._drivers.mode}")

    def _most(self, item: ObjectInfo) -> float:
        layout = self._cell.raw["layout"]
        return layout["pelvis_m"] if item.kind == ROBOT_PART else layout["position_m"]
