# ruff: noqa: T201
"""What sparse-linear attention loses and what it saves: `python benchmarks/attention_cost.py`.

`error`: `sla` and `sla2` are fitted to full attention's output at equal sparsity (at least 95 %)
and compared on videos that they were not fitted to, by relative L2 error. Bar: `sla2` below `sla`.
The projection of `sla` is fitted in closed form by least squares, so it has the best there is;
router and alpha of `sla2` by Adam with the soft choice (stage 1), the error is with the hard one.

The videos are made up: 8 frames of 16 x 16 tokens. A token has 16 content channels, each the sum of
three static plane waves, over which five Gaussian spots with contents of their own move at constant
speed, plus noise of 0.1; and 24 channels of place (sines and cosines of time, row and column in
four octaves). q, k and v of four heads of 32 are random projections of these channels, the same for
all videos; k's correlates with q's at 0.8, so a token looks for tokens that are like it and near.
The first head weighs content 4 : 1 against place, the last one 1 : 4. q is scaled by --gain: at 2
the strongest 5 % of the keys hold three quarters of the attention.

`cost`: processor time of one thread against sequence length, 256 to 8192, taking turns; forward,
and forward and backward. Draws --plot, an SVG.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from policies.wam.attention import ATTENTIONS, make_attention

HEADS, DIM = 4, 32
FRAMES, ROWS, COLUMNS = 8, 16, 16
CONTENT, OCTAVES = 16, 4
LENGTHS = (256, 512, 1024, 2048, 4096, 8192)
COLORS = {"sdpa": "#555", "sla": "#d95f02", "sla2": "#1b6ca8"}


def positions() -> Tensor:
    """(n, 3): time, row and column of each token in [0, 1)."""
    axes = [torch.arange(size) / size for size in (FRAMES, ROWS, COLUMNS)]
    return torch.cartesian_prod(*axes)


def video(seed: int) -> Tensor:
    """The content of one video's tokens: (n, 16)."""
    draw = torch.Generator().manual_seed(seed)
    t, where = positions()[:, :1], positions()[:, 1:]
    waves = 6 * torch.randn(3, 2, CONTENT, generator=draw)
    phases = 2 * math.pi * torch.rand(3, 1, CONTENT, generator=draw)
    content = 0.5 * torch.sin(where @ waves + phases).sum(0)
    for _ in range(5):
        start = torch.rand(2, generator=draw)
        speed = 0.4 * torch.randn(2, generator=draw)
        radius = 0.05 + 0.1 * torch.rand(1, generator=draw)
        spot = torch.exp(-((where - start - speed * t) ** 2).sum(1, keepdim=True) / (2 * radius**2))
        content = (1 - spot) * content + spot * 1.5 * torch.randn(CONTENT, generator=draw)
    return content + 0.1 * torch.randn(content.shape, generator=draw)


