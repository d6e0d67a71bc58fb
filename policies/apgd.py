"""APGD: a picture changed by so little that nobody sees it, so that a model does what one wants.

Projected gradient ascent with momentum whose step is halved when it does not get on, starting again
from the best point then (Croce and Hein, arXiv 2003.01690, algorithm 1). Written here because the
libraries that have it attack classifiers by their labels; here any function of the picture will do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from bench_tasks.errors import UsageError

__all__ = ["EPS", "Found", "apgd", "checkpoints", "noise"]

EPS = 8.0
"""Of 255: what VMI (arXiv 2602.15927) and others allow."""
MOMENTUM = 0.75
RISING = 0.75
"""This share of steps must have risen since the last checkpoint."""


@dataclass(frozen=True)
class Found:
    """The best picture, whole numbers like those of the first one, and what it gained on the way.

    `values` are of the best point after each step, before it was rounded.
    """

    picture: Tensor
    values: tuple[float, ...]


def checkpoints(steps: int) -> list[int]:
    """The steps after which it is asked whether the step gets on: ever denser, 3 % apart less."""
    shares = [0.0, 0.22]
    while shares[-1] < 1.0:
        shares.append(shares[-1] + max(shares[-1] - shares[-2] - 0.03, 0.06))
    return sorted({math.ceil(round(share * steps, 6)) for share in shares if share <= 1.0} - {0})


def apgd(
    gain: Callable[[Tensor], Tensor], picture: Tensor, eps: float = EPS, steps: int = 50,
    generator: torch.Generator | None = None,
) -> Found:
    """The picture, of values 0 to 255, within `eps` of each of them, for which `gain` is greatest.

    gain: of a float picture a number, differentiable. `steps` + 1 times it is asked. Starts from a
    random point with a `generator`, else from the picture itself. UsageError on a wrong number.
    """
    if steps < 1 or not eps > 0:
        raise UsageError(f"apgd takes steps of 1 or more and eps above 0, got {steps} and {eps}")
    clean = picture.detach().float()
    low, high = (clean - eps).clamp(min=0.0), (clean + eps).clamp(max=255.0)

    def within(x: Tensor) -> Tensor:
        return torch.minimum(torch.maximum(x, low), high)

    def looked(x: Tensor) -> tuple[float, Tensor]:
        x = x.detach().requires_grad_(True)
        with torch.enable_grad():
            value = gain(x)
            (slope,) = torch.autograd.grad(value, x)
        return float(value.detach()), slope

    x = clean
    if generator is not None:
        x = within(clean + eps * (2 * torch.rand(clean.shape, generator=generator) - 1))
    value, slope = looked(x)
    best, best_value, best_slope = x, value, slope
    before, step, rose, last = x, 2.0 * eps, 0, 0
    step_then, best_then = step, value
    values = []
    ends = checkpoints(steps)
    for k in range(1, steps + 1):
        share = MOMENTUM if k > 1 else 1.0
        ahead = within(x + step * slope.sign())
        ahead = within(x + share * (ahead - x) + (1 - share) * (x - before))
        was, before, x = value, x, ahead
        value, slope = looked(x)
        rose += value > was
        if value > best_value:
            best, best_value, best_slope = x, value, slope
        values.append(best_value)
        if k in ends:
            stuck = step == step_then and best_value == best_then
            few = rose < RISING * (k - last)
            step_then, best_then, last, rose = step, best_value, k, 0
            if few or stuck:
                step /= 2
                x, before, value, slope = best, best, best_value, best_slope
    return Found(_whole(best, clean, eps), tuple(values))


def _whole(best: Tensor, clean: Tensor, eps: float) -> Tensor:
    """To whole numbers, without leaving what is allowed."""
    off = (best - clean).round().clamp(-math.floor(eps), math.floor(eps))
    return (clean + off).clamp(0, 255).to(torch.uint8)


def noise(picture: Tensor, eps: float, generator: torch.Generator) -> Tensor:
    """The picture with each value changed by `eps` either way at random: no attack, as strong."""
    sign = torch.randint(0, 2, picture.shape, generator=generator) * 2 - 1
    return (picture.float() + sign * math.floor(eps)).clamp(0, 255).to(torch.uint8)
