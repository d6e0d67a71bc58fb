"""Why an episode failed: one cause, by rule, from its record.

Each plan, call and grip is compared with what the task's expert, who knows everything, would
have done from that very state (`reference`). What differs and did harm is a fault (`faults`); a
fault is mended when the same thing succeeds later. The cause is the first fault that was never
mended: the one after which the goal was no longer met. An answer that is wrong comes before all
that is done later, and a crash or a refusal that ends the episode is its own cause.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench_tasks.diagnosis.faults import Fault, faults
from bench_tasks.diagnosis.trace import Trace
from bench_tasks.tasks.base import Ask, Task
from bench_tasks.verdicts.afterwards import until_over
from bench_tasks.verdicts.episode_score import STOP, by_hand
from bench_tasks.vocabulary import (
    ARMS,
    FR3_PAIR,
    UPRIGHT,
    Event,
    Scene,
    Verdict,
    WorldState,
)

__all__ = ["KINDS", "Diagnosis", "diagnose"]

KINDS = {
    "perception": "an object was named, or a place or object located, wrongly (7 cm or more)",
    "memory": "what had been seen before was answered or shown wrongly (memory probes)",
    "arm allocation": "the arm was wrong: the other one reaches it, or is the one that must do it",
    "unreachable goal": "the hand was sent to where neither arm reaches",
    "sequencing": "right things in the wrong order, or not at all: stopped early, put down "
    "before being taken or before the place was ready, let go too early",
    "inter-arm conflict": "the arms were in each other's way, or did not move alike when both "
    "held one thing",
    "action parameter": "right thing, right place, but a target off by a few centimetres, in "
    "height or turned, or a movement into the table",
    "grasp lost": "something that was held slipped or fell before it was to be let go",
    "control error": "the command was right and its effect did not come; or the policy failed",
    "timeout": "time, plans or the planner's budget were used up while all was going right",
    "output format": "the plan or answer could not be read",
    "model error": "the planner crashed, or its server failed",
    "unscored": "set-up, world or recording failed: nobody's fault that is evaluated here",
    "undetermined": "the rules could not be applied to this record, or a human stopped the arms",
}
"""Kind of cause -> what it means."""


@dataclass(frozen=True)
class Diagnosis:
    """The cause of a failure: its kind, one line of evidence, and the state where it shows."""

    kind: str
    evidence: str
    seq: int = 0

    def __post_init__(self) -> None:
        """ValueError on another kind."""
        if self.kind not in KINDS:
            raise ValueError(f"kind {self.kind!r}: choose from {', '.join(KINDS)}")
        object.__setattr__(self, "evidence", " ".join(str(self.evidence).split()))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a result file."""
        return asdict(self)


def diagnose(
    task: Task, scene: Scene, states: Sequence[WorldState], events: Sequence[Event],
    verdict: Verdict,
) -> Diagnosis | None:
    """The cause of a failed episode; None for a success. Never raises for what is in the record."""
    if verdict.success:
        return None
    try:
        return _cause(Trace(task, scene, states, until_over(events), verdict))
    except Exception as error:  # noqa: BLE001 - any record, any task: the verdict stands anyway
        return Diagnosis("undetermined", f"the rules failed: {error!r}", verdict.end_seq)


