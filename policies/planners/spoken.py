"""RynnBrain's plan language: sentences that begin with Pick up, Place or Done.

Published in arXiv 2602.14979. It knows one hand; what it does not say is told by rule, not
guessed: without "left arm" or "right hand" in its sentence an object is picked up by the arm on
whose side of the table (y > 0 is left) it lies, and placed by the hand that has it. An arm that
has placed something goes home, since the language has no words to clear the way for the other.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from bench_tasks.vocabulary import ARMS, SkillCall
from policies.planners.dialects import DialectError, Mark, parse
from policies.planners.jsontext import MAX_CHARS, AnswerError
from policies.planners.points import Pointer

__all__ = ["read_spoken"]

_DIALECT = "rynnbrain"
_SENTENCE = re.compile(r"(?:\A|[.!;\n])\s*(pick\s+up|place|done)\b", re.IGNORECASE)
_ARM = re.compile(r"\b(left|right)\s+(?:arm|hand|gripper)\b", re.IGNORECASE)
_ANSWER = re.compile(r"<answer>(.*?)(?:</answer>|\Z)", re.DOTALL)


def read_spoken(
    text: str, pointer: Pointer, held: Collection[str]
) -> tuple[tuple[SkillCall, ...], ...]:
    """Steps of one call each; none when it says only that it is done.

    `held` are the arms that hold something now. AnswerError says which step is wrong and why.
    """
    if len(text) > MAX_CHARS:
        raise AnswerError(f"the answer has {len(text)} characters: {MAX_CHARS} are allowed")
    answer = _ANSWER.search(text)
    text = (answer[1] if answer else text.rpartition("</think>")[2]).strip()
    verbs = list(_SENTENCE.finditer(text))
    if not verbs or text[: verbs[0].start()].strip():
        raise AnswerError("each sentence must begin with Pick up, Place or Done")
    full, steps = list(held), []
    ends = [*(verb.start() for verb in verbs[1:]), len(text)]
    for i, (verb, end) in enumerate(zip(verbs, ends, strict=True)):
        said, body = verb[1].lower(), text[verb.end() : end]
        if said == "done":
            continue
        try:
            call = _call(said, body, pointer, full)
        except AnswerError as error:
            raise AnswerError(f"step {i + 1}: {error}") from None
        steps.append((call,))
        if call.skill == "place":
            steps.append((SkillCall("home", call.arm),))
    return tuple(steps)


def _call(said: str, body: str, pointer: Pointer, full: list[str]) -> SkillCall:
    """One sentence as a call; `full`, the arms that hold something, is brought up to date."""
    arms = {arm.lower() for arm in _ARM.findall(body)}
    if len(arms) > 1:
        raise AnswerError("a sentence is for one arm, got both")
    named = next(iter(arms), None)
    if said == "place":
        if named is None:
            if len(full) != 1:
                which = "both hands hold" if full else "no hand holds"
                raise AnswerError(f"{which} something: say which arm is to place it")
            named = full[0]
        point = pointer.lift(_one(body, "area"))
        full[:] = [arm for arm in full if arm != named]
        return SkillCall("place", named, {"point": point}).checked()
    point = pointer.lift(_one(body, "affordance"))
    arm = named or ARMS[0 if point[1] > 0.0 else 1]
    if arm in full:
        raise AnswerError(f"the {arm} hand holds something already: place that first")
    full.append(arm)
    return SkillCall("grasp", arm, {"point": point}).checked()


def _one(body: str, tag: str) -> Mark:
    """The only mark of a tag in a sentence."""
    try:
        marks = [mark for mark in parse(body, _DIALECT).marks if mark.label == tag]
    except DialectError as error:
        raise AnswerError(str(error)) from None
    if len(marks) != 1:
        raise AnswerError(f"<{tag}> must have one point, got {len(marks)}")
    return marks[0]
