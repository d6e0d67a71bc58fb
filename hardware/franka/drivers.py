"""The processes of two arms and two hands: started, heard, started anew when they have died."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bench_tasks.errors import BenchError
from bench_tasks.vocabulary import ARMS
from hardware.franka.cell import Cell, driver_python
from hardware.link import ArmState, Command, Gone, Link
from hardware.process import STOP_S, ending, reap, start
from hardware.robot_time import SLOWEST, RobotTime

__all__ = ["HAND_AGE_S", "LAPSED", "STATE_AGE_S", "Drivers"]

STATE_AGE_S = 0.1
"""An older state of an arm is none. A simulated one's may be older: its time passes slower."""
HAND_AGE_S = 1.0
"""An older opening of a hand is none, unless its fingers are on their way, which `Drivers` allows
them the time for."""
BUSY_S = 5.0
"""So long longer than fingers need to close and open again at their speed."""
HUNG_S = 6.0
"""A process that says nothing for so long while it should is killed when arms are to get ready."""
CONNECT_S, HOMING_S = 20.0, 30.0
STUCK_S = 2 * CONNECT_S
"""A process that has not said a word for so long since it was started will not."""
TRIES = 3
ASK_S = 1.0
"""An arm that has not taken `start` by then is asked again: it may have been `lost` for a moment,
or in motion still."""
LAPSED = "way_lapsed"
"""The event of an arm that brakes on its way to a goal, since nobody wanted it to go on."""
REPORTING = ("idle", "following", "stopping")
"""In these modes an arm's state comes all the time."""


@dataclass
class _Driver:
    """One process and what was last heard of it."""

    process: subprocess.Popen[bytes]
    link: Link
    mode: str = "starting"
    fault: str = ""
    state: ArmState | None = None
    hand: dict[str, Any] = field(default_factory=dict)
    heard_s: float = field(default_factory=time.monotonic)
    entered: int = 0
    """How many modes it has come into."""
    told_m: float | None = None
    widths: int = 0
    """How many it was told."""
    deaf: bool = False
    crash: str = ""

    @property
    def age_s(self) -> float:
        """Of what was last measured; infinite when nothing was."""
        at = self.state.time_ns if self.state else self.hand.get("time_ns")
        return float("inf") if at is None else (time.monotonic_ns() - at) / 1e9


