"""A G1 gets ready for an episode: waist and arms taken over and home, all that is needed seen."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench_tasks.errors import BenchError
from bench_tasks.robots import embodiments, g1
from bench_tasks.vocabulary import ROBOT_PART, ObjectInfo
from hardware import preparation as base
from hardware.unitree.clearance import Blocked, BodyClearance
from hardware.unitree.driver import BusDriver
from hardware.unitree.steering import PERIOD_S, Steering
from hardware.way_home import Posture, way_home

__all__ = ["FATAL", "POSTURES", "Preparation"]

FATAL = ("driver_lost",)
"""Events of the driver after which nothing may go on."""
HOME_WITHIN_RAD = 0.05
LEAST_M = 0.01
PELVIS_M = 0.03
"""So far the pelvis may move while waist and arms are on the way that was checked."""
TRIES, QUIET_M, QUIET_S = 3, 0.01, 0.5
"""Beyond that the way is looked for anew, once the pelvis has been so quiet for so long."""
SETTLE_S, FRESH_S, SEEN_S = 10.0, 5.0, 5.0
_PEAK = 15 / 8
"""The greatest speed of a minimum jerk profile, of its mean."""
_PITCH, _ROLL, _ELBOW = (np.array([k, k + 7]) for k in (3, 4, 6))
"""Of both arms, among waist and arms; rolls are outward by opposite signs."""
_FOREARMS_RAD, _FORWARD_RAD, _BACK_RAD = -0.9, -0.8, 1.0
"""Elbows with the forearms up; shoulders with the upper arms forward, and back."""


def _forearms_up(joints: np.ndarray) -> np.ndarray:
    joints = joints.copy()
    joints[_ELBOW] = _FOREARMS_RAD
    return joints


def _aside(rad: float) -> Posture:
    def aside(joints: np.ndarray) -> np.ndarray:
        joints = joints.copy()
        joints[_ROLL] = [max(joints[_ROLL[0]], rad), min(joints[_ROLL[1]], -rad)]
        return joints

    return aside


def _forward(joints: np.ndarray) -> np.ndarray:
    joints = joints.copy()
    joints[_PITCH] = np.minimum(joints[_PITCH], _FORWARD_RAD)
    return joints


def _back(joints: np.ndarray) -> np.ndarray:
    joints = joints.copy()
    joints[_PITCH] = np.maximum(joints[_PITCH], _BACK_RAD)
    return joints


POSTURES: tuple[Posture, ...] = (_forearms_up, _back, _aside(0.7), _aside(1.2), _forward)
"""Out of the way of table, body and each other, as people would."""
NAMES = ("forearms up", "arms back, aside", "forward")


class Moved(BenchError):
    """The pelvis is not where it was when the way home was checked."""


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

        In a straight line of joint positions if that is free, else by way of another posture,
        gently at both ends of each. Until somebody has confirmed, whoever has them keeps them where
        they are. BenchError when something is in each way.
        """
        steering = self._steering
        self._confirm("waist and arms are going to go to their starting pose")
        for again in range(TRIES):
            self._wait_for_safety()
            try:
                self._bring_home()
                break
            except Moved as error:  # as it does when arms that were stretched out are drawn in
                if again + 1 == TRIES:
                    raise
                steering.stay()
                self._event("way_home", f"{error}; it is looked for anew")
                self._wait(self._quiet(), SETTLE_S, "the pelvis does not come to rest")
        steering.take(embodiments.get("g1").home)

    def _bring_home(self) -> None:
        """Waist and arms, from where they are."""
        self._steering.engaged = False
        self._drivers.ready(self._heed, self._steering.torque)
        start = self._drivers.told
        home = self._steering.home
        for point in self._way_home(start, home):
            self._go(start, point)
            start = point

        def is_home() -> bool:
            self._steering.send(0, home, time.monotonic())
            away = np.abs(self._drivers.state().q[g1.LEGS :] - home)
            return bool(away.max() < HOME_WITHIN_RAD)

        self._wait(is_home, SETTLE_S, "waist and arms are not home", moving=True)

    def _quiet(self) -> Callable[[], bool]:
        """Whether the pelvis rests, from look to look; arms that brake are at rest by then."""
        at, since = np.full(3, np.inf), time.monotonic()

        def quiet() -> bool:
            nonlocal at, since
            now = self._sensors.pose(g1.PELVIS)[0][:3]
            if not np.linalg.norm(now - at) <= QUIET_M:
                at, since = np.array(now), time.monotonic()
            return time.monotonic() - since >= QUIET_S

        return quiet

    def _go(self, start: np.ndarray, end: np.ndarray) -> None:
        """From joints (17,) to others, in a straight line that has been looked at."""
        fastest = self._cell.raw["home_rad_s"]
        seconds = max(PERIOD_S, _PEAK * float(np.abs(end - start).max()) / fastest)
        begun, done = time.monotonic(), 0.0
        while done < 1.0:
            self._heed(moving=True)
            done = min(1.0, (time.monotonic() - begun) / seconds)
            share = done**3 * (10 - 15 * done + 6 * done**2)
            self._steering.send(0, start + share * (end - start), time.monotonic())
            time.sleep(PERIOD_S)

    def _way_home(self, start: np.ndarray, home: np.ndarray) -> np.ndarray:
        """The points (n, 17) of a free way, with `LEAST_M` between what must not meet.

        BenchError when there is none, or when nobody sees where the table is.
        """
        pelvis = self._seen_pelvis(start)
        self._pelvis = np.array(pelvis[:3])
        self._clearance.set_table(pelvis, self._cell.raw["table"])
        least = dict.fromkeys(("hands", "arms", "itself", "table"), LEAST_M)

        def blocked_on(_: np.ndarray, points: np.ndarray) -> Blocked | None:
            self._heed()
            self._steering.send(0, start, time.monotonic())  # or the arms would be let go of
            return self._clearance.blocked(start, points, least)

        way, blocked = way_home(start, home, POSTURES, blocked_on)
        if way is None:
            raise BenchError(f"waist and arms cannot go straight home: {blocked}, nor by way of "
                             f"{' or '.join(NAMES)}. Have the robot step back, or move its arms by "
                             "hand, to where they can")  # fmt: skip
        if blocked is not None:
            self._event("way_home", f"not straight, in {len(way)} parts: {blocked}")
        return way

    def _seen_pelvis(self, start: np.ndarray) -> np.ndarray:
        """Its pose (7,), as soon as the tracker is heard; held at joints (17,) until then."""
        end = time.monotonic() + SEEN_S
        while True:
            self._heed()
            self._steering.send(0, start, time.monotonic())
            try:
                return self._sensors.pose(g1.PELVIS)[0]
            except BenchError:
                if time.monotonic() > end:
                    raise
            time.sleep(PERIOD_S)

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
            raise Moved(f"the pelvis moved by {moved:.3f} m while waist and arms went home, "
                             f"more than {PELVIS_M:g} m: what was free may not be")  # fmt: skip

    def _most(self, item: ObjectInfo) -> float:
        layout = self._cell.raw["layout"]
        return layout["pelvis_m"] if item.kind == ROBOT_PART else layout["position_m"]
