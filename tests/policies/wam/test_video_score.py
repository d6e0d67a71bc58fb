"""Predicted video against what happened, with models whose predictions are known."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tiny_wam import TINY, made_rows, shaken  # noqa: E402

from bench_tasks.verdicts.dreams import psnr_db  # noqa: E402
from policies.wam import video_score  # noqa: E402
from policies.wam.autoencoder import Autoencoder  # noqa: E402
from policies.wam.checkpoint import Checkpoint  # noqa: E402
from policies.wam.flow import Sampled  # noqa: E402
from policies.wam.model import Transformer  # noqa: E402
from policies.wam.video_score import Dream, dream, pictures, score_video  # noqa: E402


@pytest.fixture
def made(no_weights):
    torch.manual_seed(0)
    rows = made_rows((12, 6))
    return rows, Checkpoint(shaken(Transformer(TINY)), Autoencoder().eval(), rows.scaler(TINY))


@torch.no_grad()
def test_scores_are_those_of_the_pictures(made):
    rows, checkpoint = made
    starts, later = np.array([1, 9]), np.array([2, 4])
    encode = checkpoint.autoencoder.encode
    present = encode(pictures(rows, starts))
    true = torch.stack([encode(pictures(rows, starts + k)) for k in later], 1)
    valid = starts[:, None] + later <= rows.last[starts, None]
    assert valid.tolist() == [[True, True], [True, False]]  # the first ends at row 11
    right = score_video(checkpoint, rows, Dream(starts, later, true, present, valid))
    assert [s["pictures"] for s in right] == [2, 1]
    assert [s["horizon_s"] for s in right] == [0.2, 0.4] and [s["chunk"] for s in right] == [1, 1]
    for k, score in enumerate(right):
        assert score["latent_error"] < 1e-10
        assert score["psnr_db"] == pytest.approx(score["own_psnr_db"], abs=1e-3)
        at = starts[valid[:, k]]
        a, b = (rows.pixels[x].astype(float) / 255 for x in (at, at + later[k]))
        assert score["still_psnr_db"] == pytest.approx(-10 * np.log10(((a - b) ** 2).mean()))
        moved = (present[valid[:, k]] - true[valid[:, k], k]).square().mean().item()
        assert score["still_latent_error"] == pytest.approx(moved, rel=1e-4)
    still = Dream(starts, later, present[:, None].expand(-1, 2, -1, -1, -1), present, valid)
    for score in score_video(checkpoint, rows, still):
        assert score["latent_error"] == pytest.approx(score["still_latent_error"])


def test_dreams_are_built_on_dreams(made, monkeypatch):
    rows, checkpoint = made
    shown, asked = [], []
    observe = checkpoint.model.observe

    def look(latents, state, text, at):
        shown.append((at, latents, state))
        return observe(latents, state, text, at)

    def draw(model, cache, at, text, steps, generator):
        asked.append((at, cache[0][0].shape[2]))
        video = torch.full((2, TINY.frames, TINY.latent, *TINY.grid), float(len(asked)))
        return Sampled(video, torch.full((2, TINY.chunk, 16), len(asked) / 10), 1)

    monkeypatch.setattr(checkpoint.model, "observe", look)
    monkeypatch.setattr(video_score, "sample", draw)
    starts = np.array([0, 12])
    found = dream(checkpoint, rows, starts, chunks=3)
    tokens = len(checkpoint.model.place) + 1
    # Two looks a chunk, a stride apart, and never more of them in the window than the history.
    assert [at for at, _, _ in shown] == [0, 2, 4, 6, 8, 10, 12]
    assert asked == [(0, tokens), (4, 3 * tokens), (8, 3 * tokens)]
    assert found.rows.tolist() == [2, 4, 6, 8, 10, 12]
    assert found.latents[:, :, 0, 0, 0].tolist() == [[1, 1, 2, 2, 3, 3]] * 2
    assert torch.equal(shown[0][1], found.present)
    assert (shown[1][1] == 1).all() and (shown[3][1] == 2).all()
    # The state that it imagines is the command that it gave, beginning with the measured one.
    first = checkpoint.scaler.commands(np.full((4, 16), 0.1, np.float32), rows.state[0])
    assert np.allclose(shown[1][2][0], checkpoint.scaler.states(first[1]), atol=1e-5)
    assert np.allclose(shown[0][2][0], checkpoint.scaler.states(rows.state[0]), atol=1e-6)
    assert found.valid.tolist() == [[True] * 5 + [False], [True] * 2 + [False] * 4]


def test_decibels():
    assert psnr_db(0.01) == pytest.approx(20) and psnr_db(1.0) == 0.0
    assert psnr_db(0.0) == 99.0 == psnr_db(1e-30)
