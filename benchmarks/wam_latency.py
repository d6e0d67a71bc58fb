"""What a chunk of the world-action model costs: with and without the cache, and by sampling steps.

    OMP_NUM_THREADS=1 python benchmarks/wam_latency.py [--checkpoint FILE] [--repeats N]

First, time per chunk against the observations that it looks back on, 1 to 16 chunks: with the cache
only the present observation is encoded, without it all of them. Times are the medians of
interleaved repeats, as ratios to one observation with the cache, so that the machine's load counts
alike everywhere. Then ms per chunk, picture to commands, for 16, 4 and 1 steps.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench_tasks.errors import BenchError
from policies.wam.autoencoder import Autoencoder
from policies.wam.checkpoint import load_checkpoint
from policies.wam.flow import sample
from policies.wam.model import Transformer, joined
from policies.wam.shape import MOSAIC, Shape

HISTORIES = (1, 2, 4, 8, 16)
STEPS = (16, 4, 1)


def timed(work: dict, repeats: int) -> dict:
    """Median seconds of each piece of work; they take turns, after one turn that does not count."""
    taken: dict = {key: [] for key in work}
    for turn in range(repeats + 1):
        for key, call in work.items():
            begun = time.perf_counter()
            call()
            if turn:
                taken[key].append(time.perf_counter() - begun)
    return {key: statistics.median(times) for key, times in taken.items()}


@torch.no_grad()
def measure(model: Transformer, autoencoder: Autoencoder, repeats: int) -> dict:
    """Seconds: of a chunk by (cached, observations), and of a chunk from the picture by steps."""
    shape = model.shape
    generator, text = torch.Generator().manual_seed(0), torch.randn(1, 384)
    picture = torch.randint(0, 256, (1, 3, *MOSAIC), dtype=torch.uint8)
    most = max(HISTORIES)
    latents = torch.randn(1, most, shape.latent, *shape.grid)
    states = torch.randn(1, most, 16)

    def look(k: int):
        return model.observe(latents[:, k], states[:, k], text, shape.stride * k)

    past = [look(k) for k in range(most)]

    def chunk(cached: bool, count: int):
        first = most - count
        kept = past[first:-1] if cached else [look(k) for k in range(first, most - 1)]
        now = (latents[:, -1], states[:, -1])
        at = shape.stride * (most - 1)
        sample(model, joined(kept), at, text, 1, generator, present=now)

    def whole(steps: int):
        seen = autoencoder.encode(picture)
        cache = joined(past[: shape.history - 1])
        at = shape.stride * (shape.history - 1)
        sample(model, cache, at, text, steps, generator, present=(seen, states[:, -1]))

    by_history = {
        (cached, count): lambda cached=cached, count=count: chunk(cached, count)
        for count in HISTORIES for cached in (True, False)
    }  # fmt: skip
    return {
        "history": timed(by_history, repeats),
        "steps": timed({k: lambda k=k: whole(k) for k in STEPS}, repeats),
    }


def main() -> int:
    """Measure and print two tables, or JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--checkpoint", type=Path, help="default: an untrained model")
    parser.add_argument("--kind", choices=("wam", "bc"), default="wam", help="of an untrained one")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    try:
        if args.checkpoint:
            made = load_checkpoint(args.checkpoint)
            model, autoencoder = made.model, made.autoencoder
        else:
            shape = dataclasses.replace(Shape(), video=args.kind == "wam")
            model, autoencoder = Transformer(shape).eval(), Autoencoder(shape.latent).eval()
    except BenchError as error:
        sys.stderr.write(f"wam_latency: {error}\n")
        return 2
    found = measure(model, autoencoder, max(1, args.repeats))
    history, one = found["history"], found["history"][True, 1]
    if args.json:
        rows = [{"observations": n, "cached": c, "seconds": t} for (c, n), t in history.items()]
        sys.stdout.write(json.dumps({"history": rows, "steps": found["steps"]}, indent=1) + "\n")
        return 0
    lines = ["observations  with cache  without  (1 step, ratio to one observation with cache)"]
    lines += [f"{count:12}  {history[True, count] / one:10.2f}  {history[False, count] / one:7.2f}"
              for count in HISTORIES]  # fmt: skip
    lines += ["", "steps  ms per chunk  ratio to 16 steps"]
    lines += [f"{k:5}  {1e3 * t:12.1f}  {t / found['steps'][16]:17.2f}"
              for k, t in found["steps"].items()]  # fmt: skip
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
