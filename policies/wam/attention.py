"""Attention by option: dense, and two kinds that stay cheap on long sequences.

- `sdpa`: softmax attention as torch has it.
- `sla`, Sparse-Linear Attention (arXiv 2509.24006): mean-pooled queries and keys rate every pair of
  a query block and a key block. The best are *critical* and get exact softmax attention O_s, the
  worst are *negligible* and skipped, the *marginal* rest gets linear attention O_l. The result is
  O_s + proj(O_l): O_s is normalised over the critical keys alone, so the learnt projection has to
  make up for its wrong scale too.
- `sla2` (arXiv 2602.12675): O = alpha O_s + (1 - alpha) O_l, which is how softmax attention really
  splits when alpha is the share of attention that the critical keys have; nothing is skipped, alpha
  is learnt, and so is the router that chooses the critical blocks. In stage 1 the choice is a
  soft top-k, dense and differentiable, to fit router and alpha; in stage 2 it is hard, and cheap.
  Its quantisation-aware training is left out: no kernel on a CPU would gain from it.

Linear attention uses phi = softmax over the features. Blocks never straddle a border of the mask:
runs of tokens with equal masks are cut into blocks, so each pair of blocks is allowed as a whole or
not at all, and neither branch, nor pooling, nor the choice sees a key or a query from beyond such a
border. Masks of long runs (block-causal ones) are what this is for; with runs of one token it is
right, but slower than `sdpa`. Keys from a cache give the same result as the whole sequence with its
mask does if they are cut alike: either `runs` says where the runs are that the mask shows there, or
the block sizes divide them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from bench_tasks.errors import UsageError, unknown

__all__ = ["ATTENTIONS", "make_attention"]

ATTENTIONS = ("sdpa", "sla", "sla2")


def make_attention(
    kind: str,
    heads: int,
    head_dim: int,
    *,
    block_q: int = 64,
    block_k: int = 64,
    keep: float = 0.05,
    drop: float = 0.1,
    tau: float = 0.1,
) -> nn.Module:
    """A module `forward(q, k, v, mask=None, runs=None)` for one of `ATTENTIONS`.

    q is (b, h, n, d), k and v are (b, h, m, d), mask is None or bool (n, m), True where a query may
    look; the result is (b, h, n, d). A query that may look nowhere gets zeros. `runs` (m,) holds a
    number for each key; no block holds two of them, nor any that the mask tells apart.

    Args:
        kind: which attention.
        heads: h.
        head_dim: d.
        block_q: most queries in a block.
        block_k: most keys in a block.
        keep: share of the key blocks a query may see that is attended to exactly, rounded down,
            but at least one block (`sla`, `sla2`).
        drop: share of them that is skipped, rounded down (`sla`).
        tau: temperature of the soft choice in stage 1 (`sla2`).

    Raises:
        UsageError: unknown kind, or an option out of its range.
    """
    if kind not in ATTENTIONS:
        raise unknown("attention", kind, ATTENTIONS)
    if min(block_q, block_k) < 1:
        raise UsageError(f"attention blocks of {block_q} x {block_k}: both must be at least 1")
    if not (0 < keep <= 1 and 0 <= drop <= 1 and 0 < tau < math.inf):
        raise UsageError(
            f"attention keep={keep}, drop={drop}, tau={tau}: choose 0 < keep <= 1, 0 <= drop <= 1, "
            "0 < tau"
        )
    if kind == "sdpa":
        return DenseAttention()
    if kind == "sla":
        return SparseLinearAttention(heads, head_dim, block_q, block_k, keep, drop)
    return SparseLinearAttention2(heads, head_dim, block_q, block_k, keep, tau)


class DenseAttention(nn.Module):
    """Softmax attention."""

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None,
        runs: Tensor | None = None,
    ) -> Tensor:
        """See `make_attention`."""
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@dataclass(frozen=True)
class _Cut:
    """A sequence cut into blocks: where each token goes, and what the blocks hold."""

    place: Tensor  # (n,) position of a token among the padded blocks
    first: Tensor  # (blocks,) first token of each block
    filled: Tensor  # (blocks, size) which places hold a token
    regular: bool  # every block is full

    def split(self, x: Tensor) -> Tensor:
        """(b, h, n, d) to (b, h, blocks, size, d), zeros where there is no token."""
        if not self.regular:
            padded = x.new_zeros(*x.shape[:2], self.filled.numel(), x.shape[3])
            x = padded.index_copy(2, self.place, x)
        return x.unflatten(2, self.filled.shape)

    def join(self, blocks: Tensor) -> Tensor:
        """The inverse of `split`."""
        x = blocks.flatten(2, 3)
        return x if self.regular else x.index_select(2, self.place)

    def pool(self, blocks: Tensor) -> Tensor:
        """Mean of each block's tokens: (b, h, blocks, d)."""
        return blocks.sum(3) / self.filled.sum(1).to(blocks.dtype)[:, None]


