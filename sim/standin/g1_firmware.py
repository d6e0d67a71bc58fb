"""What a stand-in G1 makes of the commands that reach it, in place of the robot's own firmware.

Rows of motor commands are (29, 5): position, velocity, torque, kp, kd.
"""

from __future__ import annotations

import os
import socket
import struct

import numpy as np

from bench_tasks.robots import g1
from bench_tasks.robots.unitree_hg import ARM_SDK, JOINTS, WEIGHT, is_signed

__all__ = [
    "COMMAND", "CONTROLS", "LAYING_OUT", "MEASURED", "OWN_KD", "OWN_KP", "Elsewhere", "Firmware",
    "IdealJoints", "rows_of", "weight_of", "why_refused",
]  # fmt: skip

CONTROLS = ("motion", "debug")
"""The robot's own controller is on and lets `rt/arm_sdk` have a share in the arms, by its weight;
it is off, and `rt/lowcmd` has all motors."""
COMMAND = struct.Struct(f"<?d{5 * JOINTS}d")
MEASURED = struct.Struct(f"<{3 * JOINTS + 10}d")
"""Between the process with the topics and the one with the joints: whether it is arm_sdk's, the
weight, rows; q, dq, tau, quaternion, rate and acceleration of the pelvis."""
LAYING_OUT = b"lay"
"""Instead of a measurement: until the next one the robot stands as it did."""
SILENT_S = 0.2
"""A scene that says nothing for longer hangs, and so does what its robot says."""
OWN_KP = np.concatenate([g1.KP[: g1.LEGS], g1.UPPER_KP])
OWN_KD = np.concatenate([g1.KD[: g1.LEGS], g1.UPPER_KD])


def why_refused(message: np.ndarray, machine: int) -> str:
    """Why a LOW_CMD is ignored by a robot of this mode_machine; "" when it is not."""
    if not is_signed(message):
        return "crc"
    if int(message["mode_machine"]) != machine:
        return "mode_machine"
    numbers = np.append(rows_of(message).ravel(), message["motor"][WEIGHT]["q"])
    return "" if np.isfinite(numbers).all() else "not_finite"


def rows_of(message: np.ndarray) -> np.ndarray:
    """Rows (29, 5) of a LOW_CMD; those of motors that are not switched on are zero."""
    motors = message["motor"][:JOINTS]
    rows = np.stack([motors[name] for name in ("q", "dq", "tau", "kp", "kd")], axis=1)
    return np.where((motors["mode"] == 1)[:, None], rows, 0.0).astype(np.float64)


def weight_of(message: np.ndarray) -> float:
    """The weight of an arm_sdk command."""
    return float(np.clip(message["motor"][WEIGHT]["q"], 0.0, 1.0))


class Firmware:
    """Decides what each motor does: its own wish, commands, or only resisting."""

    def __init__(self, control: str = "motion", silence_s: float = 0.1) -> None:
        """`silence_s`: without rt/lowcmd for so long, `debug` damps all motors."""
        self._control, self._silence_s = control, silence_s
        self._low: tuple[float, np.ndarray] | None = None
        self._arms: np.ndarray | None = None
        self.weight = 0.0
        self.damped = control == "debug"

    def take(self, topic: str, rows: np.ndarray, weight: float, now_s: float) -> None:
        """Keep a command that is not to be refused. arm_sdk's stays until another one comes."""
        if topic == ARM_SDK:
            self._arms, self.weight = rows, weight
        else:
            self._low = now_s, rows

    def motors(self, own: np.ndarray, now_s: float) -> np.ndarray:
        """Rows for the motors now, given those of its own controller."""
        if self._control == "debug":
            self.damped = self._low is None or now_s - self._low[0] > self._silence_s
            if not self.damped:
                assert self._low is not None
                return self._low[1]
            rows = np.zeros_like(own)
            rows[:, 4] = g1.DAMPING
            return rows
        rows = own.copy()
        if self._arms is not None:
            upper = slice(g1.LEGS, JOINTS)
            rows[upper] += self.weight * (self._arms[upper] - own[upper])
        return rows


class Elsewhere:
    """Joints in another process."""

    def __init__(self, number: int) -> None:
        """Take over its end of a socket pair that keeps messages whole."""
        self._end = socket.socket(fileno=number)
        self._end.setblocking(False)
        self._measured: np.ndarray | None = None
        self._heard_s = self._now_s = 0.0
        self._laying_out = False

    def take(self, topic: str, rows: np.ndarray, weight: float, _: float) -> None:
        """Hand a command on."""
        try:
            self._end.send(COMMAND.pack(topic == ARM_SDK, weight, *rows.ravel()))
        except BlockingIOError:
            pass
        except OSError:
            os._exit(0)

    def step(self, now_s: float, dt_s: float) -> None:
        """They go on by themselves."""
        self._now_s = now_s

    def measured(self) -> np.ndarray | None:
        """The newest measurement, None when it is too old to be one."""
        try:
            while data := self._end.recv(4096):
                self._heard_s, self._laying_out = self._now_s, data == LAYING_OUT
                if not self._laying_out:
                    self._measured = np.array(MEASURED.unpack(data))
            os._exit(0)
        except BlockingIOError:
            pass
        except OSError:
            os._exit(0)
        fresh = self._laying_out or self._now_s - self._heard_s <= SILENT_S
        return self._measured if fresh else None


class IdealJoints:
    """Motors with inertia and nothing else: no gravity, no contacts, a base that stands still."""

    inertia = g1.ARMATURE + 0.02

    def __init__(self, firmware: Firmware) -> None:
        """At rest in the posture of the robot's own controller."""
        self.firmware = firmware
        self.q, self.dq, self.tau = g1.DEFAULT_RAD.copy(), np.zeros(JOINTS), np.zeros(JOINTS)
        self.own = np.stack(
            [g1.DEFAULT_RAD, np.zeros(JOINTS), np.zeros(JOINTS), OWN_KP, OWN_KD], axis=1
        )

    def step(self, now_s: float, dt_s: float) -> None:
        """Go on by `dt_s`, implicitly: stable at any gains."""
        q_d, dq_d, tau, kp, kd = self.firmware.motors(self.own, now_s).T
        drive = kp * (q_d - self.q) + kd * dq_d + tau
        change = (drive - (kd + dt_s * kp) * self.dq) / (self.inertia / dt_s + kd + dt_s * kp)
        self.tau = np.clip(self.inertia * change / dt_s, -g1.EFFORT_NM, g1.EFFORT_NM)
        self.dq = self.dq + self.tau * dt_s / self.inertia
        self.q = self.q + self.dq * dt_s

    def measured(self) -> np.ndarray:
        """q, dq, tau (29 each), quaternion (4), gyroscope (3), accelerometer (3) of the pelvis."""
        return np.concatenate([self.q, self.dq, self.tau, [1.0, 0, 0, 0], np.zeros(5), [9.81]])
