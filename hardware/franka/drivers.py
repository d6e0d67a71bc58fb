"""The processes of two arms and two hands: started, heard, started anew when they have died."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bench_tasks.errors import BenchError
from bench_tasks.vocabulary import ARMS
from hardware.franka.cell import Cell, driver_python
from hardware.franka.link import ArmState, Command, Gone, Link, pair

__all__ = ["STATE_AGE_S", "Drivers"]

ROOT = Path(__file__).resolve().parents[2]
STATE_AGE_S = 0.1
"""An older state of an arm is none."""
CONNECT_S, STOP_S = 20.0, 3.0


@dataclass
class _Driver:
    """One process and what was last heard of it."""

    process: subprocess.Popen[bytes]
    link: Link
    mode: str = "starting"
    fault: str = ""
    state: ArmState | None = None
    hand: dict[str, Any] = field(default_factory=dict)
    heard_s: float = 0.0


class Drivers:
    """All four. Safe to use from two threads."""

    def __init__(self, cell: Cell) -> None:
        """Start them; UsageError when their environment is not there."""
        self._cell, self._python = cell, driver_python(cell)
        self._lock = threading.RLock()
        self._events: list[tuple[str, str]] = []
        self._all: dict[tuple[str, str], _Driver] = {}
        self._stopped = False
        for arm in ARMS:
            for kind in ("arm", "gripper"):
                self._all[kind, arm] = self._started(kind, arm)

    def _started(self, kind: str, arm: str) -> _Driver:
        ours, theirs = pair()
        # Its own environment's packages, not those of ours that ROS may have put on the path.
        environment = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH",)}
        environment |= {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        with theirs:
            process = subprocess.Popen(
                [self._python, "-m", f"hardware.franka.{kind}", str(theirs.fileno())],
                pass_fds=[theirs.fileno()], env=environment, start_new_session=True,
            )  # fmt: skip
        ours.send(self._cell.arm(arm) if kind == "arm" else self._cell.hand(arm))
        return _Driver(process, ours)

    # -- what they say ---------------------------------------------------------------------------

    def poll(self) -> list[tuple[str, str]]:
        """Take in what has come. Returns what is to be put on record: (kind, reason)."""
        with self._lock:
            for (kind, arm), driver in self._all.items():
                self._hear(kind, arm, driver)
            events, self._events = self._events, []
            return events

    def _hear(self, kind: str, arm: str, driver: _Driver) -> None:
        if driver.mode == "dead":
            return
        try:
            messages = driver.link.receive()
        except Gone:
            driver.mode = "dead"
            driver.fault = f"the process of the {arm} {kind} has ended"
            driver.state = None
            if not self._stopped:
                self._events.append(("driver_lost", driver.fault))
            return
        for message in messages:
            driver.heard_s = time.monotonic()
            if isinstance(message, ArmState):
                driver.state = message
            elif isinstance(message, dict) and "refused" in message:
                self._events.append(("command_refused", f"{arm} arm: {message['refused']}"))
            elif isinstance(message, dict) and "mode" in message:
                was, driver.mode, driver.fault = driver.mode, message["mode"], message["fault"]
                if was in ("following", "stopping") and driver.mode in ("fault", "lost"):
                    self._events.append(("robot_fault", f"{arm} arm: {driver.fault}"))
            elif isinstance(message, dict):
                driver.mode = "ready"
                driver.hand.update(message)
                if message.get("fault") and message["fault"] != driver.fault:
                    self._events.append(("hand_fault", f"{arm} hand: {message['fault']}"))
                driver.fault = message.get("fault", "")

    def arm(self, arm: str) -> ArmState:
        """The arm's newest state; BenchError when it is too old to be true."""
        driver = self._all["arm", arm]
        state = driver.state
        if state is None or time.monotonic_ns() - state.time_ns > STATE_AGE_S * 1e9:
            raise BenchError(f"no state of the {arm} arm: {driver.fault or driver.mode}")
        return state

    def width(self, arm: str) -> float:
        """Between the fingers, m, as last measured: while they move nothing is heard of them."""
        driver = self._all["gripper", arm]
        if "width" not in driver.hand or driver.mode == "dead":
            raise BenchError(f"no state of the {arm} hand: {driver.fault or driver.mode}")
        return float(driver.hand["width"])

    def grasped(self, arm: str) -> bool:
        """Whether the hand says that it holds something."""
        return bool(self._all["gripper", arm].hand.get("grasped", False))

    def busy(self, arm: str) -> bool:
        """Whether the fingers are moving."""
        return bool(self._all["gripper", arm].hand.get("busy", True))

    def mode(self, arm: str) -> str:
        """Of the arm; see `link.MODES`, or "dead"."""
        return self._all["arm", arm].mode

    def faults(self) -> dict[str, str]:
        """Driver -> what is wrong with it."""
        return {f"{a} {k}": d.fault for (k, a), d in self._all.items() if d.fault}

    # -- what they are told ----------------------------------------------------------------------

    def send(self, arm: str, command: Command) -> None:
        """Give the arm its next command."""
        self._tell("arm", arm, command)

    def open_to(self, arm: str, width_m: float) -> None:
        """Give the hand an opening."""
        self._tell("gripper", arm, {"do": "width", "width": width_m})

    def tell(self, arm: str, what: str, **more: Any) -> None:
        """Tell the arm to do something; see `hardware.franka.arm`."""
        self._tell("arm", arm, {"do": what, **more})

    def _tell(self, kind: str, arm: str, message: Command | dict[str, Any]) -> None:
        with self._lock:
            try:
                self._all[kind, arm].link.send(message)
            except Gone:
                self._hear(kind, arm, self._all[kind, arm])

    def ready(self) -> None:
        """Bring both arms into control, from whatever state they are in; BenchError says why not.

        What has died is started anew, what the robot has stopped is recovered.
        """
        end = time.monotonic() + CONNECT_S
        with self._lock:
            for (kind, arm), driver in self._all.items():
                if driver.mode == "dead":
                    driver.link.close()
                    driver.process.wait(STOP_S)
                    self._all[kind, arm] = self._started(kind, arm)
        asked = dict.fromkeys(ARMS, "")
        while True:
            self.poll()
            for arm in ARMS:
                mode = self.mode(arm)
                if mode == "fault" and asked[arm] != mode:
                    self.tell(arm, "recover")
                elif mode == "idle" and asked[arm] != mode:
                    self.tell(arm, "start")
                if mode in ("fault", "idle"):
                    asked[arm] = mode
            hands = [self._all["gripper", arm] for arm in ARMS]
            if all(self.mode(arm) == "following" for arm in ARMS) and all(
                "width" in hand.hand for hand in hands
            ):
                return
            if time.monotonic() > end:
                wrong = [f"{a} {k}: {d.mode} {d.fault}".strip() for (k, a), d in self._all.items()
                         if d.mode not in ("following", "ready")]  # fmt: skip
                raise BenchError(f"not ready after {CONNECT_S:g} s: {'; '.join(wrong)}")
            time.sleep(0.01)

    def go_to(self, arm: str, q: Sequence[float], share: float) -> None:
        """Have the arm move to `q` at a share of its speeds, whatever is in its way."""
        self.tell(arm, "go_to", q=np.asarray(q).tolist(), share=share)

    def close(self) -> None:
        """Bring the arms to rest and end the processes."""
        with self._lock:
            self._stopped = True
            for driver in self._all.values():
                driver.link.close()
        end = time.monotonic() + STOP_S
        for driver in self._all.values():
            try:
                driver.process.wait(max(0.05, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                driver.process.kill()
