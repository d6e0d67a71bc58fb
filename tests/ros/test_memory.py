"""A memory probe over ROS: what was said on topics, and the same from its bag."""

from __future__ import annotations

import json
import os
import signal

import pytest

from bench_tasks.cli import main as cli
from bench_tasks.memory_runs import run_path
from bench_tasks.probes.bags import probe_bags, read_bag
from bench_tasks.probes.player import play
from bench_tasks.probes.scores import score
from bench_tasks.probes.stream import Item
from bench_tasks.probes.tables import rows_of

pytestmark = pytest.mark.ros
PROBE = "conversations:sessions=3,questions=1,attributes=4,small_talk=2,mode=text"


def start(nodes, out, probe=PROBE, memory="structured", **more):
    nodes.start("memory", memory=memory)
    nodes.start("recorder")
    nodes.start("probe", probe=probe, memory=memory, out=str(out), **more)


def test_a_probe_over_ros_is_the_same_as_in_one_process_and_from_its_bag(nodes, tmp_path):
    from bench_tasks.probes import make_probe
    from policies.memory import make_memory

    live = tmp_path / "live"
    start(nodes, live, seeds=2)
    assert nodes.wait("probe") == 0, nodes.log("probe")
    bags = probe_bags(live)
    assert len(bags) == 2
    for seed, bag in enumerate(bags):
        run = read_bag(bag)
        alone = play(make_probe(PROBE).steps(seed), make_memory("structured"))
        assert [r.step for r in run.records] == [r.step for r in alone]
        assert [r.reply for r in run.records] == [r.reply for r in alone]
        assert not any(r.error for r in run.records)
        assert run.storage_bytes and score(run.records).right == score(alone).right > 0
        again = play(make_probe(f"bag:dir={live}").steps(seed), make_memory("structured"))
        assert [r.reply for r in again] == [r.reply for r in run.records]
    # The command scores bags as it does files of runs.
    assert cli(["remember", "score", str(live)]) == 0
    (first, second) = sorted(live.glob("memory-*.json"))
    rows = [json.loads(path.read_text())["rows"] for path in (first, second)]
    assert rows[0][0]["total"] == rows[1][0]["total"]


def test_a_talk_on_policy_is_the_same_over_ros_and_measures_the_same(nodes, tmp_path):
    """What the memory node replies is said on the topic, and the user goes on from it."""
    from bench_tasks.probes import make_probe, report
    from policies.memory import make_memory

    probe = "amemgym:questions=2,periods=1,changes=1"
    start(nodes, tmp_path / "live", probe)
    assert nodes.wait("probe") == 0, nodes.log("probe")
    (bag,) = probe_bags(tmp_path / "live")
    run = read_bag(bag)
    alone = play(make_probe(probe).steps(0), make_memory("structured"))
    assert [(r.step, r.reply) for r in run.records] == [(r.step, r.reply) for r in alone]
    assert {r.step.speaker for r in run.records if isinstance(r.step, Item)} >= {"Robot"}
    assert report(probe, [run])["memory score"] == 1


@pytest.mark.slow
def test_pictures_come_on_a_camera_topic_and_lie_in_the_bag_as_they_were(nodes, tmp_path):
    stills = tmp_path / "stills"
    start(nodes, tmp_path / "live", PROBE.replace("mode=text", "mode=image"), pictures=str(stills))
    assert nodes.wait("probe", 120) == 0, nodes.log("probe")
    (bag,) = probe_bags(tmp_path / "live")
    pictures = [r.step.picture for r in read_bag(bag).records if isinstance(r.step, Item)]
    kept = {path.read_bytes() for path in stills.rglob("*.jp*g")}
    seen = [picture.data for picture in pictures if picture is not None]
    assert seen and set(seen) <= kept


def test_a_run_that_is_cut_off_is_not_scored_and_a_lost_memory_is_named(nodes, tmp_path):
    start(nodes, tmp_path / "live", seeds=50)
    nodes.wait_for_file(run_path(tmp_path / "live", PROBE, "structured", 1) / "manifest.json")
    nodes.running["memory"].send_signal(signal.SIGKILL)
    assert nodes.wait("probe") == 1
    assert "node /memory is gone" in nodes.log("probe")
    nodes.running["recorder"].send_signal(signal.SIGINT)
    assert nodes.wait("recorder") == 0
    runs = [read_bag(bag) for bag in probe_bags(tmp_path / "live")]
    assert [run.storage_bytes is None for run in runs][-1]
    (row,) = rows_of(runs)
    assert (row.seeds, row.unfinished) == (len(runs), 1) and row.total.count > 0


