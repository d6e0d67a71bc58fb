"""Milliseconds per picture, by camera, kind and visuals: `python benchmarks/render_speed.py`.

Processor time of this process (software renderers use all cores, so it can exceed wall time),
and wall time. The first picture of a world also opens the renderer and is shown apart.
"""
# ruff: noqa: T201

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sim.scene import CAMERAS
from sim.world import RENDERER, SimWorld

KINDS = ("color", "depth", "segmentation", "frame")


def timed(call: Callable[[], object], repetitions: int) -> tuple[float, float]:
    """Median wall and processor time of a call, ms."""
    wall, cpu = [], []
    for _ in range(repetitions):
        begun = time.perf_counter(), time.process_time()
        call()
        wall.append(time.perf_counter() - begun[0])
        cpu.append(time.process_time() - begun[1])
    return 1e3 * statistics.median(wall), 1e3 * statistics.median(cpu)


def main() -> None:
    """Print one line per camera, kind and visuals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", default="blocks_ranking_rgb")
    parser.add_argument("--width", type=int, default=320)
    parser.add_argument("--height", type=int, default=240)
    parser.add_argument("--repetitions", type=int, default=15)
    options = parser.parse_args()
    print(f"renderer {RENDERER}, {options.width}x{options.height}, {options.task}; ms per picture")
    print(f"{'visuals':8s} {'camera':12s} {'kind':13s} {'wall':>8s} {'cpu':>8s}")
    for pretty in (False, True):
        visuals = "pretty" if pretty else "cheap"
        world = SimWorld(pretty, options.width, options.height)
        world.reset(options.task, 0)
        first, cpu = timed(lambda w=world: w.cameras.color(w.data, "head"), 1)
        print(f"{visuals:8s} {'head':12s} {'first color':13s} {first:8.1f} {cpu:8.1f}")
        count = max(1, options.repetitions // 5) if pretty else options.repetitions
        for camera in CAMERAS:
            for kind in KINDS:
                extra = (0, 0) if kind == "frame" else ()
                draw = getattr(world.cameras, kind)
                call = lambda d=draw, w=world, c=camera, e=extra: d(w.data, c, *e)  # noqa: E731
                wall, cpu = timed(call, count)
                print(f"{visuals:8s} {camera:12s} {kind:13s} {wall:8.1f} {cpu:8.1f}", flush=True)
        world.cameras.close()


if __name__ == "__main__":
    main()
