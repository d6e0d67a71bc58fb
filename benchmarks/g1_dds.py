"""The G1's driver against the stand-in over DDS for a long time: rates, checksums, gaps, tracking.

python benchmarks/g1_dds.py [MINUTES]. Needs make unitree. A gap of more than 50 ms in what the
robot gets or says must be on record; those that the stand-in sees are looked up in the bus's
reports, to within a second.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from hardware.unitree.cell import driver_python, read_cell  # noqa: E402
from hardware.unitree.driver import BusDriver  # noqa: E402

PERIOD_S, DOMAIN = 0.02, 91
AMPLITUDE_RAD = 0.25


def main() -> None:
    """Run, and print one line of JSON."""
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    cell = read_cell("standin")
    python = driver_python(cell)
    environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    robot = subprocess.Popen(
        [python, str(ROOT / "sim/standin_g1.py"), json.dumps({"domain": DOMAIN})],
        env={**environment, "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert robot.stdout is not None
    os.set_blocking(robot.stdout.fileno(), False)
    driver = BusDriver(python, {**cell.bus(), "domain": DOMAIN})
    try:
        driver.ready(driver.poll)
        result = follow(driver, robot, 60.0 * minutes)
    finally:
        driver.close()
        robot.kill()
    sys.stdout.write(json.dumps({"minutes": minutes, **result}) + "\n")


def follow(driver: BusDriver, robot: subprocess.Popen[bytes], seconds: float) -> dict[str, object]:
    """Command sines; what came of it."""
    assert robot.stdout is not None
    base, last, text, pipe = driver.told, {}, b"", robot.stdout.fileno()
    seen, reports, refused, rates, heard = {}, [], 0, [], []
    square, count, worst = 0.0, 0, 0.0
    begun = due = time.monotonic()
    while due - begun < seconds:
        for kind, reason in driver.poll():
            if kind == "robot_gap":
                reports.append((time.monotonic(), reason))
            refused += kind == "command_refused"
        q = base + AMPLITUDE_RAD * np.sin(1.5 * (due - begun))
        driver.move(count, q.tolist(), [0.0] * len(q), int((due + 1.5 * PERIOD_S) * 1e9))
        state = driver._newest
        if state is not None:
            away = np.abs(state.told - state.q[-len(q) :])
            square, worst = square + float(np.mean(away**2)), max(worst, float(away.max()))
            count += 1
            rates.append(state.rate_hz)
            heard.append(state.heard_hz)
        with contextlib.suppress(BlockingIOError):
            text += os.read(pipe, 1 << 20)
        *lines, text = text.split(b"\n")
        for line in lines:
            last = json.loads(line)
            seen |= {at: gap for at, gap in last["gaps"]}
        due = max(due + PERIOD_S, time.monotonic() - PERIOD_S)
        time.sleep(max(0.0, due - time.monotonic()))
    times = np.array([at for at, _ in reports] or [-1e9])
    missed = {at: gap for at, gap in seen.items() if np.abs(times - at).min() > 1.0}
    return {
        "sent_hz": {"mean": float(np.mean(rates)), "least": float(np.min(rates[100:]))},
        "heard_hz": {"mean": float(np.mean(heard)), "least": float(np.min(heard[100:]))},
        "told_to_measured_rms_rad": float(np.sqrt(square / count)), "greatest_rad": worst,
        "refused": refused, "accepted_by_robot": last["accepted"],
        "crc_wrong": last.get("crc", 0), "robot_messages_not_used": driver._newest.bad,
        "gaps_reported": len(reports), "gaps_seen_by_robot": len(seen),
        "greatest_gap_s": max(seen.values(), default=0.0), "gaps_not_reported": len(missed),
    }  # fmt: skip


if __name__ == "__main__":
    main()
