"""The probe of observed conversations: people talk to each other, the robot is asked afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bench_tasks.errors import UsageError
from bench_tasks.options import check_ranges
from bench_tasks.probes.conversation_questions import TYPES, Questions
from bench_tasks.probes.conversation_state import Conversation
from bench_tasks.probes.stills import Render
from bench_tasks.probes.stream import Probe
from bench_tasks.probes.words import ATTRIBUTES

__all__ = ["Conversations", "Options"]

MAX_SESSIONS = 24
MODES = ("image", "text")


@dataclass(frozen=True)
class Options:
    """How large a conversation is, and how its questions are put.

    `questions` are asked of each of the nine types. `small_talk` counts utterances of a session
    that say nothing, `rumours` those about somebody else. The fewer `attributes`, the more is said
    of each, by everybody. With `mode` text captions stand in for pictures. Without `choices`
    answers are free text.
    """

    sessions: int = 8
    people: int = 3
    questions: int = 6
    small_talk: int = 10
    attributes: int = 10
    rumours: int = 1
    mode: str = "image"
    paraphrase: bool = True
    choices: bool = True

    def __post_init__(self) -> None:
        """UsageError names the option whose value cannot be."""
        check_ranges(
            self, sessions=(2, MAX_SESSIONS), people=(2, 4), questions=(1, 200),
            small_talk=(0, 200), attributes=(4, len(ATTRIBUTES)), rumours=(0, 50),
        )  # fmt: skip
        if self.mode not in MODES:
            raise UsageError(f"mode must be {' or '.join(MODES)}, got {self.mode!r}")


class Conversations:
    """Makes the steps of one conversation per seed."""

    Options = Options

    def __init__(self, options: Options | None = None) -> None:
        """With the defaults there are 8 sessions of 3 people, and 54 questions."""
        self.options = options or Options()

    @property
    def pictured(self) -> bool:
        """Whether `steps` needs a renderer."""
        return self.options.mode == "image"

    def check(self, seed: int) -> None:
        """UsageError when too little is said in so few sessions for so many questions."""
        for _ in self.steps(seed, lambda still: b""):
            pass

    def steps(self, seed: int, render: Render | None = None) -> Probe:
        """Sessions, each followed by questions about all that was said so far.

        UsageError when there is nothing that draws the pictures, or too little is said in so few
        sessions for so many questions.
        """
        it = self.options
        if self.pictured and render is None:
            raise UsageError("mode=image needs a renderer: choose mode=text without one")
        world, draw = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
        talk = Conversation(world, it.people, it.small_talk, render if self.pictured else None,
                            it.attributes, it.rumours)
        questions = Questions(talk, draw, it.questions, it.paraphrase, it.choices)
        due = self._due(draw)
        for session in range(it.sessions):
            yield from talk.session()
            waiting = [kind for at, kind in due if at <= session]
            due = [(at, kind) for at, kind in due if at > session]
            for kind in waiting:
                asked = questions.ask(kind)
                if asked is not None:
                    yield asked
                elif session + 1 < it.sessions:
                    due.append((session + 1, kind))
                else:
                    raise UsageError(
                        f"{it.sessions} sessions do not say enough for {it.questions} questions "
                        f"of type {kind} (seed {seed}): choose fewer questions or more sessions"
                    )

    def _due(self, draw: np.random.Generator) -> list[tuple[int, str]]:
        """After which session each question is to be asked, from the second on."""
        kinds = [kind for kind in TYPES for _ in range(self.options.questions)]
        when = draw.integers(1, self.options.sessions, len(kinds))
        return list(_mixed(list(zip(when.tolist(), kinds, strict=True)), draw))


def _mixed(values: list, draw: np.random.Generator) -> Iterator:
    return (values[int(k)] for k in draw.permutation(len(values)))
