# ruff: noqa: T201
"""Injects faults into a memory and counts what the diagnosis of `amemgym` makes of them.

`python benchmarks/memory_faults.py --users 20`. A memory that is always right is played with items
dropped when written, items hidden when their session is over, and questions answered wrong, each
alone and all together. For each question that failed it is known which fault is to blame; the table
has what was named.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench_tasks.probes import make_probe
from bench_tasks.probes.injected import Faults, InjectedMemory
from bench_tasks.probes.interaction_scores import FAILURES, outcomes
from bench_tasks.probes.player import play
from bench_tasks.reports.stats import wilson
from policies.memory import make_memory
from policies.memory.eye import colours_in
from policies.memory.reader import RuleReader


def named(probe: str, memory: str, users: int, **shares: float) -> Counter[tuple[str, str]]:
    """(to blame, named) -> how many questions that failed."""
    found: Counter[tuple[str, str]] = Counter()
    reader = RuleReader(colours_in)
    for seed in range(users):
        faulty = InjectedMemory(make_memory(memory), reader, Faults(**shares, seed=seed))
        records = play(make_probe(probe).steps(seed), faulty)  # type: ignore[arg-type]
        for one in outcomes(records):
            if not one.right:
                found[faulty.cause_of(one.asked), one.failure] += 1
        faulty.close()
    return found


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=20)
    parser.add_argument("--probe", default="amemgym")
    parser.add_argument("--memory", default="full")
    args = parser.parse_args()
    print("injected         to blame  failed  named write  read  use   right  95 % interval")
    for title, shares in (
        ("write 0.1", {"write": 0.1}), ("read 0.1", {"read": 0.1}), ("use 0.2", {"use": 0.2}),
        ("all together", {"write": 0.05, "read": 0.05, "use": 0.2}),
    ):  # fmt: skip
        found = named(args.probe, args.memory, args.users, **shares)
        for blame in sorted({to for to, _ in found}):
            counts = [found[blame, kind] for kind in FAILURES]
            total = sum(count for (to, _), count in found.items() if to == blame)
            low, high = wilson(found[blame, blame], total)
            print(f"{title:16} {blame or 'none':8} {total:7}  {counts[0]:11} {counts[1]:5} "
                  f"{counts[2]:4} {found[blame, blame] / total:7.1%}  {low:.1%} to {high:.1%}")


if __name__ == "__main__":
    main()
