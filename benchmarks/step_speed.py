# ruff: noqa: T201
"""What the world's loop costs beside MuJoCo itself: `python benchmarks/step_speed.py`.

The expert's episode is recorded once; then its commands are run again and again, by
`SimWorld.step` and by bare `mj_step` on the same model with the same control signals, taking
turns every second of simulated time, so that both see the same machine. Times are processor times
of this process, which other processes disturb less. Bars: at least 75 % of the rate of bare
`mj_step` (steps per second), reset within 0.1 s.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench_tasks import tasks
from bench_tasks.episode import run_episode
from bench_tasks.tasks.base import Layout, ObjectSpec, Task
from bench_tasks.tasks.families.layouts import scatter
from bench_tasks.vocabulary import CONTROL_PERIOD_NS, ActionChunk
from policies.planners.expert import ExpertPlanner
from policies.skills import SkillPolicy
from sim.world import SUBSTEPS, SimWorld

import mujoco  # isort: skip  # after sim, which chooses its renderer

CHUNK = 10
SEGMENT = 50
COLORS = ("red", "green", "blue", "yellow", "orange", "purple", "cyan", "pink")


class EightBlocks(Task):
    """Both arms carry blocks about among eight of them."""

    name, mode, summary = "eight_blocks", "parallel", "carry blocks about"

    def objects(self):
        """Eight blocks."""
        return tuple(ObjectSpec(f"{c}_block", "block", c) for c in COLORS)

    def layout(self, rng, objects):
        """Scattered; the first two within reach of one arm each."""
        poses = scatter(
            rng, {f"{c}_block": 0.02 for c in COLORS}, x=(0.38, 0.62), y=(-0.4, 0.4), gap_m=0.1
        )
        ordered = sorted(poses.values(), key=lambda pose: -pose[1])
        return Layout(dict(zip(poses, [ordered[0], ordered[-1], *ordered[1:-1]], strict=True)), "")

    def goal(self, scene):
        """None: the episode ends when the expert is done."""
        from bench_tasks.tasks.base import Check, Goal

        return Goal((Check("never", lambda view: False),))

    def expert(self, view, turn):
        """Take two blocks at once, lift, move and lower them."""
        from bench_tasks.vocabulary import ARMS, SkillCall

        if turn:
            return []
        names = dict(zip(ARMS, ("red_block", "green_block"), strict=True))

        def both(skill, **args):
            return tuple(SkillCall(skill, arm, dict(args)) for arm in ARMS)

        grasp = tuple(SkillCall("grasp", arm, {"object": names[arm]}) for arm in ARMS)
        moves = ([0, 0, 0.15], [-0.05, 0, 0], [0.05, 0, 0], [0, 0, -0.14])
        return [grasp, *(both("move_by", offset=m) for m in moves), both("open"), both("home")]


class _Commands:
    """Keeps the commands that were executed."""

    def __init__(self) -> None:
        self.rows: list[np.ndarray] = []

    def state(self, state) -> None:
        self.rows.append(state.command)

    def ignore(self, *_) -> None:
        pass

    scene = chunk = event = frames = verdict = ignore


def by_world(world: SimWorld, first: int, commands: np.ndarray) -> float:
    """Seconds that the world takes for commands from state `first` on."""
    begun = time.process_time()
    for k in range(0, len(commands), CHUNK):
        world.step(ActionChunk(first + k, commands[k : k + CHUNK]))
    return time.process_time() - begun


def by_mujoco(world: SimWorld, controls: np.ndarray) -> float:
    """Seconds that bare `mj_step` takes for the same control signals, one row per step."""
    model, data, step = world.model, world.data, mujoco.mj_step
    begun = time.process_time()
    for row in controls:
        data.ctrl[:] = row
        step(model, data)
    return time.process_time() - begun


def controls_of(world: SimWorld, first: int, commands: np.ndarray) -> np.ndarray:
    """The control signals (steps, nu) that the world derives from commands."""
    rows, real = [], mujoco.mj_step

    def spy(model, data, *args) -> None:
        rows.append(data.ctrl.copy())
        real(model, data, *args)

    mujoco.mj_step = spy
    try:
        by_world(world, first, commands)
    finally:
        mujoco.mj_step = real
    return np.array(rows)


def measure(world: SimWorld, name: str, repetitions: int) -> tuple[float, float]:
    """Print one line; returns the ratio of rates and the reset time (s), both medians."""
    sink = _Commands()
    run_episode(tasks.get(name), 0, world, ExpertPlanner(), SkillPolicy(), sink)
    commands = np.array(sink.rows[1:])
    resets = []
    for _ in range(repetitions):
        begun = time.process_time()
        world.reset(name, 0)
        resets.append(time.process_time() - begun)
    parts = []
    for first in range(0, len(commands), SEGMENT):
        start, part = world.save(), commands[first : first + SEGMENT]
        parts.append((start, first, part, controls_of(world, first, part)))
        assert len(parts[-1][3]) == SUBSTEPS * len(part)
    ours, bare = np.zeros(repetitions), np.zeros(repetitions)
    for k in range(repetitions):
        for start, first, part, controls in parts:
            ends = []
            # Which one goes first alternates, so that neither always finds the warmer cache.
            for which in ((0, 1), (1, 0))[(k + first // SEGMENT) % 2]:
                world.restore(start)
                if which:
                    ours[k] += by_world(world, first, part)
                else:
                    bare[k] += by_mujoco(world, controls)
                ends.append(world.data.qpos.copy())
            assert np.array_equal(*ends), "both must have simulated the same motion"
    ratio, reset = statistics.median(bare / ours), statistics.median(resets)
    steps, span = SUBSTEPS * len(commands), len(commands) * CONTROL_PERIOD_NS * 1e-9
    print(
        f"{name:20s} {steps / min(bare):8.0f} {steps / min(ours):8.0f} {span / min(ours):6.1f}x "
        f"{ratio:9.3f} {reset:8.3f} s", flush=True,
    )  # fmt: skip
    return ratio, reset


def main() -> int:
    """Measure the eight blocks and every task's expert; exit status 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--tasks", default="", help="comma-separated; default: all of them")
    options = parser.parse_args()
    known = dict(tasks._registry())
    known["eight_blocks"] = EightBlocks()
    tasks._registry = lambda: known
    names = options.tasks.split(",") if options.tasks else ["eight_blocks", *tasks.names()]
    names = list(dict.fromkeys(names))
    world = SimWorld()
    print(f"{'':20s}  mj_step    world real time  ratio    reset")
    results = [measure(world, name, options.repetitions) for name in names]
    good = all(ratio >= 0.75 and reset <= 0.1 for ratio, reset in results)
    print("bars (ratio >= 0.75, reset <= 0.1 s):", "met" if good else "MISSED")
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