@pytest.mark.parametrize("wrong, says", [
    ({"text": 5}, "text must be a text, got 5"), ({"choices": "ab"}, "choices must be a list"),
    ({"stamp_ns": 10**30}, "stamp_ns must be a whole number"), ({"text": "\ud800"}, "text must be"),
])  # fmt: skip
def test_a_question_whose_fields_are_of_other_types_is_malformed(wrong, says):
    from bench_interfaces.srv import Ask

    from bench_tasks.ros.talk_ros import query_of

    right = {"id": "q", "stamp_ns": 1, "text": "Who?", "choices": ["Ana"], "caption": ""}
    assert query_of(Ask.Request(), right).choices == ("Ana",)
    with pytest.raises(ValueError, match=says):
        query_of(Ask.Request(), right | wrong)


def test_a_lost_picture_does_not_hold_up_for_ever_what_is_said_later(monkeypatch):
    from bench_tasks.probes.messages import encode_item
    from bench_tasks.probes.stream import Picture
    from bench_tasks.ros import talk_ros

    items = [Item("a", 1, "s", "Ana", "See.", Picture("a.jpg", b"1")), Item("b", 2, "s", "Ana")]
    said = [[encode_item(item)[0] for item in items]]
    monkeypatch.setattr(talk_ros, "unwatched", lambda node, kind, topic, *_: topic)
    monkeypatch.setattr(
        talk_ros, "take_all", lambda topic: said.pop() if said and topic == talk_ros.TALK else []
    )
    now = [1e6]
    monkeypatch.setattr(talk_ros.time, "monotonic", lambda: now[0])
    listener = talk_ros.Listener(None)
    assert list(listener.take()) == []
    now[0] += talk_ros.LOST_S
    assert list(listener.take()) == [] and listener.lost == []
    now[0] += 1
    heard = [*listener.take(), *listener.take()]
    assert [(i.id, i.picture and i.picture.data) for i in heard] == [("a", b""), ("b", None)]
    assert listener.lost == ["item a: picture 'a.jpg' did not come in 60 s"]
    assert listener.heard == 2


FORGETFUL = '''
from policies.memory.base import KeptMemory

class Deaf(KeptMemory):
    """Some of it raises: when it listens, when it has time, when it is asked."""

    def observe(self, item):
        if item.id.endswith("3"):
            raise KeyError(item.id)
        super().observe(item)

    def settle(self):
        raise OSError("no time")

    def answer(self, query):
        if query.id.endswith("1"):
            raise ValueError(query.text)
        return super().answer(query)

    def recall(self, query):
        return self.store.items()
'''


def test_what_a_memory_raises_is_counted_over_ros_as_in_one_process(nodes, tmp_path, monkeypatch):
    """The same items and questions, the same words, live, from the bag and in one process."""
    from bench_tasks.probes import make_probe
    from policies.memory import make_memory

    (tmp_path / "deaf.py").write_text(FORGETFUL)
    monkeypatch.syspath_prepend(tmp_path)
    nodes.env["PYTHONPATH"] += f"{os.pathsep}{tmp_path}"
    start(nodes, tmp_path / "live", memory="deaf.Deaf")
    assert nodes.wait("probe") == 1, nodes.log("probe")
    alone = play(make_probe(PROBE).steps(0), make_memory("deaf.Deaf"))
    (bag,) = probe_bags(tmp_path / "live")
    run = read_bag(bag)
    assert [(r.step, r.reply, r.error) for r in run.records] == [
        (r.step, r.reply, r.error) for r in alone
    ]
    said = {r.error.partition(":")[0] for r in alone}
    assert said == {"", "KeyError", "OSError", "ValueError"}
    (row,) = rows_of([run])
    assert f"deaf.Deaf raised something {row.errors} times, first at {row.first_error}\n" \
        in nodes.log("probe")  # fmt: skip
    (saved,) = (tmp_path / "live").glob("memory-*.json")
    (live,) = json.loads(saved.read_text())["rows"]
    assert (live["errors"], live["total"]) == (row.errors, json.loads(json.dumps(
        row.total.to_dict())))  # fmt: skip


def test_a_model_reads_over_ros_and_is_given_up_when_it_does_not_answer(nodes, tmp_path):
    from tests.policies.planners.model_server import ModelServer, error

    with ModelServer(*['{"answer": 1}'] * 5, error(503, "busy")) as server:
        spec = f"openai:base_url={server.url},model=m,retries=0"
        nodes.start("memory", memory="full", reader=spec)
        nodes.start("recorder")
        nodes.start("probe", probe=PROBE, memory="full", reader=spec, out=str(tmp_path / "live"))
        assert nodes.wait("probe") == 1, nodes.log("probe")
    assert "not asked after 3 calls in a row without an answer" in nodes.log("probe")
    assert nodes.stop()["recorder"] == 0
    (bag,) = probe_bags(tmp_path / "live")
    run = read_bag(bag)
    assert (run.memory, run.storage_bytes) == ("full read by openai m", None)
    assert [bool(r.error) for r in run.asked] == [False] * 5 + [True] * 3
    assert all(r.reply.text == r.step.query.choices[0] for r in run.asked[:5])
