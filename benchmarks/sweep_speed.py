"""What a second process gains: python benchmarks/sweep_speed.py [--tasks A,B] [--episodes N].

Runs the same sweep with one job and with several, start-up and scoring included, and compares the
results. On a machine that does other things as well, wall time says little; beside it stands the
ratio that processor times give: jobs x time of one / time of all, less what the jobs wait for
the last of them (episodes dealt out by their processor-bound lengths, the longest limits first).
Bar: at least 1.8 with two jobs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench_tasks import tasks

BAR = 0.9
"""Of as many times as there are jobs."""


def sweep(out: Path, jobs: int, chosen: str, episodes: int) -> tuple[float, float, list[dict]]:
    """Wall time, processor time of all its processes, and results of one run."""
    command = [
        sys.executable, "-m", "bench_tasks.cli", "run", "--tasks", chosen, "--cameras", "",
        "--episodes", str(episodes), "--jobs", str(jobs), "--out", str(out), "--json",
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with open(out.with_suffix(".json"), "w+") as file:
        begun = time.perf_counter()
        process = subprocess.Popen(command, stdout=file, cwd=ROOT, env=environment)
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - begun
        if os.waitstatus_to_exitcode(status) not in (0, 1):
            raise SystemExit(f"bench_tasks run --jobs {jobs} failed")
        file.seek(0)
        return wall_s, used.ru_utime + used.ru_stime, json.load(file)["episodes"]


def balance(episodes: list[dict], jobs: int) -> float:
    """The part of their time that the jobs work, if episodes take as long as with one job."""
    order = sorted(episodes, key=lambda e: -tasks.get(e["task"]).time_limit_s)
    busy = [0.0] * jobs
    for episode in order:
        busy[busy.index(min(busy))] += episode["wall_s"]
    return sum(busy) / (jobs * max(busy))


def main() -> int:
    """Print what was measured; exit status 1 when a result differs or both ratios miss the bar."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", default="all", help="tasks to run (default: all)")
    parser.add_argument("--episodes", type=int, default=1, help="of each task (default: 1)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    args = parser.parse_args()
    say = sys.stdout.write
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for jobs in (1, args.jobs):
            load = os.getloadavg()[0]
            found[jobs] = sweep(Path(folder) / f"jobs{jobs}", jobs, args.tasks, args.episodes)
            wall_s, used_s, episodes = found[jobs]
            say(f"jobs {jobs}: {len(episodes)} episodes in {wall_s:.1f} s, processor time "
                f"{used_s:.1f} s, load before {load:.1f}\n")  # fmt: skip
    (wall_1, used_1, one), (wall_n, used_n, many) = found[1], found[args.jobs]
    key = ("task", "seed", "state_hash", "success", "cause")
    same = [[e[k] for k in key] for e in one] == [[e[k] for k in key] for e in many]
    part = balance(one, args.jobs)
    ratio, corrected = wall_1 / wall_n, args.jobs * used_1 / used_n * part
    say(f"results the same: {'yes' if same else 'NO'}\n")
    say(f"wall time ratio: {ratio:.2f}\n")
    say(f"by processor time: {corrected:.2f} (the jobs work {part:.0%} of the time)\n")
    return int(not same or max(ratio, corrected) < BAR * args.jobs)


if __name__ == "__main__":
    sys.exit(main())
