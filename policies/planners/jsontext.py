"""Finds the JSON value in a model's answer; what had to be repaired is counted, never silent."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from bench_tasks.errors import UsageError

__all__ = ["AnswerError", "Found", "find_json"]

MAX_CHARS = 200_000
"""An answer beyond this is refused unread: nobody's plan is that long."""
_FENCE = re.compile(r"```[ \t]*[A-Za-z0-9_-]*[ \t]*\n?(.*?)(?:```|\Z)", re.DOTALL)


class AnswerError(UsageError):
    """A model's answer that cannot be read; the text, one line, is what the model is told."""

    def __init__(self, text: str) -> None:
        """`text` may quote the answer: it is shortened, and made valid Unicode."""
        line = " ".join(text.encode("utf-8", "replace").decode().split())
        super().__init__(line if len(line) <= 400 else line[:397] + "...")


@dataclass(frozen=True)
class Found:
    """A JSON value and what had to be done to read it, one line per repair."""

    value: Any
    repairs: tuple[str, ...] = ()


def _strict(text: str) -> Any:
    """The value of `text`, or None. NaN and Infinity are not JSON."""

    def refuse(name: str) -> None:
        raise ValueError(name)

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError):
        return None


def _spans(text: str) -> list[str]:
    """Every stretch of the text that a bracket opens and its partner closes, longest first."""
    spans, stack, inside, escaped, start = [], [], False, False, 0
    for i, char in enumerate(text):
        if inside:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                inside = False
        elif char == '"' and stack:
            inside = True
        elif char in "[{":
            if not stack:
                start = i
            stack.append("]" if char == "[" else "}")
        elif stack and char == stack[-1]:
            stack.pop()
            if not stack:
                spans.append(text[start : i + 1])
        elif char in "]}":
            stack = []
    return sorted(spans, key=len, reverse=True)


def find_json(text: str, kinds: tuple[type, ...] = (dict,)) -> Found:
    """The first JSON value of one of `kinds` (dict, list) in an answer.

    Looked for as the whole text, in fenced blocks, then between brackets in running text. When
    none is well formed the most likely stretch is repaired, which `repairs` tells. AnswerError
    when there is nothing to repair either.
    """
    if len(text) > MAX_CHARS:
        raise AnswerError(f"the answer has {len(text)} characters: {MAX_CHARS} are allowed")
    names = " or ".join({"dict": "object", "list": "array"}[kind.__name__] for kind in kinds)
    if not text.strip():
        raise AnswerError(f"the answer is empty: a JSON {names} is needed")
    fenced = [match[1] for match in _FENCE.finditer(text)]
    for candidate in (text.strip(), *fenced, *_spans(text)):
        value = _strict(candidate)
        if isinstance(value, kinds):
            return Found(value)
    return _repaired([*fenced, text], kinds, names)


def _repaired(candidates: list[str], kinds: tuple[type, ...], names: str) -> Found:
    from json_repair import repair_json

    openers = "".join({dict: "{", list: "["}[kind] for kind in kinds)
    for candidate in candidates:
        begin = min((i for c in openers if (i := candidate.find(c)) >= 0), default=-1)
        if begin < 0:
            continue
        try:
            value, log = repair_json(candidate[begin:], return_objects=True, logging=True)
        except (ValueError, RecursionError, TypeError, IndexError, AttributeError):
            continue
        if isinstance(value, kinds) and value:
            notes = [str(entry.get("text", entry)) for entry in log] or ["rewritten as JSON"]
            return Found(value, tuple(dict.fromkeys(note[:160] for note in notes)))
    raise AnswerError(f"no JSON {names} in the answer")
