"""What went wrong in single plans, calls and grips, each compared with the reference."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from bench_tasks.diagnosis.compare import (
    OF_ANOTHER,
    SAME_M,
    Fault,
    able,
    hand_wrongly,
    lost_at_target,
    placed_wrongly,
    where,
    wrongly_named,
)
from bench_tasks.diagnosis.grips import of_closing, of_hold
from bench_tasks.diagnosis.reference import Move
from bench_tasks.diagnosis.trace import Trace, Turn
from bench_tasks.vocabulary import ARMS, SkillCall, other_arm

__all__ = ["Fault", "faults"]

STILL_S = 3.0
"""Arms that do not move for longer, with a plan to carry out, stand still."""
NOTHING_SUCH = (
    "unknown object", "nothing known is called", "several objects are called",
    "no object that can be grasped is within", "is as near to one object as",
)  # fmt: skip
"""What refusals say of things named or pointed at that are not there."""


def faults(trace: Trace) -> list[Fault]:
    """All that went wrong, in the order of time."""
    found: list[Fault] = []
    for turn in trace.turns:
        found += _Judge(trace, turn).faults()
    found += [fault for hold in trace.holds for fault in of_hold(trace, hold)]
    if trace.task.tier == 3:
        found += [fault for closing in trace.closings for fault in of_closing(trace, closing)]
    return sorted(found, key=lambda fault: fault.seq)


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
        kind = wrongly_named(self.trace, name, reference)
        if kind == "sequencing":
            text = f"took {name}, which was in its place; {reference.objects[0]} came next"
            return Fault(seq, kind, text, reference.objects[0], "hold", weak=True)
        if kind:
            wanted = next((n for n in reference.objects if n not in taken), reference.objects[0])
            text = f"took {name}; {wanted} was to be taken"
            return Fault(seq, kind, text, wanted, "hold")
        moves = self._moves(call)
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
                    text = (f"the {call.arm} arm moved {name} by {where(offset)} m, the other by "
                            f"{where(theirs)} m: both must move alike")  # fmt: skip
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
        text = (f"{call.skill} of the {call.arm} arm with {where(given)}, {min(apart):.3f} m off "
                f"{where(np.asarray(alike[int(np.argmin(apart))].args[key]))}")  # fmt: skip
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
            at = self.trace.view(seq).pose(name) if name else np.zeros(7)
            struck = lost_at_target(self.trace, call, self.reference, at)
            return fault(*struck) if struck else fault("grasp lost", reason)
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
            decide = partial(self._unreachable, call, reason, allotted)
            return replace(fault("unreachable goal", reason), decide=decide)
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

    def _moves(self, call: SkillCall) -> list[Move]:
        """The reference's moves of a call's thing, but for those that the plan made before it."""
        made = 0
        for before in (c for step in self.turn.steps for c in step):
            if before is call:
                break
            made += before.skill == "place" and before.args["object"] == call.args["object"]
        moves = self.reference.of(call.args["object"])
        return moves[min(made, len(moves) - 1) :] if moves else []

    def _wrong_arm(self, call: SkillCall) -> str:
        """What to say when the reference uses the other arm for this; "" otherwise."""
        if "object" in call.args:
            moves = self._moves(call)
            if moves and call.arm not in moves[0].arms:
                return f"{call.args['object']} is the {' and '.join(moves[0].arms)} arm's"
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
        if near[other_arm(call.arm)] < SAME_M * 2 < near[call.arm]:
            return f"that place is the {other_arm(call.arm)} arm's"
        return ""

    def _unreachable(self, call: SkillCall, reason: str, allotted: str) -> tuple[str, str]:
        if allotted:
            return "arm allocation", f"{allotted}; {reason}"
        can = able(self.trace, self.turn.end, call)
        why = self._misplaced(call)
        if not can:
            if why is not None and "turned" in why[1]:
                return why
            return "unreachable goal", f"{reason}, and neither can the other"
        if why is not None:
            return why
        if can == [other_arm(call.arm)]:
            return "arm allocation", f"{reason}, but the {other_arm(call.arm)} arm can"
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


