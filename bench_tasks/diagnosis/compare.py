"""What was named or where something was sent, compared with the reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench_tasks.diagnosis.reference import Reference
from bench_tasks.diagnosis.trace import Trace
from bench_tasks.view import compose, invert
from bench_tasks.vocabulary import ARMS, SkillCall

__all__ = [
    "LOCATED_M", "OF_ANOTHER", "SAME_M", "SAME_RAD", "Fault", "able", "hand_wrongly",
    "lost_at_target", "placed_wrongly", "where", "wrongly_named",
]  # fmt: skip

SAME_M, SAME_RAD = 0.015, 0.2
"""A pose that is no further than this from the reference's is the same."""
LOCATED_M = 0.07
"""Further than this, measured horizontally, a thing or place was located wrongly; less is a
parameter that is off. Things measure 3 to 6 cm: beyond this the hand is beside them."""
ANOTHER_M = 0.03
AT_TARGET_M = 0.10
OF_ANOTHER = "which is the place of"


@dataclass(frozen=True)
class Fault:
    """One thing that went wrong at a state.

    `weak`: it differs from the reference, which need not have done any harm. `mended` by a later
    "hold" or "put" of `object`, "done" or accepted "plan"; "" by nothing. `decide` gives kind and
    evidence where that takes long: only one fault is asked.
    """

    seq: int
    kind: str
    evidence: str
    object: str = ""
    mended: str = ""
    weak: bool = False
    decide: Callable[[], tuple[str, str]] | None = None

    @property
    def decided(self) -> tuple[str, str]:
        """Kind and evidence."""
        return (self.kind, self.evidence) if self.decide is None else self.decide()


def where(position: np.ndarray) -> str:
    """A position (3,) for an eye to read."""
    return "(" + ", ".join(f"{v:.3f}" for v in position[:3]) + ")"


def _look(trace: Trace, name: str) -> tuple[object, ...]:
    item = trace.scene.object(name)
    return (item.kind, item.color, *np.round(item.half_size_m, 3))


def wrongly_named(trace: Trace, name: str, reference: Reference) -> str:
    """The kind of fault that taking this thing is; "" when it may be taken."""
    if not reference.known or name in reference.objects or not reference.objects:
        return ""
    alike = any(_look(trace, name) == _look(trace, wanted) for wanted in reference.objects)
    if alike and trace.task.kind != "probe":  # a probe asks for the one that only looks alike
        return ""
    if name in trace.first.objects:
        return "sequencing"
    return "memory" if trace.task.kind == "probe" else "perception"


def placed_wrongly(
    trace: Trace, call: SkillCall, reference: Reference, actual: np.ndarray | None = None
) -> tuple[str, str] | None:
    """Kind and evidence of a target that is not the reference's; None when it is.

    `actual` (7,) stands in for the call's pose where actions are raw.
    """
    name = call.args["object"]
    pose = np.asarray(call.args["pose"] if actual is None else actual, dtype=np.float64)
    moves = reference.of(name) or trace.first.of(name)
    if not moves:
        return None
    if call.args.get("release", True):
        targets = [m.pose for m in [m for m in moves if m.released] or moves]
    else:  # on the way the reference has places of its own
        targets = [m.pose for m in moves] + [
            np.asarray(c.args["pose"], dtype=np.float64)
            for step in reference.steps for c in step
            if c.skill == "place" and c.args["object"] == name
        ]  # fmt: skip
    nearest = min(targets, key=lambda t: float(np.linalg.norm(t[:3] - pose[:3])))
    level = float(np.linalg.norm(nearest[:2] - pose[:2]))
    rise = float(pose[2] - nearest[2])
    turned = 0.0
    if pose.size == 7 and nearest.size == 7:
        turned = 2 * float(np.arccos(min(1.0, abs(float(nearest[3:] @ pose[3:])))))
    text = f"{name} was put at {where(pose)}"
    for move in (*reference.moves, *trace.first.moves):
        if move.object == name or not move.released or _look(trace, move.object) == _look(
            trace, name
        ):
            continue
        apart = float(np.linalg.norm(move.pose[:2] - pose[:2]))
        high = min(abs(float(move.pose[2] - pose[2])),
                   abs(_bottom(trace, move.object, move.pose) - _bottom(trace, name, pose)))
        own = level < ANOTHER_M and abs(rise) < SAME_M
        if apart < ANOTHER_M and high < 0.01 and not own:
            return "perception", f"{text}, {OF_ANOTHER} {move.object}"
    if level > LOCATED_M:
        return "perception", f"{text}, {level:.3f} m from where it belongs"
    if level > SAME_M or abs(rise) > SAME_M:
        return "action parameter", f"{text}, {level:.3f} m aside and {rise:+.3f} m in height"
    if turned > SAME_RAD:
        return "action parameter", f"{text}, turned by {turned:.2f} rad"
    return None