def _cut(n: int, size: int, device: torch.device, *given: Tensor | None) -> _Cut:
    """Cut n tokens into blocks of at most `size` within each run of equal rows of all `given`."""
    token = torch.arange(n, device=device)
    start = torch.zeros_like(token)
    for rows in given:
        if rows is not None:
            border = (rows[1:] != rows[:-1]).view(n - 1, -1).any(1)
            start[1:] = torch.where(border, token[1:], start[1:])
    slot = (token - start.cummax(0).values) % size
    first = (slot == 0).nonzero().flatten()
    place = ((slot == 0).cumsum(0) - 1) * size + slot
    filled = torch.zeros(len(first) * size, dtype=torch.bool, device=device)
    filled[place] = True
    return _Cut(place, first, filled.view(-1, size), n == len(filled))


class _Blockwise(nn.Module):
    """What both kinds share: cutting into blocks, choosing among them, and the two branches."""

    def __init__(self, block_q: int, block_k: int, keep: float) -> None:
        super().__init__()
        self.block_q, self.block_k, self.keep = block_q, block_k, keep

    def cut(
        self, q: Tensor, k: Tensor, mask: Tensor | None, runs: Tensor | None
    ) -> tuple[_Cut, _Cut, Tensor]:
        """How queries and keys are cut, and bool (q blocks, k blocks): which pairs may be used."""
        by_k = None if mask is None else mask.t()
        cut_q = _cut(q.shape[2], self.block_q, q.device, mask)
        cut_k = _cut(k.shape[2], self.block_k, q.device, by_k, runs)
        if mask is None:
            return cut_q, cut_k, cut_q.filled.new_ones(len(cut_q.first), len(cut_k.first))
        return cut_q, cut_k, mask[cut_q.first][:, cut_k.first]

    def kept(self, allowed: Tensor) -> Tensor:
        """How many key blocks each query block attends to exactly: (q blocks, 1)."""
        return torch.minimum(_share(self.keep, allowed).clamp(min=1), allowed.sum(1, keepdim=True))


def _share(share: float, allowed: Tensor) -> Tensor:
    """A share of the allowed key blocks of each query block, rounded down: (q blocks, 1)."""
    # The small number: 0.29 * 100 is 28.999999999999996.
    return (allowed.sum(1, keepdim=True) * share + 1e-6).long()


