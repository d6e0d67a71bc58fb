"""Trials of one object: it stands, and the expert's skills take it, hold it and put it back."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from bench_tasks.errors import BenchError
from bench_tasks.object_sets import Evolved
from bench_tasks.protocols import Policy
from bench_tasks.tasks.base import Layout, ObjectSpec, Task
from bench_tasks.tasks.families.layouts import arm_for, upright
from bench_tasks.view import View, compose
from bench_tasks.vocabulary import (
    ARMS,
    ActionChunk,
    ObjectInfo,
    Observation,
    Plan,
    SkillCall,
    WorldState,
)

__all__ = ["POSES", "Examiner", "families"]

THING = "thing"
POSES = 2
"""Places at which every grasp must succeed."""
DROP_M, TIPPED_RAD, UPRIGHT_RAD = 0.005, math.radians(3.0), 0.05
LIFT_M, LIFTED_M, HELD_S, BACK_M = 0.10, 0.08, 0.5, 0.02
WIDTH_M = 0.005
"""How far from its declared width a grasp may hold the object."""
BOTH = "both hands"
_PERIOD_S, _LIMIT = 0.02, 1500


class Trial(Task):
    """One object alone on the table, at a place that the seed draws."""

    name, mode, summary = "object_trial", "single", "take it, hold it, put it back"

    def __init__(self, kind: str, evolved: Evolved | None) -> None:
        """For an evolved object, or the kind as it is."""
        self._item = ObjectSpec(THING, kind, "orange", evolved=evolved)

    def objects(self) -> tuple[ObjectSpec, ...]:
        """The object."""
        return (self._item,)

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """Left of the middle for even seeds that were drawn, else right of it."""
        side = 1.0 if rng.integers(2) else -1.0
        half = objects[THING].half_size_m
        # What two hands are needed for stands before both of them.
        y = 0.0 if max(half[:2]) > 0.12 else side * rng.uniform(0.12, 0.28)
        pose = upright(rng.uniform(0.40, 0.52), y, half[2], rng.uniform(-0.4, 0.4))
        return Layout({THING: pose}, self.summary)

    def expert(self, view: View, turn: int) -> list[tuple[SkillCall, ...]]:
        """The examiner plans."""
        return []


def families(info: ObjectInfo) -> tuple[str, ...]:
    """The ways to hold an object: its grasps, the flipped ones being the same way, or two hands."""
    names = dict.fromkeys(g.name.removesuffix("_flipped") for g in info.grasps)
    pairs = {n.removeprefix("left_") for n in names if n.startswith("left_")}
    both = [f"{BOTH}: {p}" for p in sorted(pairs) if f"right_{p}" in names]
    return (*names, *both)


class Examiner:
    """Puts objects into a world and lets the policy handle them."""

    def __init__(self, world, policy: Policy, seed: int) -> None:
        """`world` can also `set_up` tasks that are not registered; `seed` chooses the places."""
        self._world, self._policy, self._seed = world, policy, seed

    def stands(self, kind: str, evolved: Evolved | None) -> str:
        """Why the object is not stable; "" when it is.

        Dropped from 5 mm, level and tipped to both sides, it must stand, at rest, 1 s later.
        """
        world = self._world
        try:
            scene, _ = world.set_up(Trial(kind, evolved), self._seed)
        except BenchError as error:
            return str(error)
        start = world.state.object_pose[0].copy()
        c, s = math.cos(TIPPED_RAD / 2), math.sin(TIPPED_RAD / 2)
        for turn in ((1, 0, 0, 0), (c, s, 0, 0), (c, 0, s, 0)):
            world.restart()
            pose = compose(start, np.array([0.0, 0.0, 0.0, *turn]))
            # The lowest corner is to fall 5 mm.
            pose[2] += DROP_M + (s != 0) * (turn != (1, 0, 0, 0)) * 2 * s * max(
                scene.object(THING).half_size_m[:2]
            )
            world.move_objects({THING: pose})
            view = View(scene, self._hold(1.0)[-1])
            if view.tilt(THING) > UPRIGHT_RAD or not view.supported_by(THING, "table"):
                return "it falls over"
            if not view.at_rest(THING):
                return "it does not come to rest"
        return ""

    def holds(self, kind: str, evolved: Evolved | None, ways: tuple[str, ...]) -> dict[str, str]:
        """For each way to hold the object why that fails; "" where it succeeds at all places.

        A way that has failed is not tried further.
        """
        failed = dict.fromkeys(ways, "")
        for k in range(POSES):
            try:
                scene, _ = self._world.set_up(Trial(kind, evolved), self._seed + k)
            except BenchError as error:
                return dict.fromkeys(ways, str(error))
            for way in ways:
                if not failed[way]:
                    failed[way] = self._handle(scene, way)
        return failed

    def _handle(self, scene, way: str) -> str:
        arm = arm_for(View(scene, self._world.state), THING)
        if way.startswith(BOTH):
            what = way.split(": ")[1]
            choices = [{a: f"{a}_{what}{end}" for a in ARMS} for end in ("", "_flipped")]
        else:
            choices = [{arm: way}, {arm: f"{way}_flipped"}]
        names = {g.name for g in scene.object(THING).grasps}
        reason = f"no grasp {way}"
        for choice in choices:
            if set(choice.values()) <= names:
                reason = self._attempt(scene, choice)
                if not reason:
                    break
        return reason

    def _attempt(self, scene, grasps: dict[str, str]) -> str:
        """Take it by these grasps, lift it 10 cm, hold it, put it back: why that failed."""
        start = View(scene, self._world.restart())
        self._policy.reset(scene, self._seed)

        def each(skill: str, **args) -> tuple[SkillCall, ...]:
            return tuple(SkillCall(skill, arm, dict(args)) for arm in grasps)

        def move(dz: float) -> tuple[SkillCall, ...]:
            return each("move_by", offset=[0.0, 0.0, dz])

        take = tuple(
            SkillCall("grasp", arm, {"object": THING, "grasp": g}) for arm, g in grasps.items()
        )
        reason = self._run((take, move(LIFT_M)))
        if reason:
            return reason
        at = start.position(THING)[2]
        item = scene.object(THING)
        for state in self._hold(HELD_S):
            view = View(scene, state)
            if not all(view.grasped(THING, arm) for arm in grasps):
                return "it slips"
            if view.position(THING)[2] < at + LIFTED_M or view.touching(THING, "table"):
                return "it hangs too low"
        for arm, name in grasps.items():
            width = next(g.width_m for g in item.grasps if g.name == name)
            opening = float(view.state.gripper_opening[ARMS.index(arm)])
            if abs(opening - width) > WIDTH_M:
                return f"held {opening * 1e3:.0f} mm wide, declared {width * 1e3:.0f}"
        back = (each("place", object=THING, pose=start.pose(THING).tolist()),)
        if len(grasps) > 1:
            back = (move(0.001 - LIFT_M), each("open"), move(LIFT_M))
        reason = self._run(back)
        if reason:
            return reason
        view = View(scene, self._hold(HELD_S)[-1])
        if view.tilt(THING) > UPRIGHT_RAD or not view.supported_by(THING, "table"):
            return "it does not stand when put back"
        if not view.at_rest(THING) or view.touched_by_robot(THING):
            return "it is not let go"
        moved = float(np.linalg.norm(view.position(THING) - start.position(THING)))
        return f"put back {moved * 1e3:.0f} mm off" if moved > BACK_M else ""

    def _hold(self, seconds: float) -> list[WorldState]:
        state = self._world.state
        values = np.tile(state.command, (round(seconds / _PERIOD_S), 1))
        return self._world.step(ActionChunk(state.seq, values))

    def _run(self, steps: tuple[tuple[SkillCall, ...], ...]) -> str:
        """Let the policy carry out a plan; why it failed."""
        self._policy.accept(Plan(steps))
        for _ in range(_LIMIT):
            chunk = self._policy.infer(Observation(self._world.state))
            if chunk.needs_plan:
                return "" if chunk.detail["status"] == "done" else str(chunk.detail["reason"])
            self._world.step(chunk)
        return "the policy does not end"
