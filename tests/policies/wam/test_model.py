"""The transformer: the cache changes nothing, and nobody sees what they must not."""

from __future__ import annotations

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from tiny_wam import TINY, shaken  # noqa: E402

from policies.wam.model import Transformer, joined  # noqa: E402

SHAPES = {"video": TINY, "cloning": replace(TINY, video=False), "history of one":
          replace(TINY, history=1), "sla": replace(TINY, attention="sla"),
          "sla2": replace(TINY, attention="sla2"),
          "data": replace(TINY, predicts="data")}  # fmt: skip


def stretch(shape, m, b=2):
    """Arguments of `forward`: m observations and the chunk after each."""
    torch.manual_seed(1)
    video = torch.randn(b, m, shape.frames, shape.latent, *shape.grid) if shape.video else None
    return {
        "latents": torch.randn(b, m, shape.latent, *shape.grid), "states": torch.randn(b, m, 16),
        "text": torch.randn(b, 384), "video": video,
        "actions": torch.randn(b, m, shape.chunk, 16), "times": torch.rand(b, m, 2),
    }  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@torch.no_grad()
def test_chunk_by_chunk_with_the_cache_is_the_whole_at_once(shape):
    m = shape.history + 4  # the window slides over more than it holds
    model, given = shaken(Transformer(shape)), stretch(shape, m)
    whole_video, whole_actions = model(**given)
    assert whole_actions.std() > 0.05, "weights that say something"
    caches = []
    for k in range(m):
        at = shape.stride * k
        caches.append(model.observe(given["latents"][:, k], given["states"][:, k],
                                    given["text"], at))  # fmt: skip
        del caches[: -shape.history]
        video = given["video"][:, k] if shape.video else None
        got_video, got_actions = model.denoise(
            joined(caches), at, video, given["actions"][:, k], given["times"][:, k], given["text"]
        )
        torch.testing.assert_close(got_actions, whole_actions[:, k], rtol=0, atol=1e-5)
        if shape.video:
            torch.testing.assert_close(got_video, whole_video[:, k], rtol=0, atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("before", [0, 2])
@torch.no_grad()
def test_the_first_pass_may_encode_the_present_observation(shape, before):
    model, given = shaken(Transformer(shape)), stretch(shape, before + 1)
    look = [(given["latents"][:, k], given["states"][:, k]) for k in range(before + 1)]
    caches = [
        model.observe(*one, given["text"], shape.stride * k) for k, one in enumerate(look)
    ]  # fmt: skip
    at, video = shape.stride * before, given["video"][:, before] if shape.video else None
    noise = (video, given["actions"][:, before])
    apart = model.denoise(joined(caches), at, *noise, torch.zeros(2, 2), given["text"])
    together, seen = model.begin(joined(caches[:-1]), at, *look[-1], *noise, given["text"])
    for a, b in zip(apart, together, strict=True):
        if a is not None and b is not None:
            torch.testing.assert_close(a, b, rtol=0, atol=1e-5)
    for ours, theirs in zip(seen, caches[-1], strict=True):
        for a, b in zip(ours, theirs, strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-5)


@torch.no_grad()
def test_a_late_window_is_an_early_one():
    # Positions are relative, so long episodes give what short ones were trained on.
    model, given = shaken(Transformer(TINY)), stretch(TINY, 3)
    found = []
    for begin in (0, 200):
        caches = [
            model.observe(given["latents"][:, k], given["states"][:, k], given["text"],
                          begin + TINY.stride * k) for k in range(3)
        ]  # fmt: skip
        _, actions = model.denoise(joined(caches), begin + 2 * TINY.stride, given["video"][:, 2],
                                   given["actions"][:, 2], given["times"][:, 2], given["text"]
                                   )  # fmt: skip
        found.append(actions)
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=1e-4)


def test_a_chunk_sees_itself_and_its_window_and_nothing_else():
    shape, m = replace(TINY, history=2), 4
    model, given = shaken(Transformer(shape)), stretch(shape, m, b=1)
    inputs = {key: given[key].requires_grad_() for key in ("latents", "states", "video", "actions",
                                                           "times")}  # fmt: skip
    video, actions = model(**given)
    for j in range(m):
        found = torch.autograd.grad(
            video[:, j].square().sum() + actions[:, j].square().sum(), list(inputs.values()),
            retain_graph=True,
        )
        for key, gradient in zip(inputs, found, strict=True):
            seen = [bool((gradient[:, i] != 0).any()) for i in range(m)]
            within = [j - 2 < i <= j if key in ("latents", "states") else i == j for i in range(m)]
            assert seen == within, f"chunk {j} looks at {key}"


def test_wrong_numbers_are_named():
    from bench_tasks.errors import UsageError
    from policies.wam.shape import Shape

    for given, message in (
        ({"dim": 0}, "dim must be a whole number from 1 to 4096, got 0"),
        ({"history": 1.5}, "history must be a whole number"),
        ({"dim": 36, "heads": 2}, "dim must be a multiple of heads and 8, got 36 for 2"),
        ({"attention": "flash"}, "unknown attention 'flash': choose from sdpa, sla, sla2"),
        ({"predicts": "noise"}, "unknown predicts 'noise': choose from data, velocity"),
    ):
        with pytest.raises(UsageError, match=message):
            Shape(**given)
