"""What models that run in this process share: the likeliest of some answers, and who they are."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from policies.planners.chat import Completion

__all__ = ["DECODING", "digest", "likeliest"]

DECODING = "the likeliest of the answers"
_KINDS = {".safetensors", ".bin", ".gguf", ".json", ".jinja", ".txt", ".model"}
"""Endings of files that a model and its tokenizer consist of."""


def likeliest(
    model: Any, tokenizer: Any, prompt: Any, name: str, values: Sequence[str]
) -> Completion:
    """The JSON object, of those that give `name` one of `values`, with the highest probability.

    `prompt` are its tokens, (1, n). A small model that is free to say anything gives no JSON.
    """
    import torch

    scores = {}
    with torch.inference_mode():
        read = model(input_ids=prompt, use_cache=True, logits_to_keep=1)
        for value in values:
            answer = json.dumps({name: value})
            tokens = tokenizer(answer, add_special_tokens=False, return_tensors="pt")["input_ids"]
            tokens = tokens.to(prompt.device)
            # Each answer follows the prompt, which is read once, and not the answer before.
            after = model(input_ids=tokens, cache=copy.deepcopy(read.cache))
            logits = torch.cat([read.logits[0, -1:], after.logits[0, :-1]]).float()
            each = torch.log_softmax(logits, -1).gather(1, tokens[0, :, None])
            scores[answer] = float(each.sum())
    best = max(scores, key=lambda answer: scores[answer])
    return Completion(best, int(prompt.shape[1]), 0, details={"log_probabilities": scores})


def digest(files: Sequence[Path]) -> str:
    """SHA-256 over the names and contents of a model's files."""
    whole = hashlib.sha256()
    for file in sorted(file for file in files if file.suffix in _KINDS):
        one = hashlib.sha256()
        with file.open("rb") as data:
            while part := data.read(1 << 20):
                one.update(part)
        whole.update(f"{file.name} {one.hexdigest()}\n".encode())
    return whole.hexdigest()
