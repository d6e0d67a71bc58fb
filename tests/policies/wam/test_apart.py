"""What an agent is shown and what it learns from: nothing of the partner's present, bit for bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tiny_wam import TINY, made_rows, shaken  # noqa: E402

from bench_tasks.errors import UsageError  # noqa: E402
from policies.wam import train as trainer  # noqa: E402
from policies.wam.apart import blanked, told  # noqa: E402
from policies.wam.autoencoder import Autoencoder  # noqa: E402
from policies.wam.data import Rows, Scaler  # noqa: E402
from policies.wam.shape import MOSAIC, mosaic  # noqa: E402
from policies.wam.train import Recipe, Trainer  # noqa: E402
from policies.wam.train_report import _curves  # noqa: E402
from policies.wam.training import _compare  # noqa: E402

UNIT = Scaler(np.tile([[-1.0], [1.0]], (1, 16)), np.tile([[-1.0], [1.0]], (1, 16)))
"""Leaves numbers as they are."""


def test_grey_is_where_the_partners_wrist_camera_was():
    colours = {"head": 10, "left_wrist": 20, "right_wrist": 30}
    pictures = {name: np.full((60, 80, 3), value, np.uint8) for name, value in colours.items()}
    whole = mosaic(pictures)[None]
    left, right = blanked(whole, 0), blanked(whole, 1)
    # Head above, left wrist below to the left, right wrist to the right.
    for seen, below in ((whole, (20, 30)), (left, (20, 128)), (right, (128, 30))):
        assert (seen[0, :96] == 10).all()
        assert (seen[0, 96:, :64] == below[0]).all() and (seen[0, 96:, 64:] == below[1]).all()
    assert (whole == mosaic(pictures)).all(), "what is given is left as it is"


def test_the_partners_state_is_the_one_before():
    now, before = np.arange(16.0), 100 + np.arange(16.0)
    assert told(now, before, 0).tolist() == [*range(8), *range(108, 116)]
    assert told(now, before, 1).tolist() == [*range(100, 108), *range(8, 16)]


def test_a_batch_of_both_agents_is_what_one_works_out_by_hand(no_weights):
    number = np.arange(11.0)
    state = np.tile(number[:, None], (1, 16))
    rows = Rows(state, state + 100, np.zeros((11, 1)), [7, 4], ["do a", "do b"], ["a", "b"])

    def latents(more):
        return (torch.arange(11.0) + more).half().view(-1, 1, 1, 1).expand(11, 8, *TINY.grid)

    rows.latents, rows.apart = latents(0), (latents(20), latents(40))
    got = rows.batch(np.array([1, 1, 8]), 2, TINY, UNIT, np.array([-1, 0, 1]))
    assert got["latents"][..., 0, 0, 0].tolist() == [[1, 3], [21, 23], [48, 50]]
    assert got["video"][..., 0, 0, 0].tolist() == [
        [[3, 5], [5, 6]], [[23, 25], [25, 26]], [[50, 50], [50, 50]],
    ]  # fmt: skip
    # A stride of two rows before, but not before the demonstration begins: row 0, and row 7.
    assert got["states"][..., 3].tolist() == [[1, 3], [1, 3], [7, 8]]
    assert got["states"][..., 11].tolist() == [[1, 3], [0, 1], [8, 10]]
    # The partner's moves are relative to what is known of it; openings are absolute.
    assert got["actions"][1, 0, :, 3].tolist() == [100, 101, 102, 103]
    assert got["actions"][1, 0, :, 11].tolist() == [101, 102, 103, 104]
    assert got["actions"][1, 1, :, 11].tolist() == [102, 103, 104, 105]
    assert got["actions"][2, 0, :, 3].tolist() == [101, 102, 103, 103]
    assert got["actions"][1, 0, :, 15].tolist() == [101, 102, 103, 104]
    assert state[1, 0] == 1, "the rows are as they were"


def test_an_agents_latents_know_nothing_of_the_other_wrist(no_weights, tmp_path):
    one = Trainer(made_rows(), TINY, Recipe(apart=0.5), tmp_path, print)
    encoder = shaken(Autoencoder(TINY.latent))
    before = [one._encode(encoder, who) for who in (-1, 0, 1)]
    one.rows.pixels[:, 96:, 64:] = 7  # the right wrist's place
    after = [one._encode(encoder, who) for who in (-1, 0, 1)]
    same = [torch.equal(a, b) for a, b in zip(before, after, strict=True)]
    assert same == [False, True, False]


def test_training_apart_learns_for_both_views(no_weights, tmp_path, monkeypatch):
    monkeypatch.setattr(trainer, "LOG_EVERY", 10)
    monkeypatch.setattr(trainer, "WARM_UP", 5)
    recipe = Recipe(steps=60, batch=4, rate=3e-3, autoencoder_steps=2, autoencoder_batch=2,
                    apart=0.7)  # fmt: skip
    one = Trainer(made_rows((12, 11)), replace(TINY, layers=1, video=False), recipe, tmp_path,
                  lambda _: None)  # fmt: skip
    drawn = []
    batch = one.rows.batch
    monkeypatch.setattr(one.rows, "batch",
                        lambda *args: drawn.append(args[4]) or batch(*args))  # fmt: skip
    one.run()
    assert one.rows.pixels.shape[1:] == (*MOSAIC, 3)
    in_training = np.concatenate([who for who in drawn if len(who) == recipe.batch][:60])
    shares = [(in_training == k).mean() for k in (-1, 0, 1)]
    assert shares == pytest.approx([0.3, 0.35, 0.35], abs=0.08)
    losses = [entry["action_loss"] for entry in one.history if "action_loss" in entry]
    assert losses[-1] < 0.8 * losses[0]
    last = one.history[-1]
    assert 0 < last["held_out_own_rad"] and 0 < last["held_out_partner_rad"]
    assert "joint error of agents (rad)" in _curves(one.history)


def test_a_share_that_is_none_is_named():
    for share in (-0.1, 1.1, float("nan")):
        with pytest.raises(UsageError, match="apart must be from 0 to 1, got"):
            Recipe(apart=share).checked()


def test_a_training_from_before_there_were_agents_goes_on(tmp_path):
    asked = {"kind": "wam", "rate": 2e-3, "apart": 0.0}
    before = {"asked": {"kind": "wam", "rate": 2e-3}}
    _compare(tmp_path, before, {**vars(Recipe()), **asked})
    with pytest.raises(UsageError, match=r"another training \(apart was 0.0, is 0.5\)"):
        _compare(tmp_path, before, {**vars(Recipe()), **asked, "apart": 0.5})
