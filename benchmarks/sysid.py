"""How well `bench_tasks sysid` recovers the parameters of another simulation.

`python benchmarks/sysid.py [--stiffer 0.5,1,2,5,10] [--noise 1e-4] [--seconds 20] [--seed 0]`
prints a table: a robot as many times as stiff as the simulation's own servos is recorded, Gaussian
noise (rad) is added to its positions, and the simulation fitted.
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
from sim.fr3 import own_dynamics  # noqa: E402
from sim.scene import build_cell  # noqa: E402

WRIST = 3.0
PARTS = ("stiffness", "damping", "dry", "offset_rad", "delay_s")


def drawn(stiffer: float, seed: int) -> Dynamics:
    """A robot of that stiffness, with a quarter to all of the damping that goes with it.

    Its last three joints are `WRIST` times as stiff at most: there the simulation ends soon.
    """
    rng, own = np.random.default_rng(seed), own_dynamics(build_cell(()).model)
    times = np.minimum(stiffer, np.tile([np.inf] * 4 + [WRIST] * 3, 2))
    return Dynamics(
        own.stiffness * times, own.damping * np.sqrt(times) * rng.uniform(0.25, 1.0, 14),
        own.dry * rng.uniform(0.3, 2.0, 14), rng.uniform(-0.02, 0.02, 14),
        rng.uniform(0.0, 0.05, 2),
    )  # fmt: skip


def main() -> None:
    """Record an excitation of each robot, then fit to it with each noise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stiffer", default="0.5,1,2,5,10")
    parser.add_argument("--noise", default="1e-4")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(  # noqa: T201
        "| stiffness | noise, rad | stiffness, % | damping, % | dry, Nm | offset, mrad | delay, ms "
        "| error / standard error, rms | positions apart before, mrad | after |", flush=True,
    )  # fmt: skip
    for stiffer in (float(word) for word in given.stiffer.split(",")):
        true = drawn(stiffer, given.seed)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "true.yaml"
            true.write(file)
            run(RunConfig(
                ("blocks_ranking_rgb",), policy=f"excite:duration_s={given.seconds}", cameras=(),
                out=f"{folder}/out", dynamics=str(file),
            ))  # fmt: skip
            told = read_excitation(Path(folder) / "out")
        for level in (float(word) for word in given.noise.split(",")):
            noise = level * np.random.default_rng(1).standard_normal(told.measured.shape)
            found = identified(replace(told, measured=told.measured + noise))
            away = {p: getattr(found.dynamics, p) - getattr(true, p) for p in PARTS}
            error = {p: getattr(found.error, p) for p in PARTS}
            ratio = np.concatenate([away[p][error[p] > 0] / error[p][error[p] > 0] for p in PARTS])
            scale = (100 / true.stiffness, 100 / true.damping, 1.0, 1e3, 1e3)
            worst = [f"{np.abs(by * away[p]).max():.3g}"
                     for p, by in zip(PARTS, scale, strict=True)]  # fmt: skip
            before, after = (1e3 * one.mean() for one in (found.rms_before, found.rms_after))
            print(  # noqa: T201
                f"| {stiffer:g} | {level:g} | {' | '.join(worst)} | "
                f"{f'{np.sqrt((ratio**2).mean()):.2f}' if level else '-'} "
                f"| {before:.3f} | {after:.5f} |", flush=True,
            )  # fmt: skip


if __name__ == "__main__":
    main()
