"""Memory probe: one of three drawers was open, and all are closed; open it again."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench_tasks.probes.talk import put
from bench_tasks.tasks.base import (
    AFTER,
    Ask,
    Check,
    Goal,
    Happening,
    Layout,
    MoveObjects,
    ObjectSpec,
    Show,
    Wait,
)
from bench_tasks.tasks.families.carry import Step
from bench_tasks.tasks.families.layouts import arm_for, nearest_first, upright
from bench_tasks.tasks.families.memory import MemoryTask, name_of
from bench_tasks.view import View
from bench_tasks.vocabulary import ObjectInfo, Scene, SkillCall

DRAWERS = {"left_drawer": 0.24, "middle_drawer": 0.0, "right_drawer": -0.24}
"""Drawer -> y of its slot, m."""
SLOT_X_M = 0.54
BEHIND_M = 0.003
"""Half of this is between a closed drawer and the stop of its slot."""
PULL_M, OPEN_M, SEEN_OPEN_M, CLOSED_M = 0.075, 0.055, 0.03, 0.012


OTHERS = ("kitchen_drawer", "window", "left_door")
"""What only people speak of."""


def _slot(drawer: str) -> str:
    return drawer.replace("drawer", "slot")


def _pulled(view: View, drawer: str) -> float:
    """How far a drawer stands out of its slot, m."""
    return float(view.scene.params["closed_x_m"] - view.position(drawer)[0])


class ReopenDrawer(MemoryTask):
    """The drawers are alike, and closed ones look the same whichever was open."""

    name = "reopen_drawer"
    summary = "one of three drawers was open before all were closed; open that one again"

    def objects(self) -> tuple[ObjectSpec, ...]:
        """Three drawers in their slots."""
        return (
            *(ObjectSpec(name, "drawer", "white") for name in DRAWERS),
            *(ObjectSpec(_slot(name), "slot", "brown") for name in DRAWERS),
        )

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """Which one is open is drawn, and how far."""
        target = list(DRAWERS)[int(rng.integers(len(DRAWERS)))]
        slot, drawer = objects[_slot(target)].half_size_m, objects[target].half_size_m
        wall_m = 0.006
        closed = SLOT_X_M + slot[0] - wall_m - BEHIND_M / 2 - drawer[0]
        x = {name: closed for name in DRAWERS}
        x[target] -= rng.uniform(0.06, 0.075)
        poses = {name: upright(x[name], y, drawer[2]) for name, y in DRAWERS.items()}
        slots = {_slot(name): upright(SLOT_X_M, y, slot[2]) for name, y in DRAWERS.items()}
        return Layout(
            {**poses, **slots},
            self.instructed(
                "Of the three drawers one was open before all were closed. Open it again: take it "
                "by its knob, pull it towards you by at least six centimetres, and let go. Touch "
                "no other drawer.",
                f"Before, the {name_of(target)} was open.",
            ),
            self.drawn(rng, target=target, closed_x_m=float(closed)),
            reach={name: nearest_first(pose) for name, pose in poses.items()},
        )

    def rumour(self, rng: np.random.Generator, own: bool) -> str:
        """Which of the drawers is or was open, or another thing."""
        names = list(DRAWERS) if own else OTHERS
        kind = ("lies", "was")[int(rng.integers(2))]
        return put(kind, 0, object=name_of(names[int(rng.integers(len(names)))]), place="open")

    def prologue(self, scene: Scene) -> tuple[Happening, ...]:
        """The open one is seen and closed, people talk, and it is asked about."""
        target = scene.params["target"]
        z = scene.object(target).half_size_m[2]
        closed = upright(scene.params["closed_x_m"], DRAWERS[target], z)
        return (
            Wait(0.2), Show("one is open"), MoveObjects({target: tuple(closed.tolist())}),
            Wait(0.3), Show("all are closed"), self.talk(scene), self.asked(scene),
        )  # fmt: skip

    def sights(self, view: View) -> tuple[str, ...]:
        """Which drawers are open."""
        return tuple(
            f"The {name_of(drawer)} is open." for drawer in DRAWERS
            if _pulled(view, drawer) > SEEN_OPEN_M
        )

    def asked(self, scene: Scene) -> Ask:
        """Which one was open."""
        names = tuple(map(name_of, DRAWERS))
        gold = name_of(scene.params["target"])
        return self.question(
            f"Which of these was open before: {', '.join(names)}?", names, gold,
            (f"The {gold} is open.",),
        )

    def asked_after(self, view: View) -> Ask:
        """Which one was open last: that which the arms have pulled out, if they have."""
        pulled = [drawer for drawer in DRAWERS if _pulled(view, drawer) > SEEN_OPEN_M]
        gold = name_of(pulled[0] if pulled else view.scene.params["target"])
        names = tuple(map(name_of, DRAWERS))
        return self.question(
            f"Which of these was open before: {', '.join(names)}?", names, gold,
            self.evidence_after(view.scene), AFTER,
        )

    def evidence_after(self, scene: Scene) -> tuple[str, ...]:
        """All sights of open ones, when it is asked in the end."""
        return tuple(f"The {name_of(drawer)} is open." for drawer in DRAWERS)

    def cleared(self, view: View) -> dict[str, np.ndarray]:
        """All are closed again."""
        x = view.scene.params["closed_x_m"]
        return {
            name: upright(x, y, view.scene.object(name).half_size_m[2])
            for name, y in DRAWERS.items() if _pulled(view, name) > SEEN_OPEN_M
        }  # fmt: skip

    def goal(self, scene: Scene) -> Goal:
        """Open, in its slot, the others closed, let go."""
        target = scene.params["target"]
        y = DRAWERS[target]
        return Goal(
            (
                Check("open", lambda v: _pulled(v, target) > OPEN_M),
                Check(
                    "in its slot",
                    lambda v: v.supported_by(target, "table")
                    and abs(v.position(target)[1] - y) < 0.01
                    and _pulled(v, target) < 0.085,
                ),
                Check(
                    "the others closed",
                    lambda v: all(_pulled(v, d) < CLOSED_M for d in DRAWERS if d != target),
                ),
                Check("let go", lambda v: not v.touched_by_robot(target)),
            ),
            after=("pulled by its knob",),
        )

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """Held, then pulled by the hand that holds it."""
        target = scene.params["target"]
        return (
            Check("held", lambda v: v.holder(target) is not None),
            Check(
                "pulled by its knob",
                lambda v: v.holder(target) is not None and 0.02 < _pulled(v, target) < 0.05,
                after=("held",),
            ),
        )

    def invariants(self, scene: Scene) -> tuple[Check, ...]:
        """To try another drawer is guessing."""
        others = [drawer for drawer in DRAWERS if drawer != scene.params["target"]]
        return (
            Check(
                "no other drawer touched",
                lambda v: not any(v.touched_by_robot(drawer) for drawer in others),
            ),
        )

    def act(self, view: View, turn: int, choice: str) -> list[Step]:
        """Pull the chosen one out."""
        drawer = choice.replace(" ", "_")
        if _pulled(view, drawer) > OPEN_M:
            return []
        arm = arm_for(view, drawer)
        pull = SkillCall("move_by", arm, {"offset": [_pulled(view, drawer) - PULL_M, 0.0, 0.0]})
        return [
            (SkillCall("grasp", arm, {"object": drawer}),), (pull,), (SkillCall("open", arm),),
            (SkillCall("home", arm),),
        ]  # fmt: skip


class ReopenDrawerTold(ReopenDrawer):
    """The control."""

    name = "reopen_drawer_told"
    told = True
    summary = f"{ReopenDrawer.name}, and the instruction tells which one was open"


TASK, CONTROL = ReopenDrawer(), ReopenDrawerTold()
