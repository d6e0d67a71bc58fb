# ruff: noqa: T201
"""What ROS costs: the same episodes in one process and over the nodes, and with three cameras.

Usage: python benchmarks/ros_cost.py [EPISODES]. The three runs take turns task by task on one
machine; figures are the episodes' own wall times, so start-up is not in them. Bars: over ROS at
most twice the time of one process, with equal state hashes and verdicts; with three cameras at
10 Hz (320 x 240) still at least real time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench_tasks.verdicts import score_files, scoring

TASKS = ("blocks_ranking_rgb", "handover_block", "lift_pot", "stack_blocks_two", "cover_blocks")
CAMERAS = "head@10,left_wrist@10,right_wrist@10"


def _scores(out: Path) -> dict[tuple[str, int], scoring.EpisodeScore]:
    newest = score_files.newest_scores(out)
    assert newest is not None, f"nothing was scored in {out}"
    return {(s.task, s.seed): s for s in score_files.load_scores(newest)}


def _launch(out: Path, tasks: str, episodes: str, *more: str) -> dict:
    arguments = [f"tasks:={tasks}", f"episodes:={episodes}", f"out:={out}", *more]
    _run(str(ROOT / "ros_ws" / "ros2"), "launch", "bench_tasks", "bimanual.launch.py", *arguments)
    return _scores(out)


def _run(*command: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)


def main() -> None:
    """Run and print the table."""
    episodes = sys.argv[1] if len(sys.argv) > 1 else "4"
    here, over, seen = {}, {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for task in TASKS:
            out = Path(folder)
            _run(sys.executable, "-m", "bench_tasks.cli", "run", "--tasks", task,
                 "--episodes", episodes, "--out", str(out / f"{task}_here"))  # fmt: skip
            here |= _scores(out / f"{task}_here")
            over |= _launch(out / f"{task}_over", task, episodes)
            seen |= _launch(out / f"{task}_seen", task, episodes, f"streams:={CAMERAS}")
    print(f"{'task':20} {'seed':>4} {'sim s':>6} {'here s':>7} {'ROS s':>7} {'ratio':>6} "
          f"{'3 cameras x real time':>22}  equal")
    for key, one in here.items():
        two, three = over[key], seen[key]
        equal = one.state_hash == two.state_hash == three.state_hash
        equal = equal and one.success == two.success == three.success
        print(f"{key[0]:20} {key[1]:4} {one.sim_s:6.1f} {one.wall_s:7.2f} {two.wall_s:7.2f} "
              f"{two.wall_s / one.wall_s:6.2f} {three.sim_s / three.wall_s:22.2f}  {equal}")
    total = [sum(s.wall_s for s in run.values()) for run in (here, over, seen)]
    sim_s = sum(s.sim_s for s in here.values())
    print(f"over ROS {total[1] / total[0]:.2f} times the time of one process; with three cameras "
          f"{sim_s / total[2]:.2f} x real time; without {sim_s / total[1]:.2f} x")


if __name__ == "__main__":
    main()
