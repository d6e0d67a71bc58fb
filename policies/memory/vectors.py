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
        self._numbers = np.empty(0, np.int64)
        self._rows = np.empty((0, DIM), np.float32)  # Room for more than there are.

    def of(self, new: Sequence[tuple[int, Item]]) -> np.ndarray:
        """Compute the vectors (n, 384) float16 of items."""
        texts = [said_in(item) for _, item in new]
        distinct = list(dict.fromkeys(texts))
        vectors = dict(zip(distinct, embed_all(distinct).astype(np.float16), strict=True))
        return np.stack([vectors[text] for text in texts])

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
        epoch = self._store.epoch()
        if epoch != self._epoch:
            self._clear(epoch)
        have = len(self._numbers)
        new = self._store.rows(
            "SELECT n, vector FROM vectors WHERE user = ? AND n > ? ORDER BY n",
            self._store.user, int(self._numbers[-1]) if have else 0,
        )  # fmt: skip
        if not new:
            return
        self._numbers = np.concatenate([self._numbers, [n for n, _ in new]])
        if len(self._rows) < have + len(new):
            rows = np.empty((max(2 * have, have + len(new)), DIM), np.float32)
            rows[:have] = self._rows[:have]
            self._rows = rows
        read = np.frombuffer(b"".join(blob for _, blob in new), "<f2").reshape(-1, DIM)
        self._rows[have : have + len(new)] = read

    def search(self, text: str, count: int) -> list[int]:
        """The numbers of the items whose vectors are nearest, the nearest first."""
        have = len(self._numbers)
        if not have:
            return []
        cosines = self._rows[:have] @ embed(text)
        count = min(count, have)
        best = np.argpartition(-cosines, count - 1)[:count]
        # Later items first where it is equal: sentences are said again.
        order = np.lexsort((-self._numbers[best], -cosines[best]))
        return [int(n) for n in self._numbers[best[order]]]

    def rows(self, numbers: Iterable[int]) -> np.ndarray:
        """The vectors (n, 384) of items; zeros for one that has none."""
        wanted = np.asarray(list(numbers), np.int64)
        found = np.zeros((len(wanted), DIM), np.float32)
        if len(self._numbers):
            at = np.searchsorted(self._numbers, wanted).clip(max=len(self._numbers) - 1)
            known = self._numbers[at] == wanted
            found[known] = self._rows[at[known]]
        return found
