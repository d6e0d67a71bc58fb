"""Betting points on an answer: what a memory without a model makes of how sure it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bench_tasks.probes.stream import Query, Reply, refusal_of
from bench_tasks.probes.talk import meanings, put

__all__ = ["bet", "is_wager"]

POINTS = 100


def is_wager(query: Query) -> bool:
    """Whether points are to be shared between answers."""
    return any(meaning.kind == "wager" for meaning in meanings(query.text, asked=True))


def bet(query: Query, answer: Callable[[Query], Reply]) -> Reply:
    """As many points on the answer to the plain question as that is sure, the rest on not knowing.

    What who does not know it does not put there is shared evenly.
    """
    slots = meanings(query.text, asked=True)[0].slots
    options = (slots["a"], slots["b"], slots["c"])
    text = put("colour_of_name", 0, name=slots["name"])
    plain = replace(query, text=text, choices=options)
    reply = answer(plain)
    reserve = refusal_of(plain) or options[-1]
    on = reply.text if reply.text in options else reserve
    others = [reserve] if on != reserve else [option for option in options if option != on]
    rest = POINTS - round(POINTS * min(max(reply.confidence, 0.0), 1.0))
    points = dict.fromkeys(options, 0) | dict.fromkeys(others, rest // len(others))
    points[on] = POINTS - sum(points.values())
    return replace(reply, text=", ".join(f"{option} {n}" for option, n in points.items()))
