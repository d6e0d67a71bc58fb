"""Whom memories believe: reliability is learned from what was seen, and nothing else tells it."""

from __future__ import annotations

import pytest

from bench_tasks.probes import make_probe, report
from bench_tasks.probes.player import play
from bench_tasks.probes.runs import Run
from bench_tasks.probes.scores import score, split
from bench_tasks.probes.stream import UNKNOWN, Item, Query
from bench_tasks.probes.talk import put
from policies.memory import make_memory
from policies.memory.reader import RuleReader
from policies.memory.wager import bet
from tests.policies.memory.test_mma import item

SPEC = "belief:mode=text,small_talk=2"


def played(memory, seeds=2, keeps=lambda step: True):
    """Runs of a memory that observes only some of the items."""
    runs = []
    for seed in range(seeds):
        kept = make_memory(memory)
        observe = kept.observe
        kept.observe = lambda step, observe=observe: observe(step) if keeps(step) else None
        runs.append(Run(SPEC, memory, seed, tuple(play(make_probe(SPEC).steps(seed), kept)), 1))
    return runs


def by_type(runs):
    return {k: s.accuracy for k, s in split(r for x in runs for r in x.records)["kind"].items()}


def test_the_ceiling_and_the_floor():
    assert set(by_type(played("oracle")).values()) == {1.0}
    found = score(r for run in played("none") for r in run.records)
    assert [found.accuracy, found.guessing, found.chance] == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("memory", ["structured", "mma:by=words"])
def test_who_weighs_sources_is_right_in_all_types(memory):
    assert min(by_type(played(memory)).values()) == 1.0
    assert report(SPEC, played(memory))["fair"] > 0.5


def test_who_takes_the_last_word_is_at_chance():
    runs = played("full")
    assert by_type(runs)["B"] == 0.5 and score(r for x in runs for r in x.records).right == 4
    assert report(SPEC, runs)["fair"] < report(SPEC, runs)["CoRe"] < 0
    assert by_type(played("rag:by=words"))["B"] < 1


@pytest.mark.parametrize("memory", ["structured", "mma:by=words"])
def test_without_the_calibration_nobody_is_believed_more_than_another(memory):
    """So it is that which they know it from: what was seen on its own still counts."""
    found = by_type(played(memory, keeps=lambda step: step.session > "s04"))
    assert found["A"] == found["B"] == 1.0
    assert found["C"] < 1 and found["D"] < 1 and found["R"] < 1


CALIBRATED = [
    item(0, "Ana", "looks", name="Pip", value="red"),
    item(1, "Ben", "looks", name="Pip", value="blue"),
    item(2, "", "calls", name="Pip", colours="red"),
    item(3, "Ben", "looks", day=1, name="Momo", value="blue"),
]
MOMO = Query("q", 3 * 86_400 * 10**9, "Which colour is the one called Momo?",
             ("red", "blue", UNKNOWN))  # fmt: skip
READER = RuleReader(lambda picture: tuple(picture.caption.split()))


@pytest.mark.parametrize("spec", ["structured", "mma:by=words"])
@pytest.mark.parametrize(
    ("more", "answer"),
    [
        ([], "blue"),  # once wrong may happen to anybody
        ([item(4, "Ben", "looks", name="Zuzu", value="pink"),
          item(5, "", "calls", name="Zuzu", colours="red")], UNKNOWN),
        ([item(4, "Ben", "looks", name="Zuzu", value="pink"),
          item(5, "", "calls", name="Zuzu", colours="red"),
          item(6, "Ana", "looks", day=1, name="Momo", value="red")], "red"),
        ([item(4, "Ben", "unsure", day=2, name="Momo")], UNKNOWN),
        ([item(4, "Ana", "looks", day=2, name="Momo", value="red"),
          item(5, "", "calls", day=2, name="Momo", colours="blue"),
          item(6, "Ana", "looks", day=2, name="Momo", value="red")], "blue"),
    ],
)  # fmt: skip
def test_whose_word_counts(spec, more, answer):
    memory = make_memory(spec, reader=READER)
    for one in [*CALIBRATED, *more]:
        memory.observe(one)
    assert memory.answer(MOMO).text == answer


def test_gossip_tells_nothing_of_who_knows_where_things_are():
    memory = make_memory("structured", reader=READER)
    for k in range(5):
        for one in (
            item(10 * k, "Ben", "told", day=k, person="Ana", attribute="hobby", value="golf"),
            item(10 * k + 1, "Ana", "has", day=k, attribute="hobby", value="chess"),
        ):  # fmt: skip
            memory.observe(one)
    memory.observe(item(99, "Ben", "lies", day=6, object="small mug", place="in the sink"))
    where = Query("q", 7 * 86_400 * 10**9, "Where is the small mug?")
    assert memory.graph.record("Ben", "hobby") == memory.graph.record("Ben") == (0, 5)
    assert memory.graph.record("Be") == memory.graph.record("Ben", "place") == (0, 0)
    assert memory.answer(where).text == "in the sink"


def test_a_wager_is_as_high_as_the_answer_is_sure():
    text = put("wager", 0, name="Momo", a="red", b="blue", c=UNKNOWN)
    asked = Query("q", 0, text)

    def answering(text, confidence):
        def answer(query):
            assert query.choices == ("red", "blue", UNKNOWN)
            return READER.answer(query, []).__class__(text, confidence)
        return answer

    assert bet(asked, answering("blue", 0.7)).text == "red 0, blue 70, UNKNOWN 30"
    assert bet(asked, answering(UNKNOWN, 0.5)).text == "red 25, blue 25, UNKNOWN 50"
    assert bet(asked, answering("nonsense", 1.0)).text == "red 0, blue 0, UNKNOWN 100"
    assert READER.answer(asked, CALIBRATED).text == "red 0, blue 100, UNKNOWN 0"


def test_a_second_look_finds_what_is_disputed_and_what_was_seen():
    def again(*items: Item):
        query = Query("q", 0, put("again", 0, name="Momo", value="blue"), MOMO.choices)
        return READER.answer(query, items).text

    ana = item(4, "Ana", "looks", day=2, name="Momo", value="red")
    ben = CALIBRATED[3]
    assert again(ben) == "blue" and again(ben, ana) == UNKNOWN and again() == UNKNOWN
    seen = item(5, "", "calls", day=1, name="Momo", colours="green red")
    assert again(seen, ben, ana) == UNKNOWN  # green is no choice
    assert again(item(5, "", "calls", day=1, name="Momo", colours="red"), ben) == "red"
