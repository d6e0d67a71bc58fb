"""A memory of notes: what is worth it is written down, merged with what is known, and thinned out.

A note says one thing, and names the items that it rests on and those that it has replaced. By
rules one is written for each fact, and for what is not understood but long enough to say something;
with a model it is the model that decides. What has no note is not recalled, though it is kept.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench_tasks.errors import UsageError
from bench_tasks.probes.stream import Item, Query
from policies.memory.base import KeptMemory, Reader
from policies.memory.facts import LASTS, Fact, facts_beside
from policies.memory.graph import shown_with
from policies.memory.store import Store
from policies.memory.words import SAY_NOTHING, asked_in, said_in, words_of
from policies.planners.jsontext import AnswerError, find_json

__all__ = ["Note", "Notes", "NotesMemory", "NotesOptions"]

WORTH_WORDS = 6
"""So many words, or a picture, make something worth a note that is not understood."""
FORMER = 4
"""Items that a note remembers of what it has replaced."""
RELATED = 8
"""Notes that a model is shown with a new item."""


@dataclass(frozen=True)
class NotesOptions:
    """notes: how many are kept, those last told. items: how many items are recalled."""

    notes: int = 400
    items: int = 24


@dataclass(frozen=True)
class Note:
    """`key` tells what it is about; of what it replaced `former` items are remembered."""

    key: str
    stamp_ns: int
    text: str
    sources: tuple[str, ...]
    former: tuple[str, ...] = ()


class Notes:
    """The notes of a store's user."""

    def __init__(self, store: Store) -> None:
        """Nothing is read yet."""
        self._store = store

    def all(self, prefix: str = "") -> list[Note]:
        """Those whose key begins so, the one last told first."""
        rows = self._store.rows(
            "SELECT key, stamp_ns, body FROM notes WHERE user = ? AND substr(key, 1, ?) = ?"
            " ORDER BY stamp_ns DESC, key",
            self._store.user, len(prefix), prefix,
        )  # fmt: skip
        return [
            Note(key, stamp, text, tuple(sources), tuple(former))
            for key, stamp, body in rows for text, sources, former in [json.loads(body)]
        ]  # fmt: skip

    def put(self, note: Note) -> None:
        """Write a note in place of the one with its key, in a transaction."""
        body = json.dumps([note.text, note.sources, note.former[:FORMER]])
        with self._store.writing() as db:
            row = (self._store.user, note.key, note.stamp_ns, body)
            db.execute("INSERT OR REPLACE INTO notes VALUES (?, ?, ?, ?)", row)

    def drop(self, keys: Iterable[str]) -> None:
        """Forget notes, in a transaction."""
        with self._store.writing() as db:
            rows = [(self._store.user, key) for key in keys]
            db.executemany("DELETE FROM notes WHERE user = ? AND key = ?", rows)

    def thin(self, keep: int) -> None:
        """Forget all but those last told, in a transaction."""
        order = "SELECT key FROM notes WHERE user = ? ORDER BY stamp_ns DESC, key LIMIT -1 OFFSET ?"
        self.drop(key for (key,) in self._store.rows(order, self._store.user, keep))

    def search(self, text: str, count: int) -> list[Note]:
        """The notes that share most with a text, rare words first; later ones where it is equal."""
        notes = self.all()
        words = [set(words_of(note.text)) for note in notes]
        holds = Counter(word for found in words for word in found)
        wanted = {word for word in words_of(text) if word not in SAY_NOTHING}
        scores = [
            sum(math.log(1 + len(notes) / holds[word]) for word in wanted & found)
            for found in words
        ]  # fmt: skip
        best = sorted(range(len(notes)), key=lambda k: -scores[k])
        return [notes[k] for k in best[:count] if scores[k] > 0]


