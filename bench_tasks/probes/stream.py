"""What a probe consists of: items that are observed, and questions whose right answer is known.

A probe is a generator of steps. It yields an `Item`, which the memory under test observes, or an
`Asked`, for which it is sent the memory's `Reply`; what it yields next may depend on that. The same
generator is played in one process, by a task node over ROS, and against a recording.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Generator
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, TypeVar

from bench_tasks.errors import UsageError

__all__ = [
    "NOT_MENTIONED", "UNKNOWN", "Asked", "Item", "Picture", "Probe", "Query", "Reply", "Step",
    "checked", "refusal_of", "reply_from", "step_from_json", "step_to_json",
]  # fmt: skip

NOT_MENTIONED = "Not mentioned"
"""The choice, and the gold, of a question to which nothing that was observed is an answer."""
UNKNOWN = "UNKNOWN"
"""The same where things were said, but nothing that one may rely on."""


@dataclass(frozen=True)
class Picture:
    """An encoded picture; `caption` says in words what it shows, for those who read texts alone."""

    name: str
    data: bytes
    format: str = "jpeg"
    caption: str = ""


@dataclass(frozen=True)
class Item:
    """One thing observed: an utterance, a picture, or both together.

    `id` is unique in the stream; `speaker` is "" for what the robot's own camera saw.
    `about` is None, or the id of a question on whose answer this comments (a correction).
    """

    id: str
    stamp_ns: int
    session: str
    speaker: str
    text: str = ""
    picture: Picture | None = None
    about: str | None = None


@dataclass(frozen=True)
class Query:
    """A question, all that the memory gets to know of it. Free text when there are no choices."""

    id: str
    stamp_ns: int
    text: str
    choices: tuple[str, ...] = ()
    picture: Picture | None = None


def refusal_of(query: Query) -> str:
    """What says that the answer is not known; "" where one of the choices must be taken."""
    if not query.choices:
        return NOT_MENTIONED
    return next((c for c in query.choices if c in (NOT_MENTIONED, UNKNOWN)), "")


@dataclass(frozen=True)
class Reply:
    """An answer. With choices `text` is one of them, or "" for none.

    `confidence` in [0, 1] is what it would bet on; `used` names the items that it rests on.
    """

    text: str
    confidence: float = 1.0
    used: tuple[str, ...] = ()
    abstained: bool = False


@dataclass(frozen=True)
class Asked:
    """A question with what it is scored by.

    `kind` is its type within the probe, `gold` the right answer, `chance` what guessing scores in
    the mean, `evidence` the items that the answer rests on, () for what was not mentioned. `tags`
    are by what results are split: modality, people, distance, paraphrase ...
    What is not `scored` counts as no question: a turn of a talk, or a look into the memory by
    which a failure is explained.
    """

    query: Query
    kind: str
    gold: str
    chance: float
    evidence: tuple[str, ...] = ()
    tags: dict[str, Any] = field(default_factory=dict)
    scored: bool = True


Step = Item | Asked
Probe = Generator[Step, Reply | None, None]


def step_to_json(step: Step) -> str:
    """One line from which `step_from_json` makes an equal step."""
    kind = "item" if isinstance(step, Item) else "asked"
    return json.dumps(
        {kind: asdict(step)}, default=lambda b: base64.b64encode(b).decode("ascii"), sort_keys=True
    )


def step_from_json(line: str) -> Step:
    """Inverse of `step_to_json`. UsageError says what is malformed."""
    try:
        ((kind, raw),) = json.loads(line).items()
        if kind == "item":
            return checked(replace(Item(**raw), picture=_picture(raw["picture"])))
        if kind == "asked":
            query = Query(**raw["query"])
            query = replace(query, choices=_tuple(query.choices), picture=_picture(query.picture))
            asked = Asked(**{**raw, "query": checked(query)})
            return checked(replace(asked, evidence=_tuple(asked.evidence)))
        raise ValueError(f"a step is an item or asked, not {kind!r}")
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise UsageError(f"malformed step of a probe: {error}") from None


def reply_from(raw: Any) -> Reply:
    """A reply from its JSON object. UsageError says what is malformed."""
    try:
        return checked(Reply(**{**raw, "used": _tuple(raw["used"])}))
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"malformed reply: {error}") from None


def _picture(raw: Any) -> Picture | None:
    if raw is None:
        return None
    return checked(Picture(**{**raw, "data": base64.b64decode(raw["data"], validate=True)}))


def _tuple(raw: Any) -> tuple:
    """A list as a tuple; all else as it is, and not the letters of a word one by one."""
    return tuple(raw) if isinstance(raw, list | tuple) else raw


_Part = TypeVar("_Part", Picture, Item, Query, Reply, Asked)


def checked(part: _Part) -> _Part:
    """The same, if each of its fields holds what it is declared to; ValueError names one not so."""
    if not isinstance(part, Picture | Item | Query | Reply | Asked):
        raise ValueError(f"an Item, an Asked or a Reply is wanted, got {part!r:.80}")
    for one in fields(part):
        what, holds = _TYPES[str(one.type)]
        if not holds(value := getattr(part, one.name)):
            raise ValueError(f"{one.name} must be {what}, got {value!r:.80}")
    if isinstance(part, Asked):
        for name in ("turns", "seconds"):
            if not _number(part.tags.get(name, 0)):
                raise ValueError(f"tag {name} must be a number, got {part.tags[name]!r:.80}")
        json.dumps(part.tags, ensure_ascii=False).encode()
        if not 0 <= part.chance <= 1:
            raise ValueError(f"chance must be in [0, 1], got {part.chance}")
    return part


def _text(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(value.encode() or True)
    except UnicodeEncodeError:  # Half of a pair of surrogates: nothing can store or print it.
        return False


def _texts(value: Any) -> bool:
    return isinstance(value, tuple) and all(map(_text, value))


def _whole(value: Any) -> bool:
    return type(value) is int and -(2**63) <= value < 2**63


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and type(value) is not bool and math.isfinite(value)


_TYPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "str": ("a text", _text),
    "str | None": ("a text or nothing", lambda value: value is None or _text(value)),
    "int": ("a whole number of 64 bits", _whole),
    "float": ("a finite number", _number),
    "bool": ("true or false", lambda value: isinstance(value, bool)),
    "bytes": ("bytes", lambda value: isinstance(value, bytes)),
    "tuple[str, ...]": ("a list of texts", _texts),
    "dict[str, Any]": ("an object", lambda value: isinstance(value, dict)),
    "Picture | None": (
        "a picture or nothing", lambda value: value is None or isinstance(value, Picture)
    ),
    "Query": ("a question", lambda value: isinstance(value, Query)),
}  # fmt: skip
"""A field's type as it is written -> what that is called, and whether a value is of it."""
