"""What was wrong with single grips: the thing, the arm, how it ended, or that there was none."""

from __future__ import annotations

import numpy as np

from bench_tasks.diagnosis.compare import (
    LOCATED_M,
    OF_ANOTHER,
    SAME_RAD,
    Fault,
    lost_at_target,
    placed_wrongly,
    where,
    wrongly_named,
)
from bench_tasks.diagnosis.reference import Reference, near_grasp
from bench_tasks.diagnosis.trace import Closing, Hold, Trace, Turn
from bench_tasks.vocabulary import ARMS, SkillCall

__all__ = ["of_closing", "of_hold"]

DROPPED_M = 0.03
"""A thing that falls further than this was not put down."""
TRACKING_M = 0.015
ASTRAY_M = 0.10
LOOSE = 10


def of_hold(trace: Trace, hold: Hold) -> list[Fault]:
    """What was wrong with a grip: the thing, the arm (raw actions), how it ended."""
    turn = trace.turn_at(hold.begin)
    if turn is None:
        return _freely(trace, hold)
    before = trace.reference(turn.seq, turn.number)
    found = []
    if trace.task.tier == 3:
        kind = wrongly_named(trace, hold.object, before)
        moves = before.of(hold.object)
        if kind:
            wanted = before.objects[0]
            text = f"the {hold.arm} hand took {hold.object}; {wanted} was to be taken"
            return [Fault(hold.begin, kind, text, wanted, "hold", weak=kind == "sequencing")]
        if moves and hold.arm not in moves[0].arms:
            text = f"the {hold.arm} arm took {hold.object}, which is the {moves[0].arms[0]} arm's"
            found.append(Fault(hold.begin, "arm allocation", text, hold.object, weak=True))
        elif moves and hold.object not in (*before.next_taken(), before.objects[0]):
            text = f"took {hold.object} before {before.objects[0]}"
            found.append(Fault(hold.begin, "sequencing", text, hold.object, weak=True))
    if hold.end is None or trace.view(hold.end + 15).holder(hold.object) not in (None, hold.arm):
        return found
    end = trace.turn_at(hold.end)
    assert end is not None
    ended = _ended(trace, hold, end)
    return [*found, ended] if ended is not None else found


def _freely(trace: Trace, hold: Hold) -> list[Fault]:
    """A policy that acts without plans can lose what it took."""
    if hold.end is None or not trace.told_shut(hold.arm, hold.end):
        return []
    text = f"{hold.object} slipped from the {hold.arm} hand"
    return [Fault(hold.end, "grasp lost", text, hold.object, "hold")]


def _left(reference: Reference, name: str) -> int:
    return sum(move.released for move in reference.of(name))


def _ended(trace: Trace, hold: Hold, turn: Turn) -> Fault | None:
    """What was wrong with the way in which a thing left the hand; None when it was put rightly."""
    assert hold.end is not None
    name, before = hold.object, trace.reference(turn.seq, turn.number)
    rest = trace.settled(hold)
    if name not in before.objects and name not in trace.first.objects:
        return None  # that it was taken at all is the fault
    after = trace.reference(rest)
    if name not in after.objects or (
        _left(before, name) and _left(after, name) < _left(before, name)
    ):
        return None
    pose = trace.view(hold.end).pose(name)
    fell = float(pose[2] - trace.view(rest).pose(name)[2])

    def fault(kind: str, text: str) -> Fault:
        whose = text.partition(f"{OF_ANOTHER} ")[2]
        return Fault(hold.end or 0, kind, text, whose or name, "put")

    places = [c for step in turn.begun for c in step
              if c.skill == "place" and c.args["object"] == name and c.arm == hold.arm]  # fmt: skip
    if trace.told_shut(hold.arm, hold.end) and trace.told_shut(hold.arm, hold.end + LOOSE):
        struck = [w for c in places if (w := lost_at_target(trace, c, before, pose))]
        astray = _astray(trace, hold)
        if astray > TRACKING_M:
            text = f"{name} was taken {astray:.3f} m from any commanded target, and slipped"
            return fault("control error", text)
        slipped = f"{name} slipped from the {hold.arm} hand at {where(pose)}"
        return fault(*struck[0]) if struck else fault("grasp lost", slipped)
    places = [c for c in places if c.args.get("release", True)]
    opened = [c for step in turn.begun for c in step if c.arm == hold.arm and (
        c.skill == "open" or float(c.args.get("opening_m", 0.0)) > 0.0)]  # fmt: skip
    if places:
        call = min(places, key=lambda c: float(
            np.linalg.norm(np.asarray(c.args["pose"])[:3] - pose[:3])))  # fmt: skip
        off = float(np.linalg.norm(np.asarray(call.args["pose"])[:3] - pose[:3]))
        if fell > DROPPED_M and off > DROPPED_M:
            return fault("grasp lost", f"{name} was let go on its way, {off:.3f} m from its target")
        why = placed_wrongly(trace, call, before)
        if why is None and fell > DROPPED_M and not _supported(trace, name, hold.end):
            text = f"{name} was put down in its place before that was ready: it fell {fell:.3f} m"
            return fault("sequencing", text)
        return fault(*why) if why else fault(
            "control error",
            f"{name} was to go to its place and is {_away(trace, rest, before, name):.3f} m off",
        )
    if not opened:
        return fault("grasp lost", f"{name} was let go without being told to, {where(pose)}")
    if trace.task.tier == 3:
        return fault(*_released_raw(trace, hold, turn, before, pose, fell))
    why = placed_wrongly(trace, SkillCall("place", hold.arm, {"object": name}), before, pose)
    if why is None:
        return fault("control error", f"{name} was let go where it belongs and did not stay")
    return fault("sequencing", f"{name} was let go too early: {why[1]}") if (
        fell > DROPPED_M
    ) else fault(*why)


