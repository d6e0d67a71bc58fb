"""A bar that only one arm reaches, to a place that only the other arm reaches."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench_tasks.tasks.base import Check, Goal, Layout, ObjectSpec
from bench_tasks.tasks.families.handover import HandoverTask
from bench_tasks.tasks.families.layouts import upright
from bench_tasks.view import View
from bench_tasks.vocabulary import ARMS, ObjectInfo, Scene, SkillCall, other_arm

ON_PAD_M = 0.05
BROUGHT = "brought to the pad by the receiver"


def _on_pad(view: View) -> bool:
    return bool(np.linalg.norm((view.position("bar") - view.position("pad"))[:2]) < ON_PAD_M)


class HandoverBlock(HandoverTask):
    """Sequential work: take, meet, pass on, put down."""

    version = 2
    name = "handover_block"
    tier = 2
    summary = "take the bar with one arm, pass it to the other in the air, put it on the pad"
    item = "bar"

    def objects(self) -> tuple[ObjectSpec, ...]:
        """The bar and the pad it belongs on."""
        return (
            ObjectSpec("bar", "bar", "orange", {"length": 0.20, "width": 0.03}),
            ObjectSpec("pad", "pad", "blue", {"size": 0.16}),
        )

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """The giver is drawn; bar and pad lie on opposite sides, far from the middle."""
        giver = ARMS[int(rng.integers(2))]
        side = 1.0 if giver == "left" else -1.0
        bar = upright(
            rng.uniform(0.40, 0.52), side * rng.uniform(0.34, 0.42), objects["bar"].half_size_m[2],
            rng.uniform(-0.35, 0.35),
        )
        pad = upright(
            rng.uniform(0.40, 0.52), -side * rng.uniform(0.34, 0.42), objects["pad"].half_size_m[2]
        )
        receiver = other_arm(giver)
        return Layout(
            {"bar": bar, "pad": pad},
            f"The orange bar lies on the {giver} side, the blue pad on the {receiver} side. "
            f"Take the bar with the {giver} arm, pass it to the {receiver} arm in the air, and "
            "put it down on the pad.",
            params={"giver": giver, "receiver": receiver},
            reach={"bar": (giver,)},
            paraphrases=(
                f"Bring the orange bar from the {giver} side to the blue pad on the {receiver} "
                f"side: the {giver} hand picks it up, the {receiver} hand takes it over in "
                "mid-air and lays it on the pad.",
                f"Hand the orange bar over. {giver.capitalize()} arm: pick it up. "
                f"{receiver.capitalize()} arm: take it from the other hand above the table, then "
                "lay it flat on the blue pad and let go.",
            ),
        )

    def grasp_of(self, scene: Scene, arm: str) -> str:
        """Each hand takes the end at its own side."""
        return f"{arm}_end"

    def meeting_quat(self, scene: Scene) -> list[float]:
        """Along y."""
        return [1.0, 0.0, 0.0, 0.0]

    def goal(self, scene: Scene) -> Goal:
        """On the pad, let go, after it went from hand to hand in the air."""
        flat = scene.object("bar").half_size_m[2] + 0.01
        return Goal(
            (
                Check("on the pad", _on_pad),
                Check("on the table", lambda v: v.supported_by("bar", "table")),
                Check(
                    "lying flat",
                    lambda v: v.lean("bar") < 0.15 and bool(v.position("bar")[2] < flat),
                ),
                Check("let go", lambda v: not v.touched_by_robot("bar")),
            ),
            after=("in the receiver's hand alone", BROUGHT),
        )

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """As every handover, then brought to the pad by the receiver."""
        return (
            *super().stages(scene),
            Check(
                BROUGHT,
                lambda v: _on_pad(v) and self.in_receivers_hand_alone(v, off_table=False),
                after=("in the receiver's hand alone",),
            ),
        )

    def is_finished(self, view: View) -> bool:
        """It lies on the pad."""
        return _on_pad(view)

    def finish(self, view: View) -> list[tuple[SkillCall, ...]]:
        """The receiver lays it on the pad and goes home."""
        receiver = view.scene.params["receiver"]
        pose = [
            *view.position("pad")[:2].tolist(), view.scene.object("bar").half_size_m[2],
            *self.meeting_quat(view.scene),
        ]
        place = SkillCall("place", receiver, {"object": "bar", "pose": pose})
        return [(place,), (SkillCall("home", receiver),)]


TASK = HandoverBlock()
