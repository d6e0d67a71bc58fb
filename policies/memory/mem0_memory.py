"""Mem0 as a memory: the package mem0ai ranks what is recalled, our store keeps it.

Mem0's index is made of the kept items before it is first searched, in this process: its store on
the disk lets in one process only, and loses what was acknowledged when that is killed.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
import threading
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bench_tasks.probes.stream import Item, Query
from bench_tasks.registry import MissingExtra
from policies.memory.base import KeptMemory, Reader
from policies.memory.rag import check_search
from policies.memory.vectors import Vectors
from policies.memory.words import asked_in, said_in
from policies.sentences import DIM, check_installed, embed

__all__ = ["Mem0Memory", "Mem0Options"]

USER = "user"
"""Each memory has an index of its own, so that the name within it does not matter."""


@dataclass(frozen=True)
class Mem0Options:
    """items: how many are recalled."""

    items: int = 16


def _check_installed() -> None:
    """MissingExtra says what to install when mem0ai, or what it needs, is not."""
    for module in ("mem0", "qdrant_client", "openai", "posthog"):
        if importlib.util.find_spec(module) is None:
            raise MissingExtra(
                f"memory mem0 needs {module}: pip install --no-deps -r requirements/mem0.txt"
            )
    check_installed("memory mem0")


class _Embedder:
    """What Mem0 asks for vectors: those that are kept already, or a question's."""

    def __init__(self) -> None:
        self.known: dict[str, np.ndarray] = {}

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        vector = self.known.get(text)
        return (embed(text) if vector is None else vector).tolist()


@cache
def _imported() -> Any:
    """The package, which reports to its makers unless told otherwise before it is imported."""
    os.environ["MEM0_TELEMETRY"] = "False"
    before = os.environ.get("MEM0_DIR")
    with tempfile.TemporaryDirectory() as folder:  # Else it writes into the home directory.
        os.environ["MEM0_DIR"] = folder
        try:
            import mem0
            from mem0.memory import main, telemetry
            from mem0.utils import spacy_models
        finally:
            os.environ.pop("MEM0_DIR")
            if before is not None:
                os.environ["MEM0_DIR"] = before
    # Somebody may have imported it before.
    telemetry.MEM0_TELEMETRY = main.MEM0_TELEMETRY = False
    # Where spaCy is installed it would download a model.
    spacy_models._load_failed_full = spacy_models._load_failed_lemma = True
    return mem0


def _new_index(embedder: _Embedder) -> Any:
    mem0 = _imported()
    from mem0.configs.base import MemoryConfig
    from qdrant_client import QdrantClient

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # That payloads are not indexed in memory.
        store = {
            "client": QdrantClient(":memory:"), "path": ":memory:", "embedding_model_dims": DIM,
        }  # fmt: skip
        # It makes a client for a model whatever it is used for, and that wants a key.
        unused: dict[str, Any] = {"provider": "openai", "config": {"api_key": "unused"}}
        config = MemoryConfig(
            vector_store={"provider": "qdrant", "config": store}, llm=unused, embedder=unused,
            history_db_path=":memory:",
        )  # fmt: skip
        index = mem0.Memory(config)
    index.embedding_model = embedder
    # Where fastembed is installed it would download a model.
    index.vector_store._bm25_encoder = False
    return index


class Mem0Memory(KeptMemory):
    """Recalls what Mem0 finds, as it was said (`infer=False`): no language model is called."""

    name = "mem0"
    later = ("vectors",)
    Options = Mem0Options
    options: Mem0Options

    def __init__(
        self, path: str | Path | None, user: str, reader: Reader, options: Mem0Options
    ) -> None:
        """As for all; UsageError when an option is wrong, or what it needs is not installed."""
        check_search(self.name, options.items)
        _check_installed()
        super().__init__(path, user, reader, options)

    def _opened(self) -> None:
        self.vectors = Vectors(self.store)
        self._embedder = _Embedder()
        self._lock = threading.RLock()  # Taken before the store's.
        self._clear()

    def _clear(self) -> None:
        self._index: Any = None
        self._epoch = self._upto = -1

    def _make(self, name: str, new: list[tuple[int, Item]]) -> Any:
        return self.vectors.of(new)

    def _derive(self, name: str, new: list[tuple[int, Item]], made: Any) -> None:
        self.vectors.take(new, made)

    def settle(self) -> None:
        """Embed what has not been, and tell Mem0."""
        super().settle()
        with self._lock:
            while self._tell():
                pass

    def _tell(self) -> bool:
        """Tell Mem0 the next items; False when there are none."""
        with self.store.still():
            epoch = self.store.epoch()
            if epoch != self._epoch:
                self._clear()
            self.vectors.load()
            numbers = self.vectors.numbers
            numbers = numbers[numbers > self._upto][: self.at_once].tolist()
            items, rows = self.store.numbered(numbers), self.vectors.rows(numbers)
        if not numbers:
            return False
        if self._index is None:
            self._index = _new_index(self._embedder)
        for item, row in zip(items, rows, strict=True):
            text = said_in(item)
            self._embedder.known = {text: row}
            self._index.add(text, user_id=USER, metadata={"item": item.id}, infer=False)
        self._embedder.known = {}
        self._epoch, self._upto = epoch, numbers[-1]
        return True

    def recall(self, query: Query) -> list[Item]:
        """What Mem0 finds, its best first."""
        text = asked_in(query)
        with self._lock:
            self.settle()
            if self._index is None or not text.strip():  # It refuses an empty question.
                return []
            found = self._index.search(text, top_k=self.options.items, filters={"user_id": USER})
        return self.store.by_id(hit["metadata"]["item"] for hit in found["results"])

    def restore(self, data: bytes) -> None:
        """As for all; Mem0 is told anew."""
        super().restore(data)
        with self._lock:
            self._clear()

    def forget(self, ids: Iterable[str] | None = None) -> int:
        """As for all; what Mem0 was told is gone with it."""
        count = super().forget(ids)
        with self._lock:
            self._clear()
        return count
