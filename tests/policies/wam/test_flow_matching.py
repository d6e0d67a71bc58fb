"""How noise times are drawn, and that sampling gives the distribution that was learnt."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tiny_wam import TINY, shaken  # noqa: E402

from bench_tasks.errors import UsageError  # noqa: E402
from policies.wam.flow import draw_times, sample, velocity_loss  # noqa: E402
from policies.wam.model import Transformer  # noqa: E402
from policies.wam.shape import PREDICTED, Shape  # noqa: E402


def test_the_schedules():
    generator = torch.Generator().manual_seed(0)
    flash = draw_times("flash", (200, 200), generator)
    uniform = draw_times("uniform", (200, 200), generator)
    # 1 - Beta(7, 1) has the mean 1/8 and P(t > 1/2) = 2^-7.
    assert flash[..., 0].mean() == pytest.approx(0.125, abs=0.003)
    assert (flash[..., 0] > 0.5).float().mean() == pytest.approx(2**-7, abs=0.002)
    assert flash.shape == (200, 200, 2) and 0 <= flash.min() and flash.max() < 1
    for times in (flash[..., 1], uniform[..., 0], uniform[..., 1]):
        assert times.mean() == pytest.approx(0.5, abs=0.01)
        assert times.var() == pytest.approx(1 / 12, abs=0.003)
    drawn = uniform.flatten(0, 1).t()
    assert abs(torch.corrcoef(drawn)[0, 1]) < 0.02, "video and action times are drawn apart"
    told = "unknown schedule 'beta': choose from direct, flash, uniform"
    with pytest.raises(UsageError, match=told):
        draw_times("beta", (1,), generator)


@pytest.mark.parametrize("predicts", PREDICTED)
def test_two_modes_are_learnt_as_two_modes(predicts):
    # A policy that regresses would answer their mean, 0.
    shape = Shape(dim=32, layers=1, heads=2, history=1, stride=1, frames=1, video=False,
                  predicts=predicts)  # fmt: skip
    torch.manual_seed(0)
    model, batch = Transformer(shape), 128
    # The picture plays no part here, and would take most of the time.
    model.stem = torch.nn.Conv2d(shape.latent + 2, shape.dim, shape.patch, shape.patch)
    latents, states = torch.zeros(batch, 1, shape.latent, *shape.grid), torch.zeros(batch, 1, 16)
    text = torch.zeros(batch, 384)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    generator = torch.Generator().manual_seed(0)
    for _ in range(400):
        side = torch.randint(0, 2, (batch, 1, 1, 1), generator=generator).float() * 2 - 1
        actions = side.expand(batch, 1, 1, 16) * 0.8
        given = {"latents": latents, "states": states, "text": text, "actions": actions}
        times = draw_times("uniform", (batch, 1), generator)
        _, loss = velocity_loss(model, given, times, generator)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    cache = model.observe(latents[:, 0], states[:, 0], text, 0)
    drawn = sample(model, cache, 0, text, 16, generator).actions[:, 0].mean(-1)
    assert ((drawn - 0.8).abs() < 0.25).float().mean() > 0.3
    assert ((drawn + 0.8).abs() < 0.25).float().mean() > 0.3
    assert (drawn.abs() < 0.4).float().mean() < 0.1
    # Asked once, where all is noise, who predicts data answers their mean and leaves no noise.
    once = sample(model, cache, 0, text, 1, generator).actions
    assert (once.std() < 0.2) == (predicts == "data")


def test_the_direct_schedule_learns_the_middle_and_answers_it_without_noise():
    shape = Shape(dim=32, layers=1, heads=2, history=1, stride=1, frames=1, video=False)
    torch.manual_seed(0)
    model, batch = Transformer(shape), 64
    model.stem = torch.nn.Conv2d(shape.latent + 2, shape.dim, shape.patch, shape.patch)
    latents, states = torch.zeros(batch, 1, shape.latent, *shape.grid), torch.zeros(batch, 1, 16)
    text, generator = torch.zeros(batch, 384), torch.Generator().manual_seed(0)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    # A quarter of the demonstrations does something else: their mean would be 0.4.
    actions = torch.full((batch, 1, shape.chunk, 16), 0.8)
    actions[: batch // 4] = -0.8
    given = {"latents": latents, "states": states, "text": text, "actions": actions}
    times = draw_times("direct", (batch, 1), generator)
    assert times.shape == (batch, 1, 2) and not times.any()
    for _ in range(150):
        _, loss = velocity_loss(model, given, times, generator, direct=True)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    cache = model.observe(latents[:, 0], states[:, 0], text, 0)
    first, second = (sample(model, cache, 0, text, 0, generator) for _ in range(2))
    assert first.calls == 1 and torch.equal(first.actions, second.actions), "there is no noise"
    assert first.actions.mean().item() == pytest.approx(0.77, abs=0.06)


def test_calls_are_counted_and_velocities_reused():
    model = shaken(Transformer(TINY))
    text = torch.randn(1, 384)
    cache = model.observe(torch.randn(1, TINY.latent, *TINY.grid), torch.randn(1, 16), text, 0)

    def draw(reuse):
        return sample(model, cache, 0, text, 8, torch.Generator().manual_seed(3), reuse)

    plain, again, lazy = draw(1.0), draw(1.0), draw(-1.0)
    assert plain.calls == 8 and torch.equal(plain.actions, again.actions)
    assert torch.equal(plain.video, again.video)
    # The first two have to be asked for; then one of five.
    assert lazy.calls == 3


def test_without_noise_there_is_no_time_but_0():
    with pytest.raises(ValueError, match="no time but 0"):
        velocity_loss(None, {}, torch.full((2, 1, 2), 0.1), torch.Generator(), direct=True)
