"""The process of one robot's bus: started, heard, and cleaned up after when it has died."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench_tasks.errors import BenchError
from hardware.link import Gone, Link
from hardware.process import ending, reap, start

__all__ = ["STATE_AGE_S", "BusDriver", "RobotState"]

STATE_AGE_S = 0.1
"""An older state of the robot is none."""
HUNG_S = 3.0
"""A bus that says nothing for so long is killed, and what it left in control let go of."""
CONNECT_S, STOP_S = 20.0, 10.0
LOOK_S = 0.02
IN_CONTROL = ("engaging", "following", "releasing", "damping")


@dataclass(frozen=True)
class RobotState:
    """What the robot measured, and what it is told.

    `time_ns` is CLOCK_MONOTONIC, when it was heard. q, dq, tau (29,) in rad, rad/s, Nm; quaternion
    (4,) wxyz of the pelvis. `told` are the references of the commanded joints, followed to
    `weight`, by the command `seq`; `rests`: they stand still. `bad` messages of the robot were not
    used. `rate_hz` of the bus's loop, `heard_hz` of the states it heard. `hands`: Dex3 hand ->
    joints (7,) rad.
    """

    time_ns: int
    q: np.ndarray
    dq: np.ndarray
    tau: np.ndarray
    quaternion: np.ndarray
    told: np.ndarray
    weight: float
    seq: int
    rests: bool
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
        self._tau: list[float] = []
        self._helper: tuple[subprocess.Popen[bytes], Link] | None = None
        self._begin()

    def _begin(self) -> None:
        self.mode, self.lost, self.fault = "starting", True, ""
        self._newest: RobotState | None = None
        self._heard_s, self._deaf, self._crash = time.monotonic(), False, ""
        self.process, self._link = self._started(self._settings)

    def _started(self, settings: dict[str, Any]) -> tuple[subprocess.Popen[bytes], Link]:
        ros = settings["transport"] == "ros2"
        return start(self._python, "hardware.unitree.bus", settings, ros)

    # -- what it says ----------------------------------------------------------------------------

    def poll(self) -> list[tuple[str, str]]:
        """Take in what has come. Returns what is to be put on record: (kind, reason)."""
        with self._lock:
            if self.mode not in ("dead", "refused"):
                self._hear()
            if self.mode not in ("dead", "refused") and self._silent_s > self._patience_s:
                reap(self.process)
                self._died(f"has said nothing for {self._silent_s:.1f} s and was killed")
            events, self._events = self._events, []
            return events

    @property
    def _silent_s(self) -> float:
        return time.monotonic() - self._heard_s

    @property
    def _patience_s(self) -> float:
        """It takes a while until it can say anything."""
        return CONNECT_S if self.mode == "starting" else HUNG_S

    def _hear(self) -> None:
        try:
            messages = self._link.receive()
        except Gone:
            self._died(f"has ended{ending(self.process, self._crash)}")
            return
        for message in messages:
            if not isinstance(message, dict):
                continue
            self._heard_s = time.monotonic()
            if "state" in message:
                self._newest = RobotState.of(message["state"])
            if "refused" in message:
                self._events.append(("command_refused", message["refused"]))
            elif "gap" in message:
                self._events.append(("robot_gap", message["gap"]))
            elif "crash" in message:
                self._crash = message["crash"]
            elif "mode" in message:
                self.mode, self.lost = message["mode"], message["lost"]
                self.fault = message.get("fault", "")
                if self.mode == "refused":
                    self._events.append(("driver_lost", self.fault))

    def _died(self, how: str) -> None:
        held, self.mode = self.mode, "dead"
        self.fault, self._newest = f"the process of the robot's bus {how}", None
        if self._stopped:
            return
        self._events.append(("driver_lost", self.fault))
        if held in IN_CONTROL:
            reap(self.process)  # two must not speak at once
            self._let_go()

    def _let_go(self) -> None:
        """What was sent last still holds: arm_sdk keeps its weight, whatever becomes of us."""
        self._helper = self._started({**self._settings, "let_go": self._tau})

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
        self._tau = list(tau)
        self._tell({"do": "move", "seq": seq, "q": list(q), "tau": self._tau, "due_ns": due_ns})

    def hold(self, seq: int = -1, tau: Sequence[float] | None = None) -> None:
        """Have the commanded joints brake and stay, feeding tau forward, None: as before.

        To be repeated as commands are; else they are let go of in the end.
        """
        self._tau = self._tau if tau is None else list(tau)
        now_ns = time.monotonic_ns()
        self._tell({"do": "hold", "seq": seq, "tau": None if tau is None else self._tau,
                    "due_ns": now_ns})  # fmt: skip

    def hand(self, hand: str, q: Sequence[float]) -> None:
        """Have a Dex3 hand's joints (7,) be at q."""
        self._tell({"do": "hand", "hand": hand, "q": list(q)})

    def _tell(self, message: dict[str, Any]) -> None:
        """Send it; that the bus reads nothing any more is put on record, once."""
        with self._lock:
            if self.mode in ("dead", "refused"):
                return
            try:
                sent = self._link.send(message)
            except Gone:
                self._hear()
                return
            if not sent and not self._deaf:
                self._events.append(
                    ("driver_lost", "the process of the robot's bus reads nothing any more")
                )
            self._deaf = not sent

    def ready(
        self, heed: Callable[[], Any], torque: Callable[[np.ndarray], Sequence[float]] | None = None
    ) -> None:
        """Bring the joints into control, held where they are; BenchError says why not.

        A bus that has died is started anew, after what it left has been let go of. `heed` is called
        all the while, has to `poll`, and may break this off. `torque` of the joints' positions is
        fed forward.
        """
        self._clean_up(heed)
        end = time.monotonic() + CONNECT_S
        while True:
            heed()
            if self.mode in ("dead", "refused"):
                raise BenchError(self.fault)
            if self.mode in ("idle", "damping") and not self.lost:
                # Again and again: it is taken for now or not at all.
                self._tell({"do": "start", "at_ns": time.monotonic_ns()})
            if self.mode in ("engaging", "following") and self._newest is not None:
                # Its own stop begins when nobody commands, so hold from here on.
                self.hold(tau=None if torque is None else torque(self._newest.told))
                if self.mode == "following" and self._held:
                    return
            if time.monotonic() > end:
                heard = "no rt/lowstate is heard" if self.lost else self.mode
                raise BenchError(f"the robot is not ready after {CONNECT_S:g} s: {heard}")
            time.sleep(LOOK_S)

    @property
    def _held(self) -> bool:
        """Whether a state of now says so."""
        try:
            return self.state().weight == 1.0 and not self._deaf
        except BenchError:
            return False

    def _clean_up(self, heed: Callable[[], Any]) -> None:
        """Wait until what a dead bus left is let go of, then have another bus."""
        if self._helper is not None:
            process, link = self._helper
            end = time.monotonic() + self._settings["ramp_s"] + STOP_S
            while process.poll() is None and time.monotonic() < end:
                heed()
                time.sleep(LOOK_S)
            reap(process)
            with self._lock:
                link.close()
                self._helper = None
                if process.returncode:
                    self._let_go()  # to be waited for the next time
                    raise BenchError("what held waist and arms before could not be let go of: the "
                                     "robot may still hold them")  # fmt: skip
        with self._lock:
            if self.mode in ("dead", "refused"):
                self._link.close()
                reap(self.process, STOP_S)
                self._begin()

    def close(self) -> None:
        """Let go of the joints and end the process."""
        with self._lock:
            self._stopped = True
            self._link.close()
        for process in (self.process, *(self._helper or ())[:1]):
            reap(process, self._settings["ramp_s"] + STOP_S)