def _cause(trace: Trace) -> Diagnosis:
    """The rules in their order."""
    cause, end = trace.verdict.cause, trace.last
    if cause == "invariant broken: every number finite":
        return Diagnosis("unscored", "the world's state holds a number that is not finite", end)
    for event in trace.events:
        if event.kind == "answer_refused":
            return Diagnosis("output format", f"answer refused: {event.data['refused']}", event.seq)
        if event.kind == "answer":
            wrong = _answer(trace, event)
            if wrong is not None:
                return wrong
        if event.kind == "plan":
            wrong = _remembered(trace, event)
            if wrong is not None:
                return wrong
    for event in trace.events:
        if event.kind == "planner_error" and not _spent(event.data["error"]):
            return Diagnosis("model error", str(event.data["error"]), event.seq)
        if event.kind == "policy_error":
            return Diagnosis("control error", f"policy: {event.data['error']}", event.seq)
    for role, kind in (("planner", "model error"), ("policy", "control error")):
        if cause.startswith(f"{role} error: ") and not _spent(cause):
            return Diagnosis(kind, cause, end)
    if trace.scene.embodiment != FR3_PAIR:
        if cause == f"invariant broken: {UPRIGHT}":
            return Diagnosis("control error", "the robot fell", end)
        return Diagnosis("undetermined", f"no rules for {trace.scene.embodiment}: {cause}", end)
    found = faults(trace)
    strong = [f for f in found if not f.weak and not _mended(trace, f, found)]
    if strong:
        return _of(_root(trace, strong[0], found))
    weak = [f for f in found if f.weak and _counts(trace, f, found)]
    if weak:
        return _of(weak[0])
    return _ending(trace)


def _spent(error: str) -> bool:
    """Whether a planner merely came to the end of its budget: a limit, not an error of its own."""
    return str(error).removeprefix("planner error: ").startswith("budget spent")


def _root(trace: Trace, fault: Fault, found: Sequence[Fault]) -> Fault:
    """What brought a fault about: a thing that both arms pulled at is lost for that."""
    if fault.kind in ("grasp lost", "control error"):
        turn = trace.turn_at(fault.seq)
        for other in found:
            if other.kind == "inter-arm conflict" and other.object == fault.object and (
                other.seq <= fault.seq and trace.turn_at(other.seq) == turn
            ):
                return other
    return fault


def _of(fault: Fault) -> Diagnosis:
    kind, evidence = fault.decided
    return Diagnosis(kind, evidence, fault.seq)


def _answer(trace: Trace, event: Event) -> Diagnosis | None:
    """The first item that was answered wrongly."""
    asks = [s for s in trace.task.prologue(trace.scene) if isinstance(s, Ask)]
    ask = next((a for a in asks if a.question.name == event.data["name"]), None)
    if ask is None:
        return None
    given = event.data["values"]
    for item, gold in ask.gold.items():
        if item in given and given[item] != gold:
            arms = set(ARMS) <= set(ask.question.choices.get(item, ())) and trace.task.tier == 1
            kind = "arm allocation" if arms else (
                "memory" if trace.task.kind == "probe" else "perception"
            )  # fmt: skip
            text = f"{item}: answered {given[item]}, correct is {gold}"
            return Diagnosis(kind, text, event.seq)
    missing = [item for item in ask.gold if item not in given]
    if missing:
        return Diagnosis("output format", f"no valid answer for {', '.join(missing)}", event.seq)
    return None


def _remembered(trace: Trace, event: Event) -> Diagnosis | None:
    """What a plan was made on that was remembered wrongly, where its transcript tells of it."""
    told = event.data.get("transcript")
    told = told.get("memory") if isinstance(told, dict) else None
    ask = trace.task.recall(trace.view(event.seq)) if isinstance(told, dict) else None
    if ask is None or event.data.get("asks"):  # by which it may still come to know
        return None
    # Of one item alone it is not said which.
    chosen = dict.fromkeys(ask.gold, told) if "chosen" in told else told
    for item, gold in ask.gold.items():
        one = chosen.get(item)
        if not isinstance(one, dict) or one.get("chosen", gold) == gold:
            continue
        what = ask.question.text if one is told else f"{item}:"
        text = f"{what} {one['chosen']} ({one.get('by')}), correct is {gold}"
        return Diagnosis("memory", text, event.seq)
    return None


