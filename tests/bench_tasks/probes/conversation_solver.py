"""Another way to the answers: SQL over what the items say, with nothing from the generator."""

from __future__ import annotations

import re
import sqlite3

from bench_tasks.probes.stream import NOT_MENTIONED
from bench_tasks.probes.talk import meanings
from bench_tasks.probes.words import COLOURS

SLOTS = ("attribute", "value", "person", "object", "place", "event", "reason", "word", "name")
OWN = """SELECT value FROM said WHERE kind IN ('has', 'changed') AND speaker = :person
         AND attribute = :attribute"""
THIS = """SELECT colour FROM pictures p WHERE p.speaker = said.speaker AND p.session = said.session
          AND p.n <= said.n ORDER BY p.n DESC LIMIT 1"""
SQL = {
    "attribute": f"{OWN} ORDER BY n DESC LIMIT 1",
    "place": """SELECT place FROM said WHERE kind IN ('lies', 'put') AND object = :object
                ORDER BY n DESC LIMIT 1""",
    "place_of_word": """SELECT at.place FROM said at JOIN said w ON w.object = at.object
                WHERE w.kind = 'means' AND w.speaker = :person AND w.word = :word
                AND at.kind IN ('lies', 'put') ORDER BY at.n DESC LIMIT 1""",
    "order": """SELECT group_concat(letter, ' -> ') FROM (
                SELECT CASE event WHEN :a THEN 'A' WHEN :b THEN 'B' ELSE 'C' END AS letter
                FROM said WHERE speaker = :person AND event IN (:a, :b, :c) ORDER BY n)""",
    "reason": """SELECT reason FROM said WHERE kind = 'because' AND speaker = :person
                AND event = :event""",
    "who": "SELECT speaker FROM said WHERE kind IN ('did', 'because') AND event = :event",
    "colour_of_name": f"SELECT ({THIS}) FROM said WHERE kind = 'calls' AND name = :name",
    "colour_put": f"""SELECT ({THIS}) FROM said WHERE kind = 'put_this' AND speaker = :person
                AND place = :place""",
    "contradicts": f"""SELECT CASE WHEN count(*) = 0 THEN NULL WHEN sum(value <> :value) > 0
                THEN 'Yes' ELSE 'No' END FROM ({OWN})""",
}


class Solver:
    """Hears the items of a conversation, then answers."""

    def __init__(self, colours=None) -> None:
        """`colours` tells those in a picture, the largest first; by its caption if not given."""
        self._db = sqlite3.connect(":memory:")
        columns = ", ".join(SLOTS)
        self._db.execute(f"CREATE TABLE said (n, session, speaker, kind, {columns})")
        self._db.execute("CREATE TABLE pictures (n, session, speaker, colour)")
        self._colours = colours or (
            lambda p: re.findall(rf"\b(?:{'|'.join(COLOURS)})\b", p.caption)
        )
        self._n = 0

    def hear(self, item) -> None:
        self._n += 1
        if item.picture is not None:
            row = (self._n, item.session, item.speaker, self._colours(item.picture)[0])
            self._db.execute("INSERT INTO pictures VALUES (?, ?, ?, ?)", row)
        for meaning in meanings(item.text):
            row = [self._n, item.session, item.speaker, meaning.kind]
            row += [meaning.slots.get(slot) for slot in SLOTS]
            self._db.execute(f"INSERT INTO said VALUES ({', '.join('?' * len(row))})", row)

    def answer(self, query) -> str:
        (meaning,) = meanings(query.text, asked=True)
        row = self._db.execute(SQL[meaning.kind], meaning.slots).fetchone()
        return NOT_MENTIONED if row is None or row[0] is None else str(row[0])
