"""On-policy talks with a user whose state changes, after AMemGym (arXiv 2603.01966).

The user shows his state in scripted queries; the robot replies from memory, the reply is observed
like all that is said, and the user goes on from it. At the end of each period the same questions
are asked, whose answers depend on the state. Where one fails, what the memory knows of each
variable is asked, now and right after it was last shown: was it not written, not read, or not used?
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench_tasks.errors import UsageError
from bench_tasks.options import check_ranges
from bench_tasks.probes.conversation_state import SECOND_NS
from bench_tasks.probes.evolution import MOST_VARIABLES, evolve
from bench_tasks.probes.interaction_scores import report
from bench_tasks.probes.runs import Run
from bench_tasks.probes.scores import is_right
from bench_tasks.probes.stills import Render
from bench_tasks.probes.stream import Asked, Item, Probe, Query, Reply, Step
from bench_tasks.probes.talk import meanings, put, state_in_words, variants
from bench_tasks.probes.user_simulator import Simulator, attitude
from bench_tasks.probes.users import Question, User, read_users

__all__ = ["AMemGym", "Options", "ROBOT"]

ROBOT = "Robot"
"""Who says what the memory replied."""
TURN_S = 15


@dataclass(frozen=True)
class Options:
    """`dir` is a file or folder of published users; without it users are generated.

    Generated ones are asked `questions`, each about `states` variables of `values` values, at the
    start and after each of `periods` with `changes`; `chat` sentences of a session say nothing.
    The robot replies `rounds` times in a session. Without `probes` failures are not explained.
    Without `paraphrase` generated questions are put in the plain way.
    """

    dir: str = ""
    questions: int = 10
    states: int = 2
    values: int = 3
    periods: int = 10
    changes: int = 4
    chat: int = 2
    rounds: int = 2
    probes: bool = True
    paraphrase: bool = True

    def __post_init__(self) -> None:
        """UsageError names the option whose value cannot be."""
        check_ranges(
            self, questions=(1, 100), states=(1, 4), values=(2, 4), periods=(0, 100),
            changes=(1, MOST_VARIABLES), chat=(0, 100), rounds=(1, 20),
        )  # fmt: skip


class AMemGym:
    """The talks with one user; the seed says which, or generates him."""

    Options = Options
    pictured = False

    def __init__(
        self, options: Options | None = None, complete: Callable[[str], str] | None = None
    ) -> None:
        """`complete`, a model (prompt in, text out), plays the user in place of rules."""
        self.options = options or Options()
        self._complete = complete
        self.faults: list[str] = []
        """Of the user read last."""
        self._users = read_users(Path(self.options.dir)) if self.options.dir else []

    def check(self, seed: int) -> None:
        """UsageError when there are less users."""
        if self.options.dir and seed >= len(self._users):
            raise UsageError(f"there are {len(self._users)} users: no seed {seed}")

    def user(self, seed: int) -> User:
        """The user of a seed; UsageError as of `check`."""
        self.check(seed)
        it = self.options
        if not it.dir:
            return evolve(seed, it.questions, it.states, it.values, it.periods, it.changes, it.chat)
        return self._users[seed]

    def steps(self, seed: int, render: Render | None = None) -> Probe:
        """All periods of the user."""
        user = self.user(seed)
        self.faults = list(user.faults)
        return _Talks(user, self.options, seed, self._complete).steps()

    @staticmethod
    def report(runs: list[Run]) -> dict[str, float | None]:
        """What it measures besides right and wrong, of runs that came to their end."""
        return report(runs)


Turns = Generator[Step, Reply | None, Any]


class _Talks:
    def __init__(
        self, user: User, options: Options, seed: int, complete: Callable[[str], str] | None
    ) -> None:
        self._user, self._options = user, options
        self._rng = np.random.default_rng([seed, 12])
        """For the order of choices and how questions are put: not what depends on replies."""
        self._look_rng = np.random.default_rng([seed, 14])
        """For what explains failures: with or without it the same is asked otherwise."""
        self._user_rng = np.random.default_rng([seed, 13])
        self._simulator = Simulator(user, self._user_rng, complete)
        self._now_ns, self._items, self._asked = 0, 0, 0
        self._shown: dict[str, tuple[str, str, int, int]] = {}
        """Variable -> its value, the item that showed it last, that one's number and stamp."""
        self._start: dict[str, str] = {}
        self._given: set[tuple[int, tuple[str, ...]]] = set()
        """Questions and states of which the upper bound was asked."""

    def steps(self) -> Probe:
        for k, period in enumerate(self._user.periods):
            for n, session in enumerate(period.sessions):
                self._now_ns = max(self._now_ns, session.stamp_ns)
                yield from self._session(f"p{k:02d}-s{n:02d}", session.query, session.exposed, k)
            self._start = self._start or dict(period.state)
            self._now_ns = max(self._now_ns, period.end_ns)
            known: set[str] = set()
            for n, question in enumerate(self._user.questions):
                failed = yield from self._question(k, n, question)
                for name in question.needs if failed and self._options.probes else ():
                    if name not in known:
                        yield from self._look(name, k, "now")
                    known.add(name)

    # A session

    def _session(self, session: str, query: str, exposed: dict[str, str], period: int) -> Turns:
        # What is published is said as it is, with nothing of ours behind it.
        topics = [] if self._options.dir else [n for n in self._shown if n not in exposed]
        topic = self._one(topics)
        text = f"{query} {self._request(topic)}" if topic else query
        item = self._say(session, self._user.name, text)
        yield item
        for name, value in exposed.items():
            self._shown[name] = (value, item.id, self._items, item.stamp_ns)
        said, refused = text, ()
        for turn in range(self._options.rounds):
            reply = yield from self._turn(said, topic, period, refused)
            yield self._say(session, ROBOT, self._spoken(reply, topic))
            if turn + 1 == self._options.rounds:
                break
            more = self._simulator.follow_up(query, said, reply)
            said, refused = more.text, more.refused
            if more.by == "rule":
                # Who was told nothing comes back to it; else it is about something else.
                if attitude(reply) != "silent":
                    topic = self._one([name for name in topics if name != topic])
                said = f"{said} {self._request(topic)}" if topic else said
            else:
                topic = None
            yield self._say(session, self._user.name, said)
        if self._options.probes:
            for name in exposed:
                yield from self._look(name, period, "written")

    def _one(self, names: list[str]) -> str | None:
        return str(self._user_rng.choice(names)) if names else None

    def _request(self, topic: str | None) -> str:
        return f"Can you tell me my {_plain(topic or '')}?"

    def _say(self, session: str, speaker: str, text: str) -> Item:
        self._now_ns += TURN_S * SECOND_NS
        self._items += 1
        return Item(f"{session}-{self._items:04d}", self._now_ns, session, speaker, text)

    def _turn(self, said: str, topic: str | None, period: int, refused: tuple[str, ...]) -> Turns:
        """The robot's reply to what the user said; `topic` is what he wants to be told."""
        gold, evidence, text = "", (), said
        if topic is not None:
            gold, item = self._shown[topic][:2]
            evidence = (item,)
            text = put("attribute", 0, person=self._user.name, attribute=_plain(topic))
        tags: dict[str, Any] = {"role": "turn", "period": period}
        if refused:
            tags["refused"] = list(refused)
        reply = yield self._ask(text, (), "turn", gold, evidence, tags, scored=False)
        return reply or Reply("", 0.0, abstained=True)

    def _spoken(self, reply: Reply, topic: str | None) -> str:
        """A reply as a sentence: what is a value alone is said of its variable."""
        if attitude(reply) == "silent":
            return "That I do not know."
        if topic is None or attitude(reply) == "asked":
            return reply.text
        try:
            return put("told", 0, person=self._user.name, attribute=_plain(topic),
                       value=reply.text)  # fmt: skip
        except UsageError:
            return reply.text  # A model's, in sentences of its own.

    # Questions

    def _question(self, period: int, number: int, question: Question) -> Turns:
        """Ask it, and once for each state the same with the state told; whether it failed."""
        state = self._user.periods[period].state
        gold = question.gold(state)
        if gold is None:
            return False
        order = [question.choices[int(k)] for k in self._rng.permutation(len(question.choices))]
        choices = tuple(choice.answer for choice in order)
        changed = any(self._start[name] != state[name] for name in question.needs)
        tags = {"role": "overall", "period": period, "question": number,
                "needs": list(question.needs), "state": list(gold.state)}  # fmt: skip
        told = [self._shown[name] for name in question.needs if name in self._shown]
        places: dict[str, Any] = {"people": 1, "modality": "text",
                                  "distractors": self._options.chat}  # fmt: skip
        text = question.text
        if _ours(question):
            plain = put("suits", 0, person=self._user.name, attributes=" and ".join(question.needs))
            text = text if self._options.paraphrase else plain
            places["paraphrase"] = "plain" if text == plain else "way 1"
        if told:
            first = min(told, key=lambda one: one[2])
            places |= {"turns": self._items - first[2] + 1,
                       "seconds": (self._now_ns - first[3]) // SECOND_NS}  # fmt: skip
        asked = self._ask(text, choices, "changed" if changed else "first", gold.answer,
                          tuple(dict.fromkeys(one[1] for one in told)), {**tags, **places})
        reply = yield asked
        key = (number, gold.state)
        if key not in self._given:
            self._given.add(key)
            yield self._ask(self._with_state(question, gold.state), choices, "given", gold.answer,
                            (), {**tags, "role": "given"}, scored=False)
        return reply is None or not is_right(asked, reply)

    def _with_state(self, question: Question, values: tuple[str, ...]) -> str:
        state = dict(zip(question.needs, values, strict=True))
        if not _ours(question):
            lines = "\n".join(f"{_plain(name)}: {_plain(value)}" for name, value in state.items())
            return f"{question.text}\nMy present situation:\n{lines}"
        way = int(self._rng.integers(variants("suits_given"))) * self._options.paraphrase
        return put("suits_given", way, person=self._user.name, state=state_in_words(state))

    def _look(self, name: str, period: int, when: str) -> Turns:
        """What the memory knows of a variable; it must not change by being asked."""
        values = self._user.schema[name]
        choices = tuple(values[int(k)] for k in self._look_rng.permutation(len(values)))
        text = put("attribute", 0, person=self._user.name, attribute=_plain(name))
        value, item = self._shown[name][:2] if name in self._shown else ("", "")
        if when == "now":
            value = self._user.periods[period].state[name]
        yield self._ask(text, choices, "state", value, (item,) if item else (),
                        {"role": when, "period": period, "variable": name}, scored=False)

    def _ask(
        self, text: str, choices: tuple[str, ...], kind: str, gold: str,
        evidence: tuple[str, ...], tags: dict[str, Any], scored: bool = True,
    ) -> Asked:
        self._asked += 1
        query = Query(f"q{self._asked:04d}", self._now_ns + SECOND_NS, text, choices)
        chance = 1 / len(choices) if choices else 0.0
        return Asked(query, kind, gold, chance, evidence, tags, scored)


def _ours(question: Question) -> bool:
    """Whether it is of the generated language, be it read from a file or not."""
    return any(meaning.kind == "suits" for meaning in meanings(question.text, asked=True))


def _plain(name: str) -> str:
    """A variable's name, or a value, in words that a sentence can hold."""
    return " ".join(re.sub(r"[_.?!\s]+", " ", name).split()) or "state"

