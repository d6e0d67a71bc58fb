"""Generates users whose state evolves, as AMemGym's items (arXiv 2603.01966), by rules.

Every value is as likely as the others of its variable, at the beginning and after any number of
changes, and the choices of a question are all combinations of the values of its variables: nothing
in a question tells its answer.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from bench_tasks.errors import UsageError
from bench_tasks.probes.conversation_state import DAY_NS, SECOND_NS, START_NS
from bench_tasks.probes.daily_words import DAILY, LASTING, SMALL_WORDS
from bench_tasks.probes.talk import say, state_in_words, suiting
from bench_tasks.probes.users import Choice, Period, Question, Session, User
from bench_tasks.probes.words import ATTRIBUTES, PERSONS

__all__ = ["MOST_VARIABLES", "evolve"]

VARIABLES = {**ATTRIBUTES, **DAILY}
MOST_VARIABLES = len(VARIABLES)
PERIOD_DAYS = 90
MOST_CHANGES = 3
"""A variable that has changed so often changes again only when there is no other."""


def evolve(
    seed: int, questions: int = 10, states: int = 2, values: int = 3, periods: int = 10,
    changes: int = 4, chat: int = 2,
) -> User:
    """A user, and `questions` about `states` variables of `values` values each.

    They are asked at the beginning and after each of `periods` in which `changes` variables change.
    `chat` sentences that say nothing go before what is said in a session. UsageError when there
    are less variables than a question needs or a period changes.
    """
    rng = np.random.default_rng([seed, 11])
    count = min(questions * states, MOST_VARIABLES)
    if states > count or changes > count:
        raise UsageError(
            f"{count} variables are not enough for {states} in a question and {changes} changes"
        )
    names = [str(name) for name in rng.permutation(list(VARIABLES))[:count]]
    schema = {name: tuple(map(str, rng.choice(VARIABLES[name], values, replace=False)))
              for name in names}  # fmt: skip
    profile = {"name": str(rng.choice(PERSONS))} | {
        what: str(rng.choice(pool)) for what, pool in LASTING.items()
    }
    asked = [_question(profile["name"], needs, schema, rng)
             for needs in _needed(names, questions, states, rng)]  # fmt: skip
    state = {name: str(rng.choice(schema[name])) for name in names}
    found = [_first(state, rng, chat)]
    counts = dict.fromkeys(names, 0)
    for _ in range(periods):
        order = sorted(rng.permutation(names).tolist(), key=lambda n: counts[n] >= MOST_CHANGES)
        changed = {}
        for name in order[:changes]:
            others = [value for value in schema[name] if value != state[name]]
            changed[name] = str(rng.choice(others))
            counts[name] += 1
        state = {**state, **changed}
        found.append(_later(found[-1].end_ns, state, changed, rng, chat))
    return User(f"user-{seed}", START_NS, profile, schema, tuple(found), tuple(asked))


def _needed(
    names: list[str], questions: int, states: int, rng: np.random.Generator
) -> list[tuple[str, ...]]:
    """The variables of each question: each in turn, so that as many as can be are asked for."""
    order: list[str] = []
    found = []
    for _ in range(questions):
        if len(order) < states:
            rest = [name for name in rng.permutation(names).tolist() if name not in order]
            order += rest
        found.append(tuple(order[:states]))
        order = order[states:]
    return found


def _question(
    person: str, needs: tuple[str, ...], schema: dict[str, tuple[str, ...]],
    rng: np.random.Generator,
) -> Question:
    choices = [
        Choice(state, suiting(state_in_words(dict(zip(needs, state, strict=True)))))
        for state in product(*(schema[name] for name in needs))
    ]
    text = say("suits", rng, person=person, attributes=" and ".join(needs))
    return Question(text, needs, tuple(choices[int(k)] for k in rng.permutation(len(choices))))


def _first(state: dict[str, str], rng: np.random.Generator, chat: int) -> Period:
    """All is made known, one or two variables in a session, in the month before the start."""
    names = [str(name) for name in rng.permutation(list(state))]
    sessions, at = [], START_NS - 30 * DAY_NS
    while names:
        count = int(rng.integers(1, 3))
        told, names = names[:count], names[count:]
        at += DAY_NS + int(rng.integers(8 * 3600)) * SECOND_NS
        sessions.append(_session("has", {name: state[name] for name in told}, at, rng, chat))
    return Period(START_NS - 30 * DAY_NS, max(START_NS, at + DAY_NS), tuple(sessions), state)


def _later(
    start_ns: int, state: dict[str, str], changed: dict[str, str], rng: np.random.Generator,
    chat: int,
) -> Period:
    """What has changed is said, each in a session, on days of the period."""
    days = sorted(rng.choice(np.arange(1, PERIOD_DAYS - 1), len(changed), replace=False).tolist())
    sessions = [
        _session("changed", {name: value},
                 start_ns + day * DAY_NS + int(rng.integers(8 * 3600)) * SECOND_NS, rng, chat)
        for day, (name, value) in zip(days, changed.items(), strict=True)
    ]
    return Period(start_ns, start_ns + PERIOD_DAYS * DAY_NS, tuple(sessions), dict(state))


def _session(
    kind: str, told: dict[str, str], at: int, rng: np.random.Generator, chat: int
) -> Session:
    said = [str(rng.choice(SMALL_WORDS)) for _ in range(chat)]
    said += [say(kind, rng, attribute=name, value=value) for name, value in told.items()]
    return Session(" ".join(said), told, at, None if kind == "has" else "it has changed")
