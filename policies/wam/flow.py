"""Flow matching: how noise times are drawn, what is learnt, and how a chunk is sampled.

x_t = (1 - t) noise + t data, so the velocity to learn is data - noise, and t runs from 0 to 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional

from bench_tasks.errors import unknown
from policies.wam.model import Cache, Transformer, joined

__all__ = [
    "SCHEDULES", "Sampled", "draw_times", "huber", "sample", "sampled", "usual_steps",
    "velocity_loss",
]  # fmt: skip

SCHEDULES = ("uniform", "flash", "direct")
FLASH_BETA = 7.0
"""Video time 1 - eta, eta ~ Beta(7, 1): nearly always noise (DreamZero, arXiv 2602.15922)."""
HUBER = 0.1
"""Differences from which on a loss grows in a straight line."""
REUSED = ((0.02, 4), (0.0, 2))
"""Cosine similarity above that asked for, and for how many steps a velocity is then used again."""


def draw_times(schedule: str, size: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Time steps (*size, 2) of video and actions, drawn apart.

    `uniform`: both from U(0, 1). `flash`: the video's from 1 - Beta(7, 1), so that the actions
    are learnt beside pictures that are still noise, as they are in the only step of a one-step
    sampler. `direct`: both are 0, see `velocity_loss`.
    """
    if schedule not in SCHEDULES:
        raise unknown("schedule", schedule, SCHEDULES)
    if schedule == "direct":
        return torch.zeros(*size, 2)
    times = torch.rand(*size, 2, generator=generator)
    if schedule == "flash":
        # Beta(a, 1) is the a-th root of a uniform number.
        times[..., 0] = 1.0 - times[..., 0] ** (1.0 / FLASH_BETA)
    return times


def usual_steps(schedule: str, distilled: bool) -> int:
    """Steps that a model is sampled with unless told otherwise, as `sample` counts them."""
    if schedule == "direct":
        return 0
    return 1 if distilled else 4


def mix(noise: Tensor, data: Tensor, t: Tensor) -> Tensor:
    """x_t for times t with as many leading dimensions as they have."""
    t = t.view(*t.shape, *[1] * (data.ndim - t.ndim))
    return noise + t * (data - noise)


def velocity_loss(
    model: Transformer, batch: dict[str, Tensor], times: Tensor, generator: torch.Generator,
    direct: bool = False,
) -> tuple[Tensor | None, Tensor]:
    """Mean errors of the velocities of video and actions: squared, or `huber` with `direct`.

    Of a model that predicts data the errors are those of the data, (1 - t) times as large: nothing
    is then learnt more eagerly because little noise is left.

    `batch`: latents (b, m, c, ..), states (b, m, 16), text (b, 384), video (b, m, frames, c, ..),
    actions (b, m, chunk, 16); times (b, m, 2).

    `direct`: the noise is 0, so that at time 0 the velocity is the data, and large errors count
    in a straight line: the model learns to answer, in its only step, what lies in the middle.
    Losses are then of another size, and so is the weight of each beside the other. ValueError
    when a time is not 0 with it.
    """
    if direct and times.any():
        raise ValueError("without noise there is no time but 0")

    def noise_like(x: Tensor) -> Tensor:
        return torch.zeros_like(x) if direct else torch.randn(x.shape, generator=generator).to(x)

    loss = huber if direct else functional.mse_loss

    actions, video = batch["actions"], batch["video"] if model.shape.video else None
    action_noise = noise_like(actions)
    video_noise = None if video is None else noise_like(video)
    got_video, got_actions = model(
        batch["latents"], batch["states"], batch["text"],
        None if video is None or video_noise is None else mix(video_noise, video, times[..., 0]),
        mix(action_noise, actions, times[..., 1]), times,
    )  # fmt: skip

    def compared(got: Tensor, aim: Tensor, t: Tensor) -> Tensor:
        if model.shape.predicts == "data":
            left = (1.0 - t).view(*t.shape, *[1] * (aim.ndim - t.ndim))
            got, aim = left * got, left * aim
        return loss(got, aim)

    action_loss = compared(got_actions, actions - action_noise, times[..., 1])
    if got_video is None or video is None or video_noise is None:
        return None, action_loss
    return compared(got_video, video - video_noise, times[..., 0]), action_loss


