"""Conversations in the layout that H2HMem is published in (arXiv 2606.09461), read as they are.

`dialogueN/scenes/sessionK/{session.json,questions.json,image/}`; `session0` has questions about all
sessions. What is not as it should be is told in one line each, and the rest is read. Captions lie
in `caption_*/<picture's name>.txt`, as the authors' program writes them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from bench_tasks.errors import UsageError
from bench_tasks.probes.conversation_state import DAY_NS, SECOND_NS, START_NS
from bench_tasks.probes.stills import Render
from bench_tasks.probes.stream import (
    NOT_MENTIONED,
    Asked,
    Item,
    Picture,
    Probe,
    Query,
    checked,
)

__all__ = ["EXTRA", "Dialogue", "H2HMem", "Options", "read_dialogue", "type_of"]

EXTRA = "bench_tasks"
"""The key under which our own conversations carry what the published format has no place for."""
_TYPES = {
    "unimodal": "UPR", "cross-modal": "CRR", "knowledge": "KR", "temporal": "TR", "causal": "MCR",
    "reference": "RET", "test-time": "TTL", "conflict": "CD", "refusal": "AR",
}  # fmt: skip
_IMAGES = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".webp": "webp", ".gif": "gif"}
_NAMED = re.compile(r"\b[\w-]+\.(?:png|jpe?g|webp|gif)\b", re.IGNORECASE)
TURN_S = 20
"""From one utterance to the next, which the published format does not tell."""


def type_of(sub_type: str) -> str:
    """One of the nine types from its name, long or short; "other" when it is none."""
    low = sub_type.lower().replace(" time", "-time")
    for word, kind in _TYPES.items():
        if word in low or sub_type.strip().upper() == kind:
            return kind
    return "other"


@dataclass
class Dialogue:
    """What was said in each session, in order, what is asked after it, and what was wrong."""

    items: dict[str, list[Item]] = field(default_factory=dict)
    asked: dict[str, list[Asked]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def steps(self) -> Probe:
        """Each session and its questions, at last those about all."""
        for session, said in self.items.items():
            yield from said
            for asked in self.asked.get(session, ()):
                yield asked  # not `yield from`: a list takes no replies
        for session, late in self.asked.items():
            for asked in late if session not in self.items else ():
                yield asked


@dataclass(frozen=True)
class Options:
    """`dir` is the data set, or a part of it; with `mode` text captions stand for pictures."""

    dir: str = ""
    mode: str = "image"


class H2HMem:
    """The conversations of a folder; the seed counts them."""

    Options = Options
    pictured = False
    """It brings its pictures along."""

    def __init__(self, options: Options) -> None:
        """UsageError when there is no dialogue in the folder."""
        if not options.dir:
            raise UsageError("probe h2hmem needs dir=FOLDER, one that holds dialogues")
        if options.mode not in ("image", "text"):
            raise UsageError(f"mode must be image or text, got {options.mode!r}")
        root = Path(options.dir)
        self._captions = options.mode == "text"
        self.faults: list[str] = []
        """Of the dialogue read last."""
        self.dialogues = sorted(
            (path.parent for path in [root / "scenes", *root.rglob("scenes")] if path.is_dir()),
            key=lambda path: [_number(part) for part in path.parts],
        )
        self.dialogues = list(dict.fromkeys(self.dialogues))
        if not self.dialogues:
            raise UsageError(f"{root} holds no dialogueN/scenes/")

    def check(self, seed: int) -> None:
        """UsageError when there are less dialogues."""
        if seed >= len(self.dialogues):
            raise UsageError(f"there are {len(self.dialogues)} dialogues: no seed {seed}")

    def steps(self, seed: int, render: Render | None = None) -> Probe:
        """The dialogue of this number, from 0; UsageError as of `check`."""
        self.check(seed)
        found = read_dialogue(self.dialogues[seed], self._captions)
        self.faults = found.faults
        return found.steps()


def _number(name: str) -> tuple[str, int]:
    digits = re.search(r"\d+$", name)
    return (name[: digits.start()], int(digits.group())) if digits else (name, -1)


def read_dialogue(folder: Path, captions: bool = False) -> Dialogue:
    """Read `folder`/scenes; whatever is wrong becomes a line of `faults`."""
    found = Dialogue()
    sessions = sorted(
        (path for path in (folder / "scenes").iterdir() if path.is_dir()),
        key=lambda path: _number(path.name),
    )
    now = START_NS
    for path in sessions:
        now = _read_session(path, now, captions, found)
    everything = [item for said in found.items.values() for item in said]
    at = {item.id: k for k, item in enumerate(everything)}
    people = len({item.speaker for item in everything})
    taken: set[str] = set()
    for path in sessions:
        for number, raw in enumerate(_questions(path, found.faults)):
            where = f"{_name(path)}/questions.json question {number + 1}"
            try:
                asked = checked(_asked(raw, path, number, captions, found, people))
                if asked.query.id in taken:
                    raise ValueError(f"id {asked.query.id!r} is taken")
                if lost := [one for one in asked.evidence if one not in at]:
                    raise ValueError(f"its evidence {lost[0]!r} was not said")
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                found.faults.append(f"{where}: left out, malformed ({_why(error)})")
                continue
            found.faults += (f"{where}: {text}" for text in _doubts(raw, asked, path))
            if asked.evidence and "turns" not in asked.tags and path.name != "session0":
                heard = [k for k, i in enumerate(everything) if i.stamp_ns <= asked.query.stamp_ns]
                first = min(at[one] for one in asked.evidence)
                waited = (asked.query.stamp_ns - everything[first].stamp_ns) / SECOND_NS
                asked.tags.update(turns=len(heard) - first, seconds=round(waited))
            taken.add(asked.query.id)
            found.asked.setdefault(path.name, []).append(asked)
    return found


def _name(path: Path) -> str:
    """A session with its dialogue, for messages."""
    return f"{path.parents[1].name}/{path.name}"


def _why(error: Exception) -> str:
    return f"no {error}" if isinstance(error, KeyError) else " ".join(str(error).split())


def _load(path: Path, faults: list[str]) -> dict[str, Any]:
    try:
        raw = json.loads(path.read_text(encoding="utf-8-sig"))
        if isinstance(raw, dict):
            return raw
        faults.append(f"{_name(path.parent)}/{path.name}: left out, no JSON object")
    except (OSError, ValueError, RecursionError) as error:
        faults.append(f"{_name(path.parent)}/{path.name}: left out, {_why(error)}")
    return {}


def _read_session(path: Path, now: int, captions: bool, found: Dialogue) -> int:
    """Take in what is said; returns when it ended, ns."""
    if not (path / "session.json").exists():
        if path.name != "session0":
            found.faults.append(f"{_name(path)}: no session.json")
        return now
    raw = _load(path / "session.json", found.faults)
    day = _day(raw.get("timeline_date"))
    if day is None or day <= now and found.items:
        found.faults.append(
            f"{_name(path)}: timeline_date {raw.get('timeline_date')!r} is "
            f"{'no date' if day is None else 'before what was said before'}; taken as a day later"
        )
        day = now + DAY_NS
    turns = raw.get("dialogue")
    said = found.items.setdefault(path.name, [])
    before = {item.id: item.stamp_ns for items in found.items.values() for item in items}
    ids, last = set(before), max(before.values(), default=0)
    for number, turn in enumerate(turns if isinstance(turns, list) else []):
        where = f"{_name(path)} turn {number + 1}"
        try:
            speaker, content = str(turn["role"]), turn["content"]
            text, image = str(content["text"]), str(content.get("image") or "")
        except (KeyError, TypeError, AttributeError) as error:
            found.faults.append(f"{where}: left out, malformed ({_why(error)})")
            continue
        picture = _picture(path, image, captions, where, found.faults)
        if content.get("caption") and (captions or not image):
            picture = Picture(image, b"", "", str(content["caption"]))
        ours = turn.get(EXTRA, {})
        try:
            at = ours.get("stamp_ns", day + number * TURN_S * SECOND_NS)
            name = str(ours.get("id", f"{path.name}-{number + 1:03d}"))
            if not name or name in ids:
                raise ValueError(f"id {name!r} is {'taken' if name else 'none'}")
            item = checked(Item(name, at, path.name, speaker, text, picture))
            if at < last:
                raise ValueError("stamp_ns goes back")
        except (TypeError, ValueError, AttributeError) as error:
            found.faults.append(f"{where}: left out, malformed ({_why(error)})")
            continue
        last = at
        ids.add(name)
        said.append(item)
    return said[-1].stamp_ns if said else now


def _day(text: Any) -> int | None:
    try:
        return int(datetime.strptime(str(text), "%Y-%m-%d").replace(tzinfo=timezone.utc)
                   .timestamp() + 9 * 3600) * SECOND_NS  # fmt: skip
    except ValueError:
        return None


def _picture(
    path: Path, name: str, captions: bool, where: str, faults: list[str]
) -> Picture | None:
    """A picture by its name, also `sessionK/name`; another ending will do."""
    if not name:
        return None
    inside = Path(name)
    session = path.parent / inside.parts[0] if len(inside.parts) > 1 else path
    if session.name == "image" or not session.is_dir():
        session = path
    if captions:
        for folder in sorted(session.glob("caption*")):
            file = folder / f"{inside.stem}.txt"
            if file.exists():
                return Picture(name, b"", "", file.read_text(encoding="utf-8").strip())
        return None  # told once per picture would be told for all: nobody has made captions
    files = sorted(file for file in (session / "image").glob("*") if file.is_file())
    exact = [file for file in files if file.name == inside.name]
    alike = [f for f in files if f.stem == inside.stem and f.suffix.lower() in _IMAGES]
    if not exact and alike:
        faults.append(f"{where}: picture {name} is {alike[0].name}")
    for file in [*exact, *alike]:
        kind = _IMAGES.get(file.suffix.lower(), "")
        return Picture(name, file.read_bytes(), kind)
    faults.append(f"{where}: picture {name} is missing")
    return None


def _questions(path: Path, faults: list[str]) -> Iterator[dict[str, Any]]:
    if not (path / "questions.json").exists():
        faults.append(f"{_name(path)}: no questions.json")
        return
    raw = _load(path / "questions.json", faults).get("questions", [])
    yield from raw if isinstance(raw, list) else []


def _asked(
    raw: dict[str, Any], path: Path, number: int, captions: bool, found: Dialogue, people: int
) -> Asked:
    gold, ours = str(raw["original_answer"]).strip(), raw.get(EXTRA, {})
    kind = type_of(str(raw["question_type"]["sub_type"]))
    where = f"{_name(path)}/questions.json question {number + 1}"
    image = str(raw["question"].get("image") or "")
    picture = _picture(path, image, captions, where, found.faults)
    yes_no = kind == "CD" and gold.lower().rstrip(".") in ("yes", "no")
    if yes_no:
        gold = gold.rstrip(".").capitalize()
    if gold.lower().rstrip(".") == NOT_MENTIONED.lower():
        gold = NOT_MENTIONED
    named = _sessions(raw) or [path.name]
    within = [name for name in named if name in found.items] or list(found.items)
    if "evidence" in ours:
        evidence = tuple(str(one) for one in ours["evidence"])
    else:
        evidence = tuple(i.id for n in within for i in found.items[n] if gold != NOT_MENTIONED)
    last = found.items.get(path.name) or [i for said in found.items.values() for i in said]
    after = last[-1].stamp_ns if last else START_NS
    query = Query(
        str(ours.get("id", f"{path.name}-q{number + 1:02d}")),
        int(ours.get("stamp_ns", after + (number + 1) * SECOND_NS)), str(raw["question"]["text"]),
        tuple(ours.get("choices", ("Yes", "No") if yes_no else ())), picture,
    )  # fmt: skip
    tags = {"people": people, "difficulty": str(raw.get("difficulty", "unknown")), "modality":
            "both" if image or kind in ("CRR", "MCR") else "text"}  # fmt: skip
    if kind == "AR":
        tags["refusal"] = True
    tags |= ours.get("tags", {})
    chance = float(ours.get("chance", 0.5 if yes_no else 0.0))
    return Asked(query, kind, gold, chance, evidence, tags)


def _sessions(raw: dict[str, Any]) -> list[str]:
    """Where the answer is, whether written as a list or a text, `session 1` or `Session1`."""
    told = raw.get("answer_session") or []
    told = [told] if isinstance(told, str) else told
    return [re.sub(r"^session\s*(?=\d)", "session", str(one), flags=re.IGNORECASE) for one in told]


def _doubts(raw: dict[str, Any], asked: Asked, path: Path) -> Iterator[str]:
    """What may be wrong with a question that was read all the same."""
    if asked.kind == "other":
        yield f"unknown type {raw['question_type']['sub_type']!r}"
    if not asked.gold:
        yield "no answer"
    if raw.get("validated") is not True:
        yield "not validated"
    named = _sessions(raw)
    for name in named:
        if not (path.parent / name).is_dir():
            yield f"answer_session {name} is not there"
    sessions = [path.parent / name for name in named if name != "session0"] or [path]
    sessions += [path.parent / f"session{k}" for k in re.findall(r"[Ss]ession ?(\d+)", asked.gold)]
    files = {file.name for session in sessions for file in (session / "image").glob("*")}
    for name in _NAMED.findall(asked.gold):
        if name not in files:
            yield f"the answer names {name}, which is not there"
    if asked.kind == "CD" and not asked.query.choices:
        yield f"the answer is neither yes nor no: {asked.gold!r}"
