"""Rows, batches and scaling against numbers worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tiny_wam import fake_embed, made_rows  # noqa: E402

from bench_tasks.bags.demonstrations import Demonstration  # noqa: E402
from bench_tasks.errors import UsageError  # noqa: E402
from bench_tasks.vocabulary import ARM_COLUMNS  # noqa: E402
from policies.wam.data import Rows, Scaler, rows_of  # noqa: E402
from policies.wam.shape import MOSAIC, Shape  # noqa: E402

SMALL = Shape(dim=32, layers=1, heads=2, history=3, stride=2, frames=2)


def test_commands_are_the_inverse_of_actions():
    rng = np.random.default_rng(0)
    low = rng.normal(size=(2, 16))
    high = low + rng.random((2, 16)) + 0.1
    scaler = Scaler(*np.stack([low, high], axis=1))
    actions, state = rng.normal(size=(10, 16)), rng.normal(size=16)
    scaled = scaler.actions(actions, state)
    assert scaled.dtype == np.float32
    assert np.allclose(scaler.commands(scaled, state), actions, atol=1e-5)
    # The quantiles themselves become -1 and 1; joints are relative, openings are not.
    ends = scaler.action.copy()
    ends[:, ARM_COLUMNS] += state[ARM_COLUMNS]
    assert np.allclose(scaler.actions(ends, state), [[-1.0] * 16, [1.0] * 16], atol=1e-5)
    assert np.allclose(scaler.states(scaler.state), [[-1.0] * 16, [1.0] * 16], atol=1e-6)


def test_quantiles_leave_out_the_extremes_and_do_not_blow_up_what_rests(no_weights):
    count = 1001
    state = np.zeros((count, 16))
    state[:, 0] = np.arange(count)
    rows = Rows(state, state, np.zeros((count, 1)), [count], ["a"], ["a"])
    scaler = rows.scaler(SMALL)
    assert scaler.state[:, 0] == pytest.approx([10, 990])
    assert scaler.state[:, 1] == pytest.approx([-5e-4, 5e-4])


def test_a_batch_is_what_one_works_out_by_hand(no_weights):
    # Demonstration A has rows 0 to 6, B rows 7 to 10. States count rows, actions are 100 more.
    number = np.arange(11.0)
    state = np.tile(number[:, None], (1, 16))
    rows = Rows(state, state + 100, np.zeros((11, 1)), [7, 4], ["do a", "do b"], ["a", "b"])
    rows.latents = torch.arange(11.0).half().view(-1, 1, 1, 1).expand(11, 8, *SMALL.grid)
    scaler = Scaler(np.stack([np.full(16, 0.0), np.full(16, 2.0)]),
                    np.stack([np.full(16, 0.0), np.full(16, 2.0)]))  # value - 1  # fmt: skip
    got = rows.batch(np.array([1, 8]), 3, SMALL, scaler)
    seen = [[1, 3, 5], [8, 10, 10]]  # B ends at row 10
    assert got["latents"][..., 0, 0, 0].tolist() == seen
    assert got["states"][..., 0].tolist() == [[0, 2, 4], [7, 9, 9]]
    assert got["video"][..., 0, 0, 0].tolist() == [[[3, 5], [5, 6], [6, 6]],
                                                   [[10, 10], [10, 10], [10, 10]]]  # fmt: skip
    answered = [[[1, 2, 3, 4], [3, 4, 5, 6], [5, 6, 6, 6]],
                [[8, 9, 10, 10], [10] * 4, [10] * 4]]  # fmt: skip
    openings = np.array(answered) + 100 - 1
    assert got["actions"][..., 7].tolist() == openings.tolist()
    assert got["actions"][..., 0].tolist() == (openings - np.array(seen)[..., None]).tolist()
    assert torch.equal(got["text"], torch.from_numpy(np.stack([fake_embed("do a"),
                                                               fake_embed("do b")])))  # fmt: skip
    assert "video" not in rows.batch(np.array([1]), 1, replace(SMALL, video=False), scaler)


def demonstration(count=26, every=5, cameras=("head", "left_wrist", "right_wrist")):
    """A demonstration at 50 Hz whose state k is k, its action 1000 + k, and whose pictures too."""
    value = np.arange(count, dtype=float)
    state = np.tile(value[:, None], (1, 16))
    at = np.arange(0, count, every)
    pictures = [np.full((24, 32, 3), k, np.uint8) for k in at]
    return Demonstration(
        "lift_pot", 3, "Lift.", True, 20_000_000, state, state[:-1] + 1000, state[1:],
        {camera: (at, pictures) for camera in cameras},
    )


def test_rows_hold_the_action_that_is_asked_for_at_the_next_one(no_weights):
    rows = Rows(*rows_of(demonstration(), SMALL), [6], ["Lift."], ["lift_pot"])
    assert rows.state[:, 0].tolist() == [0, 5, 10, 15, 20, 25]
    # The action that leads to state 5 is number 4; the last one has nothing after it.
    assert rows.action[:, 0].tolist() == [1004, 1009, 1014, 1019, 1024, 1024]
    assert rows.pixels.shape == (6, *MOSAIC, 3) and (rows.pixels[2] == 10).all()
    assert rows.first.tolist() == [0] * 6 and rows.last.tolist() == [5] * 6


@pytest.mark.parametrize(
    ("demo", "message"),
    [
        (demonstration(cameras=("head",)), "lift_pot seed 3 has no pictures of left_wrist, right"),
        (demonstration(every=10), "pictures at 5 Hz, not every 5 control periods"),
        (demonstration(count=4), "pictures at 0 Hz"),
    ],
)
def test_what_cannot_be_learnt_from_is_named(demo, message):
    with pytest.raises(UsageError, match=message):
        rows_of(demo, SMALL)


def test_made_rows_are_two_demonstrations(no_weights):
    rows = made_rows()
    assert len(rows) == 16 and rows.first[8:10].tolist() == [0, 9]
