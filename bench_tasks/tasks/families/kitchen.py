"""What the kitchen tasks share: where things are relative to others, and who carries them."""

from __future__ import annotations

import numpy as np

from bench_tasks.tasks.base import Check
from bench_tasks.view import View, compose, invert
from bench_tasks.vocabulary import ARMS, other_arm

__all__ = [
    "carried", "carried_stage", "hand_in", "inside", "let_go", "local", "only_by",
    "side",
]


def side(arm: str) -> float:
    """Sign of y on the arm's side of the table."""
    return 1.0 if arm == "left" else -1.0


def local(view: View, name: str, frame: str) -> np.ndarray:
    """Pose (7,) of an object in another one's frame."""
    return compose(invert(view.pose(frame)), view.pose(name))


def hand_in(view: View, arm: str, frame: str) -> np.ndarray:
    """Position (3,) of an arm's TCP in an object's frame, m."""
    return compose(invert(view.pose(frame)), view.state.ee_pose[ARMS.index(arm)])[:3]


def inside(view: View, name: str, box: str) -> bool:
    """Whether the object's centre is over the box, which carries it while the table does not.

    Both centres may be at any height: something in a tall box is lower than the box's middle.
    """
    half = view.scene.object(box).half_size_m
    x, y, _ = local(view, name, box)[:3]
    return bool(
        abs(x) < half[0] and abs(y) < half[1]
        and view.touching(name, box) and not view.touching(name, "table")
    )


def carried(view: View, name: str, arm: str) -> bool:
    """Whether the arm holds the object and nothing else touches it."""
    others = [o.name for o in view.scene.objects if o.name != name]
    return view.grasped(name, arm) and not any(
        view.touching(name, other) for other in ("table", *others)
    )


def carried_stage(name: str, arm: str, after: tuple[str, ...] = ()) -> Check:
    """The stage that the arm has carried the object."""
    return Check(
        f"{name} carried by the {arm} arm", lambda v: carried(v, name, arm), after=after
    )


def only_by(name: str, arm: str) -> Check:
    """The condition that the other arm does not take the object off the table."""
    other = other_arm(arm)
    return Check(
        f"{name} not taken by the {other} arm",
        lambda v: not v.grasped(name, other) or v.touching(name, "table"),
    )


def let_go(*names: str) -> Check:
    """The condition that no part of the robot touches any of these."""
    return Check("let go", lambda v: not any(v.touched_by_robot(name) for name in names))
