"""How well a memory did: exact answers and words in common, split by all that questions differ in.

Everything is computed from what a run has on record.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench_tasks.errors import UsageError
from bench_tasks.probes.player import Record
from bench_tasks.probes.stream import NOT_MENTIONED, Asked, Item, Reply, refusal_of
from bench_tasks.reports.stats import wilson

__all__ = [
    "Overlap", "Score", "best_constant", "bleu_1", "check_splits", "costs", "in_order", "is_right",
    "overlap", "score", "split",
]  # fmt: skip


def _tokens(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


@dataclass(frozen=True)
class Overlap:
    """Precision, recall and F1 of the sets of words of an answer and its gold."""

    precision: float
    recall: float
    f1: float


def overlap(answer: str, gold: str) -> Overlap:
    """Words as sets, in lower case and without signs (as H2HMem scores, arXiv 2606.09461)."""
    said, wanted = set(_tokens(answer)), set(_tokens(gold))
    both = len(said & wanted)
    if not both:
        return Overlap(0.0, 0.0, 0.0)
    precision, recall = both / len(said), both / len(wanted)
    return Overlap(precision, recall, 2 * precision * recall / (precision + recall))


def bleu_1(answer: str, gold: str) -> float:
    """BLEU of single words (Papineni et al. 2002): clipped precision times brevity penalty."""
    said, wanted = Counter(_tokens(answer)), Counter(_tokens(gold))
    n = sum(said.values())
    if not n:
        return 0.0
    short = min(0.0, 1 - sum(wanted.values()) / n)
    return math.exp(short) * sum((said & wanted).values()) / n


def is_right(asked: Asked, reply: Reply) -> bool:
    """A choice must be the gold to the letter; free text must have its words in their order."""
    if asked.query.choices:
        return reply.text == asked.gold
    return bool(reply.text) and _tokens(reply.text) == _tokens(asked.gold)


@dataclass(frozen=True)
class Score:
    """What became of `count` questions: all are `right`, `abstained` or wrong.

    Abstaining is counted apart, and not as right; but where "Not mentioned" is among the choices,
    or the question is tagged `refusal`, it is an answer like others, right or wrong.
    `low` and `high` are Wilson's 95 % interval of right/count, `chance` is the mean of what
    guessing gets, `guessing` what is expected to be right if each abstention were a guess instead:
    who knows nothing and says so is at chance by that. `errors` counts questions at which the
    memory raised something.
    """

    count: int
    right: int
    abstained: int
    errors: int
    chance: float
    guessing: float
    low: float
    high: float
    precision: float
    recall: float
    f1: float
    bleu_1: float

    @property
    def accuracy(self) -> float:
        """Share right; NaN without questions."""
        return self.right / self.count if self.count else math.nan

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "accuracy": self.accuracy}


def score(records: Iterable[Record]) -> Score:
    """Score the questions among the records."""
    told = [(r.step, r.reply, r.error) for r in records
            if isinstance(r.step, Asked) and r.step.scored and r.reply]
    rights = [is_right(asked, reply) for asked, reply, _ in told]
    silent = [
        reply.abstained and not ok and not _may_refuse(asked)
        for (asked, reply, _), ok in zip(told, rights, strict=True)
    ]
    chances = [asked.chance for asked, *_ in told]
    low, high = wilson(sum(rights), len(told))
    words = [overlap(reply.text, asked.gold) for asked, reply, _ in told]
    return Score(
        len(told), sum(rights), sum(silent), sum(bool(error) for *_, error in told),
        _mean(chances),
        _mean(c if s else float(ok) for c, s, ok in zip(chances, silent, rights, strict=True)),
        low, high, _mean(w.precision for w in words), _mean(w.recall for w in words),
        _mean(w.f1 for w in words),
        _mean(bleu_1(reply.text, asked.gold) for asked, reply, _ in told),
    )  # fmt: skip


def _may_refuse(asked: Asked) -> bool:
    return bool(asked.query.choices and refusal_of(asked.query) or asked.tags.get("refusal"))


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found) if found else 0.0


TURNS = (10, 30, 100, 300, 1000)
DAYS = (1, 3, 10, 30, 100)


def _bucket(value: float, bounds: Sequence[int], unit: str) -> str:
    for low, high in zip((0, *bounds), bounds, strict=False):
        if value < high:
            return f"{low}-{high} {unit}"
    return f"{bounds[-1]}+ {unit}"


def _tag(name: str) -> Callable[[Asked], str | None]:
    return lambda asked: str(asked.tags[name]) if name in asked.tags else None


_SPLITS: dict[str, Callable[[Asked], str | None]] = {
    "kind": lambda asked: asked.kind,
    "modality": _tag("modality"),
    "people": _tag("people"),
    "phase": _tag("phase"),
    "distractors": _tag("distractors"),
    "paraphrase": _tag("paraphrase"),
    "difficulty": _tag("difficulty"),
    "turns": lambda asked: (
        _bucket(asked.tags["turns"], TURNS, "turns") if "turns" in asked.tags else None
    ),
    "days": lambda asked: (
        _bucket(asked.tags["seconds"] / 86_400, DAYS, "days") if "seconds" in asked.tags else None
    ),
}  # fmt: skip


def check_splits(names: Iterable[str]) -> None:
    """UsageError lists what results can be split by when a name is none of it."""
    for name in names:
        if name not in _SPLITS:
            raise UsageError(f"cannot split by {name!r}: choose from {', '.join(sorted(_SPLITS))}")


def split(records: Iterable[Record]) -> dict[str, dict[str, Score]]:
    """By what questions differ in -> value -> score. A question without the tag is in none."""
    asked = [r for r in records if isinstance(r.step, Asked) and r.step.scored]
    found: dict[str, dict[str, Score]] = {}
    for name, value_of in _SPLITS.items():
        groups: dict[str, list[Record]] = {}
        for record in asked:
            value = value_of(record.step)  # type: ignore[arg-type]
            if value is not None:
                groups.setdefault(value, []).append(record)
        ordered = sorted(groups, key=in_order)
        found[name] = {value: score(groups[value]) for value in ordered}
    return found


def in_order(value: str) -> tuple[float, str]:
    """To sort values of a split by: by number where they have one."""
    number = re.match(r"\d+", value)
    return (float(number.group()) if number else -1.0, value)


def best_constant(asked: Iterable[Asked]) -> tuple[str, float]:
    """The one answer that is right most often when always given, and how often it is.

    Besides every answer in words, the first and the last choice are tried. The more there are to
    try, the further the best is above chance by luck alone.
    """
    asked = [one for one in asked if one.scored]
    answers = {NOT_MENTIONED, *(c for a in asked for c in (a.gold, *a.query.choices))}
    shares = {
        repr(text): sum(is_right(a, Reply(text)) for a in asked) for text in sorted(answers)
    }
    for name, at in (("the first choice", 0), ("the last choice", -1)):
        shares[name] = sum(a.gold == a.query.choices[at] for a in asked if a.query.choices)
    best = max(shares, key=lambda name: shares[name])
    return best, shares[best] / len(asked) if asked else math.nan


def costs(records: Iterable[Record]) -> dict[str, float]:
    """Mean seconds of observing a session and of answering a question, and how many there were."""
    observing: dict[str, float] = {}
    answering: list[float] = []
    for record in records:
        if isinstance(record.step, Item):
            session = record.step.session
            observing[session] = observing.get(session, 0.0) + record.seconds
        else:
            answering.append(record.seconds)
    return {
        "sessions": len(observing), "seconds_per_session": _mean(observing.values()),
        "questions": len(answering), "seconds_per_question": _mean(answering),
    }
