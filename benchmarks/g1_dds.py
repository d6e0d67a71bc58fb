"""The G1's driver against the stand-in over DDS for a long time: rates, checksums, gaps, tracking.

python benchmarks/g1_dds.py [MINUTES] [--planted]. Needs make unitree. Rates and checksums are
counted where messages arrive. The stand-in writes down each time that more than 50 ms went by
between two commands that reached it, or two states that it sent; the bus must have reported
something in that time, or at the latest `REPORT_S` after it. With --planted both processes are
stopped for a moment again and again, the network fails, and messages are lost or have a wrong
checksum: all of that must show. The exit status is 1 when what is asked for does not hold.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench_tasks.errors import BenchError  # noqa: E402
from hardware.unitree.cell import driver_python, read_cell  # noqa: E402
from hardware.unitree.driver import BusDriver  # noqa: E402

PERIOD_S, DOMAIN = 0.02, 91
AMPLITUDE_RAD = 0.25
LEAST_HZ, WINDOW_S = 100.0, 1.0
REPORT_S = 0.25
"""The bus's loop, the link, and this process's own turn, on a machine with other work."""
SETTLED_S = 3.0
PLANTED = {"loss": 0.02, "crc_wrong": 0.01, "outage_s": [7.0, 0.075]}
STOP_EVERY_S, STOP_S = 4.0, 0.075
"""Shorter than what makes the bus refuse commands (0.1 s)."""
WRONG = 50
WRONG_COMMANDS = """
import sys, time
from bench_tasks.robots import unitree_hg as hg
from bench_tasks.robots.unitree_dds import Dds
dds = Dds(int(sys.argv[1]), "lo", (hg.ARM_SDK,), ())
time.sleep(1.0)
for _ in range(int(sys.argv[2])):
    message = hg.motor_commands(slice(12, 29), *[[0.0] * 17] * 5, 5)
    message["crc"] = hg.crc32(message.tobytes()[:-4]) ^ 1
    dds.write(hg.ARM_SDK, hg.encode(message))
    time.sleep(0.02)
"""


class Robot:
    """The stand-in's process, and what it says."""

    def __init__(self, python: str, settings: dict[str, Any]) -> None:
        """Start it."""
        self.process = subprocess.Popen(
            [python, str(ROOT / "sim/standin/g1_dds.py"), json.dumps(settings)], env=environment(),
            stdout=subprocess.PIPE,
        )  # fmt: skip
        assert self.process.stdout is not None
        self._pipe, self._text = self.process.stdout.fileno(), b""
        os.set_blocking(self._pipe, False)
        self.last: dict[str, Any] = {}
        self.heard: list[tuple[float, int]] = []
        """When, and how many commands had come by then."""
        self.gaps: dict[tuple[str, float], float] = {}

    def poll(self) -> None:
        """Take in what it has said."""
        with contextlib.suppress(BlockingIOError):
            self._text += os.read(self._pipe, 1 << 20)
        *lines, self._text = self._text.split(b"\n")
        for line in lines:
            self.last = json.loads(line)
            count = sum(self.last.get(k, 0) for k in ("accepted", "crc", "mode_machine"))
            self.heard.append((self.last["now"], count))
            self.gaps |= {(what, at): gap for what, at, gap in self.last["gaps"]}