def _mended(trace: Trace, fault: Fault, found: Sequence[Fault]) -> bool:
    """Whether what had failed succeeded later."""
    if fault.mended == "hold":
        return trace.held_later(fault.object, fault.seq)
    if fault.mended == "put":
        kept = any(h.object == fault.object and h.end is None for h in trace.holds)
        left = trace.reference(trace.last)
        if left.known and fault.object not in left.objects and not kept:
            return True
        later = [h for h in trace.holds if h.object == fault.object and h.begin > fault.seq]
        bad = {f.seq for f in found if f.object == fault.object and f.mended == "put"}
        return any(h.end is not None and h.end not in bad for h in later)
    if fault.mended == "done":
        return any(t.seq >= fault.seq and t.status == "done" for t in trace.turns)
    if fault.mended == "plan":
        return any(t.seq > fault.seq and t.status != "refused" for t in trace.turns)
    return False


def _counts(trace: Trace, fault: Fault, found: Sequence[Fault]) -> bool:
    """Whether a mere difference from the reference can have been what the goal missed."""
    if trace.verdict.cause.startswith("invariant broken: "):
        turn = trace.turn_at(trace.last)
        return turn is not None and fault.seq >= turn.seq
    if fault.kind in ("arm allocation", "sequencing"):
        goal = trace.task.goal(trace.scene)
        needed = goal.after if goal is not None else ()
        return not all(trace.verdict.stages.get(name, False) for name in needed)
    return not _mended(trace, fault, found)


def _ending(trace: Trace) -> Diagnosis:
    """The cause when nothing that was done was wrong in itself: what was not done."""
    cause, end = trace.verdict.cause, trace.last
    if trace.act_seq is None:
        return Diagnosis("undetermined", cause, end)
    left = trace.reference(end)
    ended = next((e.data["cause"] for e in trace.events if e.kind == "end"), "")
    limit = ended.startswith(("time limit", "plan limit")) and bool(trace.turns)
    if limit or _spent(ended):
        return Diagnosis("timeout", f"{ended}, with {_next(left)} still to do", end)
    if not trace.turns:
        return _without_plans(trace)
    if cause.startswith("invariant broken: "):
        return Diagnosis("control error", f"{cause}, by calls that were right", end)
    if ended.startswith(STOP):
        return Diagnosis("undetermined" if by_hand(ended) else "control error", ended, end)
    if not left.known:
        text = f"the task's expert cannot say what was still to do, and {cause}"
        return Diagnosis("undetermined", text, end)
    if left.steps:
        short = _short(trace)
        if short:
            return Diagnosis("action parameter", short, end)
        return Diagnosis("sequencing", f"stopped early: {_next(left)} was still to do", end)
    return Diagnosis("control error", f"all was done as it should be, and yet {cause}", end)


def _next(reference) -> str:
    if not reference.known:
        return "what the task's expert cannot say"
    for call in (call for step in reference.steps for call in step):
        if call.skill != "home":
            name = call.args.get("object") or (reference.objects or [""])[0]
            return f"{call.skill} {name} ({call.arm} arm)".replace("  ", " ")
    return "nothing"


def _short(trace: Trace) -> str:
    """What to say when the last movement of a thing in hand merely ended short; "" otherwise."""
    if trace.turns[-1].steps:
        return ""
    begun = [t for t in trace.turns if t.steps]
    for move in trace.reference(trace.last).moves:
        at = trace.view(trace.last).position(move.object)
        missing = float(abs(move.pose[2] - at[2]))
        held = [h for h in trace.holds if h.object == move.object and h.end is None]
        start = trace.view(begun[-1].seq).position(move.object) if begun else at
        if held and not move.released and abs(float(at[2] - start[2])) > 0.01:
            return f"{move.object} was moved {missing:.3f} m less than it must be"
    return ""


def _without_plans(trace: Trace) -> Diagnosis:
    """A policy that never asked for a plan acts by itself: all of it is control."""
    told = trace.commands[trace.act_seq or 0 :]
    if len(told) < 2 or not abs(told[1:] - told[:1]).max() > 1e-6:
        text = "the policy asked for no plan and never moved"
    else:
        reached = [n for n, yes in trace.verdict.stages.items() if yes]
        text = f"the policy acted without plans and reached {', '.join(reached) or 'no stage'}"
    return Diagnosis("control error", text, trace.last)
