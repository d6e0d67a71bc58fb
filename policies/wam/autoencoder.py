"""Pictures to latents and back: a small convolutional autoencoder, eight times smaller each way."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["Autoencoder"]


class _Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.GroupNorm(8, width), nn.SiLU(), nn.Conv2d(width, width, 3, padding=1),
            nn.GroupNorm(8, width), nn.SiLU(), nn.Conv2d(width, width, 3, padding=1),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x)


class Autoencoder(nn.Module):
    """uint8 RGB (b, 3, h, w) to latents (b, latent, h / 8, w / 8) of unit variance, and back.

    The latents' mean and spread, measured after training, are buffers.
    """

    def __init__(self, latent: int = 8, width: int = 64) -> None:
        """`width` channels at an eighth of the resolution, half as many at a quarter."""
        super().__init__()
        half, quarter = width // 2, width // 4
        self.encoder = nn.Sequential(
            nn.Conv2d(3, quarter, 4, 2, 1), nn.SiLU(),
            nn.Conv2d(quarter, half, 4, 2, 1), nn.SiLU(),
            nn.Conv2d(half, width, 4, 2, 1), _Residual(width),
            nn.GroupNorm(8, width), nn.SiLU(), nn.Conv2d(width, latent, 1),
        )  # fmt: skip
        self.decoder = nn.Sequential(
            nn.Conv2d(latent, width, 3, padding=1), _Residual(width), _Residual(width),
            nn.SiLU(), nn.Conv2d(width, 4 * half, 3, padding=1), nn.PixelShuffle(2),
            nn.SiLU(), nn.Conv2d(half, 4 * quarter, 3, padding=1), nn.PixelShuffle(2),
            nn.SiLU(), nn.Conv2d(quarter, 12, 3, padding=1), nn.PixelShuffle(2),
        )  # fmt: skip
        self.register_buffer("mean", torch.zeros(latent, 1, 1))
        self.register_buffer("spread", torch.ones(latent, 1, 1))

    @staticmethod
    def scaled(pixels: Tensor) -> Tensor:
        """uint8 to floats in [-1, 1]."""
        return pixels.float() / 127.5 - 1.0

    def encode(self, pixels: Tensor) -> Tensor:
        """Latents of uint8 pictures."""
        return (self.encoder(self.scaled(pixels)) - self.mean) / self.spread

    def decode(self, latents: Tensor) -> Tensor:
        """Pictures (b, 3, h, w) in [-1, 1], not clipped."""
        return self.decoder(latents * self.spread + self.mean)

    @torch.no_grad()
    def measure(self, pixels: Tensor) -> None:
        """Set mean and spread from pictures."""
        raw = self.encoder(self.scaled(pixels))
        self.mean.copy_(raw.mean((0, 2, 3))[:, None, None])
        self.spread.copy_(raw.std((0, 2, 3))[:, None, None].clamp_min(1e-3))
