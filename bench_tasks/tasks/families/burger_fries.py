"""What the two tasks with burger and fries share: one thing for each arm, a tray for both."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench_tasks.tasks.base import Check, Goal, Layout, ObjectSpec, Task
from bench_tasks.tasks.families.carry import Carry
from bench_tasks.tasks.families.kitchen import (
    carried_stage,
    inside,
    let_go,
    local,
    only_by,
    side,
)
from bench_tasks.tasks.families.layouts import upright
from bench_tasks.view import View, compose
from bench_tasks.vocabulary import ARMS, ObjectInfo, Scene, other_arm

__all__ = ["BurgerFries"]

THINGS = ("burger", "fries")
TRAY_FLOOR_M = 0.008
UPRIGHT_RAD = 0.15
TRAY_MOVED_M = 0.06


def _tray_in_place(view: View) -> bool:
    moved = (view.position("tray") - view.start.position("tray"))[:2]
    return bool(
        np.linalg.norm(moved) < TRAY_MOVED_M
        and view.supported_by("tray", "table") and view.tilt("tray") < 0.1
    )


class BurgerFries(Task):
    """Burger and fries lie on opposite sides; each arm puts the thing on its side on the tray."""

    version = 2
    tier = 2
    mode = "parallel"
    time_limit_s = 60.0

    def objects(self) -> tuple[ObjectSpec, ...]:
        """The tray and what belongs on it."""
        tray = {"length": 0.30, "width": 0.20, "height": 0.03}
        return (
            ObjectSpec("tray", "tray", "gray", tray),
            ObjectSpec("burger", "burger", "orange"),
            ObjectSpec("fries", "fries", "red"),
        )

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """The tray in the middle; which side the burger is on is drawn."""
        burger_arm = ARMS[int(rng.integers(2))]
        arms = {"burger": burger_arm, "fries": other_arm(burger_arm)}
        tray = objects["tray"].half_size_m
        poses = {
            "tray": upright(
                rng.uniform(0.43, 0.50), rng.uniform(-0.02, 0.02), tray[2], rng.uniform(-0.1, 0.1)
            )
        }
        for name, arm in arms.items():
            half = objects[name].half_size_m
            nearest = tray[1] + 0.02 + max(half[:2]) + 0.07
            poses[name] = upright(
                rng.uniform(0.40, 0.54), side(arm) * rng.uniform(nearest, 0.40), half[2],
                rng.uniform(-0.4, 0.4),
            )
        where = (
            f"The burger is on the {arms['burger']} side, the fries are on the {arms['fries']} "
            "side, the tray is in the middle. "
        )
        return Layout(
            poses,
            f"{where}Put both upright on the tray, each with the arm of its side, and let go."
            f"{self.note}",
            params={"arms": arms},
            reach={name: (arm,) for name, arm in arms.items()},
            paraphrases=(
                f"Serve the meal: the {arms['burger']} arm puts the burger on the tray, the "
                f"{arms['fries']} arm the fries, both standing upright and released.{self.note}",
                f"{where}Each arm takes what lies on its own side and stands it on the tray "
                f"without moving the tray.{self.note}",
            ),
        )

    def goal(self, scene: Scene) -> Goal:
        """Both stand on the tray, which is where it was; nothing is held."""
        arms = scene.params["arms"]
        return Goal(
            (
                *(Check(f"{n} on the tray", lambda v, n=n: inside(v, n, "tray")) for n in THINGS),
                *(
                    Check(f"{n} upright", lambda v, n=n: v.tilt(n) < UPRIGHT_RAD)
                    for n in THINGS
                ),
                Check("tray in its place", _tray_in_place),
                let_go("tray", *THINGS),
            ),
            after=tuple(carried_stage(name, arms[name]).name for name in THINGS),
        )

    def invariants(self, scene: Scene) -> tuple[Check, ...]:
        """Neither is taken by the arm of the other side."""
        return tuple(only_by(name, arm) for name, arm in scene.params["arms"].items())

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """Each carried by its arm, each on the tray."""
        arms = scene.params["arms"]
        carried = [carried_stage(name, arms[name]) for name in THINGS]
        served = [
            Check(
                f"{name} served",
                lambda v, n=name: inside(v, n, "tray") and not v.touched_by_robot(n),
                after=(stage.name,),
            )
            for name, stage in zip(THINGS, carried, strict=True)
        ]
        return (*carried, *served)

    def todo(self, view: View) -> list[Carry]:
        """What must still be brought to its place on the tray; upright, as the tray lies."""
        arms, tray = view.scene.params["arms"], view.scene.object("tray").half_size_m
        carries = []
        for name in THINGS:
            half = view.scene.object(name).half_size_m
            y = side(arms[name]) * 0.47 * tray[1]
            place = compose(view.pose("tray"), np.array([0, y, 0, 1, 0, 0, 0]))[:3]
            place[2] = TRAY_FLOOR_M + half[2]
            near = np.linalg.norm(local(view, name, "tray")[:2] - [0, y]) < 0.04
            served = near and inside(view, name, "tray") and not view.touched_by_robot(name)
            if not served:
                carries.append(Carry(name, tuple(float(v) for v in place), arms[name]))
        return carries