class Run:
    """Sines, and what came of them."""

    def __init__(self, driver: BusDriver, robot: Robot, planted: bool) -> None:
        """`planted`: both processes are stopped now and again."""
        self._driver, self._robot, self._planted = driver, robot, planted
        self._reports: list[float] = []
        self._other: list[str] = []
        self._stops: list[tuple[str, float]] = []
        self._heard_hz: list[float] = []
        self._away: list[np.ndarray] = []
        self._bad = self._blind = 0
        self._pids = {"bus": driver.process.pid, "robot": robot.process.pid, "this": os.getpid()}

    def _poll(self) -> None:
        for kind, reason in self._driver.poll():
            if kind == "robot_gap":
                self._reports.append(time.monotonic())
            else:
                self._other.append(f"{kind}: {reason}")
        self._robot.poll()

    def go(self, seconds: float) -> dict[str, Any]:
        """For so long."""
        driver = self._driver
        driver.ready(self._poll)
        base, count, used = driver.told, 0, {n: processor_s(p) for n, p in self._pids.items()}
        begun = due = time.monotonic()
        while due - begun < seconds:
            self._poll()
            q = base + AMPLITUDE_RAD * np.sin(1.5 * (due - begun))
            driver.move(count, q.tolist(), [0.0] * len(q), int((due + 1.5 * PERIOD_S) * 1e9))
            count += 1
            if due - begun > SETTLED_S:
                self._look(len(q))
            if self._planted and due - begun > STOP_EVERY_S * (len(self._stops) + 1):
                self._stop()
            due = max(due + PERIOD_S, time.monotonic() - PERIOD_S)
            time.sleep(max(0.0, due - time.monotonic()))
        end = time.monotonic()
        share = {n: (processor_s(p) - used[n]) / (end - begun) for n, p in self._pids.items()}
        while time.monotonic() < end + 2 * REPORT_S:  # what happened last is still on its way
            self._poll()
            driver.hold()
            time.sleep(PERIOD_S)
        return self._result(begun + SETTLED_S, end, share)

    def _look(self, joints: int) -> None:
        try:
            state = self._driver.state()
        except BenchError:
            self._blind += 1
            return
        self._away.append(np.abs(state.told - state.q[-joints:]))
        self._heard_hz.append(state.heard_hz)
        self._bad = state.bad

    def _stop(self) -> None:
        """One of the two does not run for a moment."""
        name = ("bus", "robot")[len(self._stops) % 2]
        os.kill(self._pids[name], signal.SIGSTOP)
        self._stops.append((name, time.monotonic()))
        threading.Timer(STOP_S, os.kill, (self._pids[name], signal.SIGCONT)).start()

    def _result(self, begun: float, end: float, share: dict[str, float]) -> dict[str, Any]:
        robot, away = self._robot, np.array(self._away)
        told = [(at, count) for at, count in robot.heard if begun <= at <= end]
        rates = windows(told)
        gaps = {key: gap for key, gap in robot.gaps.items() if key[1] <= end}
        reports = np.array(self._reports or [-1e9])
        missed = [
            (*key, gap) for key, gap in gaps.items()
            if not ((reports >= key[1] - gap) & (reports <= key[1] + REPORT_S)).any()
        ]  # fmt: skip
        wrong = {"by_robot": robot.last.get("crc", 0), "by_bus": self._bad,
                 "sent_by_robot": robot.last.get("sent_crc_wrong", 0)}  # fmt: skip
        good = min(rates.min(), *self._heard_hz) >= LEAST_HZ and not missed
        result = {
            "low_cmd_hz": {"mean": round(rate(told), 1), "least": round(rates.min(), 1)},
            "low_state_hz": {"mean": round(float(np.mean(self._heard_hz)), 1),
                             "least": min(self._heard_hz)},
            "crc_wrong": wrong, "gaps": len(gaps), "greatest_gap_s": max(gaps.values(), default=0),
            "gaps_not_reported": missed, "reports": len(self._reports),
            "other_events": len(self._other), "first_other_events": self._other[:3],
            "without_state": self._blind,
            "told_to_measured_rms_rad": round(float(np.sqrt((away**2).mean())), 4),
            "greatest_rad": round(float(away.max()), 4),
            "processor_share": {name: round(value, 3) for name, value in share.items()},
        }  # fmt: skip
        if self._planted:
            seen = [any(abs(key[1] - at - STOP_S) < REPORT_S for key in gaps)
                    for _, at in self._stops]  # fmt: skip
            result |= {"planted_stops": len(seen), "planted_stops_seen": sum(seen)}
            good &= all(seen) and wrong["by_robot"] >= 0.8 * WRONG
            good &= 0.9 * wrong["sent_by_robot"] <= wrong["by_bus"] <= wrong["sent_by_robot"]
        else:
            good &= not any(wrong.values()) and not self._other
        return {"holds": bool(good), **result}


def environment() -> dict[str, str]:
    """For a process of the driver's environment."""
    kept = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    return {**kept, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


def processor_s(pid: int) -> float:
    """Processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rate(counted: list[tuple[float, int]]) -> float:
    """Of what was counted, from the first to the last time."""
    (first, a), (last, b) = counted[0], counted[-1]
    return (b - a) / (last - first)


def windows(counted: list[tuple[float, int]]) -> np.ndarray:
    """The rates in all stretches of `WINDOW_S`, or the little more that it takes to the next."""
    at, count = np.array(counted).T
    last = np.searchsorted(at, at + WINDOW_S)
    first = np.flatnonzero(last < len(at))
    return (count[last[first]] - count[first]) / (at[last[first]] - at[first])


def main() -> int:
    """Run, and print one line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("minutes", type=float, nargs="?", default=30.0)
    parser.add_argument("--planted", action="store_true")
    given = parser.parse_args()
    cell = read_cell("standin")
    python = driver_python(cell)
    robot = Robot(python, {"domain": DOMAIN, **(PLANTED if given.planted else {})})
    driver = BusDriver(python, {**cell.bus(), "domain": DOMAIN})
    if given.planted:
        subprocess.Popen([python, "-c", WRONG_COMMANDS, str(DOMAIN), str(WRONG)], env=environment())
    try:
        result = Run(driver, robot, given.planted).go(60.0 * given.minutes)
    finally:
        driver.close()
        robot.process.kill()
    sys.stdout.write(json.dumps({"minutes": given.minutes, **result}) + "\n")
    return 0 if result["holds"] else 1


if __name__ == "__main__":
    sys.exit(main())
