"""What went wrong in single plans, calls and grips, each compared with the reference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench_tasks.diagnosis.reference import Reference, near_grasp
from bench_tasks.diagnosis.trace import Closing, Hold, Trace, Turn
from bench_tasks.view import compose, invert
from bench_tasks.vocabulary import ARMS, SkillCall

__all__ = ["Fault", "faults"]

SAME_M, SAME_RAD = 0.015, 0.2
"""A pose that is no further than this from the reference's is the same."""
LOCATED_M = 0.07
"""Further than this, measured horizontally, a thing or place was located wrongly; less is a
parameter that is off. Things measure 3 to 6 cm: beyond this the hand is beside them."""
ANOTHER_M = 0.03
DROPPED_M = 0.03
TRACKING_M = 0.015
STILL_S = 3.0
NOTHING_SUCH = (
    "unknown object", "nothing known is called", "several objects are called",
    "no object that can be grasped is within", "is as near to one object as",
)  # fmt: skip
"""What refusals say of things named or pointed at that are not there."""
OF_ANOTHER = "which is the place of"


@dataclass(frozen=True)
class Fault:
    """One thing that went wrong at a state. `weak`: it differs from the reference, which need
    not have done any harm. `mended` by a later "hold" or "put" of `object`, "done" or accepted
    "plan"; "" by nothing.
    """  # noqa: D205

    seq: int
    kind: str
    evidence: str
    object: str = ""
    mended: str = ""
    weak: bool = False


def other(arm: str) -> str:
    """The arm that is not this one."""
    return ARMS[1 - ARMS.index(arm)]


def _where(position: np.ndarray) -> str:
    return "(" + ", ".join(f"{v:.3f}" for v in position[:3]) + ")"


def faults(trace: Trace) -> list[Fault]:
    """All that went wrong, in the order of time."""
    found: list[Fault] = []
    for turn in trace.turns:
        found += _Judge(trace, turn).faults()
    found += [fault for hold in trace.holds for fault in _hold(trace, hold)]
    if trace.task.tier == 3:
        found += [fault for closing in trace.closings for fault in _closing(trace, closing)]
    return sorted(found, key=lambda fault: fault.seq)


def _look(trace: Trace, name: str) -> tuple[object, ...]:
    item = trace.scene.object(name)
    return (item.kind, item.color, *np.round(item.half_size_m, 3))


def _wrongly_named(trace: Trace, name: str, reference: Reference) -> str:
    """The kind of fault that taking this thing is; "" when it may be taken."""
    if not reference.known or name in reference.objects or not reference.objects:
        return ""
    alike = any(_look(trace, name) == _look(trace, wanted) for wanted in reference.objects)
    if alike and trace.task.kind != "probe":  # a probe asks for the one that only looks alike
        return ""
    if name in trace.first.objects:
        return "sequencing"
    return "memory" if trace.task.kind == "probe" else "perception"


