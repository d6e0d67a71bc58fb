"""A model that says whether a reply gives the right answer, in the place of rules for wording.

Question, right answer and reply are handed to it as data, in one line of JSON that holds no bracket
and no sign that cannot be seen but those of its own structure, so that no text in it can end the
line, close a block or be taken for a model's control token. What comes back must be one of two
answers to the letter: nothing that the judge quotes is read as its verdict.
"""

from __future__ import annotations

import json
import re
from hashlib import sha256
from importlib import resources
from string import Template
from typing import Any

import yaml

from bench_tasks.errors import UsageError
from bench_tasks.probes.judgements import VERDICTS, Judgement
from bench_tasks.probes.stream import Asked, Reply
from policies import make_model_planner
from policies.memory.words import asked_in
from policies.planners.chat import ChatPlanner

__all__ = ["MOST_CHARS", "PROMPT", "Judge", "make_judge", "read_verdict"]

PROMPT = "v1"
MOST_CHARS = 8000
"""Of a reply that is judged."""
_FENCED = re.compile(r"```[ \t]*(?:json)?[ \t]*\n(.*)\n[ \t]*```", re.DOTALL)
_STRUCTURE = "<>[]{}|"
"""With these begin and end blocks, control tokens and JSON's own parts."""


class Judge:
    """A model, and how it is asked."""

    def __init__(self, planner: ChatPlanner) -> None:
        """UsageError when its answers would be drawn by chance."""
        if planner.options.temperature != 0.0:
            raise UsageError(
                f"a judge answers at temperature 0, got {planner.options.temperature:g}"
            )
        self._planner = planner
        text = (resources.files(__name__) / f"{PROMPT}.yaml").read_text(encoding="utf-8")
        self._texts = yaml.safe_load(text)
        self.name = f"{planner.name} {planner.options.model}"
        self.identity: dict[str, Any] = {
            **planner.identity(),
            "prompt": PROMPT, "prompt_sha256": sha256(text.encode()).hexdigest(),
        }  # fmt: skip
        """What its verdicts depend on, as far as it is known with no model there."""

    def key(self, asked: Asked, reply: Reply) -> str:
        """By which a judgement is found again: of the judge and of every word that it is told."""
        told = [self.identity, self._texts["system"], self._told(asked, reply)]
        return sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()

    def ask(self, asked: Asked, reply: Reply) -> tuple[Judgement, dict[str, Any] | None]:
        """What it says, and what it turned out to be: model served, digest of the weights.

        None for that when it was not called. PlannerError when there is no answer.
        """
        if len(reply.text) > MOST_CHARS:
            reason = f"a reply of more than {MOST_CHARS} characters"
            return Judgement("", reason=reason), None
        system, told = self._texts["system"].strip(), self._told(asked, reply)
        done = self._planner.choose(system, told, "verdict", VERDICTS)
        said = done.text.encode("utf-8", "replace").decode()
        served = self._planner.served(done)
        if done.truncated:
            return Judgement("", said, "the answer was cut off"), served
        return read_verdict(said), served

    def _told(self, asked: Asked, reply: Reply) -> str:
        query = asked.query
        parts = {"question": _quoted(asked_in(query))}
        if query.choices:
            parts["choices"] = f"[{', '.join(map(_quoted, query.choices))}]"
        parts |= {"correct_answer": _quoted(asked.gold), "reply": _quoted(reply.text)}
        data = "{" + ", ".join(f'"{name}": {text}' for name, text in parts.items()) + "}"
        # Made of the data, so that nobody can have put it into them.
        mark = f"=== {sha256(data.encode()).hexdigest()[:16]} ==="
        return Template(self._texts["user"]).substitute(mark=mark, data=data).strip()


def make_judge(spec: str) -> Judge:
    """A planner's model as judge; UsageError when it is none. Nothing is loaded or asked yet."""
    planner = make_model_planner(spec)
    if not isinstance(planner, ChatPlanner):
        raise UsageError(f"planner {spec} cannot judge: its class must be a ChatPlanner")
    return Judge(planner)


def _quoted(text: str) -> str:
    """A text as JSON, on one line of signs that can be seen, without any of a structure."""

    def shown(char: str) -> str:
        if char in '"\\' or (char.isprintable() and char not in _STRUCTURE):
            return json.dumps(char, ensure_ascii=False)[1:-1]
        units = char.encode("utf-16-be", "surrogatepass").hex()
        return "".join(f"\\u{units[k : k + 4]}" for k in range(0, len(units), 4))

    return f'"{"".join(map(shown, text))}"'


def read_verdict(said: str) -> Judgement:
    """The verdict that a whole answer is; none where there is anything else in it.

    It may be fenced, and what a model thinks aloud before `</think>` is passed over.
    """
    text = said.rpartition("</think>")[2].strip()
    fenced = _FENCED.fullmatch(text)
    try:
        pairs = json.loads(fenced[1] if fenced else text, object_pairs_hook=list)
    except (ValueError, RecursionError):
        return Judgement("", said, "the answer is no JSON")
    for verdict in VERDICTS:
        if pairs == [("verdict", verdict)]:
            return Judgement(verdict, said)
    return Judgement("", said, "the answer is no verdict")
