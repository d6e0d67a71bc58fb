"""Items as messages, and runs in bags, without ROS."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from bench_tasks.bags import cdr
from bench_tasks.bags.bag_writer import BagWriter
from bench_tasks.errors import UsageError
from bench_tasks.probes import check_seeds, make_probe
from bench_tasks.probes.bags import EVENTS, OVER, answered, read_bag
from bench_tasks.probes.messages import (
    PICTURE_TYPE,
    SHOWN,
    TALK,
    TALK_TYPE,
    Hearing,
    encode_item,
)
from bench_tasks.probes.player import Record
from bench_tasks.probes.stream import Asked, Item, Picture, Query, Reply
from bench_tasks.vocabulary import Event

EVENT_TYPE = "bench_interfaces/msg/EpisodeEvent"
ITEMS = (
    Item("a", 1, "s1", "Ana", "Look at this one.", Picture("x.jpg", b"1", "jpeg", "a cup")),
    Item("b", 2, "s1", "", "", Picture("x.jpg", b"2")),
    Item("c", 2, "s1", "Bén", "No, it is “blue”.", None, "q1"),
    Item("d", 2_000_000_000 * 10**9, "s2", "Ana", "", Picture("", b"", "", "a cup")),
)
ASKED = Asked(
    Query("q", 3, "Which?", ("a", "b"), Picture("y.png", b"3", "png")), "CRR", "a", 0.5, ("a",),
    {"people": 2},
)  # fmt: skip
REPLY = Reply("b", 0.25, ("a", "c"), True)


def messages(items):
    return [encode_item(item) for item in items]


def test_an_item_comes_back_as_it_was():
    hearing, found = Hearing(), []
    for said, picture in messages(ITEMS):
        hearing.said(said)
        if picture:
            hearing.shown(picture)
        found += hearing.take()
    assert tuple(found) == ITEMS


def test_pictures_may_come_before_or_behind_what_was_said_and_hold_up_what_comes_later():
    early, late = Hearing(), Hearing()
    for _, picture in messages(ITEMS):
        if picture:
            early.shown(picture)
    for said, _ in messages(ITEMS):
        early.said(said)
        late.said(said)
    assert tuple(early.take()) == ITEMS
    assert list(late.take()) == [] and late.waiting == "x.jpg"
    late.shown(messages(ITEMS)[0][1])
    assert list(late.take()) == [ITEMS[0]]
    late.shown(messages(ITEMS)[1][1])
    assert tuple(late.take()) == ITEMS[1:] and late.waiting == ""


def bag(path, items=ITEMS, after=4, over=True, head=None, pictures=True):
    """A bag as the nodes write it."""
    writer = BagWriter(path, {"probe": "p", "memory": "m", "seed": 4} if head is None else head)
    for said, picture in messages(items):
        writer.write(TALK, TALK_TYPE, said, 1)
        if picture and pictures:
            writer.write(SHOWN, PICTURE_TYPE, picture, 1)
    event = answered(Record(ASKED, REPLY, 0.5), after, 1.5)
    writer.write(EVENTS, EVENT_TYPE, cdr.encode_event(event), 3)
    if over:
        event = Event(OVER, 0, 3, {"after": after, "observed_s": 0.0, "storage_bytes": 77})
        writer.write(EVENTS, EVENT_TYPE, cdr.encode_event(event), 3)
    writer.close()
    return path


def test_a_bag_holds_a_run_and_is_a_probe(tmp_path):
    run = read_bag(bag(tmp_path / "p-4" / "m"))
    assert (run.probe, run.memory, run.seed, run.storage_bytes) == ("p", "m", 4, 77)
    assert [r.step for r in run.records] == [*ITEMS, ASKED]
    assert run.records[-1] == Record(ASKED, REPLY, 0.5)
    assert [r.seconds for r in run.records[:-1]] == [0.0, 0.0, 0.0, 1.5]
    assert list(make_probe(f"bag:dir={tmp_path}").steps(4)) == [*ITEMS, ASKED]
    with pytest.raises(UsageError, match="no bag of seed 0: choose from 4"):
        make_probe(f"bag:dir={tmp_path}").steps(0)


def test_what_is_missing_in_a_bag_is_named_and_a_run_cut_off_has_no_size(tmp_path):
    cut = read_bag(bag(tmp_path / "cut", over=False))
    assert cut.storage_bytes is None and len(cut.records) == len(ITEMS) + 1
    for name, wrong, text in (
        ("lost", {"items": ITEMS[:2]}, "2 of 4 items are there"),
        ("blind", {"pictures": False}, "0 of 4 items are there"),
        ("head", {"head": {"probe": "p", "memory": "m"}}, "'seed' is missing or no int"),
    ):
        with pytest.raises(UsageError, match=text):
            read_bag(bag(tmp_path / name, **wrong))


def test_a_folder_with_no_bag_or_bags_of_several_probes_is_refused(tmp_path):
    nothing = f"bag:dir={tmp_path}"
    for spec, text in (("bag", "dir must be a folder"), (nothing, "no bag of a probe")):
        with pytest.raises(UsageError, match=text):
            make_probe(spec)
    bag(tmp_path / "one")
    bag(tmp_path / "two", head={"probe": "other", "memory": "m", "seed": 4})
    with pytest.raises(UsageError, match="bags of other, p in "):
        make_probe(f"bag:dir={tmp_path}")
    (tmp_path / "one" / "manifest.json").write_text(json.dumps([1]))
    with pytest.raises(UsageError):
        make_probe(f"bag:dir={tmp_path}")


def test_a_bag_with_a_question_twice_or_a_reply_of_another_type_is_one_line(tmp_path):
    for name, reply, times, says in (
        ("twice", REPLY, 2, "question 'q' is there twice"),
        ("typed", Reply("x", float("nan")), 1, "malformed reply: confidence must be a finite"),
    ):
        path = tmp_path / name
        writer = BagWriter(path, {"probe": "p", "memory": "m", "seed": 4})
        for said, picture in messages(ITEMS):
            writer.write(TALK, TALK_TYPE, said, 1)
            if picture:
                writer.write(SHOWN, PICTURE_TYPE, picture, 1)
        for _ in range(times):
            event = answered(Record(ASKED, reply), 4, 0.0)
            writer.write(EVENTS, EVENT_TYPE, cdr.encode_event(event), 3)
        writer.close()
        with pytest.raises(UsageError, match=f"{name}: {says}"):
            read_bag(path)


def test_a_bag_that_was_broken_off_is_no_shorter_conversation(tmp_path):
    bag(tmp_path / "cut", over=False)
    with pytest.raises(UsageError, match="cut was broken off"):
        make_probe(f"bag:dir={tmp_path}").steps(4)
    with pytest.raises(UsageError, match=f"probe bag:dir={tmp_path}: .*cut was broken off"):
        check_seeds(f"bag:dir={tmp_path}", make_probe(f"bag:dir={tmp_path}"), [4])
    bag(tmp_path / "head", head={"probe": "p", "memory": "m", "seed": "4"})
    with pytest.raises(UsageError, match="'seed' is missing or no int"):
        make_probe(f"bag:dir={tmp_path}")


def test_what_waits_for_a_lost_picture_can_be_had_without_it():
    hearing = Hearing()
    for said, _ in messages(ITEMS[:1]):
        hearing.said(said)
    assert list(hearing.take()) == [] and hearing.stuck
    (item,) = ITEMS[:1]
    assert hearing.unseen() == replace(item, picture=replace(item.picture, data=b"", format=""))
    assert not hearing.stuck and hearing.unseen() is None