class Projections:
    """q, k and v (1, 4, n, 32) of a video."""

    def __init__(self, gain: float) -> None:
        """Draw the projections."""
        draw = torch.Generator().manual_seed(0)
        angles = positions()[..., None] * math.pi * 2.0 ** torch.arange(OCTAVES)
        self.place = torch.cat([angles.sin(), angles.cos()], -1).flatten(1)
        count = self.place.shape[1]
        to_q, other, self.to_v = torch.randn(3, HEADS, CONTENT + count, DIM, generator=draw)
        local = torch.linspace(0.2, 0.8, HEADS)[:, None]
        weights = torch.cat([(1 - local).expand(-1, CONTENT), local.expand(-1, count)], 1)
        self.to_q = weights[..., None] * to_q
        self.to_k = weights[..., None] * (0.8 * to_q + 0.6 * other)
        self.to_v = self.to_v / math.sqrt(CONTENT + count)
        self.gain = gain

    def __call__(self, content: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Project, with q's values scaled to a deviation of `gain` and k's to one of 1."""
        x = torch.cat([content, self.place], 1)
        q, k = ((x @ w)[None] for w in (self.to_q, self.to_k))
        q, k = (y / y.std((2, 3), keepdim=True) for y in (q, k))
        return self.gain * q, k, (x @ self.to_v)[None]


Sample = tuple[tuple[Tensor, Tensor, Tensor], Tensor]
"""q, k and v, and full attention's output."""


@torch.no_grad()
def error(attention: torch.nn.Module, samples: list[Sample]) -> float:
    """Relative L2 error against full attention."""
    wrong = sum(float((attention(*x) - y).square().sum()) for x, y in samples)
    return math.sqrt(wrong / sum(float(y.square().sum()) for _, y in samples))


@torch.no_grad()
def fit_projection(attention: torch.nn.Module, samples: list[Sample]) -> None:
    """Solve for the projection of `sla`."""
    square = torch.zeros(HEADS, DIM + 1, DIM + 1, dtype=torch.double)
    product = torch.zeros(HEADS, DIM + 1, DIM, dtype=torch.double)
    for x, y in samples:
        attention.proj.zero_()
        sparse = attention(*x)
        attention.proj[:, :DIM] = torch.eye(DIM)
        linear = attention(*x) - sparse
        given = torch.cat([linear, torch.ones_like(linear[..., :1])], -1)[0].double()
        square += given.mT @ given
        product += given.mT @ (y - sparse)[0].double()
    attention.proj.copy_(torch.linalg.solve(square, product))


def fit_router(
    attention: torch.nn.Module, samples: list[Sample], steps: int, rate: float, block: int
) -> None:
    """Fit alpha, and with a rate > 0 the router, on eight random query blocks a step."""
    draw = torch.Generator().manual_seed(0)
    router, alpha = [attention.proj_q, attention.proj_k], [attention.alpha_weight]
    optimizer = torch.optim.Adam(
        [{"params": router, "lr": rate}, {"params": [*alpha, attention.alpha_bias], "lr": 0.05}]
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in range(steps):
        (q, k, v), y = samples[step % len(samples)]
        chosen = torch.randperm(q.shape[2] // block, generator=draw)[:8, None]
        rows = (chosen * block + torch.arange(block)).flatten()
        loss = (attention(q[:, :, rows], k, v) - y[:, :, rows]).square().sum() / y.square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()


def compare(options: argparse.Namespace) -> bool:
    """Print the errors; True if the bar is met."""
    project, dense = Projections(options.gain), make_attention("sdpa", HEADS, DIM)
    drawn = [project(video(seed)) for seed in range(options.videos + 8)]
    samples = [(x, dense(*x)) for x in drawn]
    seen, unseen = samples[: options.videos], samples[options.videos :]
    q, k, _ = unseen[0][0]
    weights = (q @ k.mT / math.sqrt(DIM)).softmax(-1)
    held = weights.topk(weights.shape[-1] // 20, -1).values.sum(-1).mean()
    print(f"the strongest 5 % of the keys hold {held:.0%} of the attention")
    print("\n| block | sparsity | kind | relative L2 error |\n|---|---|---|---|")
    good = True
    for block in options.blocks:
        count = q.shape[2] // block
        given = {"block_q": block, "block_k": block, "keep": 0.05, "tau": options.tau}
        sparsity = 1 - max(1, math.floor(0.05 * count)) / count

        def show(kind: str, value: float, block: int = block, sparsity: float = sparsity) -> None:
            print(f"| {block} | {sparsity:.1%} | {kind} | {value:.3f} |", flush=True)

        sla = make_attention("sla", HEADS, DIM, **given)
        plain = error(sla, unseen)
        show("`sla`, projection at zero", plain)
        fit_projection(sla, seen)
        fitted = error(sla, unseen)
        show("`sla`, projection fitted", fitted)
        sla2 = make_attention("sla2", HEADS, DIM, **given)
        show("`sla2`, nothing fitted", error(sla2, unseen))
        fit_router(sla2, seen, options.steps, 0.0, block)
        show("`sla2`, alpha fitted, router as in `sla`", error(sla2, unseen))
        sla2 = make_attention("sla2", HEADS, DIM, **given)
        sla2.stage = 1
        fit_router(sla2, seen, options.steps, options.rate, block)
        show("`sla2` after stage 1, soft choice (dense)", error(sla2, unseen))
        sla2.stage = 2
        after = error(sla2, unseen)
        show("`sla2` after stage 1, hard choice", after)
        good &= after < min(plain, fitted) and sparsity >= 0.95
    print("\nbar (sla2 below sla at 95 % sparsity or more):", "met" if good else "MISSED")
    return good


def seconds(attention: torch.nn.Module, tensors: list[Tensor], backward: bool) -> float:
    """Processor time of one call."""
    begun = time.process_time()
    with torch.set_grad_enabled(backward):
        out = attention(*tensors)
        if backward:
            torch.autograd.grad(out.sum(), tensors)
    return time.process_time() - begun


def cost(options: argparse.Namespace) -> None:
    """Print the times and draw them."""
    times: dict[tuple[str, bool, int], float] = {}
    print(f"\n{HEADS} heads of {DIM}, blocks of {options.cost_block}, ms (and share of `sdpa`'s)\n")
    print("| length | sparsity |", " | ".join(f"`{k}` {w}" for w in ("forward", "and backward")
                                            for k in ATTENTIONS), "|")  # fmt: skip
    print("|---" * (2 + 2 * len(ATTENTIONS)) + "|")
    for n in LENGTHS:
        tensors = [torch.randn(1, HEADS, n, DIM, requires_grad=True) for _ in range(3)]
        size = {"block_q": options.cost_block, "block_k": options.cost_block}
        kinds = {kind: make_attention(kind, HEADS, DIM, **size) for kind in ATTENTIONS}
        row = []
        for backward in (False, True):
            turns = [
                [seconds(attention, tensors, backward) for attention in kinds.values()]
                for _ in range(options.turns + 1)
            ]
            best = [min(taken) for taken in zip(*turns[1:], strict=True)]
            for kind, taken in zip(kinds, best, strict=True):
                times[kind, backward, n] = 1e3 * taken
                row.append(f"{1e3 * taken:.1f} ({taken / best[0]:.2f})")
        count = math.ceil(n / options.cost_block)
        print(f"| {n} | {1 - max(1, math.floor(0.05 * count)) / count:.1%} |", " | ".join(row), "|",
              flush=True)  # fmt: skip
    if options.plot:
        options.plot.write_text(draw(times), encoding="utf-8")


def draw(times: dict[tuple[str, bool, int], float]) -> str:
    """Both panels as an SVG; both axes are logarithmic."""
    low = math.floor(math.log10(min(times.values())))
    high = math.ceil(math.log10(max(times.values())))
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 340" font-family="sans-serif" '
        'font-size="12"><rect width="760" height="340" fill="white"/>'
    ]
    for panel, backward in enumerate((False, True)):
        left = 60 + 370 * panel

        def x(n: int, left: int = left) -> float:
            return left + 300 * math.log2(n / LENGTHS[0]) / math.log2(LENGTHS[-1] / LENGTHS[0])

        def y(value: float) -> float:
            return 290 - 250 * (math.log10(value) - low) / (high - low)

        title = "forward and backward" if backward else "forward"
        parts.append(f'<text x="{left + 150}" y="24" text-anchor="middle">{title}, ms</text>')
        for power in range(low, high + 1):
            parts.append(
                f'<path d="M{left} {y(10**power):.1f}h300" stroke="#ddd"/><text x="{left - 6}" '
                f'y="{y(10**power) + 4:.1f}" text-anchor="end">{10**power:g}</text>'
            )
        for n in LENGTHS:
            parts.append(f'<text x="{x(n):.1f}" y="308" text-anchor="middle">{n}</text>')
        for k, kind in enumerate(ATTENTIONS):
            color, points = COLORS[kind], [(x(n), y(times[kind, backward, n])) for n in LENGTHS]
            path = "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
            parts.append(f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="2"/>')
            parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{color}"/>'
                      for a, b in points]  # fmt: skip
            parts.append(f'<text x="{left + 14}" y="{54 + 16 * k}" fill="{color}">{kind}</text>')
        parts.append(f'<text x="{left + 150}" y="328" text-anchor="middle">tokens</text>')
    return "\n".join([*parts, "</svg>\n"])


def main() -> int:
    """Exit status 1 when the bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=("error", "cost", "both"), default="both")
    parser.add_argument("--gain", type=float, default=2.0, help="deviation of the queries")
    parser.add_argument("--videos", type=int, default=32, help="to fit to; eight more to measure")
    parser.add_argument("--steps", type=int, default=200, help="of Adam")
    parser.add_argument("--rate", type=float, default=3e-4, help="learning rate of the router")
    parser.add_argument("--tau", type=float, default=0.05, help="temperature of the soft choice")
    parser.add_argument("--blocks", type=int, nargs="+", default=[32], help="for the error")
    parser.add_argument("--cost-block", type=int, default=64)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--plot", type=Path, help="an SVG to write")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    good = options.what == "cost" or compare(options)
    if options.what != "error":
        cost(options)
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
