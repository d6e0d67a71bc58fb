"""A recurrent memory: all that was told is folded into one small matrix, by the delta rule.

An item with embedding x is written as S <- S + b (v - S k) k', with key k, value v (unit vectors)
and gate b in (0, 1) learned functions of x (DeltaNet, arXiv 2406.06484): what has the same key is
replaced, and what has not fades as the matrix fills. A question reads S q, a value; the items whose
values are nearest are recalled, and from the best of them the memory is read again, as what follows
it (`fast_train` trains that). The matrix is of one size however much was told; the items are kept
beside it to say in words what was read.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bench_tasks.errors import UsageError
from bench_tasks.probes.stream import Item, Query
from policies.memory.base import KeptMemory, Reader
from policies.memory.vectors import Vectors
from policies.memory.words import asked_in
from policies.sentences import check_installed, embed

__all__ = ["FastMemory", "FastOptions", "FastWeights", "shipped"]

SHIPPED = Path(__file__).with_name("fast_weights.npz")


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-6)


@dataclass(frozen=True)
class FastWeights:
    """What is learned: `key`, `query`, `value` (d, 384), and `gate` (384 + 1,), bias last."""

    key: np.ndarray
    query: np.ndarray
    value: np.ndarray
    gate: np.ndarray

    def empty(self) -> np.ndarray:
        """The state in which nothing was told: (d, d) float32."""
        return np.zeros((len(self.value), len(self.key)), np.float32)

    def values(self, rows: np.ndarray) -> np.ndarray:
        """The values (n, d) of embeddings (n, 384)."""
        return _unit(rows @ self.value.T)

    def write(self, state: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The state after these embeddings were told, one after the other."""
        state = state.copy()
        # Row by row, so that the state has the same last bits however many are told at once.
        for row in rows:
            key, value = _unit(row @ self.key.T), self.values(row)
            gate = 1 / (1 + np.exp(-(row @ self.gate[:-1] + self.gate[-1])))
            state += gate * np.outer(value - state @ key, key)
        return state

    def read(self, state: np.ndarray, row: np.ndarray) -> np.ndarray:
        """The value (d,) that an embedding brings back."""
        return _unit(state @ _unit(row @ self.query.T))


@cache
def shipped() -> FastWeights:
    """The weights that come with this package."""
    with np.load(SHIPPED, allow_pickle=False) as file:
        return FastWeights(*(file[f.name].astype(np.float32) for f in fields(FastWeights)))


@dataclass(frozen=True)
class FastOptions:
    """items: how many are recalled. hops: how often the memory is read for them."""

    items: int = 16
    hops: int = 2


class FastMemory(KeptMemory):
    """Recalls what the fast weights bring back."""

    name = "fast_weights"
    later = ("vectors", "fast")
    Options = FastOptions
    options: FastOptions

    def __init__(
        self, path: str | Path | None, user: str, reader: Reader, options: FastOptions
    ) -> None:
        """As for all; UsageError when an option is wrong, or what it needs is not installed."""
        for name in ("items", "hops"):
            if getattr(options, name) < 1:
                raise UsageError(
                    f"memory fast_weights: {name} must be 1 or more, got {getattr(options, name)}"
                )
        check_installed(f"memory {self.name}")
        super().__init__(path, user, reader, options)

    def _opened(self) -> None:
        self.vectors = Vectors(self.store)
        self.weights = shipped()

    def state(self) -> np.ndarray:
        """All that is remembered, (d, d)."""
        kept = self.store.state("fast")
        empty = self.weights.empty()
        return empty if kept is None else np.frombuffer(kept, "<f4").reshape(empty.shape)

    def _make(self, name: str, new: list[tuple[int, Item]]) -> np.ndarray:
        if name == "vectors":
            return self.vectors.of(new)
        self.vectors.load()
        return self.weights.write(self.state(), self.vectors.rows(n for n, _ in new))

    def _derive(self, name: str, new: list[tuple[int, Item]], made: Any) -> None:
        if name == "vectors":
            self.vectors.take(new, made)
        else:
            self.store.keep_state("fast", made.astype("<f4").tobytes())

    def settle(self) -> None:
        """Embed and fold in what has not been."""
        super().settle()
        self.vectors.load()

    def recall(self, query: Query) -> list[Item]:
        """What is read, the nearest first; half of it at the first reading."""
        self.settle()
        state, numbers = self.state(), self.vectors.numbers
        if not len(numbers):
            return []
        values = self.weights.values(self.vectors.rows(numbers))
        row, found = embed(asked_in(query)), {}
        each = -(-self.options.items // self.options.hops)
        for _ in range(self.options.hops):
            scores = values @ self.weights.read(state, row)
            best = np.lexsort((-numbers, -scores))
            best = [k for k in best[: each + len(found)].tolist() if k not in found][:each]
            if not best:
                break
            found |= dict.fromkeys(best)
            row = self.vectors.rows([numbers[best[0]]])[0]
        return self.store.numbered(int(numbers[k]) for k in list(found)[: self.options.items])
