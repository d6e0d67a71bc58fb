"""Each attention against its formulas, written out slowly, token by token, in double precision."""

from __future__ import annotations

import itertools
import math

import pytest

torch = pytest.importorskip("torch")

from scipy.optimize import brentq  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from bench_tasks.errors import UsageError  # noqa: E402
from policies.wam.attention import ATTENTIONS, make_attention  # noqa: E402

HEADS, DIM, TAU = 2, 3, 0.3


def causal(runs_q, runs_k, offset=0):
    """Block-causal mask: each run of queries sees the runs of keys up to its own number."""
    of_q = torch.repeat_interleave(torch.arange(len(runs_q)), torch.tensor(runs_q))
    of_k = torch.repeat_interleave(torch.arange(len(runs_k)), torch.tensor(runs_k))
    return of_q[:, None] + offset >= of_k


def scattered(n, m):
    """A mask without structure; one query may look nowhere, one everywhere."""
    mask = torch.rand(n, m, generator=torch.Generator().manual_seed(3)) < 0.5
    mask[1], mask[2] = False, True
    return mask


CASES = {  # n, m, block_q, block_k, keep, mask
    "full blocks": (8, 12, 4, 2, 0.4, None),
    "ragged": (7, 11, 3, 4, 0.4, None),
    "one block": (3, 2, 8, 8, 0.05, None),
    "causal, blocks divide the runs": (12, 12, 2, 2, 0.4, causal([4, 4, 4], [4, 4, 4])),
    "causal, blocks across the borders": (13, 13, 4, 3, 0.5, causal([5, 2, 6], [5, 2, 6])),
    "fewer queries than keys": (6, 15, 4, 2, 0.4, causal([4, 2], [5, 5, 5], offset=1)),
    "no structure": (6, 9, 2, 2, 0.4, scattered(6, 9)),
}


def inputs(n, m, seed=0):
    make = torch.Generator().manual_seed(seed)
    shapes = [(2, HEADS, n, DIM), (2, HEADS, m, DIM), (2, HEADS, m, DIM)]
    drawn = [torch.randn(s, generator=make, dtype=torch.double) for s in shapes]
    return [x.requires_grad_() for x in drawn]


def module(kind, case, **options):
    """A module with parameters that are not at their start."""
    _, _, block_q, block_k, keep, _ = CASES[case]
    options = {"block_q": block_q, "block_k": block_k, "keep": keep, "tau": TAU, **options}
    attention = make_attention(kind, HEADS, DIM, **options).double()
    make = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in attention.parameters():
            noise = torch.randn(parameter.shape, generator=make, dtype=torch.double)
            parameter += 0.5 * noise
    return attention


def blocks(count, size, row):
    """Lists of token numbers: runs of equal rows, cut into pieces of at most `size`."""
    found = []
    for token in range(count):
        if not found or len(found[-1]) == size or row(token) != row(token - 1):
            found.append([])
        found[-1].append(token)
    return found


def phi(x):
    return torch.exp(x) / torch.exp(x).sum()


