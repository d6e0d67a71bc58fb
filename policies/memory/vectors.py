"""Nearest items by the cosine of sentence embeddings: float16 in the file and here.

All vectors are compared: for 100,000 of them that is one matrix product of 6 ms or so, and nothing
to build or to tune. What takes its time is to read them, so that they stay as short as they are
kept; the few that may be the nearest in view of its rounding are compared again in float64.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bench_tasks.probes.stream import Item
from policies.memory.store import Store
from policies.memory.words import said_in
from policies.sentences import DIM, embed, embed_all, one_thread

__all__ = ["Vectors"]

SLACK = 2.0**-10
"""How far the product is from the cosine at most: 2^-11 since the question's vector is rounded to
float16, 2^-12 since the product is, and a little for its sum in float32."""


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
        self._rows = np.empty((0, DIM), np.float16)  # Room for more than there are.

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
            rows = np.empty((max(2 * have, have + len(new)), DIM), np.float16)
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
        import torch

        asked, count = embed(text), min(count, len(numbers))
        with one_thread():
            near = (torch.from_numpy(rows) @ torch.from_numpy(asked.astype(np.float16))).float()
            least = torch.topk(near, count, sorted=False).values.min()
            tried = torch.nonzero(near >= least - 2 * SLACK)[:, 0].numpy()
        # Each row by itself: the same sentence has the same cosine, wherever it stands.
        cosines = (rows[tried].astype(np.float64) * asked).sum(axis=1)
        # Later items first where it is equal: sentences are said again.
        order = np.lexsort((-numbers[tried], -cosines))[:count]
        return [int(n) for n in numbers[tried[order]]]

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
