"""The reader says what the items say, and no more."""

from __future__ import annotations

import numpy as np
import pytest

from bench_tasks.probes.stream import NOT_MENTIONED, Item, Picture, Query
from bench_tasks.probes.talk import QUESTIONS, put, say
from policies.memory.reader import RuleReader

READER = RuleReader(lambda picture: tuple(picture.caption.split()))
RNG = np.random.default_rng(0)


def stream(*told):
    """Items (speaker, text or sentence with slots, colours of a picture), a minute apart."""
    found = []
    for k, (speaker, said, *colours) in enumerate(told):
        text = said if isinstance(said, str) else say(said[0], RNG, **said[1])
        picture = Picture(f"{k}.jpg", b"", caption=" ".join(colours)) if colours else None
        found.append(Item(f"i{k}", 60_000_000_000 * k, "s1", speaker, text, picture))
    return found


ITEMS = stream(
    ("Ana", ("has", {"attribute": "favourite drink", "value": "tea"})),
    ("Ben", ("told", {"person": "Ana", "attribute": "favourite drink", "value": "milk"})),
    ("Ana", ("because", {"event": "watered the fern", "reason": "its leaves hung down"})),
    ("Ben", ("did", {"event": "watered the fern"})),
    ("Ana", ("did", {"event": "called the plumber"})),
    ("Ana", ("changed", {"attribute": "favourite drink", "value": "coffee"})),
    ("Ana", ("did", {"event": "swept the hall"})),
    ("Ben", ("means", {"word": "blip", "object": "small mug"})),
    ("Ana", ("put", {"object": "small mug", "place": "on the left shelf"})),
    ("Ana", ("shows", {}), "green", "red"), ("Ben", ("shows", {}), "blue"),
    ("Ana", ("calls", {"name": "Pip"})), ("Ana", ("put_this", {"place": "in the drawer"})),
    ("Ana", ("did", {"event": "called the plumber"})),
)
CASES = [
    ("attribute", {"person": "Ana", "attribute": "favourite drink"}, "coffee", "i5"),
    ("attribute", {"person": "Ben", "attribute": "favourite drink"}, NOT_MENTIONED, ""),
    ("place", {"object": "small mug"}, "on the left shelf", "i8"),
    ("place_of_word", {"person": "Ben", "word": "blip"}, "on the left shelf", "i7 i8"),
    ("place_of_word", {"person": "Ana", "word": "blip"}, NOT_MENTIONED, ""),
    ("reason", {"person": "Ana", "event": "watered the fern"}, "its leaves hung down", "i2"),
    ("reason", {"person": "Ben", "event": "watered the fern"}, NOT_MENTIONED, ""),
    ("who", {"event": "swept the hall"}, "Ana", "i6"),
    ("how_often", {"person": "Ana", "event": "called the plumber"}, "2", "i4 i13"),
    ("colour_of_name", {"name": "Pip"}, "green", "i11 i9"),
    ("colour_put", {"person": "Ana", "place": "in the drawer"}, "green", "i12 i9"),
    ("contradicts", {"person": "Ana", "attribute": "favourite drink", "value": "coffee"},
     "Yes", "i0"),
    ("whose", {"attribute": "favourite drink", "value": "coffee"}, "Ana", "i5"),
    ("whose", {"attribute": "favourite drink", "value": "milk"}, NOT_MENTIONED, ""),
    ("in_context", {"person": "Ana", "attribute": "favourite drink", "before": "Hm"}, "coffee",
     "i5"),
    ("suits", {"person": "Ana", "attributes": "favourite drink"},
     "what goes with coffee as favourite drink", "i5"),
    ("suits", {"person": "Ana", "attributes": "favourite drink and hobby"}, NOT_MENTIONED, ""),
    ("suits_given", {"person": "Ana", "state": "tea as drink and chess as hobby"},
     "what goes with tea as drink and chess as hobby", ""),
    ("order", {"person": "Ana", "a": "swept the hall", "b": "watered the fern",
               "c": "called the plumber"}, "B -> C -> A", "i2 i4 i6"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "slots", "gold", "used"), CASES)
def test_questions_are_answered_in_every_way_they_are_put(kind, slots, gold, used):
    for way in range(len(QUESTIONS[kind])):
        reply = READER.answer(Query("q", 10**12, put(kind, way, **slots)), ITEMS)
        assert reply.text == gold and reply.used == tuple(used.split())
        assert reply.abstained == (gold == NOT_MENTIONED)


def test_what_is_not_among_the_choices_is_not_chosen():
    query = Query("q", 0, "Where is the small mug?", ("in the drawer", "on the table"))
    reply = READER.answer(query, ITEMS)
    assert reply.text == "" and reply.abstained
    query = Query("q", 0, "Where is the small mug?", ("in the drawer", NOT_MENTIONED))
    assert READER.answer(query, ITEMS).text == NOT_MENTIONED


def test_another_language_is_not_understood():
    reply = READER.answer(Query("q", 0, "Wo ist die Tasse?"), ITEMS)
    assert reply.text == NOT_MENTIONED and reply.abstained and not reply.used
