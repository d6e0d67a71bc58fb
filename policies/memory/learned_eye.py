"""An eye that was learned: the colour of what is largest in a picture, by a small network.

The world-action model's encoder, as it is, and a head on its latents that is fitted on the spot.
The eye by rules (`policies.memory.eye`) has no gradients; this one can be attacked like any other
network.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from bench_tasks.probes.stream import Picture
from bench_tasks.probes.words import COLOURS
from policies.memory.eye import colours_in
from policies.wam.autoencoder import Autoencoder

__all__ = ["LearnedEye", "pixels_of"]

WIDTH = 32


def pixels_of(picture: Picture | bytes) -> Tensor:
    """The picture (3, h, w) uint8 RGB."""
    data = picture if isinstance(picture, bytes) else picture.data
    pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    return torch.from_numpy(cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB)).permute(2, 0, 1)


class LearnedEye(nn.Module):
    """Called with a picture it names its colour, as `RuleReader` wants it of an eye."""

    def __init__(self, encoder: Autoencoder, seed: int = 0) -> None:
        """The head is drawn by `seed`."""
        super().__init__()
        self.encoder = encoder.requires_grad_(False)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.head = nn.Sequential(
                nn.Conv2d(len(encoder.mean), WIDTH, 3, padding=1), nn.SiLU(),
                nn.Conv2d(WIDTH, WIDTH, 3, padding=1), nn.SiLU(),
                nn.Conv2d(WIDTH, len(COLOURS), 1),
            )  # fmt: skip

    def scores(self, pixels: Tensor) -> Tensor:
        """Of each of `COLOURS` (b, 8), for pictures (b, 3, h, w) of values 0 to 255."""
        return self._judged(self._seen(pixels))

    def _seen(self, pixels: Tensor) -> Tensor:
        return self.encoder.encode(functional.avg_pool2d(pixels.float(), 4))

    def _judged(self, latents: Tensor) -> Tensor:
        return self.head(latents).mean((2, 3))

    def fit(self, pictures: Sequence[Tensor], colours: Sequence[str], steps: int = 1000,
            seed: int = 0) -> float:
        """Fit the head to pictures (3, h, w) of one size; returns the share it then has right."""
        with torch.no_grad():
            latents = torch.cat([self._seen(one[None]) for one in pictures])
        wanted = torch.tensor([COLOURS.index(colour) for colour in colours])
        generator = torch.Generator().manual_seed(seed)
        optimizer = torch.optim.Adam(self.head.parameters(), 3e-3)
        for _ in range(steps):
            batch = torch.randint(len(wanted), (32,), generator=generator)
            x = latents[batch]
            if torch.rand(1, generator=generator) < 0.5:
                x = x.flip(3)
            loss = functional.cross_entropy(10 * self._judged(x), wanted[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            return float((self._judged(latents).argmax(1) == wanted).float().mean())

    @torch.no_grad()
    def __call__(self, picture: Picture) -> tuple[str, ...]:
        """The colour of what is largest; of a caption, where there is no picture."""
        if not picture.data:
            return colours_in(picture)
        return (COLOURS[int(self.scores(pixels_of(picture)[None]).argmax())],)

    def gain(self, target: str, pixels: Tensor) -> Tensor:
        """How far the target is ahead of all other colours, of one picture (3, h, w)."""
        scores = self.scores(pixels[None])[0]
        k = COLOURS.index(target)
        others = torch.cat([scores[:k], scores[k + 1 :]])
        return scores[k] - others.max()