class _Judge:
    """Judges one plan."""

    def __init__(self, trace: Trace, turn: Turn) -> None:
        self.trace, self.turn = trace, turn
        self.reference = trace.reference(turn.seq, turn.number)

    def faults(self) -> list[Fault]:
        """What went wrong in it."""
        turn = self.turn
        if turn.refused:
            return [Fault(turn.seq, *_refusal(turn.refused), mended="plan")]
        found = []
        still_s = self.trace.stood_still_s(turn)
        if still_s >= STILL_S:
            text = f"the arms stood still for {still_s:.1f} s with a plan to carry out"
            found.append(Fault(turn.seq, "control error", text, mended="done"))
        taken: list[str] = []
        for k, step in enumerate(turn.begun):
            for call in step:
                failed = k == turn.completed and turn.call is not None and (
                    (call.skill, call.arm) == (turn.call.skill, turn.call.arm)
                )  # fmt: skip
                fault = self._named(call, taken) or self._moved(call, step)
                if fault is not None:
                    found.append(fault)
                if failed and not (fault is not None and not fault.weak):
                    found.append(self._failed(call, step, fault))
                if call.skill == "grasp":
                    taken.append(call.args["object"])
        return found

    # -- what a call names -----------------------------------------------------------------------

    def _named(self, call: SkillCall, taken: list[str]) -> Fault | None:
        """Whether the right thing is taken, by the right arm, in its turn."""
        if call.skill != "grasp":
            return None
        name, reference, seq = call.args["object"], self.reference, self.turn.seq
        kind = _wrongly_named(self.trace, name, reference)
        if kind == "sequencing":
            text = f"took {name}, which was in its place; {reference.objects[0]} came next"
            return Fault(seq, kind, text, reference.objects[0], "hold", weak=True)
        if kind:
            wanted = next((n for n in reference.objects if n not in taken), reference.objects[0])
            text = f"took {name}; {wanted} was to be taken"
            return Fault(seq, kind, text, wanted, "hold")
        moves = reference.of(name)
        if moves and call.arm not in moves[0].arms:
            arms = " and ".join(moves[0].arms)
            text = f"the {call.arm} arm was given {name}, which is the {arms} arm's"
            return Fault(seq, "arm allocation", text, name, "", weak=True)
        following = [n for n in reference.objects if n not in taken]
        if moves and following and name not in (*reference.next_taken(), following[0]):
            text = f"took {name} before {following[0]}"
            return Fault(seq, "sequencing", text, name, "", weak=True)
        return None

    # -- how things that both arms hold are moved ------------------------------------------------

    def _moved(self, call: SkillCall, step: tuple[SkillCall, ...]) -> Fault | None:
        if call.skill not in ("move_by", "move_to"):
            return None
        shared = [m for m in self.trace.first.moves if len(m.arms) == 2]
        if call.skill == "move_by" and shared:
            partner = next((c for c in step if c.arm != call.arm), None)
            offset = np.asarray(call.args["offset"], dtype=np.float64)
            name = shared[0].object
            held = [h.arm for h in self.trace.holds if h.object == name
                    and h.begin <= self.turn.end and (h.end or self.turn.end) >= self.turn.seq]
            if call.arm in held and np.linalg.norm(offset) > 0.02:
                theirs = np.zeros(3)
                if partner is not None and partner.skill == "move_by":
                    theirs = np.asarray(partner.args["offset"], dtype=np.float64)
                apart = float(np.linalg.norm(offset - theirs))
                if apart > 0.02:
                    text = (f"the {call.arm} arm moved {name} by {_where(offset)} m, the other by "
                            f"{_where(theirs)} m: both must move alike")  # fmt: skip
                    return Fault(self.turn.seq, "inter-arm conflict", text, name, weak=True)
        return self._off(call)

    def _off(self, call: SkillCall) -> Fault | None:
        """A hand movement that differs from the reference's next one of its kind."""
        if self.trace.task.tier == 3:
            return None
        alike = [
            c for step in self.reference.steps for c in step
            if (c.skill, c.arm) == (call.skill, call.arm)
        ]  # fmt: skip
        key = "offset" if call.skill == "move_by" else "pose"
        if not alike:
            return None
        given = np.asarray(call.args[key], dtype=np.float64)
        apart = [float(np.linalg.norm(given[:3] - np.asarray(c.args[key])[:3])) for c in alike]
        if min(apart) < 0.03:
            return None
        text = (f"{call.skill} of the {call.arm} arm with {_where(given)}, {min(apart):.3f} m off "
                f"{_where(np.asarray(alike[int(np.argmin(apart))].args[key]))}")  # fmt: skip
        return Fault(self.turn.seq, "action parameter", text, "", "", weak=True)

    # -- calls that failed -----------------------------------------------------------------------

    def _failed(
        self, call: SkillCall, step: tuple[SkillCall, ...], known: Fault | None
    ) -> Fault:
        reason, seq = self.turn.reason, self.turn.end
        name = str(call.args.get("object", ""))
        mended = {"grasp": "hold", "place": "put"}.get(call.skill, "done")
        category = reason.partition(": ")[0]

        def fault(kind: str, text: str) -> Fault:
            return Fault(seq, kind, f"{call.skill} {name}: {text}".replace(" :", ":"), name, mended)

        if category == "grasp lost":
            return fault("grasp lost", reason)
        if reason.startswith("no grasp "):
            return fault("action parameter", reason)
        if category == "not held":
            return self._not_held(call, fault)
        mistaken = self._mistaken(call)
        if mistaken:
            return fault("perception", mistaken)
        allotted = self._wrong_arm(call)
        if category == "collision":
            if " with the table" in reason or " with itself" in reason:
                why = self._misplaced(call)
                located = why if why and why[0] == "perception" else None
                return fault(*located) if located else fault("action parameter", reason)
            return fault("arm allocation", f"{allotted}; {reason}") if allotted else fault(
                "inter-arm conflict", reason
            )
        if category == "unreachable":
            return fault(*self._unreachable(call, reason, allotted))
        if category == "grasp missed":
            if allotted and known is not None:
                return fault("arm allocation", f"{allotted}; {reason}")
            return fault("control error", f"{reason}, though it was named rightly")
        return fault("control error", reason)

    def _mistaken(self, call: SkillCall) -> str:
        """What to say when a thing that could not be taken was then to go to another's place."""
        if call.skill != "grasp":
            return ""
        for later in (c for step in self.turn.steps for c in step):
            if later.skill == "place" and later.args["object"] == call.args["object"]:
                why = placed_wrongly(self.trace, later, self.reference)
                if why is not None and OF_ANOTHER in why[1]:
                    return why[1].replace(" was put ", " was to be put ")
        return ""

    def _not_held(self, call: SkillCall, fault) -> Fault:
        name, view = call.args["object"], self.trace.view(self.turn.end)
        holder = view.holder(name)
        if holder is not None and holder != call.arm:
            return fault("arm allocation", f"the {holder} arm holds it, not the {call.arm} one")
        has = next((o.name for o in self.trace.scene.objects if view.grasped(o.name, call.arm)), "")
        if has:
            return fault("perception", f"the {call.arm} hand holds {has}")
        ended = [h for h in self.trace.holds if h.object == name and h.end is not None]
        if any(self.turn.seq <= (h.end or 0) and self.trace.told_shut(h.arm, h.end or 0)
               for h in ended):  # fmt: skip
            return fault("grasp lost", "it had slipped out of the hand")
        return fault("sequencing", "it was to be put down before it was taken")

    def _wrong_arm(self, call: SkillCall) -> str:
        """What to say when the reference uses the other arm for this; "" otherwise."""
        reference = self.trace.reference(self.turn.end)
        if "object" in call.args:
            moves = reference.of(call.args["object"]) or self.reference.of(call.args["object"])
            if moves and not any(call.arm in m.arms for m in moves):
                return f"{call.args['object']} is the {moves[0].arms[0]} arm's"
            return ""
        if self.trace.task.tier == 3:
            return self._wrong_hand(call)
        return ""

    def _wrong_hand(self, call: SkillCall) -> str:
        """Whether the reference sends the other hand to where a raw action sends this one."""
        pose = np.asarray(call.args["pose"], dtype=np.float64)
        near = {
            arm: min(
                (
                    float(np.linalg.norm(np.asarray(c.args["pose"])[:3] - pose[:3]))
                    for step in self.reference.steps for c in step
                    if c.arm == arm and c.skill == "move_to"
                ),
                default=np.inf,
            )
            for arm in ARMS
        }  # fmt: skip
        if near[other(call.arm)] < SAME_M * 2 < near[call.arm]:
            return f"that place is the {other(call.arm)} arm's"
        return ""

    def _unreachable(self, call: SkillCall, reason: str, allotted: str) -> tuple[str, str]:
        can = _able(self.trace, self.turn.end, call)
        if allotted:
            return "arm allocation", f"{allotted}; {reason}"
        why = self._misplaced(call)
        if not can:
            if why is not None and "turned" in why[1]:
                return why
            return "unreachable goal", f"{reason}, and neither can the other"
        if why is not None:
            return why
        if can == [other(call.arm)]:
            return "arm allocation", f"{reason}, but the {other(call.arm)} arm can"
        return "action parameter", reason

    def _misplaced(self, call: SkillCall) -> tuple[str, str] | None:
        """How the target of a call differs from the reference's; None when it does not."""
        if call.skill == "place":
            return placed_wrongly(self.trace, call, self.reference)
        if call.skill == "move_to":
            return hand_wrongly(call, self.reference)
        return None


