"""A cell of two arms gets ready for an episode: hands open, arms home.

Whatever goes wrong, what the arms feel included, is a BenchError, and both arms hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from bench_tasks.errors import BenchError
from bench_tasks.robots.fr3 import HOME_RAD, JOINT_LIMITS_RAD
from bench_tasks.robots.kinematics import DualArm
from bench_tasks.vocabulary import ARMS, MAX_OPENING_M
from hardware import preparation as base
from hardware.franka.drivers import LAPSED, Drivers
from hardware.franka.limits import MAX_VELOCITY
from hardware.franka.motion import strain
from hardware.way_home import way_home

__all__ = ["FATAL", "Preparation"]

FATAL = ("driver_lost", "robot_fault", "hand_fault")
"""Events of drivers after which nothing may go on."""
HOME_WITHIN_RAD, SENT_WITHIN_RAD, REST_RAD = 0.02, 1e-4, 1e-7
HOME_S, HANDS_S, REST_S = 60.0, 10.0, 5.0
"""`HOME_S`: beyond what the way takes at the speed that the cell allows."""
TRIES = 5
WAY_RAD = 0.01
"""The way home is looked at each time that a joint has gone so far: the hand, 1 cm at most."""


OUTWARD_RAD = 0.5
_FOLD = [1, 3, 5]
"""Joints that bend an arm in its own plane: at home they hold the hand near and high."""


def _folded(joints: np.ndarray) -> np.ndarray:
    joints = joints.copy()
    joints[_FOLD] = np.array(HOME_RAD)[_FOLD]
    return joints


def _no_way(arm: str, blocked: str | None) -> BenchError:
    return BenchError(f"the {arm} arm cannot go straight home: {blocked}, nor folded or turned "
                      "outward first. Guide it by hand to where it can")  # fmt: skip


class Lapsed(base.Silent):
    """An arm did not hear for a moment that it is to go on, and has braked."""


class Preparation(base.Preparation):
    """What a cell of two arms does before each episode."""

    _drivers: Drivers
    _engaged = False
    """Whether the arms are in control: before, what is lost is started anew."""

    def __init__(self, *common: Any, kinematics: DualArm) -> None:
        """`common` as any cell's preparation."""
        super().__init__(*common)
        self._kinematics = kinematics

    def _now_s(self) -> float:
        return self._drivers.now_ns() / 1e9

    def go_home(self) -> None:
        """Hands open, and arms to their starting pose, one after the other.

        Each straight if that is free, else by way of another posture, the one that can go first.
        """
        self._engaged = False
        try:
            self._confirm("the hands are going to open and the arms to go to their starting pose")
            self._wait_for_safety()
            self._drivers.ready(self._heed)
            self._engaged = True
            for arm in ARMS:
                self._drivers.open_to(arm, MAX_OPENING_M, anew=True)
            self._wait(
                lambda: all(self._drivers.width(arm) > 0.9 * MAX_OPENING_M for arm in ARMS),
                HANDS_S, "the hands do not open",
            )  # fmt: skip
            left = list(ARMS)
            while left:
                arm = self._next(left)
                self._bring_home(arm)
                left.remove(arm)
        except BaseException:
            self._drivers.hold()  # going home has no end of its own
            raise

    def _bring_home(self, arm: str) -> None:
        """One arm; when the safety node is not heard it holds, and goes on when it is again."""
        for again in range(TRIES):
            self._wait(self._rests(arm), REST_S, f"the {arm} arm did not come to rest")
            way, blocked = self._way(arm)
            if way is None:
                raise _no_way(arm, blocked)
            if blocked:
                self._event("way_home", f"the {arm} arm goes not straight: {blocked}")
            try:
                for point in way:
                    self._go(arm, point)
                return
            except base.Silent as error:
                self._drivers.hold()
                if not isinstance(error, Lapsed):  # which the arm itself has told
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

    def _next(self, arms: list[str]) -> str:
        """The first of these arms that can go home; BenchError of the first when none can."""
        if len(arms) == 1:
            return arms[0]
        why = []
        for arm in arms:
            self._wait(self._rests(arm), REST_S, f"the {arm} arm did not come to rest")
            way, blocked = self._way(arm)
            if way is not None:
                return arm
            why.append(_no_way(arm, blocked))
        raise why[0]

    def _way(self, arm: str) -> tuple[np.ndarray | None, str | None]:
        """The points (n, 7) of a way home on which the arm hits nothing, see `way_home`."""
        q = {name: self._drivers.arm(name).q for name in ARMS}
        # It is from where it is told to be that it goes.
        start = q[arm] = self._drivers.arm(arm).q_sent
        if np.abs(start - HOME_RAD).max() <= HOME_WITHIN_RAD:
            return np.array(HOME_RAD)[None], None
        outward = OUTWARD_RAD if arm == ARMS[0] else -OUTWARD_RAD

        def aside(joints: np.ndarray) -> np.ndarray:
            low, high = JOINT_LIMITS_RAD[0]
            return np.r_[np.clip(joints[0] + outward, low + 0.1, high - 0.1), joints[1:]]

        def hits(_: np.ndarray, points: np.ndarray) -> str | None:
            for begin, end in pairwise([start, *points]):
                self._heed()
                steps = math.ceil(np.abs(end - begin).max() / WAY_RAD)
                for s in np.linspace(0.0, 1.0, steps + 1):
                    at = {**q, arm: begin + s * (end - begin)}
                    hit = self._kinematics.collision(at["left"], at["right"], (MAX_OPENING_M,) * 2)
                    if hit is not None:
                        return hit
            return None

        return way_home(start, HOME_RAD, (_folded, aside), hits)

    def _go(self, arm: str, point: np.ndarray) -> None:
        """In a straight line that has been looked at, and is looked after."""
        arms = self._cell.raw["arms"]
        way = float(np.abs(point - self._drivers.arm(arm).q_sent).max())
        seconds = math.ceil(way / (arms["home_share"] * arms["speed"] * MAX_VELOCITY.min()))
        self._drivers.go_to(arm, point, arms["home_share"])
        self._wait(
            lambda: self._is_at(arm, point), HOME_S + seconds, f"the {arm} arm is not home",
            moving=True,
        )  # fmt: skip

    def _is_at(self, arm: str, point: np.ndarray) -> bool:
        state = self._drivers.arm(arm)
        if self._drivers.mode(arm) != "following":
            raise BenchError(f"the {arm} arm is stopped: {self._drivers.faults()}")
        if (
            np.abs(state.q - point).max() < HOME_WITHIN_RAD
            and np.abs(state.q_sent - point).max() < SENT_WITHIN_RAD
        ):
            return True
        self._drivers.go_on(arm)  # all that may stop it was just looked at
        return False

    def _ends(self, kind: str, moving: bool) -> bool:
        if moving and kind == LAPSED:
            raise Lapsed("an arm's way home was not looked after")
        return super()._ends(kind, moving) or (self._engaged and kind in FATAL)

    def _moves(self) -> None:
        for arm in ARMS:
            if felt := strain(arm, self._drivers.arm(arm).wrench, self._cell.raw["arms"]):
                raise BenchError(felt)
