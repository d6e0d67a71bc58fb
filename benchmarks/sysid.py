"""How well `bench_tasks sysid` recovers parameters of another simulation, against sensor noise.

`python benchmarks/sysid.py [--seconds 20] [--seed 0] [--noise 0,1e-5,1e-4,1e-3]` prints a table.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from bench_tasks.config import RunConfig  # noqa: E402
from bench_tasks.excitation import read_excitation  # noqa: E402
from bench_tasks.robots.dynamics import Dynamics  # noqa: E402
from bench_tasks.runner import identified, run  # noqa: E402

PARTS = ("viscous", "dry", "offset_rad", "delay_s")


def drawn(seed: int) -> Dynamics:
    """A robot whose joints are slower than the simulation's, or (a third of them) quicker."""
    rng = np.random.default_rng(seed)
    quick = rng.random(14) < 1 / 3
    viscous = np.where(quick, rng.uniform(-180.0, -20.0, 14), rng.uniform(0.0, 15.0, 14))
    return Dynamics(
        viscous, rng.uniform(0.1, 3.0, 14), rng.uniform(-0.02, 0.02, 14),
        rng.uniform(0.0, 0.05, 2),
    )


def main() -> None:
    """Record one excitation, then fit to it with each noise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--noise", default="0,1e-5,1e-4,1e-3")
    given = parser.parse_args()
    true = drawn(given.seed)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "true.yaml"
        true.write(file)
        run(RunConfig(
            ("blocks_ranking_rgb",), policy=f"excite:duration_s={given.seconds}", cameras=(),
            out=f"{folder}/out", dynamics=str(file),
        ))  # fmt: skip
        told = read_excitation(Path(folder) / "out")
    print("| noise, rad | viscous, Nm s/rad | dry, Nm | offset, mrad | delay, ms "  # noqa: T201
          "| error / standard error | mean rms before, mrad | after |")  # fmt: skip
    for level in (float(word) for word in given.noise.split(",")):
        noise = level * np.random.default_rng(1).standard_normal(told.measured.shape)
        found = identified(replace(told, measured=told.measured + noise))
        away = {p: getattr(found.dynamics, p) - getattr(true, p) for p in PARTS}
        ratio = np.concatenate([away[p] / getattr(found.error, p) for p in PARTS])
        worst = [f"{scale * np.abs(away[p]).max():.4f}"
                 for p, scale in zip(PARTS, (1, 1, 1e3, 1e3), strict=True)]  # fmt: skip
        before, after = (1e3 * one.mean() for one in (found.rms_before, found.rms_after))
        print(  # noqa: T201
            f"| {level:g} | {' | '.join(worst)} | "
            f"{f'{np.sqrt((ratio**2).mean()):.2f}' if level else '-'} "
            f"| {before:.3f} | {after:.5f} |", flush=True,
        )  # fmt: skip


if __name__ == "__main__":
    main()
