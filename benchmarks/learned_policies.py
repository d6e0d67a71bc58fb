"""Success of policies, a row each: python benchmarks/learned_policies.py --out DIR NAME=POLICY...

    python benchmarks/learned_policies.py --out results/steps --tasks lift_pot,grab_roller \
        16=wam:steps=16 4=wam:steps=4 1=wam:steps=1

All run the same seeds of the same tasks, recorded in DIR/NAME. A row whose folder is there is read
from it, not run again. Prints a markdown table of successes with Wilson intervals.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench_tasks import runner
from bench_tasks.config import RunConfig
from bench_tasks.errors import BenchError, UsageError
from bench_tasks.manifest import read_json
from bench_tasks.reports.stats import wilson
from bench_tasks.verdicts import score_files
from bench_tasks.verdicts.episode_score import EpisodeScore


def row(name: str, config: RunConfig) -> list[EpisodeScore]:
    """Episodes of a row, run or read."""
    file = score_files.newest_scores(Path(config.out))
    if file:
        asked = read_json(Path(config.out) / "run.json").get("configuration", {})
        wanted = json.loads(json.dumps(config.to_dict()))
        differ = [key for key, value in wanted.items()
                  if key not in ("out", "jobs", "cameras") and asked.get(key) != value]  # fmt: skip
        if differ:
            was = ", ".join(f"{key} {asked.get(key)}, not {wanted[key]}" for key in differ)
            raise UsageError(f"{config.out} holds a run of {was}: choose another --out")
    episodes = score_files.load_scores(file) if file else runner.run(config).episodes
    wanted, found = len(config.tasks) * config.episodes, len(episodes)
    if found != wanted:
        raise UsageError(f"{config.out} has {found} episodes, not {wanted}: choose another --out")
    return episodes


def cell(episodes: list[EpisodeScore]) -> str:
    """Successes of one task, with the interval."""
    won, count = sum(e.success for e in episodes), len(episodes)
    low, high = wilson(won, count)
    return f"{won}/{count} ({100 * low:.0f} to {100 * high:.0f} %)"


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="+", metavar="NAME=POLICY")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tasks", default="grab_roller,lift_pot,stack_blocks_two")
    parser.add_argument("--episodes", type=int, default=50)
    parser.add_argument("--vary", default="")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    chosen, table = tuple(args.tasks.split(",")), []
    for item in args.rows:
        name, equals, policy = item.partition("=")
        if not equals:
            parser.error(f"a row is NAME=POLICY, got {item!r}")
        config = RunConfig(
            chosen, policy=policy, episodes=args.episodes, jobs=args.jobs, cameras=(),
            vary=tuple(axis for axis in args.vary.split(",") if axis), out=str(args.out / name),
        )  # fmt: skip
        episodes = row(name, config)
        table.append([name, *(cell([e for e in episodes if e.task == t]) for t in chosen)])
    for line in (["", *chosen], ["---"] * (len(chosen) + 1), *table):
        sys.stdout.write(f"| {' | '.join(line)} |\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"error: {error}")
