"""The process of one robot's bus: started, heard, and cleaned up after when it has died."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench_tasks.errors import BenchError
from hardware.link import Gone, Link, pair

__all__ = ["STATE_AGE_S", "BusDriver", "RobotState"]

ROOT = Path(__file__).resolve().parents[2]
STATE_AGE_S = 0.1
"""An older state of the robot is none."""
CONNECT_S, STOP_S = 20.0, 10.0


@dataclass(frozen=True)
class RobotState:
    """What the robot measured, and what it is told.

    `time_ns` is CLOCK_MONOTONIC, when it was heard; `tick` the robot's own milliseconds. q, dq, tau
    (29,) in rad, rad/s, Nm. quaternion (4,) wxyz, gyroscope (3,) rad/s, accelerometer (3,) m/s^2 of
    the pelvis. `told` are the references of the commanded joints, followed to `weight`. `waiting`:
    no command has come for too long. `bad` messages of the robot were not used. `rate_hz` of the
    bus's loop, `heard_hz` of the states it heard. `hands`: Dex3 hand -> joints (7,) rad.
    """

    time_ns: int
    tick: int
    q: np.ndarray
    dq: np.ndarray
    tau: np.ndarray
    quaternion: np.ndarray
    gyroscope: np.ndarray
    accelerometer: np.ndarray
    told: np.ndarray
    weight: float
    seq: int
    waiting: bool
    bad: int
    rate_hz: float
    heard_hz: float
    hands: dict[str, np.ndarray]

    @classmethod
    def of(cls, raw: dict[str, Any]) -> RobotState:
        """From what the bus sends."""
        arrays = {k: np.array(v) if isinstance(v, list) else v for k, v in raw.items()}
        return cls(**{**arrays, "hands": {k: np.array(v) for k, v in raw["hands"].items()}})


class BusDriver:
    """Starts the bus with the driver environment's `python`. Safe to use from two threads."""

    def __init__(self, python: str, settings: dict[str, Any]) -> None:
        """Start it; see `cell.Cell.bus` for the settings."""
        self._python, self._settings = python, settings
        self._lock = threading.RLock()
        self._events: list[tuple[str, str]] = []
        self._stopped = False
        self._helpers: list[tuple[subprocess.Popen[bytes], Link]] = []
        self._begin()

    def _begin(self) -> None:
        self.mode, self.lost, self.fault = "starting", True, ""
        self._newest: RobotState | None = None
        self.process, self._link = self._started(self._settings)

    def _started(self, settings: dict[str, Any]) -> tuple[subprocess.Popen[bytes], Link]:
        ours, theirs = pair()
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        if settings["transport"] == "ros2":
            paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
            environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
        else:
            # Its own environment's packages, not those of ours that ROS may have put on the path.
            environment["PYTHONPATH"] = str(ROOT)
            environment.pop("LD_LIBRARY_PATH", None)
        with theirs:
            process = subprocess.Popen(
                [self._python, "-m", "hardware.unitree.bus", str(theirs.fileno())],
                pass_fds=[theirs.fileno()], env=environment, start_new_session=True,
            )  # fmt: skip
        ours.send(settings)
        return process, ours

    # -- what it says ----------------------------------------------------------------------------

    def poll(self) -> list[tuple[str, str]]:
        """Take in what has come. Returns what is to be put on record: (kind, reason)."""
        with self._lock:
            if self.mode not in ("dead", "refused"):
                self._hear()
            events, self._events = self._events, []
            return events

    def _hear(self) -> None:
        try:
            messages = self._link.receive()
        except Gone:
            self._died()
            return
        for message in messages:
            if not isinstance(message, dict):
                continue
            if "state" in message:
                self._newest = RobotState.of(message["state"])
            elif "refused" in message:
                self._events.append(("command_refused", message["refused"]))
            elif "gap" in message:
                self._events.append(("robot_gap", message["gap"]))
            elif "mode" in message:
                self.mode, self.lost = message["mode"], message["lost"]
                self.fault = message.get("fault", "")
                if self.mode == "refused":
                    self._events.append(("driver_lost", self.fault))

    def _died(self) -> None:
        held, self.mode = self.mode, "dead"
        self.fault, self._newest = "the process of the robot's bus has ended", None
        if self._stopped:
            return
        self._events.append(("driver_lost", self.fault))
        if held in ("engaging", "following", "releasing", "damping"):
            # What it sent last still holds: arm_sdk keeps its weight, whatever becomes of us.
            self._helpers.append(self._started({**self._settings, "let_go": True}))

    def state(self) -> RobotState:
        """The newest state; BenchError when it is too old to be true."""
        state = self._newest
        if state is None or time.monotonic_ns() - state.time_ns > STATE_AGE_S * 1e9:
            raise BenchError(f"no state of the robot: {self.fault or self.mode}")
        return state

    @property
    def told(self) -> np.ndarray:
        """Where the commanded joints were last said to be told to be; BenchError when never."""
        if self._newest is None:
            raise BenchError(f"no state of the robot: {self.fault or self.mode}")
        return self._newest.told

    # -- what it is told -------------------------------------------------------------------------

    def move(self, seq: int, q: Sequence[float], tau: Sequence[float], due_ns: int) -> None:
        """Have the commanded joints be at q at `due_ns` (CLOCK_MONOTONIC), feeding tau forward."""
        self._tell({"do": "move", "seq": seq, "q": list(q), "tau": list(tau), "due_ns": due_ns})

    def hand(self, hand: str, q: Sequence[float]) -> None:
        """Have a Dex3 hand's joints (7,) be at q."""
        self._tell({"do": "hand", "hand": hand, "q": list(q)})

    def release(self) -> None:
        """Let go of the joints, gently."""
        self._tell({"do": "release"})

    def _tell(self, message: dict[str, Any]) -> None:
        with self._lock:
            try:
                self._link.send(message)
            except Gone:
                if self.mode not in ("dead", "refused"):
                    self._hear()

    def ready(self, heed: Callable[[], None] | None = None) -> None:
        """Bring the joints into control, held where they are; BenchError says why not.

        A bus that has died is started anew, after what it left has been let go of. `heed` takes
        what `poll` has to say, and may break this off.
        """
        end = time.monotonic() + CONNECT_S
        with self._lock:
            for process, link in self._helpers:
                try:
                    process.wait(STOP_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                link.close()
            self._helpers.clear()
            if self.mode in ("dead", "refused"):
                self._link.close()
                self.process.wait(STOP_S)
                self._begin()
        asked = False
        while True:
            if heed is not None:
                heed()
            for kind, reason in self.poll():
                if kind == "driver_lost":
                    raise BenchError(reason)
            if self.mode in ("idle", "damping") and not self.lost and not asked:
                self._tell({"do": "start"})
                asked = True
            if self.mode in ("engaging", "following") and self._newest is not None:
                # Its own stop begins when nobody commands, so hold from here on.
                self.hold()
                if self.mode == "following":
                    return
            if time.monotonic() > end:
                heard = "no rt/lowstate is heard" if self.lost else self.mode
                raise BenchError(f"the robot is not ready after {CONNECT_S:g} s: {heard}")
            time.sleep(0.02)

    def hold(self) -> None:
        """Have the joints stay where they are told to be."""
        told = self.told
        self.move(0, told.tolist(), [0.0] * len(told), time.monotonic_ns() + 20_000_000)

    def close(self) -> None:
        """Let go of the joints and end the process."""
        with self._lock:
            self._stopped = True
            self._link.close()
        for process in (self.process, *(helper for helper, _ in self._helpers)):
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
