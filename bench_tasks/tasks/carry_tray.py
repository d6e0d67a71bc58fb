"""A tray with a can standing on it, carried by both arms to a marked place."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench_tasks.tasks.base import Check, Goal, Layout, ObjectSpec, Task
from bench_tasks.tasks.families.layouts import upright
from bench_tasks.tasks.families.lifting import in_both_hands, on_fingers_alone, rise
from bench_tasks.view import REST_LINEAR_M_S, View, compose, invert
from bench_tasks.vocabulary import ARMS, ObjectInfo, Scene, SkillCall

AT_MARK_M = 0.04
NEAR_M = 0.06
"""So near to where it began, it is being taken or put back."""
CARRY_HEIGHT_M = 0.10
FALLEN_RAD = 0.5
TRAY_FLOOR_M = 0.008
"""Thickness of the tray's floor, whatever its size."""
NEAR_X_M, FAR_X_M = (0.36, 0.40), (0.55, 0.59)
"""The tray starts on one of these strips and the mark is on the other, in view in front of it."""


def _from_mark(view: View) -> float:
    return float(np.linalg.norm((view.position("tray") - view.position("mark"))[:2]))


def _on_tray(view: View) -> bool:
    """Whether the can stands on the tray's floor, upright in it and between its walls."""
    tray, can = view.scene.object("tray").half_size_m, view.scene.object("can").half_size_m
    x, y, z = compose(invert(view.pose("tray")), view.pose("can"))[:3]
    low = TRAY_FLOOR_M - tray[2] + can[2]
    return bool(
        abs(x) < tray[0] - can[0] / 2
        and abs(y) < tray[1] - can[1] / 2
        and abs(z - low) < 0.01
        and view.touching("can", "tray")
        and view.tilt("can") < 0.1
    )


class CarryTray(Task):
    """Simultaneous work: both hands lift, move and set down together, or the can falls."""

    version = 2
    name = "carry_tray"
    tier = 2
    mode = "simultaneous"
    summary = "carry the tray with both arms to the mark; the can on it must stay standing"
    rests_on = {"can": "tray"}

    def objects(self) -> tuple[ObjectSpec, ...]:
        """The tray, the can on it and the mark."""
        return (
            ObjectSpec("tray", "tray", "brown"),
            ObjectSpec("can", "can", "red", {"radius": 0.028, "height": 0.08}),
            ObjectSpec("mark", "pad", "blue", {"size": 0.08}),
        )

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """Near or far from the arms, the can somewhere on the tray, the mark on the other side."""
        tray, can = objects["tray"].half_size_m, objects["can"].half_size_m
        strips = [NEAR_X_M, FAR_X_M]
        if rng.integers(2):
            strips.reverse()
        pose = upright(
            rng.uniform(*strips[0]), rng.uniform(-0.05, 0.05), tray[2], rng.uniform(-0.1, 0.1)
        )
        mark = upright(
            rng.uniform(*strips[1]), rng.uniform(-0.05, 0.05), objects["mark"].half_size_m[2]
        )
        # Nearer to an end it would be in the way of the hand that takes it.
        local = upright(
            rng.uniform(-0.05, 0.05), rng.uniform(-0.02, 0.02), TRAY_FLOOR_M - tray[2] + can[2]
        )
        return Layout(
            {"tray": pose, "can": compose(pose, local), "mark": mark},
            "Carry the brown tray with both hands, one at each end, and put it down with its "
            "middle on the blue mark. The red can on it must stay standing; do not touch it.",
            reach={"tray": ARMS},
            paraphrases=(
                "Take the tray by its two ends with both arms, lift it level, move it over and set "
                "it down centred on the blue mark. Nothing on it may fall over or be touched.",
                "The brown tray belongs on the blue mark. Move it there with both hands without "
                "sliding it, so gently that the red can on it does not tip, and let go.",
            ),
        )

    def goal(self, scene: Scene) -> Goal:
        """The tray stands on the mark, let go, the can still on it, after it went by air."""
        return Goal(
            (
                Check("on the mark", lambda v: _from_mark(v) < AT_MARK_M),
                Check(
                    "tray on the table",
                    lambda v: v.supported_by("tray", "table")
                    and v.tilt("tray") < 0.05
                    and rise(v, "tray") < 0.01,
                ),
                Check("can standing on the tray", _on_tray),
                Check("let go", lambda v: not v.touched_by_robot("tray")),
            ),
            after=("carried over the mark in both hands",),
        )

    def invariants(self, scene: Scene) -> tuple[Check, ...]:
        """The can neither falls over nor off, nobody touches it, and the tray goes by air."""

        def slides(view: View) -> bool:
            moved = np.linalg.norm((view.position("tray") - view.start.position("tray"))[:2])
            return bool(
                view.touching("tray", "table")
                and np.linalg.norm(view.velocity("tray")[:2]) > REST_LINEAR_M_S
                and moved > NEAR_M
                and _from_mark(view) > AT_MARK_M
            )

        return (
            Check("tray not slid", lambda v: not slides(v)),
            Check("can not fallen", lambda v: v.tilt("can") < FALLEN_RAD),
            Check("can not on the table", lambda v: not v.touching("can", "table")),
            Check("can not touched", lambda v: not v.touched_by_robot("can")),
        )

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """Each end held, lifted where it was, carried over the mark: the way by air."""

        def in_air(view: View) -> bool:
            return (
                in_both_hands(view, "tray")
                and on_fingers_alone(view, "tray")
                and rise(view, "tray") > 0.02
            )

        return (
            Check("left hand on", lambda v: v.grasped("tray", "left")),
            Check("right hand on", lambda v: v.grasped("tray", "right")),
            Check(
                "lifted in both hands where it was",
                lambda v: in_air(v)
                and bool(
                    np.linalg.norm((v.position("tray") - v.start.position("tray"))[:2]) < NEAR_M
                ),
            ),
            Check(
                "carried over the mark in both hands",
                lambda v: in_air(v) and _from_mark(v) < AT_MARK_M,
                after=("lifted in both hands where it was",),
            ),
        )

    def expert(self, view: View, turn: int) -> list[tuple[SkillCall, ...]]:
        """Take, lift, move over, lower, let go, both arms alike in every step."""
        if in_both_hands(view, "tray"):
            up = CARRY_HEIGHT_M - rise(view, "tray")
            along = (view.position("mark") - view.position("tray"))[:2].tolist()
            # Two millimetres are left to fall, so that nothing is pressed onto the table.
            down = -(CARRY_HEIGHT_M - 0.002)
            return [
                _together("move_by", offset=[0.0, 0.0, up]),
                _together("move_by", offset=[*along, 0.0]),
                _together("move_by", offset=[0.0, 0.0, down]),
                _together("open"),
                _together("move_by", offset=[0.0, 0.0, 0.1]),
                _together("home"),
            ]
        if any(view.grasped("tray", arm) for arm in ARMS):
            return [_together("open")]
        if _from_mark(view) < AT_MARK_M / 2:
            return []
        return [
            tuple(
                SkillCall("grasp", arm, {"object": "tray", "grasp": f"{arm}_rim"}) for arm in ARMS
            )
        ]


def _together(skill: str, **args) -> tuple[SkillCall, ...]:
    return tuple(SkillCall(skill, arm, dict(args)) for arm in ARMS)


TASK = CarryTray()
