"""Consistency distillation: a student that does in one step what its teacher does in sixteen.

The student's answer at a point of the way from noise to data is f(x_t) = x_t + (1 - t) v, the end
of the straight line along its velocity. It learns that its answer at x_s is the answer of its own
moving average at x_e, some Euler steps of the frozen teacher further on; at t = 1 that is x itself,
so all answers become the end of the teacher's way (Flash-WAM, arXiv 2606.05254; consistency models,
arXiv 2303.01469).

Four of the sixteen steps are made at once: what is known at the end then reaches the beginning over
four moving averages, not sixteen, each of which is some hundred steps of training behind. With data
in four corners 600 steps of training left a distance to the teacher's samples of 0.46, 0.30, 0.15
and 0.09 for leaps of 1, 2, 4 and 8 steps (0.71 before), and a leap costs one pass a step.

Video and actions stand at the same time, on the teacher's grid: this is the way that `flow.sample`
walks, and its first point, both at 0, is where a one-step sampler asks. A video held near noise
would never arrive at the boundary t = 1 from which the answers spread.

Both have the same f. Flash-WAM keeps the variance-preserving one of latent consistency models for
video, c_skip x + c_out x_hat; for the x_t used here, whose exact rescaling to unit variance is
f itself, it would either change nothing (with their steep scaling of time c_skip is 0 and c_out is
1 on every point of the grid but t = 1) or begin far from the teacher's answers (without it).
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from bench_tasks.errors import UsageError
from policies.wam.checkpoint import load_checkpoint
from policies.wam.flow import huber, mix
from policies.wam.model import Transformer
from policies.wam.shape import Shape

__all__ = [
    "AVERAGE", "GRID", "LEAP", "advantage_weights", "consistency_loss", "destination",
    "load_teacher",
]  # fmt: skip

GRID = 16
"""Steps of the teacher."""
LEAP = 4
"""Of them between a point and the one whose answer it learns."""
AVERAGE = 0.995
"""Share of the target, a moving average of the student's weights, that stays at each step."""
EPSILON = 1e-6


def load_teacher(path: Path, shape: Shape) -> tuple[Transformer, dict]:
    """The frozen teacher and what made it; UsageError when `shape` cannot learn from it."""
    found = load_checkpoint(path)
    theirs, ours = found.model.shape.to_dict(), shape.to_dict()
    differ = [f"{key} {theirs[key]}, not {ours[key]}" for key in ours if theirs[key] != ours[key]]
    if differ:
        raise UsageError(f"a student is as its teacher; {path} has {', '.join(differ)}")
    schedule = found.made.get("recipe", {}).get("schedule", "uniform")
    if schedule == "direct" or shape.video and schedule == "flash":
        raise UsageError(
            f"{path} was trained with the schedule {schedule}, which hardly shows it anything on "
            "the way from noise to data, so its sixteen steps are no example: choose a teacher "
            "trained with uniform"
        )
    return found.model.requires_grad_(False), found.made


def destination(x: Tensor, velocity: Tensor, t: Tensor) -> Tensor:
    """f(x_t) = x_t + (1 - t) v for times t with as many leading dimensions as they have."""
    return x + (1.0 - t.view(*t.shape, *[1] * (x.ndim - t.ndim))) * velocity


def advantage_weights(reward: Tensor, group: Tensor, s: float) -> tuple[Tensor, Tensor]:
    """Alpha = 1 + s a and beta = 1 - s a, with a = clip((R - mu) / (sigma + epsilon), -1, 1).

    mu and sigma are those of the rewards of the same group. After Adaptive Matching Distillation
    (arXiv 2602.07345).
    """
    a = torch.zeros_like(reward)
    for one in group.unique():
        own = group == one
        r = reward[own]
        a[own] = ((r - r.mean()) / (r.std(correction=0) + EPSILON)).clamp(-1.0, 1.0)
    return 1.0 + s * a, 1.0 - s * a


def consistency_loss(
    student: Transformer, target: Transformer, teacher: Transformer, batch: dict[str, Tensor],
    generator: torch.Generator, advantage: float = 0.0,
) -> tuple[Tensor | None, Tensor]:
    """Huber losses of video and actions; gradients reach the student alone.

    `batch` as in `flow.velocity_loss`; `target` is the student's moving average.

    With an `advantage` s above 0 the pull towards the target is weighted by alpha, and what beta
    exceeds 1 weighs a pull towards the demonstration: where the teacher leads astray it counts for
    less. The reward is minus the target's action error against the demonstration, and a group are
    the chunks of a batch at the same time. Adaptive Matching Distillation has instead a learnt
    reward and two halves of a distribution matching gradient, which there is none of here.
    """
    size = batch["states"].shape[:2]
    leap = torch.randint(GRID // LEAP, size, generator=generator).to(batch["states"].device)
    start, end = leap * LEAP / GRID, (leap + 1) * LEAP / GRID
    data = [batch["actions"], *([batch["video"]] if student.shape.video else [])]
    x = [mix(torch.randn(d.shape, generator=generator).to(d), d, start) for d in data]

    def velocities(model: Transformer, points: list[Tensor], t: Tensor) -> list[Tensor]:
        video, actions = model(
            batch["latents"], batch["states"], batch["text"],
            points[1] if len(points) > 1 else None, points[0], torch.stack([t, t], dim=-1),
        )  # fmt: skip
        return [actions] if video is None else [actions, video]

    with torch.no_grad():
        led = x
        for k in range(LEAP):
            along = velocities(teacher, led, start + k / GRID)
            led = [p + v / GRID for p, v in zip(led, along, strict=True)]
        there = velocities(target, led, end)
        aims = [destination(p, v, end) for p, v in zip(led, there, strict=True)]
    ours = velocities(student, x, start)
    answers = [destination(p, v, start) for p, v in zip(x, ours, strict=True)]
    losses = [_huber(a, b) for a, b in zip(answers, aims, strict=True)]
    if advantage:
        reward = -(aims[0] - data[0]).abs().flatten(2).mean(-1)
        alpha, beta = advantage_weights(reward, leap, advantage)
        losses = [
            alpha * loss + (beta - 1.0).clamp_min(0.0) * _huber(a, d)
            for loss, a, d in zip(losses, answers, data, strict=True)
        ]
    actions, *video = [loss.mean() for loss in losses]
    return (video[0] if video else None), actions


def _huber(a: Tensor, b: Tensor) -> Tensor:
    """Mean for each chunk (b, m)."""
    return huber(a, b, "none").flatten(2).mean(-1)
