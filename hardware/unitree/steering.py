"""What waist and arms of a G1 are told each period: to follow actions, to stay, or to brake.

Whoever has them tells the driver 50 times a second, or else it lets go of them. To stop is left to
the bus, which knows their speed: what it said it tells them is some periods old, and to command
that would throw moving arms back.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

import numpy as np

from bench_tasks.errors import BenchError
from bench_tasks.robots import embodiments, g1
from bench_tasks.robots.embodiments import with_openings
from bench_tasks.robots.g1_kinematics import UpperBody
from bench_tasks.vocabulary import CONTROL_PERIOD_NS
from hardware.unitree.driver import RobotState

__all__ = ["PERIOD_S", "Driver", "Steering"]

PERIOD_S = CONTROL_PERIOD_NS / 1e9
DUE_PERIODS = 1.5
"""From a command until the joints are to be there: what it may come late by without a halt."""
CONTROLLED = "following"


class Driver(Protocol):
    """What of `driver.BusDriver` is needed here."""

    mode: str

    def state(self) -> RobotState:
        """The newest state; BenchError when it is too old."""
        ...

    def move(self, seq: int, q: Sequence[float], tau: Sequence[float], due_ns: int) -> None:
        """Have the joints be at q at `due_ns`."""

    def hold(self, seq: int = -1, tau: Sequence[float] | None = None) -> None:
        """Have them brake and stay."""


class Steering:
    """`last` is the action (19,) that they were told last. `engaged`: `tell` has them.

    For two threads of which one has them at a time.
    """

    def __init__(self, driver: Driver, jump_rad: float, gravity: bool) -> None:
        """No action may begin farther away than `jump_rad`; `gravity` is fed forward."""
        self._driver, self._jump_rad, self._weighs = driver, jump_rad, gravity
        self._robot = embodiments.get("g1")
        self._columns = self._robot.joint_columns
        # Of its own: another thread may be using the one that says where the hands are.
        self._body, self._lock = UpperBody(), threading.Lock()
        self._quaternion = np.array([1.0, 0.0, 0.0, 0.0])
        self.last, self.engaged = self._robot.home.copy(), False
        self._braking, self._stops = False, 1

    @property
    def home(self) -> np.ndarray:
        """Their starting pose, joints (17,)."""
        return self._robot.home[self._columns]

    def torque(self, joints: np.ndarray) -> list[float]:
        """What gravity asks of joints (17,), Nm, as the pelvis is held now; zeros if not wanted."""
        if not self._weighs:
            return [0.0] * len(joints)
        with self._lock:
            with suppress(BenchError):  # what was last known of how upright it is is good enough
                self._quaternion = self._driver.state().quaternion
            return self._body.gravity(np.asarray(joints), self._quaternion).tolist()

    def send(self, seq: int, joints: np.ndarray, at_s: float) -> None:
        """Command joints (17,) in the period that began at `at_s`, holding up what they weigh."""
        due_ns = int((at_s + DUE_PERIODS * PERIOD_S) * 1e9)
        self._driver.move(seq, joints.tolist(), self.torque(joints), due_ns)

    def take(self, action: np.ndarray) -> None:
        """From here on `tell` has them, and they are at `action` (19,)."""
        self.last, self._braking, self.engaged = action.copy(), False, True

    def tell(self, seq: int, at_s: float) -> None:
        """What is to be told in this period, if they are had at all."""
        if self.engaged and self._driver.mode != CONTROLLED:
            self.engaged = False
        if not self.engaged:
            return
        if self._braking:
            self._settle()
        if self._braking:
            self._brake()
        else:
            self.send(seq, self.last[self._columns], at_s)

    def stay(self) -> None:
        """Have them come to rest, from whatever motion; where that is they are kept then."""
        self._stops += 1
        self._braking = True
        self.engaged = self._driver.mode == CONTROLLED
        if self.engaged:
            self._brake()

    def _brake(self) -> None:
        self._driver.hold(-self._stops, self.torque(self.last[self._columns]))

    def _settle(self) -> None:
        """Until they rest, and the bus says so of this stop, what it tells them is what they do."""
        with suppress(BenchError):
            state = self._driver.state()
            self.last = with_openings(state.told, 0.0)
            self._braking = not (state.rests and state.seq == -self._stops)

    def follow(self, action: np.ndarray) -> str:
        """Have them do it, within the joints' ranges. Returns why not, "" if so.

        While they come to rest nothing is followed.
        """
        if self._braking:
            return ""
        wanted = np.clip(action, self._robot.low, self._robot.high)
        away = np.abs(wanted - self.last)[self._columns]
        k = int(away.argmax())
        if away[k] <= self._jump_rad:
            self.last = wanted
            return ""
        return (f"it begins {away[k]:.3f} rad away at {g1.JOINT_NAMES[g1.LEGS + k]}, more than "
                f"{self._jump_rad:g} rad")  # fmt: skip
