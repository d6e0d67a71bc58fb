"""Where a G1's joints are told to be, from commands at 50 Hz: refused, followed, held, let go of.

With `arm_sdk` the robot's own controller keeps it on its feet; its arms follow these by a weight
that goes up from 0 and down again, never at once: at 0 they would drop, at 1 they would jerk. With
`low` all 29 motors are told, and when nobody commands them they are damped: the robot sinks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["SLACK_RAD", "Follower", "Limits"]

BRAKE_RAD_S2 = 10.0
TORQUE_NM_S = 50.0
"""So fast the torque that is fed forward may change; a step of it would be a jerk."""
AHEAD_S = 1.0
"""A command for later than that is none of this clock."""
SLACK_RAD = 1e-3
"""Beyond its range a joint may be told, for numbers that went through single precision."""


@dataclass(frozen=True)
class Limits:
    """Names (n), range (n, 2) rad and greatest speed (n,) rad/s of the joints, and times in s.

    A command further than `jump_rad` from where a joint is told to be is refused, and one that was
    due more than `stale_s` ago. After `stale_s` without one the joints are held, after `release_s`
    let go of, the weight taking `ramp_s`.
    """

    names: tuple[str, ...]
    range_rad: np.ndarray
    speed: np.ndarray
    jump_rad: float
    stale_s: float
    release_s: float
    ramp_s: float
    damps: bool
    """Instead of holding and letting go: what `low` does."""


class Follower:
    """The reference of all commanded joints. Times are in s, of one monotonic clock.

    `mode`: idle, nothing is sent; engaging, the weight goes up while the joints are held;
    following, commands are followed, or the joints held for want of them; releasing, the weight
    goes down while they are held; damping, motors resist and do no more.
    """

    def __init__(self, limits: Limits) -> None:
        """Idle."""
        self._limits = limits
        count = len(limits.names)
        self.q, self.v, self.tau = np.zeros(count), np.zeros(count), np.zeros(count)
        self.mode, self.weight, self.seq = "idle", 0.0, -1
        self._target: np.ndarray | None = None
        self._wanted_tau = self.tau
        self._due_s = self._heard_s = 0.0

    def engage(self, q: np.ndarray, now_s: float) -> None:
        """Take the joints over where they are measured to be, from idle or damping."""
        if self.mode not in ("idle", "damping"):
            return
        self.q, self.v = q.copy(), np.zeros_like(q)
        self.tau = self._wanted_tau = np.zeros_like(q)
        self._target, self._heard_s = None, now_s
        self.mode = "following" if self._limits.damps else "engaging"
        self.weight = 1.0 if self._limits.damps else 0.0

    def take_over(self, q: np.ndarray, tau: Sequence[float], now_s: float) -> None:
        """Let go of joints that somebody else, who has died, held by `tau` where they are now."""
        self.engage(q, now_s)
        if not self._uneven("torque", tau):
            self.tau = self._wanted_tau = np.array(tau, dtype=np.float64)
        self.weight = 1.0
        self.release()

    def release(self) -> None:
        """Let go: by the weight, or at once by damping."""
        self._target = None
        if self._limits.damps:
            self.mode = "damping"
        elif self.mode != "idle":
            self.mode = "releasing"

    def command(
        self, seq: int, q: Sequence[float], tau: Sequence[float], due_s: float, now_s: float
    ) -> str:
        """Be at q (n,) rad at `due_s`, feeding tau (n,) Nm forward. Returns why not, "" if so.

        After a refused command the joints come to rest.
        """
        refused = self._untimely(due_s, now_s) or self._wrong(q, tau)
        if refused:
            self._target = None
            return refused
        self._heed(seq, tau, now_s)
        if self.mode == "following":
            self._target, self._due_s = np.array(q, dtype=np.float64), due_s
        return ""

    def hold(self, seq: int, tau: Sequence[float] | None, due_s: float, now_s: float) -> str:
        """Come to rest, from whatever motion, and stay; `tau` as for `command`, None as it is.

        Returns why not, "" if so; the joints come to rest in any case.
        """
        self._target = None
        refused = self._untimely(due_s, now_s)
        if not refused and tau is not None:
            refused = self._uneven("torque", tau)
        if not refused:
            self._heed(seq, self._wanted_tau if tau is None else tau, now_s)
        return refused

    def _heed(self, seq: int, tau: Sequence[float] | np.ndarray, now_s: float) -> None:
        self.seq, self._wanted_tau = seq, np.array(tau, dtype=np.float64)
        self._heard_s = now_s

    def _untimely(self, due_s: float, now_s: float) -> str:
        """What comes out of a queue after a stall was meant for then, and is no news now."""
        if self.mode not in ("engaging", "following"):
            return f"the joints are not under control: {self.mode}"
        if not now_s - self._limits.stale_s <= due_s <= now_s + AHEAD_S:
            return f"a command was due {now_s - due_s:.3f} s ago"
        return ""

    def _uneven(self, name: str, values: Sequence[float]) -> str:
        joints = self._limits.names
        if len(values) != len(joints):
            return f"{len(values)} {name}s for {len(joints)} joints"
        for joint, value in zip(joints, values, strict=True):
            if not isinstance(value, (int, float)) or not np.isfinite(value):
                return f"{name} {value} of {joint}"
        return ""

    def _wrong(self, q: Sequence[float], tau: Sequence[float]) -> str:
        limits = self._limits
        uneven = self._uneven("position", q) or self._uneven("torque", tau)
        if uneven:
            return uneven
        wanted = np.array(q, dtype=np.float64)
        low, high = limits.range_rad.T
        over = np.maximum(low - wanted, wanted - high)
        k = int(over.argmax())
        if over[k] > SLACK_RAD:
            return (f"{wanted[k]:.3f} rad of {limits.names[k]}, whose range is {low[k]:.3f} to "
                    f"{high[k]:.3f}")  # fmt: skip
        away = np.abs(wanted - self.q)
        k = int(away.argmax())
        if not away[k] <= limits.jump_rad:
            return (f"{limits.names[k]} is told to be {away[k]:.3f} rad away, more than "
                    f"{limits.jump_rad:g}")  # fmt: skip
        return ""

    def step(self, now_s: float, dt_s: float) -> None:
        """Go on by `dt_s`."""
        if self.mode in ("idle", "damping"):
            return
        limits, silent_s = self._limits, now_s - self._heard_s
        if self.mode in ("engaging", "following") and silent_s > limits.stale_s:
            self._target = None
            if limits.damps or silent_s > limits.release_s:
                self.release()
                if limits.damps:
                    return
        if self.mode == "engaging":
            self.weight = min(1.0, self.weight + dt_s / limits.ramp_s)
            if self.weight == 1.0:
                self.mode = "following"
        elif self.mode == "releasing":
            self.weight = max(0.0, self.weight - dt_s / limits.ramp_s)
            if self.weight == 0.0:
                self.mode, self.v = "idle", np.zeros_like(self.v)
                return
        most = TORQUE_NM_S * dt_s
        self.tau = self.tau + np.clip(self._wanted_tau - self.tau, -most, most)
        if self._target is None:
            slower = np.maximum(np.abs(self.v) - BRAKE_RAD_S2 * dt_s, 0.0)
            self.v = np.sign(self.v) * slower
        else:
            left_s = max(self._due_s - now_s, dt_s)
            self.v = np.clip((self._target - self.q) / left_s, -limits.speed, limits.speed)
        low, high = limits.range_rad.T
        q = self.q + self.v * dt_s
        # Braking may end at a joint's stop; where a joint was found beyond it, it is held there.
        self.q = np.clip(q, np.minimum(low, self.q), np.maximum(high, self.q))

    @property
    def at_rest(self) -> bool:
        """Whether the reference stands still."""
        return self._target is None and not self.v.any()
