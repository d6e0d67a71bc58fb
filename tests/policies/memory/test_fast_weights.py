"""The recurrent memory: the delta rule, and that training for what follows makes it find that."""

from __future__ import annotations

import numpy as np
import pytest

from bench_tasks.errors import UsageError
from policies.memory.fast_weights import FastWeights

RNG = np.random.default_rng(0)


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


def weights(dim=64, bias=9.0):
    """Random projections; with this bias the gate is open."""
    key = RNG.standard_normal((dim, 384)).astype(np.float32)
    value = RNG.standard_normal((dim, 384)).astype(np.float32)
    return FastWeights(key, key, value, np.r_[np.zeros(384), bias].astype(np.float32))


ROWS = unit(RNG.standard_normal((30, 384)))


def test_a_write_is_the_delta_rule():
    w = weights(8, bias=0.0)
    state = w.write(w.empty(), ROWS[:1])
    key, value = unit(w.key @ ROWS[0]), unit(w.value @ ROWS[0])
    assert np.allclose(state, 0.5 * np.outer(value, key), atol=1e-6)
    again = w.write(state, ROWS[:1])
    assert np.allclose(again, state + 0.5 * np.outer(value - state @ key, key), atol=1e-6)
    assert not np.shares_memory(again, state)


def test_told_together_is_told_one_after_the_other():
    w = weights()
    one = w.empty()
    for row in ROWS:
        one = w.write(one, row[None])
    assert np.array_equal(one, w.write(w.empty(), ROWS))


def test_what_was_told_is_read_and_the_last_of_a_key_replaces_what_it_had():
    w = weights()
    state = w.write(w.empty(), ROWS)
    values = w.values(ROWS)
    found = [int(np.argmax(values @ w.read(state, row))) for row in ROWS]
    assert sum(k == got for k, got in enumerate(found)) >= 28
    assert found[-1] == 29
    # Another value behind the key of item 3: what is read there is it, and item 3 is gone.
    key = np.zeros_like(w.key)
    key[:, :192] = w.key[:, :192]
    halved = FastWeights(key, key, w.value, w.gate)
    other = ROWS[3].copy()
    other[192:] = ROWS[7, 192:]
    state = halved.write(halved.empty(), np.stack([*ROWS[:20], other]))
    read = halved.read(state, ROWS[3])
    assert read @ halved.values(other) > 0.99 > read @ halved.values(ROWS[3]) + 0.1


def test_a_wrong_option_is_one_line():
    from policies.memory import make_memory

    with pytest.raises(UsageError, match="hops must be 1 or more, got 0"):
        make_memory("fast_weights:hops=0")


@pytest.fixture(scope="module")
def fast_train():
    pytest.importorskip("torch")
    from policies.memory import fast_train

    return fast_train


def no_model(fast_train):
    """Embeddings without a model: the sum of a random vector for each word."""
    import torch

    words: dict[str, np.ndarray] = {}
    rng = np.random.default_rng(1)

    def embedded(texts):
        rows = []
        for text in texts:
            for word in text.split():
                words.setdefault(word, rng.standard_normal(384))
            rows.append(unit(sum(words[word] for word in text.split())))
        return torch.from_numpy(np.stack(rows))

    return embedded


def test_with_and_without_torch_it_is_the_same_rule(fast_train):
    import torch

    net = fast_train.Net(16)
    stream = fast_train.streams(np.random.default_rng(3), 1)[0]
    told = no_model(fast_train)(stream.told)
    with torch.no_grad():
        states = net.states(told[None])
    w = net.weights()
    assert len(states) == fast_train.CHUNKS
    assert np.allclose(w.write(w.empty(), told.numpy()), states[-1][0].numpy(), atol=1e-5)


def test_streams_ask_about_what_was_told_before(fast_train):
    for world in fast_train.WORLDS:
        for stream in fast_train.streams(np.random.default_rng(4), 5, world):
            assert len(stream.told) == fast_train.STEPS
            for chunk, question, follows in stream.asked:
                upto = (chunk + 1) * fast_train.STEPS // fast_train.CHUNKS
                assert max(follows) < upto and question[-1] in "?."
    names, things = zip(*fast_train.WORLDS.values(), strict=True)
    assert not set(names[0]) & set(names[1]) and not set(things[0]) & set(things[1])


@pytest.mark.slow
def test_training_makes_it_find_what_follows(fast_train):
    embedded = no_model(fast_train)
    held_out = fast_train.streams(np.random.default_rng(5), 8)
    before = fast_train.evaluate(fast_train.Net(), held_out, embedded)
    for nsp in (0.0, 0.4):
        net = fast_train.train(60, nsp, 0, pool=16, embedded=embedded)
        assert fast_train.evaluate(net, held_out, embedded)[0] > before[0] + 0.1
