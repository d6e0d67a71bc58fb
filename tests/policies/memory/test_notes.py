"""Notes are written, merged, thinned out and dropped; by rules, or as a model says."""

from __future__ import annotations

import json

import pytest

from bench_tasks.errors import UsageError
from bench_tasks.probes.stream import NOT_MENTIONED, Item, Picture, Query
from bench_tasks.probes.talk import put
from policies.memory import make_memory
from policies.memory.reader import RuleReader

READER = RuleReader(lambda picture: tuple(picture.caption.split()))


def item(k, who, kind, colours="", **slots):
    picture = Picture(f"{k}.jpg", b"%d" % k, caption=colours) if colours else None
    return Item(f"i{k}", k, "s", who, put(kind, 0, **slots), picture)


def memory_of(items, spec="notes", **more):
    memory = make_memory(spec, reader=READER, **more)
    for one in items:
        memory.observe(one)
    return memory


def ask(memory, kind, **slots):
    return memory.answer(Query("q", 10**9, put(kind, 0, **slots)))


HOBBY = {"attribute": "hobby"}
TOLD = [
    item(0, "Ana", "has", value="chess", **HOBBY), item(1, "Ana", "has", value="chess", **HOBBY),
    item(2, "Ben", "told", person="Ana", value="golf", **HOBBY),
    item(3, "Ana", "shows", colours="green"), item(4, "Ana", "calls", name="Pip"),
    item(5, "Ana", "did", event="swept the hall"), item(6, "Ana", "did", event="swept the hall"),
    Item("i7", 7, "s", "Ben", "Yes, sure."),
    Item("i8", 8, "s", "Ben", "The weather will be fine in the mountains."),
]  # fmt: skip


def test_one_note_for_each_fact_and_none_for_what_says_nothing():
    notes = {note.key.replace("\n", "/"): note for note in memory_of(TOLD).notes.all()}
    assert notes["hobby/Ana/Ana"].sources == ("i0", "i1") and not notes["hobby/Ana/Ana"].former
    assert notes["hobby/Ana/Ben"].sources == ("i2",)
    assert notes["colour/Pip/Ana"].sources == ("i4", "i3")
    assert notes["did/Ana/swept the hall"].sources == ("i5", "i6")
    assert set(notes) == {
        "hobby/Ana/Ana", "hobby/Ana/Ben", "colour/Pip/Ana", "did/Ana/swept the hall", "said/i3",
        "said/i8",
    }  # fmt: skip


def test_a_change_takes_the_place_of_all_that_was_said_of_it():
    memory = memory_of([*TOLD, item(9, "Ana", "changed", value="music", **HOBBY)])
    (note,) = memory.notes.all("hobby")
    assert note.sources == ("i9",) and set(note.former) == {"i0", "i1", "i2"}
    assert ask(memory, "attribute", person="Ana", attribute="hobby").text == "music"
    asked = {"person": "Ana", "attribute": "hobby", "value": "music"}
    assert ask(memory, "contradicts", **asked).text == "Yes"
    assert ask(memory, "colour_of_name", name="Pip").text == "green"
    assert ask(memory, "how_often", person="Ana", event="swept the hall").text == "2"


def test_what_was_told_longest_ago_is_forgotten_first():
    memory = memory_of(TOLD, "notes:notes=2")
    assert [note.key for note in memory.notes.all()] == ["said\ni8", "did\nAna\nswept the hall"]
    assert ask(memory, "attribute", person="Ana", attribute="hobby").text == NOT_MENTIONED
    assert len(memory.snapshot().splitlines()) == 10  # The items are kept: only notes are few.
    for wrong in ("notes=0", "items=-1"):
        with pytest.raises(UsageError, match="must be 1 or more"):
            make_memory(f"notes:{wrong}")


def test_a_model_writes_merges_and_forgets():
    asked = []

    def model(prompt):
        asked.append(prompt)
        return next(answers)

    answers = iter([
        'Fine: [{"op": "write", "key": "Ana", "text": "Ana likes chess as a hobby"}]',
        '```json\n[{"op": "write", "key": "Ana", "text": "Ana likes chess and golf"}]\n```',
        '[{"op": "forget", "key": "Ana"}]', "[]", "I will remember it.", '[{"op": "write"}]',
    ])  # fmt: skip
    memory = memory_of(TOLD[:2], writer=model)
    assert asked == []
    memory.settle()
    assert "Related notes:\nnone\n" in asked[0]
    assert json.dumps("Ana likes chess as a hobby") in asked[1]
    (note,) = memory.notes.all()
    assert (note.text, note.sources, note.former) == ("Ana likes chess and golf", ("i1",), ("i0",))
    assert [one.id for one in memory.recall(Query("q", 0, "chess"))] == ["i1", "i0"]
    for one in TOLD[2:6]:
        memory.observe(one)
    memory.settle()
    assert [note.key for note in memory.notes.all()] == ["said\ni5", "said\ni4"]
    assert len(asked) == 6
