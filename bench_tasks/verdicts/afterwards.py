"""Questions on what was, asked of a planner that remembers once its arms are done.

What is asked, and what is right, is the task's to say (`Task.afterwards`), as a function of the
recorded scene, states and events. It is scored beside what the arms did and changes nothing of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench_tasks.tasks.base import Ask, Happening
from bench_tasks.vocabulary import Event

__all__ = [
    "ANSWER_AFTER", "NOT_ASKED", "OVER", "QUESTION_AFTER", "asks_among", "judged", "until_over",
]  # fmt: skip

OVER = "over"
"""Kind of the event after which nothing is judged of what the arms, or anybody, do."""
QUESTION_AFTER, ANSWER_AFTER = "question_after", "answer_after"
NOT_ASKED = "not_asked"
"""Kind of the event that says why a planner was asked nothing: {"reason"}."""


def asks_among(steps: Sequence[Happening]) -> dict[str, Ask]:
    """The questions among what happens, by name."""
    return {step.question.name: step for step in steps if isinstance(step, Ask)}


def judged(
    asks: Mapping[str, Ask], answers: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, Any]]:
    """For each question what is right, what was answered, the share that is right, and chance."""
    found = {}
    for name, ask in asks.items():
        given = answers.get(name, {})
        right = sum(given.get(item) == gold for item, gold in ask.gold.items())
        found[name] = {
            "gold": ask.gold, "answer": given, "accuracy": right / len(ask.gold),
            "chance": ask.chance,
        }  # fmt: skip
    return found


def until_over(events: Sequence[Event]) -> Sequence[Event]:
    """The events up to where the arms were done."""
    end = next((k for k, event in enumerate(events) if event.kind == OVER), len(events))
    return events[:end]
