"""Memory probe: lay out a block the way somebody likes it: which, where, by which hand, how fast.

The person says what he likes over many episodes, before and after acts, and changes his mind. It is
met by what the arms did: the block that was carried, the mat on which it stands, the hand that
held it and the peak speed of that hand on the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bench_tasks.probes.preference_state import ASPECTS
from bench_tasks.tasks.base import (
    Ask,
    Check,
    Goal,
    Happening,
    Layout,
    ObjectSpec,
    Task,
    Tell,
)
from bench_tasks.tasks.families.carry import Step
from bench_tasks.tasks.families.household import ACTS, Day, day
from bench_tasks.tasks.families.layouts import nearest_first, upright
from bench_tasks.tasks.families.memory import MAT_M, put_down_on
from bench_tasks.view import View
from bench_tasks.vocabulary import ARMS, Event, ObjectInfo, Question, Scene, SkillCall

BLOCKS = {f"the {colour} block": f"{colour}_block" for colour in ("red", "green", "blue")}
MATS = {f"the {side} mat": f"{side}_mat" for side in ("left", "middle", "right")}
HANDS = {f"the {arm} hand": arm for arm in ARMS}
BLOCKS_X_M, MATS_X_M, APART_M = 0.36, 0.52, 0.12
SLOW_M_S, FAST_M_S = 0.20, 0.24
"""Slow is a peak speed of the hand below the one, fast above the other, while it carries."""
SLOW_PACE = 0.5
LIFTED_M, MOVED_M = 0.02, 0.04


class Carried:
    """Which blocks were carried by which hands how fast, which were moved, and where they lie."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._peaks: dict[tuple[str, str], float] = {}
        """(block, arm) -> peak speed of the hand, m/s."""
        self._view: View | None = None
        self.asked: list[str] = []

    def on_event(self, event: Event) -> None:
        """Note what the planner asked for."""
        if event.kind == "plan" and event.data.get("asks") and not event.data.get("refused"):
            self.asked.append(event.data["asks"])

    def on_state(self, view: View) -> None:
        """Note which hand carries what, and how fast."""
        last, self._view = self._view, view
        if last is None:
            return
        period_s = (view.state.stamp_ns - last.state.stamp_ns) / 1e9
        for k, arm in enumerate(ARMS):
            for block in BLOCKS.values():
                high = view.position(block)[2] - view.scene.object(block).half_size_m[2]
                if high > LIFTED_M and view.grasped(block, arm):
                    way = view.state.ee_pose[k, :3] - last.state.ee_pose[k, :3]
                    speed = float(np.linalg.norm(way)) / period_s
                    key = (block, arm)
                    self._peaks[key] = max(self._peaks.get(key, 0.0), speed)

    def done(self) -> dict[str, str]:
        """Aspect -> what was done, "" where that is none of the values, or more than one."""
        if self._view is None:
            return dict.fromkeys(ASPECTS, "")
        carried = {block for block, _ in self._peaks}
        moved = {
            block for block in BLOCKS.values()
            if np.linalg.norm((self._view.position(block) - self._view.start.position(block))[:2])
            > MOVED_M
        }  # fmt: skip
        block = next(iter(carried)) if len(carried) == 1 and moved <= carried else ""
        peak = max(self._peaks.values(), default=0.0)
        pace = "slow" if 0.0 < peak < SLOW_M_S else "fast" if peak > FAST_M_S else ""
        arms = {arm for _, arm in self._peaks}
        return {
            "thing": _name(BLOCKS, block),
            "place": _name(MATS, put_down_on(self._view, block) if block else None),
            "hand": _name(HANDS, next(iter(arms)) if len(arms) == 1 else None), "pace": pace,
        }

    def result(self) -> dict[str, Any]:
        """What was done, and the speed that it is judged by."""
        return {**self.done(), "peak_m_s": max(self._peaks.values(), default=0.0),
                "asked": list(self.asked)}  # fmt: skip


def _name(names: Mapping[str, str], wanted: str | None) -> str:
    return next((words for words, name in names.items() if name == wanted), "")