def reference(attention, kind, stage, case, q, k, v, drop=0.3):
    """The outputs, one query and one key at a time."""
    n, m, block_q, block_k, keep, mask = CASES[case]
    mask = torch.ones(n, m, dtype=torch.bool) if mask is None else mask
    by_q = blocks(n, block_q, lambda i: mask[i].tolist())
    by_k = blocks(m, block_k, lambda j: mask[:, j].tolist())
    out = torch.zeros_like(q)
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            for rows in by_q:
                seen = [keys for keys in by_k if mask[rows[0], keys[0]]]
                if not seen:
                    continue
                mean_q = q[b, h, rows].mean(0)
                means = [k[b, h, keys].mean(0) for keys in seen]
                if kind == "sla2":
                    left = mean_q @ attention.proj_q[h]
                    scores = [left @ (mean @ attention.proj_k[h]) for mean in means]
                else:
                    scores = [mean_q @ mean for mean in means]
                scores = [s.item() / math.sqrt(DIM) for s in scores]
                count = max(1, math.floor(keep * len(seen)))
                ranking = sorted(range(len(seen)), key=lambda j: -scores[j])
                if kind == "sla2" and stage == 1 and count < len(seen):
                    def mass(x, scores=scores, count=count):
                        return sum(1 / (1 + math.exp(-(s / TAU + x))) for s in scores) - count

                    shift = brentq(mass, -300, 300, xtol=1e-14)
                    weights = [1 / (1 + math.exp(-(s / TAU + shift))) for s in scores]
                else:
                    weights = [float(j in ranking[:count]) for j in range(len(seen))]
                rest = [1 - w for w in weights]
                if kind == "sla":
                    skipped = min(math.floor(drop * len(seen)), len(seen) - count)
                    rest = [
                        0.0 if j in ranking[len(seen) - skipped :] else r
                        for j, r in enumerate(rest)
                    ]
                by_block = seen, weights, rest
                pairs = [(j, w, r) for keys, w, r in zip(*by_block, strict=True) for j in keys]
                for i in rows:
                    exact = [w * torch.exp(q[b, h, i] @ k[b, h, j] / math.sqrt(DIM))
                             for j, w, _ in pairs]
                    linear = [r * (phi(q[b, h, i]) @ phi(k[b, h, j])) for j, _, r in pairs]
                    values = [v[b, h, j] for j, _, _ in pairs]
                    sparse = sum(e * x for e, x in zip(exact, values, strict=True)) / sum(exact)
                    if sum(rest) == 0:
                        out[b, h, i] = sparse
                        continue
                    total = sum(linear)
                    linear = sum(a * x for a, x in zip(linear, values, strict=True)) / total
                    if kind == "sla":
                        weight, bias = attention.proj[h, :-1], attention.proj[h, -1]
                        out[b, h, i] = sparse + linear @ weight + bias
                    else:
                        alpha = torch.sigmoid(
                            mean_q @ attention.alpha_weight[h, :, 0] + attention.alpha_bias[h, 0, 0]
                        )
                        out[b, h, i] = alpha * sparse + (1 - alpha) * linear
    return out


KINDS = [("sla", 2), ("sla2", 1), ("sla2", 2)]


def staged(kind, stage, case, **options):
    attention = module(kind, case, **options)
    if kind == "sla2":
        attention.stage = stage
    return attention


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("kind", "stage"), KINDS)
def test_outputs_and_gradients_are_those_of_the_formulas(kind, stage, case):
    n, m, *_, mask = CASES[case]
    attention, tensors = staged(kind, stage, case, drop=0.3), inputs(n, m)
    out = attention(*tensors, mask)
    expected = reference(attention, kind, stage, case, *tensors)
    torch.testing.assert_close(out, expected, rtol=1e-9, atol=1e-11)
    if stage == 1:
        return  # the reference's weights are numbers: gradcheck below is for these gradients
    cotangent = torch.randn(out.shape, generator=torch.Generator().manual_seed(2)).double()
    leaves = [*tensors, *(p for x, p in attention.named_parameters() if x[:5] != "proj_")]
    ours = torch.autograd.grad(out, leaves, cotangent, allow_unused=True)
    theirs = torch.autograd.grad(expected, leaves, cotangent, allow_unused=True)
    for a, b, leaf in zip(ours, theirs, leaves, strict=True):
        zero = torch.zeros_like(leaf)
        torch.testing.assert_close(zero if a is None else a, zero if b is None else b)


@pytest.mark.parametrize("case", ["ragged", "causal, blocks across the borders", "no structure"])
@pytest.mark.parametrize(("kind", "stage"), [("sdpa", 2), *KINDS])
def test_gradients_agree_with_finite_differences(kind, stage, case):
    n, m, *_, mask = CASES[case]
    attention, tensors = staged(kind, stage, case), [x[:1].detach() for x in inputs(n, m)]
    names = [name for name, _ in attention.named_parameters()]
    values = [p.detach() for p in attention.parameters()]
    leaves = [x.clone().requires_grad_() for x in (*tensors, *values)]

    def call(q, k, v, *parameters):
        named = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(attention, named, (q, k, v, mask))

    assert torch.autograd.gradcheck(call, leaves, fast_mode=True, atol=1e-6)
    moved = [(a is not None) for a in torch.autograd.grad(
        call(*leaves).square().sum(), leaves, allow_unused=True)]
    learns_router = {n: got for n, got in zip(names, moved[3:], strict=True) if n[:5] == "proj_"}
    assert all(learns_router.values()) == (stage == 1 or kind != "sla2")


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("kind", "stage"), KINDS)
def test_all_blocks_kept_is_dense_attention(kind, stage, case):
    n, m, *_, mask = CASES[case]
    attention, tensors = staged(kind, stage, case, keep=1.0), inputs(n, m)
    dense = make_attention("sdpa", HEADS, DIM)(*tensors, mask)
    torch.testing.assert_close(attention(*tensors, mask), dense)


