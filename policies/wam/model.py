"""The transformer: clean observations and noisy futures in, velocities of video and actions out.

One observation is the patches of a picture's latents and a state token. Its tokens attend to each
other alone, so what the cache keeps of it depends on nothing before it, and a window that slides
over a long episode gives the very numbers of one that was trained on short ones. The noisy video
and action tokens of a chunk attend to each other and to the observations of the window.

After DreamZero (arXiv 2602.15922): joint flow matching in one causal transformer, rotary positions
in time, row and column for video, in time for actions and states; independent time steps for video
and actions as in UWM (arXiv 2504.02792).

The network puts out velocities, or, with `predicts: data`, where the noise leads to: x, from which
the velocity is (x - x_t) / (1 - t), 1 - t being at least 0.05 (JiT, arXiv 2511.13720). A network
whose output is the velocity has to put out the very noise that it was given, so that it is gone
after one step; one that puts out data has not.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from bench_tasks.vocabulary import ACTION_SIZE
from policies.wam.attention import make_attention
from policies.wam.shape import Shape

__all__ = ["Cache", "Transformer", "joined"]

TEXT_SIZE = 384
NEAREST = 0.05
"""The least 1 - t by which the way to predicted data is divided."""
CLEAN, VIDEO, ACTION = 0, 1, 2
"""Kinds of tokens, each with a time step of its own."""
Cache = list[tuple[Tensor, Tensor]]
"""Keys and values (b, heads, n, head size) of the observations, for each layer."""


def _waves(t: Tensor, size: int) -> Tensor:
    """Sinusoidal features (..., size) of time steps in [0, 1]."""
    rates = torch.exp(-math.log(1000.0) * torch.arange(size // 2, device=t.device) / (size // 2))
    angle = 1000.0 * t[..., None] * rates
    return torch.cat([angle.cos(), angle.sin()], dim=-1)


def rotary(places: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Cosine and sine (n, size) of rotary positions for places (n, 3): time, row, column.

    Half of the head's features turn with time, a quarter each with row and column.
    """
    angles = []
    for axis, share in ((0, size // 2), (1, size // 4), (2, size // 4)):
        rates = 100.0 ** (-torch.arange(share // 2, device=places.device) / max(share // 2, 1))
        angles.append(places[:, axis, None] * rates)
    angle = torch.cat(angles, dim=-1)
    angle = torch.cat([angle, angle], dim=-1)
    return angle.cos(), angle.sin()


def joined(caches: list[Cache]) -> Cache:
    """The caches of several observations as one."""
    return [
        (torch.cat([k for k, _ in layer], 2), torch.cat([v for _, v in layer], 2))
        for layer in zip(*caches, strict=True)
    ]


def _places(shape: Shape) -> tuple[Tensor, Tensor]:
    """Time, row, column of an observation's tokens, and of its chunk's, relative to it."""
    rows, columns = shape.patches
    grid = torch.cartesian_prod(torch.arange(rows), torch.arange(columns)).float()
    still = torch.cat([torch.zeros(len(grid), 1), grid], dim=1)
    seen = torch.cat([still, torch.zeros(1, 3)])
    times = [still + torch.tensor([float(shape.stride * (k + 1)), 0, 0])
             for k in range(shape.frames)] if shape.video else []  # fmt: skip
    steps = torch.zeros(shape.chunk, 3)
    steps[:, 0] = torch.arange(1, shape.chunk + 1)
    return seen, torch.cat([*times, steps])


def _turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


class _Block(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        dim, self.heads = shape.dim, shape.heads
        self.norm1 = nn.LayerNorm(dim, elementwise_affine=False)
        self.norm2 = nn.LayerNorm(dim, elementwise_affine=False)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.attend = make_attention(shape.attention, shape.heads, dim // shape.heads)
        self.out = nn.Linear(dim, dim)
        self.mlp = nn.Sequential(
            nn.Linear(dim, 4 * dim), nn.GELU(approximate="tanh"), nn.Linear(4 * dim, dim)
        )
        self.shift = nn.Parameter(torch.zeros(6, dim))

    def forward(
        self, x: Tensor, modulation: Tensor, turns: tuple[Tensor, Tensor], mask: Tensor | None,
        past: tuple[Tensor, Tensor] | None, runs: Tensor | None = None,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return the tokens and this layer's keys and values, without those of the past."""
        s1, g1, a1, s2, g2, a2 = (modulation + self.shift[:, None]).unbind(1)
        h = self.norm1(x) * (1 + g1) + s1
        b, n, dim = h.shape
        q, k, v = self.qkv(h).view(b, n, 3, self.heads, dim // self.heads).permute(2, 0, 3, 1, 4)
        q, k = _turn(q, *turns), _turn(k, *turns)
        own = (k, v)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        h = self.attend(q, k, v, mask, runs).transpose(1, 2).reshape(b, n, dim)
        x = x + a1 * self.out(h)
        h = self.norm2(x) * (1 + g2) + s2
        return x + a2 * self.mlp(h), own


class Transformer(nn.Module):
    """Velocities of video latents and actions, given observations and a text."""

    def __init__(self, shape: Shape) -> None:
        """Make the layers, with weights drawn by torch's generator."""
        super().__init__()
        self.shape = shape
        dim, (rows, columns) = shape.dim, shape.patches
        height, width = shape.patch
        values = shape.latent * height * width
        self.stem = nn.Sequential(
            nn.Conv2d(shape.latent + 2, 64, 3, padding=1), nn.SiLU(),
            nn.Conv2d(64, 128, 3, 2, 1), nn.SiLU(), nn.Conv2d(128, 128, 3, padding=1), nn.SiLU(),
            nn.Conv2d(128, dim, (height // 2, width // 2), (height // 2, width // 2)),
        )  # fmt: skip
        self.video_in = nn.Linear(values, dim)
        self.video_out = nn.Linear(dim, values)
        self.state_in = nn.Sequential(
            nn.Linear(ACTION_SIZE, dim), nn.SiLU(), nn.Linear(dim, dim)
        )
        self.action_in = nn.Sequential(
            nn.Linear(ACTION_SIZE, dim), nn.SiLU(), nn.Linear(dim, dim)
        )
        self.action_out = nn.Linear(dim, ACTION_SIZE)
        self.kind = nn.Parameter(0.02 * torch.randn(4, dim))
        self.place = nn.Parameter(0.02 * torch.randn(rows * columns, dim))
        self.step = nn.Parameter(0.02 * torch.randn(shape.chunk, dim))
        self.time_in = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.text_in = nn.Linear(TEXT_SIZE, dim)
        self.modulate = nn.Sequential(nn.SiLU(), nn.Linear(dim, 6 * dim))
        self.blocks = nn.ModuleList(_Block(shape) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(dim)
        for layer in (self.modulate[1], self.video_out, self.action_out):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)

        # What depends on nothing but the shape is made once: it would cost as much as a layer.
        seen, chunk = _places(shape)
        count = len(chunk) - shape.chunk
        y, x = torch.linspace(-1, 1, shape.grid[0]), torch.linspace(-1, 1, shape.grid[1])
        for name, value in (
            ("seen_places", seen), ("chunk_places", chunk),
            ("kinds", torch.tensor([VIDEO] * count + [ACTION] * shape.chunk)),
            ("where", torch.stack(torch.meshgrid(y, x, indexing="ij"))),
        ):  # fmt: skip
            self.register_buffer(name, value, persistent=False)

    # -- tokens ----------------------------------------------------------------------------------

    def _patches(self, latents: Tensor) -> Tensor:
        """Latents (b, c, rows, columns) as patches (b, tokens, values)."""
        b, c, _, _ = latents.shape
        (rows, columns), (height, width) = self.shape.patches, self.shape.patch
        cut = latents.view(b, c, rows, height, columns, width)
        return cut.permute(0, 2, 4, 1, 3, 5).reshape(b, rows * columns, c * height * width)

    def _latents(self, patches: Tensor) -> Tensor:
        """Inverse of `_patches`."""
        (rows, columns), (height, width) = self.shape.patches, self.shape.patch
        b, c = patches.shape[0], self.shape.latent
        cut = patches.view(b, rows, columns, c, height, width)
        return cut.permute(0, 3, 1, 4, 2, 5).reshape(b, c, rows * height, columns * width)

    def _seen(self, latents: Tensor, states: Tensor) -> Tensor:
        """Tokens (b, m, n, dim) of observations: latents (b, m, c, ..), states (b, m, 16)."""
        b, m = latents.shape[:2]
        flat = latents.flatten(0, 1)
        where = self.where.expand(b * m, *self.where.shape)
        picture = self.stem(torch.cat([flat, where], dim=1)).flatten(2).transpose(1, 2)
        picture = picture + self.kind[0] + self.place
        state = self.state_in(states).view(b * m, 1, -1) + self.kind[1]
        return torch.cat([picture, state], dim=1).view(b, m, -1, self.shape.dim)

    def _noisy(self, video: Tensor | None, actions: Tensor) -> Tensor:
        """Tokens (b, n, dim) of one chunk: video (b, frames, c, ..), actions (b, chunk, 16)."""
        tokens = self.action_in(actions) + self.kind[3] + self.step
        if video is None:
            return tokens
        b, frames = video.shape[:2]
        patches = self.video_in(self._patches(video.flatten(0, 1))) + self.kind[2] + self.place
        return torch.cat([patches.view(b, -1, self.shape.dim), tokens], dim=1)

    # -- passes ----------------------------------------------------------------------------------

    def _turns(self, places: Tensor, at: int) -> tuple[Tensor, Tensor]:
        """Rotary positions of tokens at places (n, 3) relative to row `at`."""
        places = places + torch.tensor([float(at), 0, 0], device=places.device)
        return rotary(places, self.shape.dim // self.shape.heads)

    def _modulation(self, times: Tensor, text: Tensor) -> Tensor:
        """(b, 6, 3, dim) for time steps (b, 3) of the kinds and text (b, 384)."""
        given = self.time_in(_waves(times, self.shape.dim)) + self.text_in(text)[:, None]
        return self.modulate(given).view(*times.shape, 6, self.shape.dim).transpose(1, 2)

    def observe(
        self, latents: Tensor, state: Tensor, text: Tensor, at: int
    ) -> Cache:
        """Keys and values of one observation: latents (b, c, ..), state (b, 16), at a row."""
        x = self._seen(latents[:, None], state[:, None])[:, 0]
        turns = self._turns(self.seen_places, at)
        times = torch.ones(len(x), 3, device=x.device)
        modulation = self._modulation(times, text)[:, :, CLEAN, None]
        cache: Cache = []
        for block in self.blocks:
            x, own = block(x, modulation, turns, None, None)
            cache.append(own)
        return cache

    def denoise(
        self, cache: Cache, at: int, video: Tensor | None, actions: Tensor, times: Tensor,
        text: Tensor,
    ) -> tuple[Tensor | None, Tensor]:
        """Velocities of a chunk that begins at row `at`: of video (b, frames, c, ..), of actions.

        `cache` holds the observations of the window, the present one included. `times` (b, 2) are
        the time steps of video and actions, 0 being noise and 1 data.
        """
        x = self._noisy(video, actions)
        turns = self._turns(self.chunk_places, at)
        times = torch.cat([torch.ones(len(x), 1, device=x.device), times], dim=1)
        modulation = self._modulation(times, text)[:, :, self.kinds]
        runs = self._runs(cache[0][0].shape[2])
        for block, past in zip(self.blocks, cache, strict=True):
            x, _ = block(x, modulation, turns, None, past, runs)
        return self._velocities(x, video, actions, times[:, 1:])

    def begin(
        self, cache: Cache, at: int, latents: Tensor, state: Tensor, video: Tensor | None,
        actions: Tensor, text: Tensor,
    ) -> tuple[tuple[Tensor | None, Tensor], Cache]:
        """`observe` and the first `denoise`, at times 0, in one pass: it costs as much as one.

        `cache` holds the earlier observations of the window, [] when there is none. Returns the
        velocities, and the keys and values of the present observation.
        """
        seen = self._seen(latents[:, None], state[:, None])[:, 0]
        noisy = self._noisy(video, actions)
        n, k, before = seen.shape[1], noisy.shape[1], cache[0][0].shape[2] if cache else 0
        x, device = torch.cat([seen, noisy], dim=1), seen.device
        turns = self._turns(torch.cat([self.seen_places, self.chunk_places]), at)
        times = torch.tensor([1.0, 0.0, 0.0], device=device).expand(len(x), 3)
        kinds = torch.cat([torch.full((n,), CLEAN, device=device), self.kinds])
        modulation = self._modulation(times, text)[:, :, kinds]
        mask = torch.ones(n + k, before + n + k, dtype=torch.bool, device=device)
        mask[:n, :before] = mask[:n, before + n :] = False
        found: Cache = []
        for block, past in zip(self.blocks, cache or [None] * len(self.blocks), strict=True):
            x, (key, value) = block(x, modulation, turns, mask, past, self._runs(before + n))
            found.append((key[:, :, :n], value[:, :, :n]))
        begun = torch.zeros(len(x), 2, device=device)
        return self._velocities(x[:, n:], video, actions, begun), found

    def _runs(self, count: int) -> Tensor:
        """Observations one by one and the chunk, as the mask of `forward` tells them apart."""
        seen = torch.arange(count, device=self.kinds.device) // len(self.seen_places)
        return torch.cat([seen, torch.full_like(self.kinds, -1)])

    def _velocities(
        self, x: Tensor, video: Tensor | None, actions: Tensor, times: Tensor
    ) -> tuple[Tensor | None, Tensor]:
        """Of tokens x (b, n, dim), for what they were made of and its time steps (b, 2)."""
        x = self.norm(x)
        count = x.shape[1] - self.shape.chunk
        found = self._towards(self.action_out(x[:, count:]), actions, times[:, 1])
        if video is None:
            return None, found
        b = len(x)
        patches = self.video_out(x[:, :count]).reshape(b * self.shape.frames, -1,
                                                       self.video_out.out_features)  # fmt: skip
        pictures = self._latents(patches).unflatten(0, (b, self.shape.frames))
        return self._towards(pictures, video, times[:, 0]), found

    def _towards(self, found: Tensor, x: Tensor, t: Tensor) -> Tensor:
        """The velocity at x (b, ..) and time t (b,) by what the network put out."""
        if self.shape.predicts == "velocity":
            return found
        left = (1.0 - t).clamp_min(NEAREST)
        return (found - x) / left.view(-1, *[1] * (x.ndim - 1))

    def forward(
        self, latents: Tensor, states: Tensor, text: Tensor, video: Tensor | None,
        actions: Tensor, times: Tensor,
    ) -> tuple[Tensor | None, Tensor]:
        """Velocities of all chunks of a stretch at once, as `observe` and `denoise` give them.

        latents (b, m, c, ..) and states (b, m, 16) are observed one stride apart; video (b, m,
        frames, c, ..), actions (b, m, chunk, 16) and times (b, m, 2) are of the chunk after each.
        """
        b, m = states.shape[:2]
        shape = self.shape
        seen = self._seen(latents, states)
        noisy = self._noisy(None if video is None else video.flatten(0, 1), actions.flatten(0, 1))
        noisy = noisy.view(b, m, -1, shape.dim)
        n, k = seen.shape[2], noisy.shape[2]
        x = torch.cat([seen.flatten(1, 2), noisy.flatten(1, 2)], dim=1)
        starts = torch.zeros(m, 1, 3, device=x.device)
        starts[:, 0, 0] = shape.stride * torch.arange(m, device=x.device)
        places = torch.cat([
            (starts + own).flatten(0, 1) for own in (self.seen_places, self.chunk_places)
        ])  # fmt: skip
        turns = rotary(places, shape.dim // shape.heads)
        # Time steps: one for all that is clean, then video and actions of each chunk.
        every = torch.cat([torch.ones(b, 1, device=x.device), times.flatten(1)], dim=1)
        modulation = self._modulation(every, text)
        index = torch.cat([
            torch.zeros(m * n, dtype=torch.long, device=x.device),
            (self.kinds + 2 * torch.arange(m, device=x.device)[:, None]).flatten(),
        ])  # fmt: skip
        modulation = modulation[:, :, index]
        mask = self._mask(m, n, k, x.device)
        for block in self.blocks:
            x, _ = block(x, modulation, turns, mask, None)
        video_v, action_v = self._velocities(
            x[:, m * n :].reshape(b * m, k, shape.dim),
            None if video is None else video.flatten(0, 1), actions.flatten(0, 1),
            times.flatten(0, 1),
        )  # fmt: skip
        if video_v is not None:
            video_v = video_v.unflatten(0, (b, m))
        return video_v, action_v.unflatten(0, (b, m))

    def _mask(self, m: int, n: int, k: int, device: torch.device) -> Tensor:
        """(m (n + k), m (n + k)): who may look at whom, see the head of this module."""
        seen = torch.arange(m, device=device).repeat_interleave(n)
        chunk = torch.arange(m, device=device).repeat_interleave(k)
        back = chunk[:, None] - seen[None]
        top = torch.cat(
            [seen[:, None] == seen, torch.zeros(m * n, m * k, dtype=torch.bool, device=device)], 1
        )
        low = torch.cat(
            [(back >= 0) & (back < self.shape.history), chunk[:, None] == chunk], 1
        )
        return torch.cat([top, low])