def _refusal(reason: str) -> tuple[str, str]:
    kind = "perception" if any(text in reason for text in NOTHING_SUCH) else "output format"
    return kind, f"plan refused: {reason}"


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
    released = [m for m in moves if m.released] or moves
    nearest = min(moves if not call.args.get("release", True) else released,
                  key=lambda m: float(np.linalg.norm(m.pose[:3] - pose[:3])))  # fmt: skip
    level = float(np.linalg.norm(nearest.pose[:2] - pose[:2]))
    rise = float(pose[2] - nearest.pose[2])
    turned = 0.0
    if pose.size == 7:
        turned = 2 * float(np.arccos(min(1.0, abs(float(nearest.pose[3:] @ pose[3:])))))
    where = f"{name} was put at {_where(pose)}"
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
            return "perception", f"{where}, {OF_ANOTHER} {move.object}"
    if level > LOCATED_M:
        return "perception", f"{where}, {level:.3f} m from where it belongs"
    if level > SAME_M or abs(rise) > SAME_M:
        return "action parameter", f"{where}, {level:.3f} m aside and {rise:+.3f} m in height"
    if turned > SAME_RAD:
        return "action parameter", f"{where}, turned by {turned:.2f} rad"
    return None


def _bottom(trace: Trace, name: str, pose: np.ndarray) -> float:
    """Height of a thing's lower end when it stands upright at a pose."""
    return float(pose[2] - trace.scene.object(name).half_size_m[2])


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
    where = f"the {call.arm} hand was sent to {_where(pose)}"
    if level > LOCATED_M:
        return "perception", f"{where}, {level:.3f} m aside of any target"
    if np.linalg.norm(near[:3] - pose[:3]) > SAME_M:
        return "action parameter", f"{where}, {np.linalg.norm(near[:3] - pose[:3]):.3f} m off"
    if turned > SAME_RAD:
        return "action parameter", f"{where}, turned by {turned:.2f} rad"
    return None