def _order(scores: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
    """Key blocks from best to worst, and each one's rank in that; the forbidden ones come last."""
    order = scores.masked_fill(~allowed, -math.inf).argsort(dim=-1, descending=True, stable=True)
    return order, order.argsort(-1)


def _sparse(q: Tensor, k: Tensor, v: Tensor, order: Tensor, kept: Tensor, cut_k: _Cut) -> Tensor:
    """Softmax attention of each query block to the first `kept` key blocks of its `order`.

    The chosen blocks are gathered, so the cost is that of the choice and not of the sequence.
    q (b, h, q blocks, block_q, d), k and v likewise, order (b, h, q blocks, k blocks).
    """
    b, h, blocks, size, d = q.shape
    most = int(kept.max())
    order = order[..., :most]
    # Rows of a matrix are gathered and, in the backward pass, added up much faster than blocks.
    head = torch.arange(b * h, device=q.device).view(b, h, 1, 1) * k.shape[2]
    rows = (order + head).flatten()
    k, v = (
        x.reshape(-1, x.shape[3] * d).index_select(0, rows).view(b * h * blocks, 1, -1, d)
        for x in (k, v)
    )
    mask, nothing = None, kept == 0
    if not cut_k.regular or bool((kept < most).any()):
        used = torch.arange(most, device=q.device) < kept.clamp(min=1)
        mask = (used[..., None] & cut_k.filled[order]).view(b * h * blocks, 1, 1, -1)
        mask = mask.expand(-1, 1, size, -1)
    q = q.reshape(b * h * blocks, 1, size, d)
    out = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return out.reshape(b, h, blocks, size, d).masked_fill(nothing[..., None], 0)


def _linear(q: Tensor, k: Tensor, v: Tensor, weights: Tensor, cut_k: _Cut) -> Tensor:
    """Linear attention of each query block to key blocks by `weights` (b, h, q blocks, k blocks).

    Each key block is a matrix sum(phi(k) [v, 1]); a query block adds up those of its blocks.

    Returns:
        (b, h, q blocks, block_q, d + 1): the last column is 1, or 0 where there are no weights.
    """
    phi_k = functional.softmax(k, -1) * cut_k.filled[..., None]
    values = torch.cat([v, torch.ones_like(v[..., :1])], -1)
    states = phi_k.transpose(-1, -2) @ values
    summed = (weights @ states.flatten(3)).unflatten(3, states.shape[3:])
    sums = functional.softmax(q, -1) @ summed
    norm = sums[..., -1:]
    return sums / torch.where(norm > 0, norm, 1)


class SparseLinearAttention(_Blockwise):
    """`sla`: O_s + proj(O_l), critical, marginal and negligible blocks by their pooled scores."""

    def __init__(
        self, heads: int, head_dim: int, block_q: int, block_k: int, keep: float, drop: float
    ) -> None:
        """See `make_attention`. The projection is affine, for each head, and starts at zero."""
        super().__init__(block_q, block_k, keep)
        self.drop = drop
        self.proj = nn.Parameter(torch.zeros(heads, head_dim + 1, head_dim))

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None,
        runs: Tensor | None = None,
    ) -> Tensor:
        """See `make_attention`."""
        cut_q, cut_k, allowed = self.cut(q, k, mask, runs)
        q, k, v = cut_q.split(q), cut_k.split(k), cut_k.split(v)
        order, rank = _order(cut_q.pool(q) @ cut_k.pool(k).transpose(-1, -2), allowed)
        kept, seen = self.kept(allowed), allowed.sum(1, keepdim=True)
        worst = torch.maximum(seen - _share(self.drop, allowed), kept)
        marginal = ((rank >= kept) & (rank < worst)).to(q.dtype)
        linear = _linear(q, k, v, marginal, cut_k) @ self.proj[:, None]
        return cut_q.join(_sparse(q, k, v, order, kept, cut_k) + linear)


