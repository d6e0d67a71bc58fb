"""Trust by source, age and agreement: the formula, what it learns, and when it abstains."""

from __future__ import annotations

import numpy as np
import pytest

from bench_tasks.errors import UsageError
from bench_tasks.probes.stream import NOT_MENTIONED, Item, Picture, Query
from bench_tasks.probes.talk import put
from policies.memory import make_memory
from policies.memory.facts import Fact, rank
from policies.memory.graph import Graph
from policies.memory.mma import confidences
from policies.memory.reader import RuleReader
from policies.memory.sources import Sources
from policies.memory.store import Store

READER = RuleReader(lambda picture: tuple(picture.caption.split()))
DAY_NS = 86_400 * 10**9


def item(k, who, kind, day=0, colours="", **slots):
    picture = Picture(f"{k}.jpg", b"%d" % k, caption=colours) if colours else None
    return Item(f"i{k}", day * DAY_NS + k, f"s{day}", who, put(kind, 0, **slots), picture)


def test_the_confidence_is_the_formulas():
    trust, fresh = np.array([0.9, 0.6, 0.3]), np.array([1.0, 0.5, 0.25])
    cosines = np.array([[1, 0.8, 0.6], [0.8, 1, 0.4], [0.6, 0.4, 1]])
    against = np.array([[False, True, False], [True, False, False], [False, False, False]])
    alone = (0.45 * trust + 0.40 * fresh) / 0.85
    con = np.array([
        (0.8 * alone[1] * -0.8 + 0.6 * alone[2] * 0.6) / (0.8 + 0.6), alone[0] * -0.8,
        alone[0] * 0.6,
    ])  # fmt: skip
    expected = 0.45 * trust + 0.40 * fresh + 0.15 * con
    assert np.allclose(confidences(trust, fresh, cosines, against), expected)


def test_without_a_neighbour_the_term_is_left_out():
    lone = confidences(np.array([0.8]), np.array([0.5]), np.eye(1), np.zeros((1, 1), bool))
    assert lone == pytest.approx([(0.45 * 0.8 + 0.40 * 0.5) / 0.85])
    assert len(confidences(np.empty(0), np.empty(0), np.empty((0, 0)), np.empty((0, 0)))) == 0


def test_only_the_ten_nearest_count():
    cosines = np.full((13, 13), 0.9)
    cosines[0, 11:] = 0.6
    against = np.zeros((13, 13), bool)
    against[0, 11:] = True
    sure = confidences(np.full(13, 0.5), np.full(13, 0.5), cosines, against)
    assert sure[0] == pytest.approx(0.85 * 0.5 + 0.15 * 0.9 * 0.5)


def graph_of(items):
    store = Store(None, "u")
    graph = Graph(store, READER.looks)
    graph.take(enumerate(items, 1))
    return graph


def test_a_source_is_trusted_as_it_was_confirmed():
    told = {"attribute": "hobby", "person": "Ana"}
    graph = graph_of([
        item(0, "Ben", "told", value="chess", **told),
        item(1, "Cleo", "told", value="golf", **told),
        item(2, "Ana", "has", attribute="hobby", value="chess"),  # Ben was right, Cleo wrong
        item(3, "Cleo", "told", value="golf", **told),
        item(4, "Ben", "told", value="chess", **told),
        item(5, "Ana", "changed", day=3, attribute="hobby", value="golf"),  # judges nobody again
        item(6, "Cleo", "told", day=4, value="golf", **told),
        item(7, "Dov", "told", person="Eva", attribute="hobby", value="golf"),
    ])  # fmt: skip
    assert graph.record("Ben") == (2, 0)
    assert graph.record("Cleo") == (1, 2)
    assert graph.record("Dov") == graph.record("Ana") == (0, 0)
    sources = Sources(graph, ("Dov=0.1",))
    assert sources.of("Ben") == 4 / 5 and sources.of("Cleo") == 3 / 6 and sources.of("Dov") == 0.1
    assert sources.of("Zoe") == pytest.approx(2 / 3)


def test_seen_is_more_than_said_of_oneself_and_that_more_than_said():
    def fact(speaker, *beside):
        return Fact("colour", "Ana\nshelf", "red", "i", speaker, 0, beside)

    ranks = [rank(f) for f in (fact("Ben"), fact("Ana"), fact("Ben", "p"), fact(""))]
    assert ranks == [0, 1, 2, 2]
    sources = Sources(graph_of([]))
    trusted = [sources.trust(f) for f in (fact("Ben"), fact("Ana"), fact("Ben", "p"))]
    assert trusted == sorted(trusted) and len(set(trusted)) == 3


@pytest.mark.parametrize("given", ["Ben", "Ben=2", "=0.5", "Ben=nan", "Ben=much"])
def test_a_trust_that_is_none_is_one_line(given):
    with pytest.raises(UsageError, match="Name=number from 0 to 1"):
        make_memory(f"mma:by=words,sources={given}")
    with pytest.raises(UsageError, match="half_life_days must be more than 0"):
        make_memory("mma:by=words,half_life_days=0")


PLACE = Query("q", 2 * DAY_NS, "Where is the small mug?", ("in the sink", "on the shelf",
                                                          NOT_MENTIONED))  # fmt: skip


def answered(items, spec="mma:by=words", query=PLACE):
    memory = make_memory(spec, reader=READER)
    for one in items:
        memory.observe(one)
    return memory.answer(query)


CONFLICT = [
    item(0, "Ana", "lies", object="small mug", place="on the shelf"),
    item(1, "Ben", "lies", object="small mug", place="in the sink"),
]


def test_of_what_contradicts_the_more_trusted_wins_not_the_later():
    assert answered(CONFLICT, "mma:by=words,sources=Ana=0.9+Ben=0.1").text == "on the shelf"
    assert answered(CONFLICT, "mma:by=words,sources=Ana=0.1+Ben=0.9").text == "in the sink"
    own = item(2, "", "lies", object="small mug", place="in the sink")
    trusting = answered([*CONFLICT, own], "mma:by=words,sources=Ana=0.9+Ben=0.1")
    assert trusting.text == "in the sink" and trusting.used == ("i2",)


def test_it_abstains_when_as_much_speaks_against_it_and_says_how_sure_it_is():
    torn = answered(CONFLICT)
    assert torn.abstained and torn.text == NOT_MENTIONED and torn.used == ()
    alone = answered(CONFLICT[:1])
    agreed = answered([CONFLICT[0], item(1, "Ben", "lies", object="small mug",
                                         place="on the shelf")])  # fmt: skip
    assert alone.text == agreed.text == "on the shelf"
    assert 0.5 < alone.confidence < 1 and agreed.confidence >= alone.confidence - 0.01
    assert answered(CONFLICT, "mma:by=words,least=0").text == "in the sink"


def test_what_a_speaker_revises_is_no_conflict_and_old_memories_fade():
    revised = [CONFLICT[0], item(1, "Ana", "put", day=1, object="small mug", place="in the sink")]
    reply = answered(revised)
    assert reply.text == "in the sink" and not reply.abstained
    moved = item(1, "Ben", "put", day=1, object="small mug", place="in the sink")
    assert answered([CONFLICT[0], moved]).text == "in the sink"
    late = Query("q", 300 * DAY_NS, PLACE.text, PLACE.choices)
    assert answered(revised, query=late).confidence < reply.confidence


def test_a_question_that_cannot_be_refused_is_answered_with_what_little_is_known():
    forced = Query("q", 2 * DAY_NS, PLACE.text, PLACE.choices[:2])
    reply = answered(CONFLICT, query=forced)
    assert reply.text == "in the sink" and reply.confidence < 0.1
