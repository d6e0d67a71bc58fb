"""Facts resolved when they are told answer as all items together would, at any time."""

from __future__ import annotations

import numpy as np
import pytest

from bench_tasks.probes.stream import NOT_MENTIONED, Item, Picture, Query
from bench_tasks.probes.talk import put
from policies.memory import make_memory
from policies.memory.reader import RuleReader

READER = RuleReader(lambda picture: tuple(picture.caption.split()))
DAY_NS = 86_400 * 10**9


def item(k, who, kind, day=0, session="s0", colours="", **slots):
    picture = Picture(f"{k}.jpg", b"%d" % k, caption=colours) if colours else None
    return Item(f"i{k}", day * DAY_NS + k, session, who, put(kind, 0, **slots), picture)


TOLD = [
    item(0, "Ana", "has", attribute="hobby", value="chess"),
    item(1, "Ben", "told", person="Ana", attribute="hobby", value="golf"),
    item(2, "Ana", "shows", colours="green red"),
    item(3, "Ben", "shows", colours="blue"),
    item(4, "Ana", "put_this", place="in the drawer"),
    item(5, "Ben", "calls", name="Pip"),
    item(6, "Ana", "changed", day=9, session="s1", attribute="hobby", value="music"),
    item(7, "Ana", "calls", day=9, session="s1", name="Tam"),
    item(8, "Ana", "did", day=9, session="s1", event="swept the hall"),
    item(9, "Ana", "did", day=9, session="s1", event="swept the hall"),
]


def memory_of(items, name="structured"):
    memory = make_memory(name, reader=READER)
    for one in items:
        memory.observe(one)
    return memory


def ask(memory, kind, **slots):
    return memory.answer(Query("q", 10**18, put(kind, 0, **slots)))


def test_this_one_is_what_the_same_speaker_showed_in_the_same_session():
    memory = memory_of(TOLD)
    reply = ask(memory, "colour_put", person="Ana", place="in the drawer")
    assert (reply.text, reply.used) == ("green", ("i4", "i2"))
    assert ask(memory, "colour_of_name", name="Pip").text == "blue"
    assert ask(memory, "colour_of_name", name="Tam").text == NOT_MENTIONED


def test_what_is_recalled_holds_all_that_the_answer_rests_on_first():
    memory = memory_of(TOLD)
    query = Query("q", 10**18, put("colour_put", 1, person="Ana", place="in the drawer"))
    assert [one.id for one in memory.recall(query)][:2] == ["i4", "i2"]


def test_a_fact_holds_until_its_speaker_says_otherwise_in_whatever_order_it_is_heard():
    for order in (range(10), reversed(range(10))):
        graph = memory_of([TOLD[k] for k in order if k not in (2, 3)]).graph
        held = [(f.value, f.speaker) for f in graph.at(5 * DAY_NS, "hobby", "Ana")]
        assert held == [("chess", "Ana"), ("golf", "Ben")]
        held = [(f.value, f.speaker) for f in graph.at(9 * DAY_NS + 6, "hobby", "Ana")]
        assert held == [("music", "Ana")]
        assert graph.at(-1, "hobby") == []
        assert [f.value for f in graph.find("hobby", "Ana")] == ["chess", "golf", "music"]
        assert len(graph.at(9 * DAY_NS + 9, "did", "Ana")) == 2
        assert {f.item for f in graph.about("Ana")} == {"i0", "i1", "i6", "i8", "i9"}


def test_what_is_changed_is_over_whoever_said_it_and_whoever_changed_it():
    told = [item(0, "Ana", "lies", object="mug", place="on the shelf"),
            item(1, "Ben", "put", day=1, object="mug", place="in the box")]
    for order in (told, told[::-1]):
        graph = memory_of(order).graph
        assert [f.value for f in graph.at(DAY_NS, "place", "mug")] == ["on the shelf"]
        assert [f.value for f in graph.at(2 * DAY_NS, "place", "mug")] == ["in the box"]


@pytest.mark.parametrize("seed", range(3))
def test_it_answers_as_all_items_together_would(seed):
    rng = np.random.default_rng(seed)
    people, places = ("Ana", "Ben", "Cleo"), ("on the shelf", "in the box", "by the door")
    items = []
    for k in range(150):
        kind = str(rng.choice(["has", "told", "put", "shows", "put_this", "calls", "did", "means"]))
        slots = {
            "attribute": "hobby", "value": f"v{rng.integers(9)}", "person": rng.choice(people),
            "object": f"thing {rng.integers(4)}", "place": rng.choice(places),
            "name": f"N{rng.integers(4)}", "event": f"did {rng.integers(5)}",
            "word": f"w{rng.integers(3)}",
        }  # fmt: skip
        colours = str(rng.choice(["red", "blue green"])) if kind == "shows" else ""
        items.append(item(k, str(rng.choice(people)), kind, k // 20, f"s{k // 20}", colours,
                          **{key: str(value) for key, value in slots.items()}))  # fmt: skip
    full, structured = memory_of(items, "full"), memory_of(items)
    asked = [("attribute", {"person": p, "attribute": "hobby"}) for p in people]
    asked += [("place", {"object": f"thing {k}"}) for k in range(4)]
    asked += [("place_of_word", {"person": p, "word": f"w{k}"}) for p in people for k in range(3)]
    asked += [("colour_of_name", {"name": f"N{k}"}) for k in range(4)]
    asked += [("colour_put", {"person": p, "place": x}) for p in people for x in places]
    asked += [("who", {"event": f"did {k}"}) for k in range(5)]
    asked += [("how_often", {"person": p, "event": f"did {k}"}) for p in people for k in range(5)]
    asked += [("order", {"person": p, "a": "did 0", "b": "did 1", "c": "did 2"}) for p in people]
    asked += [("contradicts", {"person": p, "attribute": "hobby", "value": "v1"}) for p in people]
    answers = {ask(structured, kind, **slots).text for kind, slots in asked}
    for kind, slots in asked:
        assert ask(structured, kind, **slots) == ask(full, kind, **slots), (kind, slots)
    assert len(answers) > 8
    gone = [one.id for one in items[::3]]
    for memory in (full, structured):
        assert memory.forget(gone) == 50
    for kind, slots in asked:
        assert ask(structured, kind, **slots) == ask(full, kind, **slots), (kind, slots)
