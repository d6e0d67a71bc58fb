"""Compares the pictures that a policy predicted with those it sees when their time has come."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from policies.wam.autoencoder import Autoencoder
from policies.wam.video_score import picture_errors

__all__ = ["Watch"]


@dataclass(frozen=True)
class _Due:
    """Latents (1, c, ..) predicted for state `seq`, `horizon_s` before it, from a picture."""

    seq: int
    horizon_s: float
    latents: Tensor
    still: Tensor
    still_latents: Tensor


class Watch:
    """The predictions of one episode whose time has not come yet."""

    def __init__(self, autoencoder: Autoencoder, period_s: float, stride: int) -> None:
        """`stride` control periods of `period_s` lie between predicted pictures."""
        self._autoencoder, self._period_s, self._stride = autoencoder, period_s, stride
        self._due: list[_Due] = []

    @torch.no_grad()
    def compare(self, seq: int, picture: Tensor, latents: Tensor) -> dict:
        """What a `bench_tasks.verdicts.dreams` event holds, for the predictions due at state `seq`.

        `picture` (1, 3, h, w) uint8 and its `latents` are what is seen. Predictions for states
        that passed unseen are counted, not compared with a picture of another time.
        """
        found, missed = [], 0
        for due in self._due:
            if due.seq == seq:
                errors = picture_errors(self._autoencoder, due.latents, picture, latents,
                                        due.still, due.still_latents)  # fmt: skip
                found.append({"horizon_s": due.horizon_s, **errors})
            missed += due.seq < seq
        self._due = [due for due in self._due if due.seq > seq]
        return {"compared": found, "missed": missed}

    def keep(self, seq: int, video: Tensor, picture: Tensor, latents: Tensor) -> None:
        """Take the pictures (1, frames, c, ..) predicted at state `seq` from what is seen there."""
        for k in range(video.shape[1]):
            after = self._stride * (k + 1)
            self._due.append(
                _Due(seq + after, after * self._period_s, video[:, k], picture, latents)
            )
