# ruff: noqa: T201
"""Bad commands against the safety supervisor: `python benchmarks/safety_fuzz.py --count 100000`.

Every thousand sequences are drawn from `--seed` and their own number, so a long run can be shared
out, or gone on with, by `--first`: what each thousand holds does not depend on where one begins.

Each sequence puts the arms in motion by good commands (`benchmarks/safety/situations.py`), does one
bad thing (`commands.py`, `happenings.py`), and then executes whatever the supervisor sends, as an
ideal robot would (`robot.py`). An oracle that shares nothing with the supervisor judges what was
executed (`oracle.py`, `sequences.py`). Bars: nothing bad executed; the arms slow down from the next
control period on and come to rest. Exit status 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.safety.robot import DT
from benchmarks.safety.sequences import KINDS, Fuzz

BLOCK = 1000


def main() -> int:
    """Run the sequences, every kind equally often; exit status 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default="", help="comma-separated; default: all of them")
    parser.add_argument("--first", type=int, default=0, help=f"where to begin, in whole {BLOCK}s")
    options = parser.parse_args()
    if options.first % BLOCK:
        parser.error(f"--first must be a multiple of {BLOCK}, got {options.first}")
    kinds = options.kinds.split(",") if options.kinds else list(KINDS)
    if unknown := set(kinds) - set(KINDS):
        parser.error(f"unknown kinds {', '.join(sorted(unknown))}: choose from {', '.join(KINDS)}")
    fuzz, begun = Fuzz(options.seed), time.process_time()
    for k in range(options.first, options.first + options.count):
        if k % BLOCK == 0:
            fuzz.begin((options.seed, k // BLOCK))
        fuzz.run(kinds[k % len(kinds)])
        if (k + 1) % BLOCK == 0:
            print(f"{k + 1} sequences, {len(fuzz.failures)} failures, "
                  f"{time.process_time() - begun:.0f} s", flush=True)  # fmt: skip
    for failure in fuzz.failures[:20]:
        print("FAILED", failure)
    print(f"{sum(fuzz.counts.values())} sequences of {len(fuzz.counts)} kinds, "
          f"{fuzz.late} with late orders, "
          f"{len(fuzz.failures)} passed on or not stopped; interventions: {dict(fuzz.actions)}; "
          f"longest stop {fuzz.slowest_stop * DT:.2f} s; "
          f"{(time.process_time() - begun) / max(1, options.count) * 1e3:.1f} ms each")  # fmt: skip
    return 1 if fuzz.failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
