"""Answers from items with a model: any function from a prompt, and pictures, to a text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timezone

from bench_tasks.patience import patient
from bench_tasks.probes.stream import Item, Picture, Query, Reply, refusal_of
from policies import make_model
from policies.memory.words import asked_in, said_in
from policies.planners.jsontext import AnswerError, find_json

__all__ = ["ModelReader", "make_reader"]


class ModelReader:
    """Depends on nothing but its arguments, as far as the model does not."""

    def __init__(self, complete: Callable[..., str], sees: bool = False) -> None:
        """`complete(prompt)` returns the model's answer; `complete(prompt, pictures)` if it sees.

        Where it sees it is shown the pictures of what is remembered, and that of the question.
        """
        self._complete, self._sees = complete, sees

    def answer(self, query: Query, items: Sequence[Item]) -> Reply:
        """What the model says; what cannot be read, or is none of the choices, is no answer."""
        pictures = _pictures(query, items) if self._sees else []
        prompt = _prompt(query, items, pictures)
        answer = self._complete(prompt, pictures) if pictures else self._complete(prompt)
        used = tuple(item.id for item in items)
        try:
            said = find_json(answer, (dict,)).value["answer"]
        except (AnswerError, KeyError):
            said = "" if query.choices else answer.strip()
        if query.choices:
            found = _choice(said, query.choices)
            if not found:
                return Reply(refusal_of(query), 0.5, abstained=True)
            return Reply(found, 1.0, used)
        text = "" if said is None else str(said).strip()
        if not text:
            return Reply(refusal_of(query), 0.5, abstained=True)
        return Reply(text, 1.0, used)


def make_reader(spec: str) -> tuple[str, ModelReader]:
    """A planner's model as reader, with its name; UsageError when it is none.

    It raises BrokenOff once it was asked several times in a row without an answer.
    """
    name, complete = make_model(spec)
    return name, ModelReader(patient(complete), sees=True)


def _choice(said: object, choices: Sequence[str]) -> str:
    """The choice that a number from 1, or its own words, stand for; "" when it is none."""
    text = str(said).strip()
    if text in choices:
        return text
    if text.isdigit() and 0 < int(text) <= len(choices):
        return choices[int(text) - 1]
    return ""


def _in_order(items: Sequence[Item]) -> list[Item]:
    return sorted(items, key=lambda one: (one.stamp_ns, one.id))


def _pictures(query: Query, items: Sequence[Item]) -> list[Picture]:
    """Those that there are, in the order in which the prompt speaks of them."""
    shown = [*(item.picture for item in _in_order(items)), query.picture]
    return [picture for picture in shown if picture is not None and picture.data]


def _prompt(query: Query, items: Sequence[Item], pictures: Sequence[Picture]) -> str:
    numbers = {id(picture): k for k, picture in enumerate(pictures, 1)}

    def beside(picture: Picture | None) -> str:
        return f" (picture {numbers[id(picture)]})" if id(picture) in numbers else ""

    lines = [f"[{_date(item.stamp_ns)}] {said_in(item)}{beside(item.picture)}"
             for item in _in_order(items)]  # fmt: skip
    remembered = "\n".join(lines) or "nothing"
    question = f"{asked_in(query)}{beside(query.picture)}"
    head = (f"What you remember, the oldest first:\n{remembered}\n\n"
            f"It is {_date(query.stamp_ns)} now. {question}\n")  # fmt: skip
    if not query.choices:
        return head + 'Answer as briefly as can be, in JSON: {"answer": "..."}.'
    shown = "\n".join(f"{k}: {choice}" for k, choice in enumerate(query.choices, 1))
    return (f"{head}{shown}\nAnswer with the number of one of these, 0 if you do not know, "
            'in JSON: {"answer": number}.')  # fmt: skip


def _date(stamp_ns: int) -> str:
    return f"{datetime.fromtimestamp(stamp_ns // 10**9, timezone.utc):%Y-%m-%d %H:%M}"
