"""Full-text search over a user's items, by SQLite's FTS5 and BM25.

The index finds candidates, few enough that their number does not grow with the memory, and BM25 is
reckoned here on their texts: FTS5's own ranks every item with any word of the question, a second
long for 100,000 items in which most words are common.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterable

from bench_tasks.probes.stream import Item, Query
from policies.memory.store import AMONG, Store

__all__ = ["Words", "asked_in", "said_in", "words_of"]

MANY = 200
"""A word in as many items is common: of those with it alone, the last ones are tried."""
MOST = 500
"""Items that are tried, the ones with the rarest words first."""
K1, B = 1.2, 0.75
SAY_NOTHING = frozenset(
    "a an and are as at be by did do does for from had has have he her his how i in is it its me "
    "my of on or s she that the their them they this to was were what when where which who whom "
    "whose why will with you your".split()
)
"""Words that are not searched for when there are others."""
_WORD = re.compile(r"[^\W_]+")


def said_in(item: Item) -> str:
    """An item as text: who said what, and what its picture shows."""
    return _said(item.speaker, item.text, item.picture.caption if item.picture else "")


def _said(speaker: str, text: str, shown: str) -> str:
    text = f"{text} [{shown}]" if shown else text
    return f"{speaker}: {text}" if speaker else text


def asked_in(query: Query) -> str:
    """A question as text, with what its picture shows."""
    shown = query.picture.caption if query.picture is not None else ""
    text = f"{query.text} [{shown}]" if shown else query.text
    return text.encode(errors="replace").decode()


def words_of(text: str) -> list[str]:
    """Its words, in small letters without accents, as FTS5's unicode61 has them."""
    plain = text.lower()
    if not plain.isascii():
        plain = unicodedata.normalize("NFKD", plain)
        plain = "".join(c for c in plain if not unicodedata.combining(c))
    return _WORD.findall(plain)


class Words:
    """The full-text index of a store's user."""

    def __init__(self, store: Store) -> None:
        """Nothing is read yet."""
        self._store = store

    def take(self, new: Iterable[tuple[int, Item]]) -> None:
        """Index items, in a transaction."""
        with self._store.writing() as db:
            db.execute(
                f"CREATE VIRTUAL TABLE IF NOT EXISTS {self._store.words}"
                " USING fts5(text, content='', tokenize='unicode61')"
            )
            db.executemany(
                f"INSERT INTO {self._store.words} (rowid, text) VALUES (?, ?)",
                [(n, " ".join(words_of(said_in(item)))) for n, item in new],
            )

    def search(self, text: str, count: int) -> list[int]:
        """The numbers of the items that fit best, the best first."""
        words = list(dict.fromkeys(words_of(text)))[:64]
        words = [word for word in words if word not in SAY_NOTHING] or words
        with self._store.still():
            return self._found(words, count) if words and self._exists() else []

    def _found(self, words: list[str], count: int) -> list[int]:
        holds = {word: self._items_with(word, MANY) for word in words}
        common = [word for word, found in holds.items() if len(found) >= MANY]
        tried = set(self._items_with('" "'.join(common), MANY)) if common else set()
        # Rare words first: what holds them is there even if no item holds all that are common.
        for found in sorted(holds.values(), key=len):
            if len(tried) < MOST:
                tried.update(found)
        return self._ranked(tried, {word: len(found) for word, found in holds.items()}, count)

    def _exists(self) -> bool:
        sql = "SELECT 1 FROM sqlite_master WHERE name = ?"
        return self._store.one(sql, self._store.words) is not None

    def _items_with(self, words: str, most: int) -> list[int]:
        """The last items that hold all of the words."""
        table = self._store.words
        sql = f"SELECT rowid FROM {table} WHERE {table} MATCH ? ORDER BY rowid DESC LIMIT ?"
        return [n for (n,) in self._store.rows(sql, f'"{words}"', most)]

    def _ranked(self, tried: set[int], holds: dict[str, int], count: int) -> list[int]:
        """BM25, the later item first where it is equal."""
        if not tried:
            return []
        total = max(self._store.one(
            "SELECT count(*) FROM (SELECT 1 FROM items WHERE user = ? LIMIT ?)",
            self._store.user, 50 * MANY,
        ), 1)  # fmt: skip
        rarity = {
            word: math.log(1 + (total - held + 0.5) / (held + 0.5)) for word, held in holds.items()
        }
        said = [(n, words_of(text)) for n, text in self._texts(tried)]
        mean = sum(len(words) for _, words in said) / max(len(said), 1) or 1.0
        scores = []
        for n, words in said:
            hits = [word for word in words if word in rarity]
            long = K1 * (1 - B + B * len(words) / mean)
            score = 0.0
            for word, rare in rarity.items():
                if often := hits.count(word):
                    score += rare * often * (K1 + 1) / (often + long)
            scores.append((-score, -n))
        return [-n for _, n in sorted(scores)[:count]]

    def _texts(self, numbers: set[int]) -> list[tuple[int, str]]:
        sql = f"SELECT n, speaker, text, picture FROM items WHERE user = ? AND n IN {AMONG}"
        found = self._store.rows(sql, self._store.user, json.dumps([*numbers]))
        return [
            (n, _said(speaker, text, json.loads(shown)[2] if shown else ""))
            for n, speaker, text, shown in found
        ]
