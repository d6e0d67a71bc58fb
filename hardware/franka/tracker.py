"""Turns commands at some 50 Hz into a position for every millisecond, within an FR3's limits.

Each command says where the arm is to be at a time soon, and how fast; ruckig (MIT; Berscheid and
Kroeger 2021, arXiv 2105.04830) finds the jerk-limited way there from whatever the arm is doing. A
command that is late is waited for a moment, then the arm brakes by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import ruckig

from hardware.franka.limits import (
    ACCELERATION_SHARE,
    MAX_ACCELERATION,
    MAX_JERK,
    MAX_VELOCITY,
    POSITION_RAD,
    SPEED_SHARE,
    velocity_bounds,
)
from hardware.link import Command

__all__ = ["CYCLE_S", "RENEW_S", "Tracker"]

CYCLE_S = 0.001
JERK_SHARES = (0.02, 0.05, 0.1)
"""Of the robot's limit: how far off it is what comes behind a lost command is a matter of the jerk,
of which as little is used as will do."""
_ACCELERATION = ACCELERATION_SHARE * MAX_ACCELERATION
EDGE_RAD = 0.01
"""How far from its hard ends a joint is kept."""
LATE_S = 0.010
"""So long the motion goes on as it was after the end of a command's period."""
WAITING_S = 0.100
RENEW_S = 0.100
"""So long the way to a goal goes on without anybody asking for it again."""
STALE_S, FAR_S = 0.100, 1.0
"""A command that was due longer ago than the first, or is due later than the second, is refused."""
STRAIGHT_RAD = 1e-5
"""A joint that has less far to go to a goal does not set the pace."""
SHORTEST_S = 0.004
INTERCEPTS = 4
AT_REST_RAD_S = 1e-4


