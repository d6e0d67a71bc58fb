"""Nearest items by the cosine of sentence embeddings: BLOBs of float16 in the file, NumPy here.

All vectors are compared: for 100,000 of them that is one matrix product of 10 ms or so, exact, and
nothing to build or to tune.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bench_tasks.probes.stream import Item
from policies.memory.store import Store
from policies.memory.words import said_in
from policies.sentences import DIM, embed, embed_all

__all__ = ["Vectors"]


class Vectors:
    """The vectors of a store's user, as far as they have been computed."""

    def __init__(self, store: Store) -> None:
        """Nothing is read yet."""
        self._store = store
        self._clear(-1)

    def _clear(self, epoch: int) -> None:
        self._epoch = epoch
        self.numbers = np.empty(0, np.int64)
        """Of the items whose vectors were read, ascending."""
        self._rows = np.empty((0, DIM), np.float32)  # Room for more than there are.

    def of(self, new: Sequence[tuple[int, Item]]) -> np.ndarray:
        """Compute the vectors (n, 384) float16 of items."""
        return embed_all([said_in(item) for _, item in new]).astype(np.float16)

    def take(self, new: Sequence[tuple[int, Item]], vectors: np.ndarray) -> None:
        """Keep the vectors of items, in a transaction."""
        with self._store.writing() as db:
            db.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)",
                [
                    (n, self._store.user, row.astype("<f2").tobytes())
                    for (n, _), row in zip(new, vectors, strict=True)
                ],
            )

    def load(self) -> None:
        """Read what has been kept since, by whomever."""
        with self._store.still():
            self._load()

    def _load(self) -> None:
        epoch = self._store.epoch()
        if epoch != self._epoch:
            self._clear(epoch)
        have = len(self.numbers)
        new = self._store.rows(
            "SELECT n, vector FROM vectors WHERE user = ? AND n > ? ORDER BY n",
            self._store.user, int(self.numbers[-1]) if have else 0,
        )  # fmt: skip
        if not new:
            return
        self.numbers = np.concatenate([self.numbers, [n for n, _ in new]])
        if len(self._rows) < have + len(new):
            rows = np.empty((max(2 * have, have + len(new)), DIM), np.float32)
            rows[:have] = self._rows[:have]
            self._rows = rows
        read = np.frombuffer(b"".join(blob for _, blob in new), "<f2").reshape(-1, DIM)
        self._rows[have : have + len(new)] = read

    def search(self, text: str, count: int) -> list[int]:
        """The numbers of the items whose vectors are nearest, the nearest first."""
        with self._store.reading():  # So that no other thread is reading new ones meanwhile.
            numbers, rows = self.numbers, self._rows[: len(self.numbers)]
        if not len(numbers):
            return []
        cosines = rows @ embed(text)
        count = min(count, len(numbers))
        best = np.argpartition(-cosines, count - 1)[:count]
        # Later items first where it is equal: sentences are said again.
        order = np.lexsort((-numbers[best], -cosines[best]))
        return [int(n) for n in numbers[best[order]]]

    def rows(self, numbers: Iterable[int]) -> np.ndarray:
        """The vectors (n, 384) of items; zeros for one that has none."""
        wanted = np.asarray(list(numbers), np.int64)
        found = np.zeros((len(wanted), DIM), np.float32)
        with self._store.reading():
            if len(self.numbers):
                at = np.searchsorted(self.numbers, wanted).clip(max=len(self.numbers) - 1)
                known = self.numbers[at] == wanted
                found[known] = self._rows[at[known]]
        return found