class NotesMemory(KeptMemory):
    """Answers from the items behind the notes that fit."""

    name = "notes"
    Options = NotesOptions
    options: NotesOptions

    def __init__(
        self, path: str | Path | None, user: str, reader: Reader, options: NotesOptions,
        writer: Callable[[str], str] | None = None,
    ) -> None:
        """`writer` is a model: prompt in, text out. UsageError when an option is wrong."""
        for name in ("notes", "items"):
            if getattr(options, name) < 1:
                raise UsageError(
                    f"memory notes: {name} must be 1 or more, got {getattr(options, name)}"
                )
        self._writer = writer
        self._looks = getattr(reader, "looks", lambda picture: ())
        if writer is None:
            self.derives = ("notes",)
        else:
            self.later = ("notes",)
            self.at_once = 1  # A model is shown the notes that it has written before.
        super().__init__(path, user, reader, options)

    def _opened(self) -> None:
        self.notes = Notes(self.store)

    def recall(self, query: Query) -> list[Item]:
        """What the best notes rest on and have replaced."""
        self.settle()
        found: dict[str, None] = {}
        for note in self.notes.search(asked_in(query), self.options.items):
            if len(found) < self.options.items:
                found |= dict.fromkeys((*note.sources, *note.former))
        return self.store.by_id(found)

    def _derive(self, name: str, new: list[tuple[int, Item]], made: Any) -> None:
        for n, item in new:
            if made is None:
                self._note(item)
            else:
                self._follow(item, made[n])
        self.notes.thin(self.options.notes)

    # By rules

    def _note(self, item: Item) -> None:
        facts = facts_beside(item, shown_with(self.store, item), self._looks)
        for fact in facts:
            self._merge(fact)
        worth = item.picture is not None or len(words_of(item.text)) >= WORTH_WORDS
        if worth and not facts:
            self._verbatim(item)

    def _verbatim(self, item: Item) -> None:
        self.notes.put(Note(f"said\n{item.id}", item.stamp_ns, said_in(item), (item.id,)))

    def _merge(self, fact: Fact) -> None:
        about = f"{fact.relation}\n{fact.subject}\n"
        key = about + (fact.value if fact.relation in LASTS else fact.speaker)
        text = " ".join((fact.subject, fact.relation, fact.value, fact.speaker))
        note = Note(key, fact.stamp_ns, text, (fact.item, *fact.beside))
        # A change replaces what anybody said of it.
        for old in self.notes.all(about if fact.ends else key):
            if old.key == key and old.text == text:
                sources = tuple(dict.fromkeys((*old.sources, *note.sources)))
                note = replace(note, sources=sources, former=note.former + old.former)
            else:
                note = replace(note, former=(*note.former, *old.sources, *old.former))
                self.notes.drop([old.key])
        self.notes.put(note)

    # By a model

    def _make(self, name: str, new: list[tuple[int, Item]]) -> dict[int, str]:
        assert self._writer is not None
        return {n: self._writer(self._prompt(item)) for n, item in new}

    def _prompt(self, item: Item) -> str:
        related = self.notes.search(said_in(item), RELATED)
        known = "\n".join(json.dumps({"key": n.key, "text": n.text}) for n in related) or "none"
        return (
            "You keep notes of what people say in front of a robot.\n"
            f"Related notes:\n{known}\nNow heard: {json.dumps(said_in(item))}\n"
            'Answer with a JSON list of steps: {"op": "write", "key": K, "text": T} writes a note, '
            "in place of the one with the same key, which is how notes are merged; "
            '{"op": "forget", "key": K} drops one. [] if it is worth no note.'
        )

    def _follow(self, item: Item, answer: str) -> None:
        """Do what a model said; what cannot be understood is noted as it was heard."""
        try:
            steps = [(step["op"] == "write", str(step["key"]), str(step.get("text", "")))
                     for step in find_json(answer, (list,)).value]  # fmt: skip
        except (AnswerError, AttributeError, KeyError, TypeError):
            self._verbatim(item)
            return
        for write, key, text in steps:
            old = [note for note in self.notes.all(key) if note.key == key]
            former = tuple(one for note in old for one in (*note.sources, *note.former))
            self.notes.drop([key])
            if write:
                self.notes.put(Note(key, item.stamp_ns, text, (item.id,), former))
