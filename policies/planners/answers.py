"""From a model's JSON answer to a plan or to answers; what is malformed is refused by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from bench_tasks.actions import step_from_action
from bench_tasks.errors import UsageError
from bench_tasks.vocabulary import ARMS, SKILLS, Question, Scene, SkillCall
from policies.planners.jsontext import AnswerError, Found, find_json

__all__ = [
    "THOUGHTS", "answer_schema", "name_finder", "plan_schema", "read_answers", "read_plan",
]  # fmt: skip

THOUGHTS = ("visual_state_description", "reasoning_and_reflection", "language_plan")
"""What a planner is asked to write before its plan; recorded, not judged."""
MAX_STEPS = 40
Step = tuple[SkillCall, ...]


def _plain(name: str) -> str:
    """A name as the scene would write it: lower case, words joined by underscores."""
    words = [w for w in re.split(r"[\s_\-]+", name.strip().lower()) if w not in ("", "the", "a")]
    return "_".join(words)


def name_finder(scene: Scene, tell: bool) -> Callable[[str], str]:
    """A function from what a model calls an object to its name in the scene.

    A name in other spelling, or colour and kind where only one object has them, will do.
    AnswerError otherwise; it lists the names only if `tell`, as part of the help given.
    """
    names = {_plain(o.name): o.name for o in scene.objects}
    described: dict[str, list[str]] = {}
    for o in scene.objects:
        for words in (o.kind, f"{o.color} {o.kind}"):
            described.setdefault(_plain(words), []).append(o.name)

    def find(said: str) -> str:
        plain = _plain(said)
        if plain in names:
            return names[plain]
        if len(described.get(plain, ())) == 1:
            return described[plain][0]
        if tell:
            raise AnswerError(f"unknown object {said!r}: choose from {', '.join(names.values())}")
        why = "several objects are" if plain in described else "nothing known is"
        raise AnswerError(f"{why} called {said!r}: name it by colour and kind, as in red_block")

    return find


def read_plan(
    text: str, actions: bool, find_name: Callable[[str], str],
    locate: Callable[[dict[str, Any]], dict[str, Any]] = dict,
) -> tuple[tuple[Step, ...], Found]:
    """Steps of a model's answer, and the JSON they came from.

    The answer is an object whose `executable_plan` is a list of steps. With `actions` a step is a
    list of 16 numbers, else one skill call {skill, arm, args} or a list of two, one for each arm.
    `locate` takes points in pictures, among a call's arguments, to the world. AnswerError says
    which step is wrong and why.
    """
    found = find_json(text)
    plan = found.value.get("executable_plan")
    if not isinstance(plan, list):
        raise AnswerError("the answer needs executable_plan, a list of steps ([] when finished)")
    if len(plan) > MAX_STEPS:
        raise AnswerError(f"executable_plan has {len(plan)} steps: at most {MAX_STEPS} at a time")
    if actions and plan and not any(isinstance(entry, list | dict) for entry in plan):
        raise AnswerError("executable_plan must be a list of actions of 16 numbers each")
    steps = []
    for i, entry in enumerate(plan):
        try:
            steps.append(step_from_action(entry) if actions else _step(entry, find_name, locate))
        except UsageError as error:
            raise AnswerError(f"step {i + 1}: {error}") from None
    return tuple(steps), found


def _step(entry: Any, find_name: Callable[[str], str], locate: Callable[[dict], dict]) -> Step:
    calls = entry if isinstance(entry, list) else [entry]
    if not 1 <= len(calls) <= 2:
        raise AnswerError(f"a step needs one call, or one for each arm, got {len(calls)}")
    step = tuple(_call(call, find_name, locate) for call in calls)
    if len({call.arm for call in step}) != len(step):
        raise AnswerError(f"both calls are for the {step[0].arm} arm")
    return step


def _call(
    raw: Any, find_name: Callable[[str], str], locate: Callable[[dict], dict]
) -> SkillCall:
    if not isinstance(raw, dict):
        raise AnswerError(f"a call is an object with skill, arm and args, got {str(raw)[:60]!r}")
    for key in ("skill", "arm"):
        if not isinstance(raw.get(key), str):
            raise AnswerError(f"a call needs {key}, a text")
    args = raw.get("args", {})
    if not isinstance(args, dict):
        raise AnswerError(f"args must be an object, got {str(args)[:60]!r}")
    extra = sorted(set(raw) - {"skill", "arm", "args"})
    if extra:
        raise AnswerError(f"{extra[0]!r} belongs into args: a call has skill, arm and args only")
    args = locate({key: value for key, value in args.items() if value is not None})
    if isinstance(args.get("object"), str):
        args["object"] = find_name(args["object"])
    return SkillCall(raw["skill"], raw["arm"], args).checked()


def read_answers(text: str, question: Question) -> tuple[dict[str, str], Found, list[str]]:
    """(item -> choice, JSON, notes) of a model's answer to a question.

    Items may be spelt otherwise; one that is missing, or whose choice is not offered, was not
    answered, as the notes tell. AnswerError when no item was answered.
    """
    found = find_json(text)
    given = found.value.get("answers", found.value)
    if not isinstance(given, dict):
        raise AnswerError("answers must be an object from item to choice")
    said = {_plain(str(item)): value for item, value in given.items()}
    values, notes = {}, []
    for item, choices in question.choices.items():
        value = said.get(_plain(item))
        match = [c for c in choices if isinstance(value, str) and _plain(c) == _plain(value)]
        if match:
            values[item] = match[0]
        elif value is None:
            notes.append(f"{item} was not answered")
        else:
            notes.append(f"{item}: {str(value)[:40]!r} is not one of {', '.join(choices)}")
    if not values:
        raise AnswerError("; ".join(notes) or "the question has no items")
    return values, found, notes


def plan_schema(actions: bool, skills: tuple[str, ...] = tuple(SKILLS)) -> dict[str, Any]:
    """JSON schema of a plan, for servers that can enforce one."""
    if actions:
        step: dict[str, Any] = {
            "type": "array", "items": {"type": "number"}, "minItems": 16, "maxItems": 16,
        }  # fmt: skip
    else:
        call = {
            "type": "object",
            "properties": {
                "skill": {"type": "string", "enum": list(skills)},
                "arm": {"type": "string", "enum": list(ARMS)},
                "args": {"type": "object"},
            },
            "required": ["skill", "arm", "args"],
            "additionalProperties": False,
        }
        step = {"type": "array", "items": call, "minItems": 1, "maxItems": 2}
    properties = {name: {"type": "string"} for name in THOUGHTS}
    properties["executable_plan"] = {"type": "array", "items": step}  # type: ignore[dict-item]
    return {
        "type": "object", "properties": properties, "required": list(properties),
        "additionalProperties": False,
    }  # fmt: skip


def answer_schema(question: Question) -> dict[str, Any]:
    """JSON schema of the answers to a question."""
    items = {item: {"type": "string", "enum": list(c)} for item, c in question.choices.items()}
    answers = {
        "type": "object", "properties": items, "required": list(items),
        "additionalProperties": False,
    }  # fmt: skip
    return {
        "type": "object", "properties": {"reasoning": {"type": "string"}, "answers": answers},
        "required": ["reasoning", "answers"], "additionalProperties": False,
    }  # fmt: skip
