"""How fast recordings are scored: python benchmarks/score_speed.py [--seeds N].

Records the expert's episodes without pictures, then times `score_bag` on each bag (reading,
decoding, hashing and judging), best of three, and prints multiples of real time.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench_tasks import runner, tasks
from bench_tasks.config import RunConfig
from bench_tasks.verdicts.scoring import score_bag

REPEATS = 3
BAR = 100.0


def main() -> int:
    """Print one line per task; exit status 1 when one is below 100 times real time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2, help="episodes per task (default: 2)")
    seeds = parser.parse_args().seeds
    slow = False
    with tempfile.TemporaryDirectory() as folder:
        config = RunConfig(tuple(tasks.names()), episodes=seeds, cameras=())
        result = runner.run(replace(config, out=str(Path(folder) / "run")))
        for name in tasks.names():
            sim_s = wall_s = states = 0.0
            for episode in (e for e in result.episodes if e.task == name):
                times = []
                for _ in range(REPEATS):
                    begun = time.perf_counter()
                    score_bag(Path(episode.bag))
                    times.append(time.perf_counter() - begun)
                sim_s, wall_s = sim_s + episode.sim_s, wall_s + min(times)
                states += (episode.end_seq or 0) + 1
            factor = sim_s / wall_s
            # An episode of a fraction of a second is all opening and closing of files.
            slow |= factor < BAR and sim_s > 1.0 * seeds
            sys.stdout.write(
                f"{name:20} {sim_s:7.1f} s simulated, {states / wall_s:7.0f} states/s, "
                f"{factor:5.0f} times real time\n"
            )
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
