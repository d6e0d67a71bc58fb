"""Throw-away tasks and the few moves that tests of the simulated cell share."""

from __future__ import annotations

import numpy as np

from bench_tasks import tasks
from bench_tasks.tasks.base import Layout, ObjectSpec, Task
from bench_tasks.tasks.families.layouts import upright
from bench_tasks.vocabulary import ActionChunk, Observation, Plan, Scene, SkillCall, WorldState

SIZE_M = 0.04


class Drill(Task):
    """Any objects at any poses; the poses may be changed between resets."""

    mode, summary = "single", "a drill"

    def __init__(self, name: str, items, poses, reach=None) -> None:
        self.name = name
        self.items, self.poses, self.reach = tuple(items), poses, reach or {}

    def objects(self):
        return self.items

    def layout(self, rng, objects):
        return Layout(dict(self.poses), "drill", reach=self.reach)

    def expert(self, view, turn):
        return []


def blocks(name: str, *points, size_m: float = SIZE_M, **options) -> Drill:
    """Blocks named block0, block1, ... standing at points (x, y) or poses (7,)."""
    poses = {
        f"block{i}": upright(*p, size_m / 2) if len(p) == 2 else np.asarray(p, float)
        for i, p in enumerate(points)
    }
    colors = ("red", "green", "blue", "yellow", "orange", "purple", "cyan", "pink")
    items = [ObjectSpec(n, "block", colors[i], {"size": size_m}) for i, n in enumerate(poses)]
    return Drill(name, items, poses, **options)


def register(monkeypatch, *drills: Drill) -> None:
    """Add tasks to the registry for the time of the monkeypatch."""
    known = dict(tasks._registry())
    known.update({drill.name: drill for drill in drills})
    monkeypatch.setattr(tasks, "_registry", lambda: known)


def hold(world, periods: int) -> list[WorldState]:
    """Repeat the last command."""
    state = world.state
    return world.step(ActionChunk(state.seq, np.tile(state.command, (periods, 1))))


def run_plan(world, policy, *steps, limit: int = 1000, watch=None) -> tuple[dict, list[WorldState]]:
    """Execute steps (tuples of calls); return how it went and the states on the way.

    `watch(state)` is called before every chunk.
    """
    policy.accept(Plan(tuple(steps)))
    states = [world.state]
    while len(states) < limit:
        if watch is not None:
            watch(world.state)
        chunk = policy.infer(Observation(world.state))
        if chunk.needs_plan:
            return chunk.detail, states
        states += world.step(chunk)
    raise AssertionError(f"the plan still runs after {limit} periods")


def grasp(arm: str, name: str, **args) -> tuple[SkillCall, ...]:
    return (SkillCall("grasp", arm, {"object": name, **args}),)


def move_by(arm: str, *offset: float) -> tuple[SkillCall, ...]:
    return (SkillCall("move_by", arm, {"offset": list(offset)}),)


def same(a: WorldState, b: WorldState) -> bool:
    """Whether two states are equal to the last bit."""
    return all(
        np.asarray(x).tobytes() == np.asarray(y).tobytes()
        for x, y in zip(vars(a).values(), vars(b).values(), strict=True)
    )


def fresh(world, policy, task: str, seed: int = 0) -> tuple[Scene, WorldState]:
    """Reset both."""
    scene, state = world.reset(task, seed)
    policy.reset(scene, seed)
    return scene, state
