"""A microphone, taken by its head with one arm and handed to the other, handle first."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench_tasks.tasks.base import Check, Goal, Layout, ObjectSpec
from bench_tasks.tasks.families.handover import HandoverTask
from bench_tasks.tasks.families.layouts import upright
from bench_tasks.view import View, compose, invert, quat_from_yaw
from bench_tasks.vocabulary import ARMS, ObjectInfo, Scene, other_arm

HELD_UP_M = 0.10


def _held_by_the_handle(view: View, arm: str) -> bool:
    """Whether the hand is where the handle is: on the headless half, and not beside it."""
    hand = compose(invert(view.pose("mic")), view.state.ee_pose[ARMS.index(arm)])[:3]
    radius, half_length, _ = view.scene.object("mic").half_size_m
    return bool(-half_length < hand[1] < half_length - 2 * radius and abs(hand[0]) < 0.02)


class HandoverMic(HandoverTask):
    """Sequential work that ends in the other hand: whoever speaks must get the handle."""

    name = "handover_mic"
    tier = 2
    summary = "take the microphone by its head and hand it to the other arm, handle first"
    item = "mic"

    def objects(self) -> tuple[ObjectSpec, ...]:
        """The microphone."""
        return (ObjectSpec("mic", "microphone", "black"),)

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """The giver is drawn; the microphone lies on its side, the handle towards the other arm."""
        giver = ARMS[int(rng.integers(2))]
        receiver = other_arm(giver)
        side = 1.0 if giver == "left" else -1.0
        turn = 0.0 if giver == "left" else np.pi
        mic = upright(
            rng.uniform(0.38, 0.52), side * rng.uniform(0.22, 0.36), objects["mic"].half_size_m[2],
            turn + rng.uniform(-0.5, 0.5),
        )
        return Layout(
            {"mic": mic},
            f"The {giver} arm takes the black microphone by its round head and hands it over in "
            f"the air to the {receiver} arm, which takes it by the handle. At the end the "
            f"{receiver} arm alone holds it, at least 10 cm above the table.",
            params={"giver": giver, "receiver": receiver},
            reach={"mic": (giver,)},
            paraphrases=(
                f"Pass the microphone from the {giver} hand to the {receiver} hand above the "
                f"table: {giver} hand on the round head, {receiver} hand on the handle. The "
                f"{receiver} hand keeps it, 10 cm or more above the table.",
                f"Give the {receiver} arm the black microphone, handle first: grip its head with "
                f"the {giver} arm, let the {receiver} arm take the handle in mid-air, let go and "
                "keep it held up (10 cm at least).",
            ),
        )

    def grasp_of(self, scene: Scene, arm: str) -> str:
        """The giver takes the head, the receiver the handle."""
        return "head" if arm == scene.params["giver"] else "handle"

    def meeting_quat(self, scene: Scene) -> list[float]:
        """The handle towards the receiver."""
        return quat_from_yaw(0.0 if scene.params["giver"] == "left" else np.pi).tolist()

    def goal(self, scene: Scene) -> Goal:
        """Held up by the receiver alone, by the handle, after it went through the air."""
        giver, receiver = scene.params["giver"], scene.params["receiver"]
        parts = ("arm", "hand", "finger1", "finger2")
        others = ("table", f"{receiver}_arm", f"{receiver}_hand", *(f"{giver}_{p}" for p in parts))
        half = scene.object("mic").half_size_m[2]
        return Goal(
            (
                Check("in the receiver's hand", lambda v: v.grasped("mic", receiver)),
                Check("by the handle", lambda v: _held_by_the_handle(v, receiver)),
                Check("held up", lambda v: bool(v.position("mic")[2] - half >= HELD_UP_M)),
                Check("by nothing else", lambda v: not any(v.touching("mic", o) for o in others)),
            ),
            after=("in the receiver's hand alone",),
        )


TASK = HandoverMic()