class Drivers:
    """All four. Safe to use from two threads."""

    def __init__(self, cell: Cell) -> None:
        """Start them; UsageError when their environment is not there."""
        self._cell, self._python = cell, driver_python(cell)
        self._lock = threading.RLock()
        self._events: list[tuple[str, str]] = []
        self._all: dict[tuple[str, str], _Driver] = {}
        self._stopped = False
        self.simulated = bool(cell.raw.get("simulated"))
        self._slowest = SLOWEST if self.simulated else 1.0
        self._age_s = STATE_AGE_S / self._slowest
        self._time = RobotTime(ARMS, self._age_s) if self.simulated else None
        for arm in ARMS:
            for kind in ("arm", "gripper"):
                self._all[kind, arm] = self._started(kind, arm)

    def _started(self, kind: str, arm: str) -> _Driver:
        ros = self._cell.by_ros
        module = f"hardware.franka.{kind}{'_ros' if ros else ''}"
        settings = self._cell.arm(arm) if kind == "arm" else self._cell.hand(arm)
        return _Driver(*start(self._python, module, settings, ros))

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
            how = ending(driver.process, driver.crash)
            driver.fault = f"the process of the {arm} {kind} has ended{how}"
            driver.state = None
            if not self._stopped:
                self._events.append(("driver_lost", driver.fault))
            return
        for message in messages:
            driver.heard_s = time.monotonic()
            if isinstance(message, ArmState):
                driver.state = message
                if self._time is not None:
                    self._time.hear(arm, message.own_ns, message.time_ns)
                if message.mode != driver.mode:  # it could not say so, and will say why
                    self._enter(arm, driver, message.mode, driver.fault)
            elif isinstance(message, Command):
                continue
            elif "refused" in message:
                self._events.append(("command_refused", f"{arm} arm: {message['refused']}"))
            elif "lapsed" in message:
                self._events.append((LAPSED, f"{arm} arm: {message['lapsed']}"))
            elif "crash" in message:
                driver.crash = message["crash"]
            elif "mode" in message:
                self._enter(arm, driver, message["mode"], message["fault"])
            else:
                driver.mode = "ready" if "time_ns" in message else "lost"
                driver.hand.update(message)
                if message["fault"] and message["fault"] != driver.fault:
                    self._events.append(("hand_fault", f"{arm} hand: {message['fault']}"))
                    driver.told_m = None  # it may have forgotten
                driver.fault = message["fault"]

    def _enter(self, arm: str, driver: _Driver, mode: str, fault: str) -> None:
        was, driver.mode, driver.fault = driver.mode, mode, fault
        driver.entered += mode != was
        if was in ("following", "stopping") and mode in ("fault", "lost"):
            self._events.append(("robot_fault", f"{arm} arm: {fault}"))

    def now_ns(self) -> int:
        """The arms' time: the wall's (CLOCK_MONOTONIC), or of simulated ones their own."""
        if self._time is None:
            return time.monotonic_ns()
        with self._lock:
            for arm in ARMS:
                self._hear("arm", arm, self._all["arm", arm])
            return self._time.now_ns()

    def arm(self, arm: str) -> ArmState:
        """The arm's newest state; BenchError when it is too old to be true."""
        driver = self._all["arm", arm]
        state, age_s = driver.state, driver.age_s
        if state is None or age_s > self._age_s:
            raise BenchError(_none("arm", arm, driver))
        return state

    def width(self, arm: str) -> float:
        """Between the fingers, m, as last measured: while they move nothing is heard of them.

        BenchError when that is longer ago than they can take.
        """
        return float(self._hand(arm)["width"])

    def grasped(self, arm: str) -> bool:
        """Whether the hand says that it holds something; BenchError as `width`."""
        return bool(self._hand(arm)["grasped"])

    def busy(self, arm: str) -> bool:
        """Whether the fingers are on their way, or will be: then all else is of before."""
        hand = self._hand(arm)
        return bool(hand["busy"]) or hand["heard"] < self._all["gripper", arm].widths

    def _hand(self, arm: str) -> dict[str, Any]:
        driver = self._all["gripper", arm]
        if driver.mode == "dead" or driver.age_s > self._hand_age_s(driver):
            raise BenchError(_none("hand", arm, driver))
        return driver.hand

    def _hand_age_s(self, driver: _Driver) -> float:
        if not driver.hand.get("busy"):
            return HAND_AGE_S
        hands = self._cell.raw["hands"]
        return (BUSY_S + 2 * hands["max_width_m"] / hands["speed_m_s"]) / self._slowest

    def mode(self, arm: str) -> str:
        """Of the arm; see `link.MODES`, or "dead", or "silent": it should report and does not."""
        driver = self._all["arm", arm]
        silent = driver.mode in REPORTING and driver.age_s > self._age_s
        return "silent" if silent else driver.mode

    @property
    def starting(self) -> bool:
        """Whether one of them has not said a word yet."""
        return any(driver.mode == "starting" for driver in self._all.values())

    def faults(self) -> dict[str, str]:
        """Driver -> what is wrong with it."""
        return {f"{a} {k}": d.fault for (k, a), d in self._all.items() if d.fault}

    # -- what they are told ----------------------------------------------------------------------

    def send(self, arm: str, command: Command) -> None:
        """Give the arm its next command, which is due at a time of `now_ns`."""
        if self._time is not None:
            command = replace(command, due_ns=self._time.own_ns(arm, command.due_ns))
        self._tell("arm", arm, command)

    def open_to(self, arm: str, width_m: float, anew: bool = False) -> None:
        """Give the hand an opening, once; `anew` even if it has been there."""
        driver = self._all["gripper", arm]
        if anew or width_m != driver.told_m:
            message = {"do": "width", "width": width_m, "anew": anew}
            sent = self._tell("gripper", arm, message)
            driver.told_m = width_m if sent else None
            driver.widths += 1 if sent else 0

    def tell(self, arm: str, what: str, **more: Any) -> None:
        """Tell the arm to do something; see `hardware.franka.arm`."""
        self._tell("arm", arm, {"do": what, **more})

    def hold(self) -> None:
        """Bring both arms to rest; hands end what they are at, and begin nothing more."""
        for arm in ARMS:
            self.tell(arm, "hold")
        for arm in ARMS:
            self._all["gripper", arm].told_m = None
            self._tell("gripper", arm, {"do": "forget"})

    def _tell(self, kind: str, arm: str, message: Command | dict[str, Any]) -> bool:
        """Whether it is under way; that it is not is put on record, once."""
        with self._lock:
            driver = self._all[kind, arm]
            try:
                sent = driver.link.send(message)
            except Gone:
                self._hear(kind, arm, driver)
                return False
            if not sent and not driver.deaf:
                self._events.append(
                    ("driver_lost", f"the process of the {arm} {kind} reads nothing any more")
                )
            driver.deaf = not sent
            return sent

    def ready(self, heed: Callable[[], None]) -> None:
        """Bring both arms into control, from whatever state they are in; BenchError says why not.

        What has died or hangs is started anew, what the robot has stopped is recovered, and hands
        that have not found their fingers' ends do so if the cell says so. `heed` is called all the
        while, has to `poll`, and may break it off by an exception.
        """
        begun, limit_s = time.monotonic(), CONNECT_S
        if self._cell.raw["hands"]["home"]:
            limit_s += HOMING_S
        asked = dict.fromkeys(ARMS, ((0, 0), begun))
        failed = dict.fromkeys(ARMS, 0)
        homing: set[str] = set()
        while True:
            heed()
            self._renew()
            for arm in ARMS:
                mode, driver = self.mode(arm), self._all["arm", arm]
                entered = driver.process.pid, driver.entered
                overdue = mode == "idle" and time.monotonic() - asked[arm][1] > ASK_S
                if mode not in ("fault", "idle") or (entered == asked[arm][0] and not overdue):
                    continue
                asked[arm] = entered, time.monotonic()
                self.tell(arm, "recover" if mode == "fault" else "start")
                failed[arm] += mode == "fault"
                if failed[arm] > TRIES:
                    why = self._all["arm", arm].fault
                    raise BenchError(f"the {arm} arm cannot be controlled: {why}")
            if all(self._follows(arm) for arm in ARMS) and self._hands_ready(homing):
                return
            if time.monotonic() - begun > limit_s:
                found = "; ".join(f"{a} {k}: {d.mode} {d.fault}".strip()
                                  for (k, a), d in self._all.items())  # fmt: skip
                raise BenchError(f"not ready after {limit_s:g} s: {found}")
            time.sleep(0.01)

    def _follows(self, arm: str) -> bool:
        """Whether the arm is in control, and says so in a state of now."""
        state = self._all["arm", arm].state
        follows = state is not None and state.mode == "following"
        return follows and self.mode(arm) == "following"

    def _renew(self) -> None:
        """Start anew what has died, and what has said nothing for too long."""
        with self._lock:
            for (kind, arm), driver in self._all.items():
                speaks = driver.mode in (*REPORTING, "fault", "ready")
                allowed_s = HUNG_S if kind == "arm" else max(HUNG_S, self._hand_age_s(driver))
                if driver.mode == "starting":
                    speaks, allowed_s = True, STUCK_S
                hangs = speaks and time.monotonic() - driver.heard_s > allowed_s
                if driver.mode == "dead" or hangs:
                    driver.link.close()
                    reap(driver.process, 0.0 if hangs else STOP_S)
                    self._all[kind, arm] = self._started(kind, arm)

    def _hands_ready(self, asked: set[str]) -> bool:
        """Whether both hands rest and know their fingers' ends; if not, ask them once."""
        good = True
        for arm in ARMS:
            driver = self._all["gripper", arm]
            if driver.mode != "ready" or driver.age_s > HAND_AGE_S or driver.hand["busy"]:
                good = False
            elif self._cell.raw["hands"]["home"] and not driver.hand["homed"]:
                good = False
                if arm not in asked:
                    asked.add(arm)
                    self._tell("gripper", arm, {"do": "homing"})
        return good

    def go_to(self, arm: str, q: Sequence[float], share: float) -> None:
        """Have the arm move to `q` at a share of its speeds, whatever is in its way.

        It goes on as long as `go_on` is called every 100 ms.
        """
        self.tell(arm, "go_to", q=np.asarray(q).tolist(), share=share)

    def go_on(self, arm: str) -> None:
        """The arm's way to its goal is looked after, and still wanted."""
        self.tell(arm, "go_on")

    def close(self) -> None:
        """Bring the arms to rest and end the processes."""
        with self._lock:
            self._stopped = True
            for driver in self._all.values():
                driver.link.close()
        end = time.monotonic() + STOP_S
        for driver in self._all.values():
            reap(driver.process, max(0.05, end - time.monotonic()))


def _none(kind: str, arm: str, driver: _Driver) -> str:
    age = f" for {driver.age_s:.1f} s" if driver.state or driver.hand else ""
    return f"no state of the {arm} {kind}{age}: {driver.fault or driver.mode}"