def _able(trace: Trace, seq: int, call: SkillCall) -> list[str]:
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
        from bench_tasks.kinematics import dual_arm
        from bench_tasks.robots import HOME_RAD
    except ImportError:  # recordings may be scored where no robot's libraries are
        return []
    kinematics = dual_arm()
    kinematics.set_base_height(trace.scene.base_height_m)
    return [
        arm for arm in ARMS
        if any(kinematics.inverse(arm, p, HOME_RAD, restarts=4) is not None for p in poses)
    ]  # fmt: skip


# ---- grips --------------------------------------------------------------------------------------


def _hold(trace: Trace, hold: Hold) -> list[Fault]:
    """What was wrong with a grip: the thing, the arm (raw actions), how it ended."""
    turn = trace.turn_at(hold.begin)
    if turn is None:
        return _freely(trace, hold)
    before = trace.reference(turn.seq, turn.number)
    found = []
    if trace.task.tier == 3:
        kind = _wrongly_named(trace, hold.object, before)
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
    # Seen from a moment of the hold, so that what was done since is not asked for again.
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

    if trace.told_shut(hold.arm, hold.end) and trace.told_shut(hold.arm, hold.end + LOOSE):
        return fault("grasp lost", f"{name} slipped from the {hold.arm} hand at {_where(pose)}")
    places = [c for step in turn.begun for c in step
              if c.skill == "place" and c.args["object"] == name and c.arm == hold.arm
              and c.args.get("release", True)]  # fmt: skip
    opened = [c for step in turn.begun for c in step if c.arm == hold.arm and (
        c.skill == "open" or float(c.args.get("opening_m", 0.0)) > 0.0)]  # fmt: skip
    if places:
        call = min(places, key=lambda c: float(
            np.linalg.norm(np.asarray(c.args["pose"])[:3] - pose[:3])))  # fmt: skip
        off = float(np.linalg.norm(np.asarray(call.args["pose"])[:3] - pose[:3]))
        if fell > DROPPED_M and off > DROPPED_M:
            return fault("grasp lost", f"{name} was let go on its way, {off:.3f} m from its target")
        why = placed_wrongly(trace, call, before)
        if why is None and fell > DROPPED_M:
            text = f"{name} was put down in its place before that was ready: it fell {fell:.3f} m"
            return fault("sequencing", text)
        return fault(*why) if why else fault(
            "control error",
            f"{name} was to go to its place and is {_away(trace, rest, before, name):.3f} m off",
        )
    if not opened:
        return fault("grasp lost", f"{name} was let go without being told to, {_where(pose)}")
    if trace.task.tier == 3:
        return fault(*_released_raw(trace, hold, turn, before, pose, fell))
    why = placed_wrongly(trace, SkillCall("place", hold.arm, {"object": name}), before, pose)
    if why is None:
        return fault("control error", f"{name} was let go where it belongs and did not stay")
    return fault("sequencing", f"{name} was let go too early: {why[1]}") if (
        fell > DROPPED_M
    ) else fault(*why)


LOOSE = 10


def _away(trace: Trace, seq: int, reference: Reference, name: str) -> float:
    at = trace.view(seq).position(name)
    return min(float(np.linalg.norm(m.pose[:3] - at)) for m in reference.of(name)) if (
        reference.of(name)) else 0.0  # fmt: skip


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


def _closing(trace: Trace, closing: Closing) -> list[Fault]:
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
        text = f"the {closing.arm} hand closed on nothing at {_where(hand)}: {text}"
        return [Fault(seq, kind, text, name, "hold")]

    target = _planned(turn, closing.arm, hand)
    off = np.inf if target is None else float(np.linalg.norm(target[:3] - hand[:3]))
    if off > TRACKING_M or target is None:
        return fault("control error", f"{off:.3f} m from any commanded target")
    away, turned, _ = near_grasp(view, name, target)
    level = float(np.linalg.norm(view.position(name)[:2] - target[:2]))
    if level > LOCATED_M + max(trace.scene.object(name).half_size_m[:2]) / 2 or (
        away > LOCATED_M and level > LOCATED_M
    ):
        return fault("perception", f"{away:.3f} m from {name}")
    if away > 0.01 or turned > SAME_RAD:
        return fault("action parameter", f"{away:.3f} m and {turned:.2f} rad off a grasp of {name}")
    return fault("control error", f"though that is where to take {name}")