def huber(a: Tensor, b: Tensor, reduction: str = "mean") -> Tensor:
    """d^2 / (2 HUBER) for differences d up to HUBER, |d| - HUBER / 2 beyond."""
    return functional.huber_loss(a, b, reduction=reduction, delta=HUBER) / HUBER


@dataclass(frozen=True)
class Sampled:
    """A chunk: video latents (b, frames, c, ..) or None, actions (b, chunk, 16), model calls.

    `seen` is the cache of the present observation when it was encoded on the way, else [].
    """

    video: Tensor | None
    actions: Tensor
    calls: int
    seen: Cache = field(default_factory=list)


def sampled(
    model: Transformer, cache: Cache, at: int, text: Tensor, steps: int,
    generator: torch.Generator, reuse: float = 1.0,
    prefix: tuple[Tensor, Tensor] | None = None,
    present: tuple[Tensor, Tensor] | None = None,
) -> Sampled:
    """Integrate from noise to data in `steps` Euler steps.

    0 steps: a single one from no noise at all, for a model whose schedule was `direct`.

    `prefix` inpaints: actions (b, chunk, 16) that the chunk is to continue, and how binding each
    is, (b, chunk, 1) in [0, 1]. After each step the sample is drawn that much
    towards where those actions, mixed with the same noise, would be by then.

    `present`, latents (b, c, ..) and state (b, 16), is an observation at row `at` that is not in
    `cache` yet: it is encoded in the first pass (see `Transformer.begin`).

    When the last two velocities that the model gave agree, the last one is used again without
    asking the model: for two more steps if their cosine similarity is above `reuse`, for four if
    it is above `reuse` + 0.02 (DreamZero's cache has 0.93 and 0.95). Video and actions must both
    agree, in every chunk of the batch. 1: never.
    """
    shape, b = model.shape, len(text)
    device = text.device
    size = float(steps > 0)
    actions = size * torch.randn(b, shape.chunk, 16, generator=generator).to(device)
    video = None
    if shape.video:
        video = size * torch.randn(
            b, shape.frames, shape.latent, *shape.grid, generator=generator
        ).to(device)  # fmt: skip
    noise = actions
    velocity: tuple[Tensor | None, Tensor] | None = None
    seen: Cache = []
    again, calls, steps = 0, 0, max(steps, 1)
    for k in range(steps):
        if present is not None and k == 0:
            velocity, seen = model.begin(cache, at, *present, video, actions, text)
            cache, calls = joined([cache, seen] if cache else [seen]), 1
        elif velocity is None or not again:
            times = torch.full((b, 2), k / steps, device=device)
            before, velocity = velocity, model.denoise(cache, at, video, actions, times, text)
            calls += 1
            again = _reusable(before, velocity, reuse)
        else:
            again -= 1
        if video is not None and velocity[0] is not None:
            video = video + velocity[0] / steps
        actions = actions + velocity[1] / steps
        if prefix is not None:
            known, weight = prefix
            there = mix(noise, known, torch.full((b,), (k + 1) / steps, device=device))
            actions = actions + weight * (there - actions)
    return Sampled(video, actions, calls, seen)


sample = torch.no_grad()(sampled)
"""As `sampled`, without what gradients would need."""


def _reusable(
    before: tuple[Tensor | None, Tensor] | None, now: tuple[Tensor | None, Tensor], reuse: float
) -> int:
    """For how many further steps `now` may be used, see `sample`."""
    # A similarity may be rounded to more than 1.
    if before is None or reuse >= 1.0:
        return 0
    alike = min(
        functional.cosine_similarity(a.flatten(1), b.flatten(1)).min().item()
        for a, b in zip(before, now, strict=True) if a is not None and b is not None
    )  # fmt: skip
    return next((steps for above, steps in REUSED if alike > reuse + above), 0)
