"""Two simulated FR3 arms with their limits enforced, for a long time: does anything abort?

python benchmarks/franka_endurance.py [--minutes 30] [--tasks handover_block,lift_pot] [--out DIR].
Needs make franka-sim. Runs `bimanual.launch.py robot:=franka` with the safety node, some episodes
of each task at a time, until the episodes that were recorded last so many minutes together. Bars:
no abort by communication or by a motion limit (each robot's own word for it, also on the way
home), and no more than 0.01 rad between command and joint (RMS, over all joints and periods).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from launched import ABORT, ROOT, Launch, Onlooker, free_domain  # noqa: E402

sys.path.insert(0, str(ROOT))
from bench_tasks.bags.bag import read_bag  # noqa: E402
from bench_tasks.verdicts import score_files  # noqa: E402
from bench_tasks.vocabulary import ARM_COLUMNS  # noqa: E402

RMS_BAR_RAD = 0.01
EPISODE_LIMIT_S = 240.0


class Technician(Onlooker):
    """Reads the arms' diagnostics, once a second."""

    def __init__(self, domain: int) -> None:
        """Listen from now on."""
        super().__init__(domain)
        from diagnostic_msgs.msg import DiagnosticArray

        self.success: dict[str, list[float]] = {}
        self.rates: dict[str, list[float]] = {}
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self._on, 10)

    def _on(self, message: Any) -> None:
        for status in message.status:
            values = {item.key: item.value for item in status.values}
            if values.get("mode") == "following":
                name = status.name.removeprefix("bench_tasks: ")
                self.success.setdefault(name, []).append(float(values["success_rate"]))
                self.rates.setdefault(name, []).append(float(values["rate_hz"]))


class Tally:
    """What came of the episodes."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.robot_s, self.square, self.count, self.worst = 0.0, 0.0, 0, 0.0
        self.verdicts: Counter[str] = Counter()
        self.aborts: list[str] = []
        self.causes: list[str] = []
        self.launches: list[int] = []
        self.stops = 0
        """After which the safety node had to be told to go on."""

    def episode(self, score: Any, path: Path) -> str:
        """Count one; returns a line about it."""
        states = read_bag(path).states
        seconds = states[-1].stamp_ns / 1e9 if states else 0.0
        away = np.zeros((0, len(ARM_COLUMNS)))
        if states:
            command = np.array([s.command for s in states])[:, ARM_COLUMNS]
            away = np.array([s.joint_position for s in states]) - command
        square, worst = float((away**2).sum()), float(np.abs(away).max(initial=0.0))
        self.robot_s += seconds
        self.square, self.count = self.square + square, self.count + away.size
        self.worst = max(self.worst, worst)
        kind = "unscored" if not score.scored else "success" if score.success else "failure"
        self.verdicts[f"{score.task} {kind}"] += 1
        if score.agrees is False:
            self.verdicts["live and offline differ"] += 1
        if kind != "success":
            self.causes.append(f"{score.task} seed {score.seed}: {score.cause}")
        rms = (square / max(1, away.size)) ** 0.5
        return (f"{score.task} seed {score.seed}: {kind}, {seconds:.1f} s, RMS {rms:.4f} rad, "
                f"greatest {worst:.4f} rad {'' if kind == 'success' else score.cause}")  # fmt: skip

    @property
    def rms_rad(self) -> float:
        """Over all joints and periods; infinite when nothing was recorded."""
        return (self.square / self.count) ** 0.5 if self.count else float("inf")

    def summary(self, technician: Technician, wall_s: float) -> dict[str, object]:
        """As JSON."""
        return {
            "robot_minutes": round(self.robot_s / 60, 2), "wall_minutes": round(wall_s / 60, 2),
            "aborts": self.aborts, "safety_stops": self.stops,
            "verdicts": dict(sorted(self.verdicts.items())),
            "not_successes": self.causes, "rms_rad": round(self.rms_rad, 5),
            "greatest_rad": round(self.worst, 4), "launch_statuses": self.launches,
            "success_rate": {
                arm: {"mean": round(float(np.mean(v)), 4), "least": round(min(v), 3)}
                for arm, v in sorted(technician.success.items())
            },
            "cycles_per_s": {
                arm: {"mean": round(float(np.mean(v))), "least": round(min(v))}
                for arm, v in sorted(technician.rates.items())
            },
            "load_average": [round(v, 1) for v in os.getloadavg()],
        }  # fmt: skip


def some(
    tasks: str, seed: int, episodes: int, domain: int, folder: Path, tally: Tally,
    technician: Technician,
) -> None:
    """One launch: `episodes` of each task."""
    out, log = folder / f"seed_{seed}", folder / f"seed_{seed}.log"
    launch = Launch(
        "bimanual.launch.py",
        ["robot:=franka", f"tasks:={tasks}", f"episodes:={episodes}", f"seed:={seed}",
         f"out:={out}"], domain, log,
    )  # fmt: skip
    limit = time.monotonic() + 60 + EPISODE_LIMIT_S * episodes * len(tasks.split(","))
    try:
        while launch.process.poll() is None:
            technician.release(launch)
            if time.monotonic() > limit:
                sys.stdout.write(f"the launch hangs, see {log}\n")
                break
            time.sleep(0.5)
    finally:
        launch.end()
    tally.stops += launch.released
    tally.launches.append(launch.process.returncode)
    tally.aborts += [line for line in log.read_text().splitlines() if ABORT in line]
    found = score_files.newest_scores(out)
    for score in score_files.load_scores(found) if found else ():
        sys.stdout.write(tally.episode(score, out / score.task / f"{score.seed:06d}") + "\n")
        sys.stdout.flush()


def main() -> int:
    """Run, and print one line of JSON; status 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0, help="of recorded episodes")
    parser.add_argument("--tasks", default="handover_block,lift_pot")
    parser.add_argument("--episodes", type=int, default=3, help="of each task in one launch")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="", help="a new folder; default a temporary one")
    args = parser.parse_args()
    folder = Path(args.out or tempfile.mkdtemp(prefix="franka_endurance_")).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    domain, tally, seed, begun = free_domain(), Tally(), args.seed, time.monotonic()
    technician = Technician(domain)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    while tally.robot_s < 60 * args.minutes:
        before = tally.robot_s
        some(args.tasks, seed, args.episodes, domain, folder, tally, technician)
        seed += args.episodes
        if tally.robot_s == before:
            sys.stdout.write(f"nothing was recorded, see {folder}\n")
            break
    wall_s = time.monotonic() - begun
    sys.stdout.write(json.dumps(tally.summary(technician, wall_s)) + "\n")
    sys.stdout.write(f"recorded in {folder}\n")
    sys.stdout.flush()
    good = not tally.aborts and tally.rms_rad <= RMS_BAR_RAD
    os._exit(0 if good and tally.robot_s >= 60 * args.minutes else 1)  # rclpy's thread still spins


if __name__ == "__main__":
    main()