class Tracker:
    """The reference of one arm: `step` once per cycle of the robot."""

    def __init__(self, max_jump_rad: float, speed: float = 1.0) -> None:
        """`speed` is the share of the greatest velocities that motion may use."""
        self._max_jump, self._speed = max_jump_rad, speed
        self._otg = ruckig.Ruckig(7, CYCLE_S)
        self._in, self._out = ruckig.InputParameter(7), ruckig.OutputParameter(7)
        self._low, self._high = POSITION_RAD[:, 0] + EDGE_RAD, POSITION_RAD[:, 1] - EDGE_RAD
        self.reset(np.zeros(7))

    def reset(self, q: Sequence[float] | np.ndarray) -> None:
        """Stand still at `q`: what the robot holds when control begins."""
        self._q, self._v, self._a = list(map(float, q)), [0.0] * 7, [0.0] * 7
        self._left, self._since, self.braking, self.seq = 0, 0, True, -1
        self._going = self.lapsed = False
        self._set_position(self._q, [0.0] * 7, [0.0] * 7, 0.0, 1.0)

    def take_up(self, q: Sequence[float], v: Sequence[float], a: Sequence[float]) -> None:
        """Go on from a state of motion, which is braked until something else is told."""
        self.reset(q)
        self._v, self._a = list(map(float, v)), list(map(float, a))
        self.braking = False
        self.brake()

    # -- what it is told -------------------------------------------------------------------------

    def command(self, command: Command, now_ns: int) -> str:
        """Follow a command from now on. Returns why it is refused, in which case the arm brakes.

        What was due a moment ago is reached as soon as it can be.
        """
        left_s = (command.due_ns - now_ns) / 1e9
        if left_s < -STALE_S:
            return self._refuse(f"a command was due {-left_s:.3f} s ago, more than {STALE_S:g} s")
        if left_s > FAR_S:
            return self._refuse(f"a command is due in {left_s:.3f} s, more than {FAR_S:g} s")
        q = np.asarray(command.q, dtype=float)
        numbers = np.concatenate([q, command.v, command.a])
        if not np.isfinite(numbers).all():
            return self._refuse("a command holds a number that is not finite")
        jump = np.abs(q - self._q)
        joint = int(jump.argmax())
        if jump[joint] > self._max_jump:
            return self._refuse(
                f"a command is {jump[joint]:.3f} rad away at joint {joint + 1}, more than "
                f"{self._max_jump:g} rad"
            )
        outside = np.flatnonzero((q < POSITION_RAD[:, 0]) | (q > POSITION_RAD[:, 1]))
        if len(outside):
            joint = int(outside[0])
            return self._refuse(
                f"a command has {q[joint]:.3f} rad for joint {joint + 1}, whose range is "
                f"{POSITION_RAD[joint, 0]:g} to {POSITION_RAD[joint, 1]:g} rad"
            )
        duration_s = max(left_s, SHORTEST_S)
        self._set_position(
            q, np.asarray(command.v), np.asarray(command.a), duration_s, self._speed
        )
        self.seq = command.seq
        self._left, self._since, self.braking = round((duration_s + LATE_S) / CYCLE_S), 0, False
        self._going = self.lapsed = False
        return ""

    def go_to(self, q: Sequence[float], share: float) -> str:
        """Move to `q`, straight in joint space, from rest to rest; the way is not checked.

        At a share of the speeds and accelerations. Unless `go_on` is called again and again the
        arm brakes, and has `lapsed`. Returns why it is refused.
        """
        if not np.isfinite(q).all() or not 0.0 < share <= 1.0:
            return self._refuse("a goal holds a number that cannot be")
        if ((np.asarray(q) < self._low) | (np.asarray(q) > self._high)).any():
            return self._refuse("a goal lies outside the joints' ranges")
        if not self.at_rest:
            return self._refuse("a goal must be gone to from rest, and the arm moves")
        self._set_position(q, [0.0] * 7, [0.0] * 7, 0.0, share * self._speed)
        self._straighten(share)
        self._going, self.braking, self.lapsed = True, False, False
        self.go_on()
        return ""

    def go_on(self) -> None:
        """Somebody still wants the goal, and looks at the arm on its way there."""
        if self._going and not self.braking:
            self._left, self._since = round(RENEW_S / CYCLE_S), 0

    def _straighten(self, share: float) -> None:
        """Let each joint's limits be to its way as every other's: then all keep the same time.

        Ruckig's own phase synchronisation does so only as far as limits allow in both directions.
        """
        way = np.subtract(self._in.target_position, self._q)
        moves = np.abs(way) > STRAIGHT_RAD
        if not moves.any():
            return

        def proportional(limit: np.ndarray) -> list[float]:
            pace = (limit[moves] / np.abs(way[moves])).min()
            return np.where(moves, pace * np.abs(way), limit).tolist()

        speeds = proportional(
            np.where(way > 0, self._in.max_velocity, np.negative(self._in.min_velocity))
        )
        self._in.max_velocity, self._in.min_velocity = speeds, np.negative(speeds).tolist()
        self._in.max_acceleration = proportional(share * _ACCELERATION)
        self._in.max_jerk = proportional(np.asarray(self._in.max_jerk))

    def brake(self) -> None:
        """Come to rest as fast as the limits allow."""
        if self.braking:
            return
        self.braking = True
        self._begin()
        self._in.control_interface = ruckig.ControlInterface.Velocity
        self._in.target_velocity, self._in.target_acceleration = [0.0] * 7, [0.0] * 7
        self._in.max_jerk = (JERK_SHARES[-1] * MAX_JERK).tolist()
        self._in.minimum_duration = None
        self._otg.reset()

    def _refuse(self, why: str) -> str:
        self.brake()
        return why

    # -- what it does ----------------------------------------------------------------------------

    @property
    def waiting(self) -> bool:
        """Whether no command has come for 100 ms."""
        return self._since > WAITING_S / CYCLE_S

    @property
    def at_rest(self) -> bool:
        """Whether the reference stands still."""
        return max(map(abs, self._v)) < AT_REST_RAD_S and max(map(abs, self._a)) < 1e-2

    @property
    def position(self) -> list[float]:
        """The reference (7,), rad."""
        return self._q

    @property
    def velocity(self) -> list[float]:
        """Of the reference (7,), rad/s."""
        return self._v

    @property
    def acceleration(self) -> list[float]:
        """Of the reference (7,), rad/s^2."""
        return self._a

    def step(self) -> list[float]:
        """The reference (7,) one cycle on."""
        self._since += 1
        self._left -= 1
        if self._left <= 0 and not self.braking:
            self.lapsed = self._going and not self.at_rest
            self.brake()
        if self._otg.update(self._in, self._out) < 0:
            raise ArithmeticError("no motion within the limits was found")
        self._q, self._v, self._a = (
            self._out.new_position, self._out.new_velocity, self._out.new_acceleration,
        )  # fmt: skip
        self._out.pass_to_input(self._in)
        return self._q

    def _begin(self) -> None:
        self._in.max_acceleration = _ACCELERATION.tolist()
        self._in.current_position = self._q
        self._in.current_velocity = self._v
        self._in.current_acceleration = self._a

    def _set_position(self, q, v, a, duration_s: float, speed: float) -> None:
        """Aim at a state; where it cannot be one to arrive at, at rest there instead."""
        self._begin()
        target = np.clip(np.asarray(q, dtype=float), self._low, self._high)
        low, high = self._bounds(target, speed)
        self._in.control_interface = ruckig.ControlInterface.Position
        self._in.max_velocity, self._in.min_velocity = high.tolist(), low.tolist()
        self._in.target_position, self._in.minimum_duration = target.tolist(), duration_s or None
        a = np.clip(a, -0.8 * _ACCELERATION, 0.8 * _ACCELERATION)
        self._otg.reset()
        for share in JERK_SHARES if duration_s else JERK_SHARES[-1:]:
            arrival = self._arrive(v, a, low, high, share * MAX_JERK)
            if not duration_s or self._duration_s() - duration_s <= CYCLE_S:
                return
        if not arrival.any():
            return
        # What cannot be reached in time is met later, where it will be by then: aiming at where
        # it was would fall behind further with every command.
        for _ in range(INTERCEPTS):
            late_s = self._duration_s() - duration_s
            if late_s <= CYCLE_S:
                return
            ahead = np.clip(target + arrival * late_s, self._low, self._high)
            self._in.target_position = ahead.tolist()
            self._in.minimum_duration = duration_s + late_s

    def _arrive(self, v, a, low, high, jerk: np.ndarray) -> np.ndarray:
        """Arrive with this motion, as far as the limits allow; returns the velocity (7,) of it."""
        self._in.max_jerk = jerk.tolist()
        # Behind the target the velocity still changes while the acceleration fades.
        fade = a * a / (2 * jerk) + 1e-6
        v = np.clip(v, np.minimum(0.0, low + fade), np.maximum(0.0, high - fade))
        self._in.target_velocity, self._in.target_acceleration = v.tolist(), a.tolist()
        if not self._in.validate(False, True):
            self._in.target_acceleration = [0.0] * 7
        if not self._in.validate(False, True):
            v = np.zeros(7)
            self._in.target_velocity = v.tolist()
        return v

    def _duration_s(self) -> float:
        trajectory = ruckig.Trajectory(7)
        if self._otg.calculate(self._in, trajectory) < 0:
            raise ArithmeticError("no motion within the limits was found")
        return trajectory.duration

    def _bounds(self, target: np.ndarray, speed: float) -> tuple[np.ndarray, np.ndarray]:
        """Velocities allowed both here and at the target; never quite none."""
        bounds = [velocity_bounds(np.asarray(q)) for q in (self._q, target)]
        low = SPEED_SHARE * np.maximum(bounds[0][0], bounds[1][0])
        high = SPEED_SHARE * np.minimum(bounds[0][1], bounds[1][1])
        limit = SPEED_SHARE * speed * MAX_VELOCITY
        return np.minimum(-0.01, np.maximum(low, -limit)), np.maximum(0.01, np.minimum(high, limit))