def _bottom(trace: Trace, name: str, pose: np.ndarray) -> float:
    """Height of a thing's lower end when it stands upright at a pose."""
    return float(pose[2] - trace.scene.object(name).half_size_m[2])


def lost_at_target(
    trace: Trace, call: SkillCall, reference: Reference, at: np.ndarray
) -> tuple[str, str] | None:
    """As `placed_wrongly`, of a thing lost so near its target that it must have struck something.

    None when it was lost further away.
    """
    if call.skill != "place":
        return None
    if np.linalg.norm(np.asarray(call.args["pose"])[:3] - at[:3]) > AT_TARGET_M:
        return None
    return placed_wrongly(trace, call, reference)


def hand_wrongly(call: SkillCall, reference: Reference) -> tuple[str, str] | None:
    """Kind and evidence of a hand target away from all of the reference's; None when it is not."""
    targets = [
        np.asarray(c.args["pose"], dtype=np.float64)
        for step in reference.steps for c in step
        if c.skill == "move_to" and c.arm == call.arm
    ]  # fmt: skip
    if not targets:
        return None
    pose = np.asarray(call.args["pose"], dtype=np.float64)
    near = min(targets, key=lambda t: float(np.linalg.norm(t[:3] - pose[:3])))
    level = float(np.linalg.norm(near[:2] - pose[:2]))
    turned = 2 * float(np.arccos(min(1.0, abs(float(near[3:] @ pose[3:])))))
    text = f"the {call.arm} hand was sent to {where(pose)}"
    if level > LOCATED_M:
        return "perception", f"{text}, {level:.3f} m aside of any target"
    if np.linalg.norm(near[:3] - pose[:3]) > SAME_M:
        return "action parameter", f"{text}, {np.linalg.norm(near[:3] - pose[:3]):.3f} m off"
    if turned > SAME_RAD:
        return "action parameter", f"{text}, turned by {turned:.2f} rad"
    return None


def able(trace: Trace, seq: int, call: SkillCall) -> list[str]:
    """The arms that could bring the TCP to where a call wants it, by inverse kinematics."""
    view = trace.view(seq)
    poses: list[np.ndarray] = []
    if call.skill in ("grasp", "place"):
        name = call.args["object"]
        at = view.pose(name)
        if call.skill == "place":
            pose = np.asarray(call.args["pose"], dtype=np.float64)
            at = pose if pose.size == 7 else np.concatenate([pose, at[3:]])
        poses = [compose(at, np.array(g.pose)) for g in trace.scene.object(name).grasps]
        if call.skill == "place" and view.holder(name) == call.arm:
            hand = view.state.ee_pose[ARMS.index(call.arm)]
            poses.append(compose(at, compose(invert(view.pose(name)), hand)))
    elif call.skill == "move_to":
        poses = [np.asarray(call.args["pose"], dtype=np.float64)]
    elif call.skill == "move_by":
        pose = view.state.ee_pose[ARMS.index(call.arm)].copy()
        pose[:3] += np.asarray(call.args["offset"], dtype=np.float64)
        poses = [pose]
    try:
        from bench_tasks.robots.fr3 import HOME_RAD
        from bench_tasks.robots.kinematics import dual_arm
    except ImportError:  # recordings may be scored where no robot's libraries are
        return []
    kinematics = dual_arm()
    kinematics.set_base_height(trace.scene.base_height_m)
    return [
        arm for arm in ARMS
        if any(kinematics.inverse(arm, p, HOME_RAD, restarts=4) is not None for p in poses)
    ]  # fmt: skip
