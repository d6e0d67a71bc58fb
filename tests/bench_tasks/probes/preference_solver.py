"""Another way to what a person likes: SQL over what was said, with nothing from the generator."""

from __future__ import annotations

import sqlite3

from bench_tasks.probes.stream import Item, Query, Reply
from bench_tasks.probes.talk import meanings

LAST = """SELECT value FROM said WHERE speaker = :person AND errand = :errand AND aspect = :aspect
          AND (context IS NULL OR context = :context) ORDER BY n DESC LIMIT 1"""


class Solver:
    """Hears the items, then answers; what was not said it does not know."""

    def __init__(self) -> None:
        self._db = sqlite3.connect(":memory:")
        self._db.execute("CREATE TABLE said (n, speaker, errand, aspect, context, value)")
        self._n = 0

    def observe(self, item: Item) -> None:
        self._n += 1
        for meaning in meanings(item.text):
            if meaning.kind.startswith("wants"):
                slots = [meaning.slots.get(k) for k in ("errand", "aspect", "context", "value")]
                row = (self._n, item.speaker, *slots)
                self._db.execute("INSERT INTO said VALUES (?, ?, ?, ?, ?, ?)", row)

    def answer(self, query: Query) -> Reply:
        (meaning,) = meanings(query.text, asked=True)
        row = self._db.execute(LAST, meaning.slots).fetchone()
        return Reply(row[0] if row else "", abstained=row is None)
