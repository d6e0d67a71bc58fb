"""Scores predicted video against what happened, also where predictions are built on predictions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bench_tasks.verdicts.dreams import Mean
from policies.wam.autoencoder import Autoencoder
from policies.wam.checkpoint import Checkpoint
from policies.wam.data import Rows
from policies.wam.flow import sample
from policies.wam.model import Cache, joined

__all__ = ["Dream", "dream", "picture_errors", "score_video"]

CHUNKS = 4
"""How many chunks are dreamt one upon the other."""


@dataclass(frozen=True)
class Dream:
    """Latents (b, k, c, ..) predicted for `rows` (k,) after rows `starts` (b,).

    `present` (b, c, ..) are the latents they began with; `valid` (b, k) says which horizons lie
    within the demonstration.
    """

    starts: np.ndarray
    rows: np.ndarray
    latents: Tensor
    present: Tensor
    valid: np.ndarray


def pictures(rows: Rows, at: np.ndarray) -> Tensor:
    """Pictures (n, 3, h, w) uint8 of rows (n,)."""
    return torch.from_numpy(np.ascontiguousarray(rows.pixels[at])).permute(0, 3, 1, 2)


@torch.no_grad()
def dream(
    made: Checkpoint, rows: Rows, starts: np.ndarray, chunks: int = CHUNKS, steps: int = 4,
    seed: int = 0,
) -> Dream:
    """Predict pictures from single observations, `chunks` chunks far.

    Only the first chunk answers a real observation. After that the predicted pictures, and the
    predicted commands in place of measured states, are what the model is shown.
    """
    model, shape = made.model, made.model.shape
    device = next(model.parameters()).device
    generator = torch.Generator().manual_seed(seed)
    text = rows.texts(starts).to(device)
    present = made.autoencoder.encode(pictures(rows, starts).to(device))
    state, latents, at = rows.state[starts], present, 0
    caches: list[Cache] = []
    found: list[Tensor] = []

    def look() -> None:
        scaled = torch.from_numpy(made.scaler.states(state)).to(device)
        caches.append(model.observe(latents, scaled, text, at))
        del caches[: -shape.history]

    look()
    for _ in range(chunks):
        got = sample(model, joined(caches), at, text, steps, generator)
        assert got.video is not None
        commands = np.stack([
            made.scaler.commands(one, here)
            for one, here in zip(got.actions.cpu().numpy(), state, strict=True)
        ])  # fmt: skip
        for k in range(shape.frames):
            state, latents = commands[:, shape.stride * (k + 1) - 1], got.video[:, k]
            at += shape.stride
            found.append(latents)
            look()
    later = shape.stride * np.arange(1, len(found) + 1)
    valid = starts[:, None] + later <= rows.last[starts, None]
    return Dream(starts, later, torch.stack(found, 1), present, valid)


def picture_errors(
    autoencoder: Autoencoder, predicted: Tensor, true: Tensor, true_latents: Tensor,
    still: Tensor, still_latents: Tensor,
) -> dict[str, float]:
    """Errors as in `bench_tasks.verdicts.dreams`, of one predicted picture's latents (1, c, ..).

    `true` is the picture (1, 3, h, w) uint8 that came, `still` the one the prediction began with.
    """
    decoded = autoencoder.decode(torch.cat([predicted, true_latents])).clamp(-1, 1)
    wanted = autoencoder.scaled(true)
    # Colours are from -1 to 1 in the autoencoder, so squares are four times too large.
    return {
        "pixel": _mse(decoded[:1], wanted) / 4, "latent": _mse(predicted, true_latents),
        "still_pixel": _mse(autoencoder.scaled(still), wanted) / 4,
        "still_latent": _mse(still_latents, true_latents),
        "own_pixel": _mse(decoded[1:], wanted) / 4,
    }  # fmt: skip


def _mse(a: Tensor, b: Tensor) -> float:
    return (a - b).square().mean().item()


@torch.no_grad()
def score_video(made: Checkpoint, rows: Rows, dreamt: Dream) -> list[dict[str, float]]:
    """Per horizon: its length in seconds and chunks, and errors as of `dreams.Mean.result`."""
    shape, autoencoder = made.model.shape, made.autoencoder
    device = dreamt.latents.device
    found = []
    for k, later in enumerate(dreamt.rows):
        mean = Mean()
        for i in np.flatnonzero(dreamt.valid[:, k]):
            start = dreamt.starts[i : i + 1]
            true = pictures(rows, start + later).to(device)
            mean.add(picture_errors(
                autoencoder, dreamt.latents[i : i + 1, k], true, autoencoder.encode(true),
                pictures(rows, start).to(device), dreamt.present[i : i + 1],
            ))  # fmt: skip
        if mean.count:
            chunk = k // shape.frames + 1
            seconds = float(later / shape.rows_hz)
            found.append({"horizon_s": seconds, "chunk": chunk, **mean.result()})
    return found