def _supported(trace: Trace, name: str, seq: int) -> bool:
    """Whether another thing stood right below this one."""
    view = trace.view(seq)
    bottom = view.position(name)[2] - view.scene.object(name).half_size_m[2]
    for item in view.scene.objects:
        at = view.position(item.name)
        near = np.linalg.norm(at[:2] - view.position(name)[:2]) < max(item.half_size_m[:2])
        if item.name != name and near and abs(at[2] + item.half_size_m[2] - bottom) < DROPPED_M:
            return True
    return False


def _away(trace: Trace, seq: int, reference: Reference, name: str) -> float:
    at = trace.view(seq).position(name)
    return min(float(np.linalg.norm(m.pose[:3] - at)) for m in reference.of(name)) if (
        reference.of(name)) else 0.0  # fmt: skip


def _astray(trace: Trace, hold: Hold) -> float:
    """How far from every commanded target a hand was when it took a thing; 0 if not told (m)."""
    turn = trace.turn_at(hold.begin)
    hand = trace.states[hold.begin].ee_pose[ARMS.index(hold.arm)]
    target = _planned(turn, hold.arm, hand) if turn is not None else None
    if trace.task.tier != 3 or target is None:
        return 0.0
    return float(np.linalg.norm(target[:3] - hand[:3]))


def _planned(turn: Turn, arm: str, hand: np.ndarray) -> np.ndarray | None:
    """The target of this arm's raw actions that is nearest to where the hand is."""
    targets = [np.asarray(c.args["pose"], dtype=np.float64) for step in turn.begun for c in step
               if c.skill == "move_to" and c.arm == arm]  # fmt: skip
    return min(targets, key=lambda t: float(np.linalg.norm(t[:3] - hand[:3])), default=None)


def _released_raw(
    trace: Trace, hold: Hold, turn: Turn, before: Reference, pose: np.ndarray, fell: float
) -> tuple[str, str]:
    hand = trace.states[hold.end or 0].ee_pose[ARMS.index(hold.arm)]
    target = _planned(turn, hold.arm, hand)
    off = np.inf if target is None else float(np.linalg.norm(target[:3] - hand[:3]))
    if off > TRACKING_M:
        kind = "grasp lost" if fell > DROPPED_M else "control error"
        return kind, f"{hold.object} was let go {off:.3f} m from any commanded target"
    place = SkillCall("place", hold.arm, {"object": hold.object})
    why = placed_wrongly(trace, place, before, pose)
    if why is None:
        return "control error", f"{hold.object} was let go where it belongs and did not stay"
    if fell > DROPPED_M and why[0] == "perception":
        return "sequencing", f"{hold.object} was let go in the air: {why[1]}"
    return why


def of_closing(trace: Trace, closing: Closing) -> list[Fault]:
    """A hand that closed on nothing: why, by where it was and where it was told to be."""
    k, seq = ARMS.index(closing.arm), closing.seq
    turn = trace.turn_at(seq)
    if turn is None or any(
        h.arm == closing.arm and h.begin - 40 <= seq and (h.end is None or h.end >= seq)
        for h in trace.holds
    ):
        return []
    before = trace.reference(turn.seq, turn.number)
    wanted = [m.object for m in before.moves if closing.arm in m.arms] or before.objects
    view, hand = trace.view(turn.seq), trace.states[seq].ee_pose[k]
    if not wanted:
        return []
    name = min(wanted, key=lambda n: near_grasp(view, n, hand)[0])

    def fault(kind: str, text: str) -> list[Fault]:
        text = f"the {closing.arm} hand closed on nothing at {where(hand)}: {text}"
        return [Fault(seq, kind, text, name, "hold")]

    target = _planned(turn, closing.arm, hand)
    off = np.inf if target is None else float(np.linalg.norm(target[:3] - hand[:3]))
    if off > ASTRAY_M or target is None:
        return fault("control error", f"{off:.3f} m from any commanded target")
    # The target before the tracking: a hand that was sent wrongly may have met something.
    away, turned, _ = near_grasp(view, name, target)
    level = float(np.linalg.norm(view.position(name)[:2] - target[:2]))
    if level > LOCATED_M + max(trace.scene.object(name).half_size_m[:2]) / 2 or (
        away > LOCATED_M and level > LOCATED_M
    ):
        return fault("perception", f"{away:.3f} m from {name}")
    if away > 0.01 or turned > SAME_RAD:
        return fault("action parameter", f"{away:.3f} m and {turned:.2f} rad off a grasp of {name}")
    if off > TRACKING_M:
        return fault("control error", f"{off:.3f} m from any commanded target")
    return fault("control error", f"though that is where to take {name}")