def test_soft_choice_adds_up_to_the_number_kept_and_hardens_as_tau_falls():
    from policies.wam.attention import _soft_top

    scores = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(4))
    allowed = torch.arange(16) < torch.tensor([16, 12, 3, 2, 0])[:, None]
    kept = torch.tensor([3, 2, 3, 1, 0])[:, None]
    log_chosen, others = _soft_top(scores, allowed, kept)
    torch.testing.assert_close(log_chosen.exp().sum(-1), kept.T.float().expand(2, 5))
    total = log_chosen.exp() + others
    torch.testing.assert_close(total, allowed.float().expand_as(total))
    for case in CASES:
        n, m, *_, mask = CASES[case]
        tensors = inputs(n, m)
        soft, hard = (staged("sla2", stage, case, tau=1e-5) for stage in (1, 2))
        torch.testing.assert_close(soft(*tensors, mask), hard(*tensors, mask))


@pytest.mark.parametrize(("kind", "stage"), [("sdpa", 2), *KINDS])
def test_nothing_comes_through_the_mask(kind, stage):
    """Neither by the two branches nor by what pooling and choosing see: not a bit changes."""
    case = "causal, blocks across the borders"
    mask = CASES[case][-1]
    attention, tensors = staged(kind, stage, case, keep=0.3), inputs(13, 13)
    out = attention(*tensors, mask)
    for border in (5, 7):
        changed = [x.detach().clone() for x in tensors]
        for x in changed:
            x[:, :, border:] = 1e3 * torch.randn_like(x[:, :, border:])
        after = attention(*changed, mask)
        assert torch.equal(after[:, :, :border], out[:, :, :border])
        assert not torch.equal(after, out)
        for gradient in torch.autograd.grad(out[:, :, :border].sum(), tensors, retain_graph=True):
            assert not gradient[:, :, border:].any()
            assert gradient[:, :, :border].any()


@pytest.mark.parametrize(("kind", "stage"), [("sdpa", 2), *KINDS])
def test_one_run_after_another_with_the_keys_before_is_the_whole_sequence(kind, stage):
    """What a cache of keys and values does: blocks divide the runs, or `runs` tells of these."""
    for case, lengths in (
        ("causal, blocks divide the runs", [4, 4, 4]),
        ("causal, blocks across the borders", [5, 2, 6]),
    ):
        tell = case.endswith("borders")
        runs = torch.repeat_interleave(torch.arange(3), torch.tensor(lengths)) if tell else None
        count = sum(lengths)
        attention, (q, k, v) = staged(kind, stage, case), inputs(count, count)
        whole, ends = attention(q, k, v, CASES[case][-1]), list(itertools.accumulate(lengths))
        parts = [
            attention(q[:, :, a:b], k[:, :, :b], v[:, :, :b], runs=runs[:b] if tell else None)
            for a, b in zip([0, *ends], ends, strict=False)
        ]
        torch.testing.assert_close(torch.cat(parts, 2), whole)


class _Largest(TorchDispatchMode):
    """Keeps the size of the largest tensor that anything returned."""

    elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for x in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(x, torch.Tensor):
                self.elements = max(self.elements, x.numel())
        return out


@pytest.mark.parametrize("kind", ["sla", "sla2"])
def test_memory_does_not_grow_with_the_square_of_the_length(kind):
    largest = {}
    for n in (1024, 4096):
        q, k, v = (torch.randn(1, 1, n, 16, requires_grad=True) for _ in range(3))
        with _Largest() as seen:
            make_attention(kind, 1, 16, keep=64 / n)(q, k, v).sum().backward()
        largest[n] = seen.elements
    assert largest[4096] <= 4 * largest[1024] < 1024 * 1024


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "flash"}, "unknown attention 'flash': choose from sdpa, sla, sla2"),
        ({"block_k": 0}, "attention blocks of 64 x 0: both must be at least 1"),
        ({"keep": 0.0}, "attention keep=0.0"),
        ({"keep": math.nan}, "attention keep=nan"),
        ({"drop": 1.5}, "drop=1.5"),
        ({"tau": 0.0}, "tau=0.0"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(UsageError, match=message):
        make_attention(**{"kind": "sla2", "heads": 1, "head_dim": 4, **options})


def test_an_unknown_stage_is_refused():
    attention = make_attention("sla2", 1, 4)
    assert attention.stage == 2
    with pytest.raises(UsageError, match="unknown stage 3: choose from 1, 2"):
        attention.stage = 3
    assert set(ATTENTIONS) == {"sdpa", "sla", "sla2"}
