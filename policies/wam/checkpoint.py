"""One file for a trained model: safetensors with all that made it in the metadata."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from bench_tasks.errors import UsageError
from bench_tasks.manifest import replacing
from bench_tasks.vocabulary import ACTION_SIZE
from policies.wam.autoencoder import Autoencoder
from policies.wam.data import Scaler
from policies.wam.model import Transformer
from policies.wam.shape import Shape

__all__ = ["FORMAT_VERSION", "Checkpoint", "load_checkpoint", "save_checkpoint"]

FORMAT_VERSION = 1


@dataclass
class Checkpoint:
    """A model, its autoencoder, its scaling, and `made`: command, seed, data hash, tasks, steps."""

    model: Transformer
    autoencoder: Autoencoder
    scaler: Scaler
    made: dict[str, Any] = field(default_factory=dict)


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint, its weights as 16 bit floats; the file appears complete or not at all."""
    tensors = {
        f"{part}.{name}": value.half().contiguous()
        for part, module in (("model", checkpoint.model), ("autoencoder", checkpoint.autoencoder))
        for name, value in module.state_dict().items()
    }
    head = {
        "format_version": FORMAT_VERSION, "shape": checkpoint.model.shape.to_dict(),
        "scaler": {
            "state": checkpoint.scaler.state.tolist(), "action": checkpoint.scaler.action.tolist(),
        },
        "made": checkpoint.made,
    }  # fmt: skip
    with replacing(path) as part:  # by hand: on a full disk the library raises no OSError
        part.write_bytes(save(tensors, {"bench_tasks": json.dumps(head)}))


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint, weights as 32 bit floats; UsageError when it is none or another's."""
    if path.is_dir():
        raise UsageError(f"the checkpoint {path} is a folder: name a file")
    try:
        with safe_open(path, "pt") as file:
            head = json.loads((file.metadata() or {}).get("bench_tasks", "null"))
            tensors = {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, ValueError) as error:
        raise UsageError(f"cannot read the checkpoint {path}: {error}") from None
    if not isinstance(head, dict) or head.get("format_version") != FORMAT_VERSION:
        found = head.get("format_version") if isinstance(head, dict) else "none"
        raise UsageError(
            f"{path} is no checkpoint of format_version {FORMAT_VERSION}: it says {found}"
        )
    try:
        shape = Shape(**head["shape"])
        with torch.device("meta"):  # a shape that the weights are not of takes no memory so
            _filled(shape, tensors, assign=True)
        model, autoencoder = _filled(shape, tensors)
        scaler = Scaler(*(_quantiles(head["scaler"], key) for key in ("state", "action")))
        made = head.get("made", {})
        if not isinstance(made, dict) or not isinstance(made.get("recipe", {}), dict):
            raise TypeError("its made, or the recipe in it, is not a mapping")
        _ = [part["hash"] for part in made.get("data", [])]
        for name, value in tensors.items():
            if not value.isfinite().all():
                raise ValueError(f"{name} is not finite")
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        text = " ".join(str(error).split())[:200]
        raise UsageError(f"the checkpoint {path} does not fit this version: {text}") from None
    return Checkpoint(model.eval(), autoencoder.eval(), scaler, made)


def _filled(
    shape: Shape, tensors: dict[str, torch.Tensor], assign: bool = False
) -> tuple[Transformer, Autoencoder]:
    """Both networks with these weights; RuntimeError when they are of another shape."""
    model, autoencoder = Transformer(shape), Autoencoder(shape.latent)
    for prefix, module in (("model.", model), ("autoencoder.", autoencoder)):
        module.load_state_dict({
            name.removeprefix(prefix): value
            for name, value in tensors.items() if name.startswith(prefix)
        }, assign=assign)  # fmt: skip
    return model, autoencoder


def _quantiles(scaler: dict[str, Any], key: str) -> np.ndarray:
    """Rows (2, 16) of a scaler; ValueError when nothing can be scaled by them."""
    rows = np.array(scaler[key], dtype=np.float64)
    good = rows.shape == (2, ACTION_SIZE) and np.isfinite(rows).all() and (rows[0] < rows[1]).all()
    if not good:
        raise ValueError(
            f"scaler {key} must be two rows of {ACTION_SIZE} numbers, the first below the second"
        )
    return rows
