"""Every sentence is read as what it says, whichever way it is put."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from bench_tasks.errors import UsageError
from bench_tasks.probes.talk import (
    QUESTIONS,
    SENTENCES,
    Meaning,
    counting,
    meanings,
    only,
    put,
    say,
    variants,
)

SLOTS = {
    "attribute": "favourite drink", "value": "cold ginger tea", "person": "Okafor",
    "object": "small red mug", "place": "on the left shelf", "event": "watered the fern",
    "reason": "its leaves hung down", "word": "blip", "name": "Pip", "a": "watered the fern",
    "things": "red block, green block", "b": "called the plumber", "c": "is now in the post",
    "errand": "the spring clean", "aspect": "hand", "context": "in a hurry",
    "start": "My favourite drink is", "before": "Lovely weather today",
    "attributes": "hobby and pet", "state": "chess as hobby and a cat as pet",
}  # fmt: skip


def slots(form: str) -> dict[str, str]:
    return {key: value for key, value in SLOTS.items() if f"{{{key}}}" in form}


@pytest.mark.parametrize("kind", SENTENCES)
def test_a_sentence_is_read_as_its_kind(kind):
    for form in SENTENCES[kind]:
        given = slots(form)
        assert meanings(form.format(**given)) == [Meaning(kind, given)], form


@pytest.mark.parametrize("kind", QUESTIONS)
def test_a_question_is_read_as_its_kind(kind):
    assert len(QUESTIONS[kind]) > 1, "else it cannot be paraphrased"
    for way in range(variants(kind)):
        given = slots(QUESTIONS[kind][way])
        text = put(kind, way, **given)
        assert meanings(text, asked=True) == [Meaning(kind, given)], text
        assert not meanings(text), "a question says nothing"


def test_several_sentences_are_read_one_by_one_and_small_talk_means_nothing():
    rng = np.random.default_rng(0)
    for first, second in itertools.permutations(SENTENCES, 2):
        said = [(kind, slots(" ".join(SENTENCES[kind]))) for kind in (first, second)]
        text = " Nice weather, is it not? ".join(say(kind, rng, **given) for kind, given in said)
        assert meanings(text) == [Meaning(kind, given) for kind, given in said]


def test_an_unknown_kind_is_named():
    with pytest.raises(UsageError, match="unknown kind of sentence 'sings': choose from"):
        say("sings", np.random.default_rng(0))


def test_what_could_not_be_read_again_is_not_said():
    with pytest.raises(UsageError, match="event must be words without . . !, got 'left. It'"):
        put("who", 0, event="left. It")
    with pytest.raises(UsageError, match="person must be one word, got 'Mrs Okafor'"):
        put("reason", 0, event="left", person="Mrs Okafor")


@pytest.mark.parametrize("counts", [("",), ("Ana",), ("", "Ana")])
def test_whose_word_counts_ends_a_question_and_is_no_part_of_it(counts):
    plain = put("place", 0, object="red block")
    assert counting(f"{plain} {only(counts)}") == (plain, counts)
    assert meanings(f"{plain} {only(counts)}", asked=True) == meanings(plain, asked=True)
    assert counting(plain) == (plain, None)
