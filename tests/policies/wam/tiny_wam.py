"""Small models and made-up rows for the tests of the world-action model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from bench_tasks.robots.fr3 import HOME_RAD
from policies.wam.autoencoder import Autoencoder
from policies.wam.checkpoint import Checkpoint, save_checkpoint
from policies.wam.data import Rows, Scaler
from policies.wam.model import Transformer
from policies.wam.shape import MOSAIC, Shape

TINY = Shape(dim=32, layers=2, heads=2, history=3, stride=2, frames=2)


def shaken(model: torch.nn.Module, seed: int = 0) -> torch.nn.Module:
    """The model with weights that let everything through: some begin at zero."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for value in model.parameters():
            value.copy_(torch.randn(value.shape, generator=generator) * 0.08)
    return model


def fake_embed(text: str) -> np.ndarray:
    """A unit vector (384,) that depends on the text, without the embedding's weights."""
    vector = np.random.default_rng(sum(text.encode())).normal(size=384)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def made_rows(lengths=(9, 7), tasks=("lift_pot", "lift_pot"), seed: int = 0) -> Rows:
    """Rows of smooth motions and of pictures of noise; `embed` must be a fake one."""
    rng, count = np.random.default_rng(seed), sum(lengths)
    state = np.cumsum(rng.normal(size=(count, 16)) * 0.02, axis=0)
    pixels = rng.integers(0, 256, (count, *MOSAIC, 3), np.uint8)
    texts = [f"do {task}" for task in tasks]
    return Rows(state, state + 0.01, pixels, list(lengths), texts, list(tasks))


def steady_checkpoint(path: Path, shape: Shape = TINY, **recipe: object) -> Path:
    """Write an untrained policy whose moves are small enough for the arms, seen from home.

    Its recipe says that it was trained as `recipe` has it.
    """
    torch.manual_seed(0)
    model, autoencoder = shaken(Transformer(shape)), Autoencoder(shape.latent)
    middle = np.tile(np.append(np.zeros(7), 0.0798), 2)
    width = np.tile(np.append(np.full(7, 1e-3), 2e-5), 2)
    home = np.tile(np.append(HOME_RAD, 0.08), 2)
    scaler = Scaler(np.stack([home - 1, home + 1]), np.stack([middle - width, middle + width]))
    made = {"steps": 0, "recipe": recipe}
    save_checkpoint(path, Checkpoint(model, autoencoder, scaler, made))
    return path