class LayOut(Task):
    """Four choices an act, of which nothing in view tells; who guesses is right once in 36."""

    name = "lay_out"
    mode = "single"
    kind = "probe"
    apart = True
    summary = "lay out a block as somebody likes it: which, where, by which hand and how fast"

    def objects(self) -> tuple[ObjectSpec, ...]:
        """Three blocks and three mats."""
        return (
            *(ObjectSpec(b, "block", b.split("_")[0], {"size": 0.04}) for b in BLOCKS.values()),
            *(ObjectSpec(mat, "pad", "gray", {"size": MAT_M}) for mat in MATS.values()),
        )

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """The blocks in a row whose order is drawn, the mats in another one beyond."""
        poses = {}
        order = [list(BLOCKS.values())[int(k)] for k in rng.permutation(len(BLOCKS))]
        for block, y in zip(order, (APART_M, 0.0, -APART_M), strict=True):
            x, dy = BLOCKS_X_M + rng.uniform(-0.01, 0.01), rng.uniform(-0.01, 0.01)
            half = objects[block].half_size_m[2]
            poses[block] = upright(x, y + dy, half, rng.uniform(-0.3, 0.3))
        for mat, y in zip(MATS.values(), (APART_M, 0.0, -APART_M), strict=True):
            poses[mat] = upright(MATS_X_M, y, 0.0005)
        return Layout(
            poses,
            "Lay out one block on one of the three mats for the person who asks for it, the way "
            "they like it: which block, on which mat, carried by which hand, and how fast: slow "
            f"is a hand that stays below {SLOW_M_S:g} m/s while it carries, fast one that goes "
            f"beyond {FAST_M_S:g} m/s. You may ask them once for one of these before you act. "
            "Move no other block.",
            reach={block: nearest_first(poses[block]) for block in order},
        )

    def prologue(self, scene: Scene) -> tuple[Happening, ...]:
        """People talk, and one of them asks for it."""
        return (Tell(day(scene.seed).lines),)

    def group(self, scene: Scene) -> str:
        """The household."""
        return str(scene.seed // ACTS)

    def recall(self, view: View) -> Ask:
        """What they like."""
        now = day(view.scene.seed)
        return Ask(
            Question(_about(now), "What does the person like?", ASPECTS), now.gold, 5 / 12,
            now.evidence, now.asks,
        )  # fmt: skip

    def clarify(self, scene: Scene, asked: str) -> tuple[Tell, ...]:
        """They say it, while it is learned."""
        now = day(scene.seed)
        return (_told(now, asked),) if now.scenario.learning and asked in ASPECTS else ()

    def react(self, view: View, turn: int) -> tuple[Happening, ...]:
        """They say what was wrong, and what was right by luck, while it is learned."""
        now, history = day(view.scene.seed), view.history
        done = history.done()
        if not now.scenario.learning or not done["place"]:
            return ()
        return tuple(
            _told(now, aspect) for aspect in ASPECTS
            if done[aspect] != now.gold[aspect]
            or aspect not in now.known and aspect not in history.asked
        )  # fmt: skip

    def history(self, scene: Scene) -> Carried:
        """What the hands did."""
        return Carried()

    def goal(self, scene: Scene) -> Goal:
        """All of it as they like it, let go."""
        gold = day(scene.seed).gold

        def as_liked(aspect: str) -> Check:
            return Check(f"the {aspect}", lambda v: v.history.done()[aspect] == gold[aspect])

        return Goal(tuple(as_liked(aspect) for aspect in ASPECTS), after=("carried",))

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """Something carried, and put down on a mat."""
        return (
            Check("carried", lambda v: bool(v.history.done()["hand"])),
            Check("put down on a mat", lambda v: bool(v.history.done()["place"])),
        )

    def expert(self, view: View, turn: int) -> list[Step]:
        """Do as they like it."""
        return self.act_on(view, turn, day(view.scene.seed).gold)

    def act_on(self, view: View, turn: int, choices: dict[str, str]) -> list[Step]:
        """Take the block to the mat as was chosen."""
        block, mat = BLOCKS[choices["thing"]], MATS[choices["place"]]
        arm = HANDS[choices["hand"]]
        if put_down_on(view, block) == mat:
            return []
        at = view.position(mat)
        place: dict[str, Any] = {
            "object": block,
            "pose": [float(at[0]), float(at[1]), view.scene.object(block).half_size_m[2]],
        }
        if choices["pace"] == "slow":
            place["pace"] = SLOW_PACE
        steps: list[Step] = [(SkillCall("place", arm, place),), (SkillCall("home", arm),)]
        if view.grasped(block, arm):
            return steps
        return [(SkillCall("grasp", arm, {"object": block}),), *steps]


def _about(now: Day) -> str:
    return f"{now.scenario.phase}/{now.scenario.number}"


def _told(now: Day, aspect: str) -> Tell:
    return Tell(((now.person, now.said[aspect], f"{_about(now)}/{aspect}"),))


TASK = LayOut()
