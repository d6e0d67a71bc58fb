"""Users whose state changes, in the layout that AMemGym is published in (arXiv 2603.01966).

A JSON list of items: id, start_time, user_profile, state_schema (variable -> its values), periods
[{period_start, period_end, sessions [{event, exposed_states, query, session_time}], state,
updates}], qas [{query, required_info, answer_choices [{state, answer}]}]. What is not as it should
be is told in one line each, and the rest is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from bench_tasks.errors import UsageError
from bench_tasks.probes.conversation_state import DAY_NS, SECOND_NS, START_NS

__all__ = [
    "Choice", "Period", "Question", "Session", "User", "date_of", "read_users", "write_users",
]  # fmt: skip


@dataclass(frozen=True)
class Session:
    """What the user says at its beginning, and which values of variables that shows."""

    query: str
    exposed: dict[str, str]
    stamp_ns: int
    event: str | None = None


@dataclass(frozen=True)
class Period:
    """Sessions, and the state at their end. In the first one all variables are made known."""

    start_ns: int
    end_ns: int
    sessions: tuple[Session, ...]
    state: dict[str, str]


@dataclass(frozen=True)
class Choice:
    """An answer, and the values of the variables for which it is the right one."""

    state: tuple[str, ...]
    answer: str


@dataclass(frozen=True)
class Question:
    """What is asked at the end of each period; the answer depends on the variables it `needs`."""

    text: str
    needs: tuple[str, ...]
    choices: tuple[Choice, ...]

    def gold(self, state: dict[str, str]) -> Choice | None:
        """The answer for a state; None when it is not among the choices."""
        wanted = tuple(state[name] for name in self.needs)
        return next((choice for choice in self.choices if choice.state == wanted), None)


@dataclass(frozen=True)
class User:
    """Who he is, what of him changes, what he says when, and what is asked."""

    id: str
    start_ns: int
    profile: dict[str, Any]
    schema: dict[str, tuple[str, ...]]
    periods: tuple[Period, ...]
    questions: tuple[Question, ...]
    faults: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """One word that he is called by."""
        words = re.findall(r"\w+", str(self.profile.get("name", "")))
        return words[0] if words else "User"


def read_users(path: Path) -> list[User]:
    """The users of a file, or of all files `*.json` of a folder that hold such.

    UsageError when there is none.
    """
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    users: list[User] = []
    wrong = ""
    for file in files:
        try:
            raw = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            wrong = wrong or f"cannot read {file}: {error}"
            continue
        items = raw if isinstance(raw, list) else [raw]
        for item in items:
            if isinstance(item, dict) and "periods" in item and "qas" in item:
                users.append(_user(item, f"{file}: user {item.get('id')!r}"))
    if not users:
        raise UsageError(wrong or f"{path} holds no users: a list of items with periods and qas")
    return users


def _user(raw: dict[str, Any], where: str) -> User:
    faults: list[str] = []
    try:
        schema = {str(name): tuple(map(str, values)) for name, values in
                  raw["state_schema"].items()}
        if not raw["periods"]:
            raise ValueError("it has no periods")
        start = date_of(raw["start_time"], START_NS)
        periods: list[Period] = []
        for k, period in enumerate(raw["periods"]):
            at = periods[-1].end_ns if periods else start - 30 * DAY_NS
            periods.append(_period(period, at, schema, f"period {k}", faults))
        questions = [_question(qa, schema, k, faults) for k, qa in enumerate(raw["qas"])]
        profile = dict(raw.get("user_profile") or {})
        json.dumps(raw, ensure_ascii=False).encode()
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{where} is malformed: {error!r}") from None
    found = User(str(raw.get("id", "")), start, profile, schema,
                 tuple(periods), tuple(q for q in questions if q is not None))
    faults += _never_said(found)
    lines = tuple(f"{where}: {line}" for line in faults)
    return User(**{**found.__dict__, "faults": lines})


def _period(
    raw: dict[str, Any], after_ns: int, schema: dict[str, tuple[str, ...]], where: str,
    faults: list[str],
) -> Period:
    state = {str(name): str(value) for name, value in raw["state"].items()}
    for name in schema:
        if name not in state:
            raise ValueError(f"{where} has no state of {name!r}")
        if state[name] not in schema[name]:
            faults.append(f"{where}: {name} is {state[name]!r}, which is none of its values")
    start = date_of(raw.get("period_start"), after_ns)
    end = max(date_of(raw.get("period_end"), start + 30 * DAY_NS), start + SECOND_NS)
    sessions: list[Session] = []
    n = len(raw["sessions"])
    for k, session in enumerate(raw["sessions"]):
        at = date_of(session.get("session_time"), start + (k + 1) * (end - start) // (n + 1))
        # An hour is more than any session lasts: stamps grow whatever the data say.
        at = max(at, sessions[-1].stamp_ns + 3600 * SECOND_NS if sessions else after_ns)
        exposed = {str(a): str(v) for a, v in (session.get("exposed_states") or {}).items()}
        for name in [name for name in exposed if name not in schema]:
            faults.append(f"{where}: a session shows {name!r}, which is no variable, left out")
            del exposed[name]
        for name, value in exposed.items():
            if state.get(name) != value:
                faults.append(f"{where}: a session shows {name} as {value!r}, at the end it is "
                              f"{state.get(name)!r}")
        sessions.append(Session(str(session["query"]), exposed, at, session.get("event")))
    last = sessions[-1].stamp_ns + 3600 * SECOND_NS if sessions else start
    return Period(start, max(end, last), tuple(sessions), state)


def _question(
    raw: dict[str, Any], schema: dict[str, tuple[str, ...]], k: int, faults: list[str]
) -> Question | None:
    needs = tuple(map(str, raw["required_info"]))
    choices: list[Choice] = []
    for one in raw["answer_choices"]:
        choice = Choice(tuple(map(str, one["state"])), str(one["answer"]))
        if choice.state in [other.state for other in choices]:
            faults.append(f"question {k}: a second choice for {', '.join(choice.state)}, left out")
        elif choice.answer in [other.answer for other in choices]:
            faults.append(f"question {k}: one answer for two states, left out")
            return None
        else:
            choices.append(choice)
    unknown = [name for name in needs if name not in schema]
    if unknown or len(choices) < 2 or not needs:
        what = f"it needs {unknown[0]!r}, which is no variable" if unknown else "no choice to make"
        faults.append(f"question {k}: {what}, left out")
        return None
    return Question(str(raw["query"]), needs, tuple(choices))


def _never_said(user: User) -> list[str]:
    """What is asked of the user, but could not be known."""
    lines, known = [], {}
    for k, period in enumerate(user.periods):
        for session in period.sessions:
            known |= session.exposed
        needed = {name for question in user.questions for name in question.needs}
        for name in sorted(needed):
            if known.get(name) != period.state[name]:
                lines.append(f"period {k}: nobody says that {name} is {period.state[name]!r}")
        for n, question in enumerate(user.questions):
            if question.gold(period.state) is None:
                lines.append(f"period {k}: question {n} has no choice for the state, not asked")
    return lines


def date_of(raw: Any, other_ns: int) -> int:
    """A date, or date and time, in ns (UTC); `other_ns` when there is none. ValueError if wrong."""
    if raw is None:
        return other_ns
    text = str(raw)
    if re.fullmatch(r"\d{4}-\d\d", text):
        text += "-01"
    stamp = datetime.fromisoformat(text)
    if stamp.tzinfo is None:
        stamp = stamp.replace(tzinfo=timezone.utc)
    return int(stamp.timestamp()) * SECOND_NS


def write_users(users: Sequence[User], path: Path) -> None:
    """Write users in the published layout. UsageError when the file cannot be made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps([_written(user) for user in users], indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None


def _written(user: User) -> dict[str, Any]:
    periods, before = [], dict.fromkeys(user.schema)
    for k, period in enumerate(user.periods):
        changed = {n: {"old": before[n], "new": v} for n, v in period.state.items()
                   if before[n] != v}  # fmt: skip
        before = dict(period.state)
        periods.append({
            "period_start": _day(period.start_ns) if k else None,
            "period_end": _day(period.end_ns), "state": period.state, "updates": changed,
            "sessions": [{"event": s.event, "exposed_states": s.exposed, "query": s.query,
                          "messages": [], "session_time": _time(s.stamp_ns)}
                         for s in period.sessions],
        })  # fmt: skip
    return {
        "id": user.id, "start_time": _day(user.start_ns), "user_profile": user.profile,
        "state_schema": {name: list(values) for name, values in user.schema.items()},
        "periods": periods, "qas": [_qa(q) for q in user.questions],
    }  # fmt: skip


def _qa(question: Question) -> dict[str, Any]:
    choices: Iterable[Choice] = question.choices
    return {"query": question.text, "required_info": list(question.needs),
            "answer_choices": [{"state": list(c.state), "answer": c.answer} for c in choices]}


def _day(stamp_ns: int) -> str:
    return f"{_when(stamp_ns):%Y-%m-%d}"


def _time(stamp_ns: int) -> str:
    return f"{_when(stamp_ns):%Y-%m-%d %H:%M:%S}"


def _when(stamp_ns: int) -> datetime:
    return datetime.fromtimestamp(stamp_ns // SECOND_NS, timezone.utc)