class SparseLinearAttention2(_Blockwise):
    """`sla2`: alpha O_s + (1 - alpha) O_l, with a learnt choice of blocks and a learnt alpha.

    Attributes:
        stage: 1 for the soft choice, dense, that trains the router; 2 for the hard one.
    """

    def __init__(
        self, heads: int, head_dim: int, block_q: int, block_k: int, keep: float, tau: float
    ) -> None:
        """See `make_attention`. The router starts as that of `sla`, alpha at 1/2."""
        super().__init__(block_q, block_k, keep)
        self.tau = tau
        eye = torch.eye(head_dim).expand(heads, -1, -1)
        self.proj_q, self.proj_k = nn.Parameter(eye.clone()), nn.Parameter(eye.clone())
        # For sequences of any length alpha is a function of the pooled queries, not a table.
        self.alpha_weight = nn.Parameter(torch.zeros(heads, head_dim, 1))
        self.alpha_bias = nn.Parameter(torch.zeros(heads, 1, 1))
        self.stage = 2

    @property
    def stage(self) -> int:
        """1: soft choice, 2: hard choice."""
        return self._stage

    @stage.setter
    def stage(self, stage: int) -> None:
        if stage not in (1, 2):
            raise unknown("stage", stage, (1, 2))
        self._stage = stage

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None,
        runs: Tensor | None = None,
    ) -> Tensor:
        """See `make_attention`."""
        cut_q, cut_k, allowed = self.cut(q, k, mask, runs)
        kept, seen = self.kept(allowed), allowed.sum(1, keepdim=True)
        blocks_q, blocks_k, blocks_v = cut_q.split(q), cut_k.split(k), cut_k.split(v)
        pooled_q, pooled_k = cut_q.pool(blocks_q), cut_k.pool(blocks_k)
        scores = (pooled_q @ self.proj_q) @ (pooled_k @ self.proj_k).transpose(-1, -2)
        scores = scores / math.sqrt(q.shape[-1])
        if self.stage == 1:
            log_chosen, others = _soft_top(scores / self.tau, allowed, kept)
            sparse = cut_q.split(_weighted(q, k, v, log_chosen, cut_q, cut_k))
        else:
            order, rank = _order(scores, allowed)
            others = ((rank >= kept) & (rank < seen)).to(q.dtype)
            sparse = _sparse(blocks_q, blocks_k, blocks_v, order, kept, cut_k)
        linear = _linear(blocks_q, blocks_k, blocks_v, others, cut_k)[..., :-1]
        alpha = torch.sigmoid(pooled_q @ self.alpha_weight + self.alpha_bias)
        # Where nothing is left for the linear branch the sparse one has all of the attention.
        alpha = torch.where(kept < seen, alpha, 1)[..., None]
        return cut_q.join(alpha * sparse + (1 - alpha) * linear)


def _soft_top(scores: Tensor, allowed: Tensor, kept: Tensor) -> tuple[Tensor, Tensor]:
    """Soft top-k M = sigmoid(scores + lambda), each row adding up to `kept`; log(M) and 1 - M.

    Lambda is found by bisection; its gradient is that of the function which the row's sum implies.
    """
    everything = kept >= allowed.sum(1, keepdim=True)
    with torch.no_grad():
        shown = scores.masked_fill(~allowed, -math.inf)
        # Between the bounds: all of them above sigmoid(+40), all of them below sigmoid(-40).
        low = -shown.amax(-1, keepdim=True) - 40
        high = -scores.masked_fill(~allowed, math.inf).amin(-1, keepdim=True) + 40
        for _ in range(60):
            middle = (low + high) / 2
            above = torch.sigmoid(shown + middle).sum(-1, keepdim=True) > kept
            low, high = torch.where(above, low, middle), torch.where(above, middle, high)
        offset = torch.where(everything, 0, (low + high) / 2)
        chosen = torch.sigmoid(shown + offset)
        slope = chosen * (1 - chosen)
        slope = slope / slope.sum(-1, keepdim=True).clamp(min=torch.finfo(slope.dtype).tiny)
    # d lambda / d scores = -slope, without a change of the value.
    pull = (slope * (scores - scores.detach())).sum(-1, keepdim=True)
    logits = scores + offset - pull
    log_chosen = functional.logsigmoid(logits).masked_fill(everything, 0)
    others = torch.sigmoid(-logits).masked_fill(everything, 0)
    return log_chosen.masked_fill(~allowed, -math.inf), others.masked_fill(~allowed, 0)


def _weighted(
    q: Tensor, k: Tensor, v: Tensor, log_weights: Tensor, cut_q: _Cut, cut_k: _Cut
) -> Tensor:
    """Softmax attention in which each pair of blocks has a weight: dense, (b, h, n, d)."""
    of_q, of_k = cut_q.place // cut_q.filled.shape[1], cut_k.place // cut_k.filled.shape[1]
    bias = log_weights.index_select(2, of_q).index_select(3, of_k)
    nothing = (log_weights == -math.inf).all(-1)[:, :, of_q, None]
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + bias.masked_fill(nothing, 0)
    return (functional.softmax(scores, -1) @ v).masked_fill(nothing, 0)
