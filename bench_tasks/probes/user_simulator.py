"""The simulated user of an on-policy talk: goes on from what the robot replied, and tells nothing.

Variables of the state are shown in scripted queries alone; what the user says after the robot's
reply must not reveal any. By default rules speak; a model may, and what it says is checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench_tasks.probes.daily_words import LASTING
from bench_tasks.probes.stream import NOT_MENTIONED, Reply
from bench_tasks.probes.talk import say
from bench_tasks.probes.users import User

__all__ = ["FollowUp", "Simulator", "attitude", "reveals"]

TRIES = 3
"""A model is asked so often before rules speak in its place."""
TELLING = (
    "yes", "yeah", "yep", "no", "nope", "not", "right", "correct", "exactly", "precisely", "indeed",
    "wrong", "true", "false", "sure", "agreed", "still", "actually",
)  # fmt: skip
"""Words that confirm or deny what was just said."""
NAMED = ("I see.", "Thank you, I take that along.", "That gives me something to think about.")
SILENT = ("Never mind, let us go on.", "It will come up again.", "We have time, another day.")
DECLINED = ("That I keep to myself today.", "I would rather talk of something else.")


@dataclass(frozen=True)
class FollowUp:
    """What the user says next; `refused` is what a model would have said, but must not."""

    text: str
    by: str
    refused: tuple[str, ...] = ()


def attitude(reply: Reply) -> str:
    """Whether the robot `asked` something back, `named` something, or was `silent`."""
    if "?" in reply.text:
        return "asked"
    if reply.abstained or reply.text.strip() in ("", NOT_MENTIONED):
        return "silent"
    return "named"


def reveals(text: str, user: User, replied: str = "") -> tuple[str, ...]:
    """The variables of the schema that a sentence says something about, () if none.

    A value is revealed when its words are said, one after the other or, if it has several that
    say something, in any order; and by confirming or denying a reply that named one.
    """
    found = _named(text, user)
    if set(_words(text)) & set(TELLING):
        found += [name for name in _named(replied, user) if name not in found]
    return tuple(found)


def _named(text: str, user: User) -> list[str]:
    said = _words(text)
    line = f" {' '.join(said)} "
    return [name for name, values in user.schema.items()
            if any(_says(value, said, line) for value in values)]  # fmt: skip


def _says(value: str, said: list[str], line: str) -> bool:
    words = [word for word in _words(value) if word not in ("a", "an", "the")]
    telling = [word for word in words if len(word) > 3]
    together = bool(words) and f" {' '.join(words)} " in line
    return together or len(telling) > 1 and set(telling) <= set(said)


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())


class Simulator:
    """One user in talks with the robot."""

    def __init__(
        self, user: User, rng: np.random.Generator, complete: Callable[[str], str] | None = None
    ) -> None:
        """`complete` is a model: prompt in, text out."""
        self._user, self._rng, self._complete = user, rng, complete

    def follow_up(self, query: str, said: str, reply: Reply) -> FollowUp:
        """What the user says to a reply, in a talk that began with `query`, after he `said` that.

        What a model says is refused, and asked for again, when it reveals something.
        """
        refused: list[str] = []
        if self._complete is not None:
            for _ in range(TRIES):
                text = self._complete(self._prompt(query, said, reply, refused)).strip()
                if text and not reveals(text, self._user, reply.text):
                    return FollowUp(text, "model", tuple(refused))
                refused.append(text)
        return FollowUp(self._by_rule(reply), "rule", tuple(refused))

    def _by_rule(self, reply: Reply) -> str:
        manner = attitude(reply)
        if manner == "asked":
            asked = reply.text.lower()
            lasting = [what for what in LASTING if what in asked and what in self._user.profile]
            if lasting:  # Whoever asks for what is no secret is told.
                value = str(self._user.profile[lasting[0]])
                text = say("has", self._rng, attribute=lasting[0], value=value)
                if not reveals(text, self._user, reply.text):
                    return text
        pool = {"asked": DECLINED, "named": NAMED, "silent": SILENT}[manner]
        safe = [text for text in pool if not reveals(text, self._user, reply.text)]
        return str(self._rng.choice(safe or ["Hm."]))

    def _prompt(self, query: str, said: str, reply: Reply, refused: list[str]) -> str:
        profile = self._user.profile.get("formatted_str") or json.dumps(
            self._user.profile, ensure_ascii=False
        )
        again = "".join(f"\nYou must not say: {text}" for text in refused)
        return (
            "You play a person who talks with a robot, and go on with the talk.\n"
            f"Who you are:\n{profile}\n"
            f"You began with: {query}\nYou said last: {said}\nThe robot replied: {reply.text}\n"
            "If it asked something, answer, unless that is about one of these variables, of which "
            "you reveal nothing, and neither confirm nor deny what the robot says of them:\n"
            f"{json.dumps(self._user.schema, ensure_ascii=False)}\n"
            "Else ask something that goes on from the reply. Give nothing but what you say." + again
        )
