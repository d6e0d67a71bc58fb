"""The same episode over five processes and in one: equal states, verdicts and events."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench_tasks import tasks
from bench_tasks.bags.bag import read_bag
from bench_tasks.config import RunConfig
from bench_tasks.runner import run
from bench_tasks.verdicts import score_files, scoring

pytestmark = pytest.mark.ros
SHORT = 0
"""Seed with which the first try is right."""


def compare(ours: Path, theirs: Path) -> None:
    """Fail unless two bags hold the same episode."""
    a, b = read_bag(ours), read_bag(theirs)
    assert not a.problems and not b.problems
    assert len(a.states) == len(b.states) and a.state_hash == b.state_hash
    assert a.scene == b.scene
    assert scoring.same_verdict(a.verdict, b.verdict)
    assert [(e.kind, e.seq, e.stamp_ns) for e in a.events] == [
        (e.kind, e.seq, e.stamp_ns) for e in b.events
    ]
    for ours_event, theirs_event in zip(a.events, b.events, strict=True):
        assert timeless(ours_event.data) == timeless(theirs_event.data)
    for topic in ("/policy/action_chunk", "/clock", "/joint_states", "/head/image_raw/compressed"):
        assert a.manifest["message_counts"][topic] == b.manifest["message_counts"][topic], topic


def timeless(data: dict) -> dict:
    """An event's data without wall-clock values."""
    return {key: value for key, value in data.items() if key not in ("latency_ns", "wall_ns")}


def both(nodes, tmp_path, names, episodes: int, **options) -> tuple[Path, Path]:
    """Run the same configuration both ways and return the two output folders."""
    over_ros, in_process = tmp_path / "ros", tmp_path / "here"
    nodes.start_all(over_ros, tasks=",".join(names), episodes=episodes, **options)
    assert nodes.wait("task", 100.0 * len(names) * episodes) == 0, nodes.logs()
    run(RunConfig(tuple(names), episodes=episodes, out=str(in_process), **options))
    return over_ros, in_process


def test_ros_and_in_process_record_the_same(nodes, tmp_path):
    names = ["spatial_sparse", "lift_pot", "cover_blocks", "reach_both_hands"]
    over_ros, in_process = both(nodes, tmp_path, names, 1)
    for name in names:
        compare(over_ros / name / "000000", in_process / name / "000000")
    run_json = json.loads((over_ros / "run.json").read_text())
    assert run_json["status"] == "complete" and run_json["agreeing"] == len(names)
    assert score_files.newest_scores(over_ros) is not None
    assert (over_ros / "report.html").stat().st_size > 1000
    assert "live and offline verdict agree in 4 of 4 episodes" in nodes.log("task")


def test_what_is_said_and_done_on_the_way_is_the_same(nodes, tmp_path):
    """People talk, are asked, say whether it was right, and take things back, between plans."""
    names = ["battery_try", "lay_out"]
    over_ros, in_process = both(nodes, tmp_path, names, 1, planner="remembering", seed=SHORT)
    for name in names:
        compare(over_ros / name / f"{SHORT:06d}", in_process / name / f"{SHORT:06d}")
    scores = score_files.load_scores(score_files.newest_scores(over_ros))
    assert [score.agrees for score in scores] == [True, True]
    assert scores[0].success and scores[1].details["done"]["asked"] == ["thing"]
    (asked,) = scores[0].details["afterwards"].values()
    assert asked["accuracy"] == 1.0, asked
    events = read_bag(over_ros / "battery_try" / f"{SHORT:06d}").events
    kinds = [event.kind for event in events]
    assert {"said", "move_objects"} <= set(kinds)
    assert kinds[-4:] == ["said", "question_after", "answer_after", "end"]
    used = [e.data["transcript"]["memory"]["used"] for e in events
            if e.kind == "plan" and "memory" in e.data["transcript"]]  # fmt: skip
    assert any("is right." in text for one in used for text in one.values())


@pytest.mark.parametrize(
    "chosen",
    [
        {"execution": "rtc", "policy_latency": "0.1", "execute": 12},
        {"execution": "sync", "policy_latency": "0.6", "policy_deadline_s": 0.5},
    ],
    ids=["rtc", "too late"],
)
def test_chunks_are_executed_the_same(nodes, known, tmp_path, chosen):
    nodes.before = "from tests.ros.agents import register; register(); "
    over_ros, in_process = both(nodes, tmp_path, ["lift_pot"], 1, policy="waves", **chosen)
    compare(over_ros / "lift_pot" / "000000", in_process / "lift_pot" / "000000")
    for out in (over_ros, in_process):
        (score,) = score_files.load_scores(score_files.newest_scores(out))
        how = score.execution
        assert how["mode"] == chosen["execution"] and score.evaluated
        if chosen["execution"] == "rtc":
            assert how["blended"] > 20 and how["dropped"] == 5 * how["calls"] > 20
            assert score.cause == "policy error: that was all"
        else:
            assert score.cause.startswith("policy error: no action for 1 s: the answer to state")


@pytest.mark.slow
def test_twenty_episodes_are_equal(nodes, tmp_path):
    names = tasks.names(None)
    episodes = -(-20 // len(names))
    over_ros, in_process = both(nodes, tmp_path, names, episodes)
    for name in names:
        for seed in range(episodes):
            compare(over_ros / name / f"{seed:06d}", in_process / name / f"{seed:06d}")


def test_without_recording_only_the_live_verdict_is_kept(nodes, tmp_path):
    out = tmp_path / "out"
    nodes.start_all(out, record=False, tasks="spatial_sparse")
    assert nodes.wait("task") == 0, nodes.logs()
    assert "spatial_sparse  1/1" in nodes.log("task")
    assert not out.exists()


def test_floors_fail_but_are_evaluated(nodes, tmp_path):
    out = tmp_path / "out"
    nodes.start_all(out, tasks="lift_pot", policy="hold")
    assert nodes.wait("task") == 0, nodes.logs()
    (score,) = score_files.load_scores(score_files.newest_scores(out))
    assert score.scored and score.agrees and not score.success
    assert score.cause.startswith("time limit")


def test_every_node_ends_quietly_on_a_signal(nodes, tmp_path):
    import signal

    out = tmp_path / "out"
    nodes.start_all(out, tasks="lift_pot", episodes=50)
    nodes.wait_for_file(out / "lift_pot" / "000000" / "metadata.yaml")
    statuses = nodes.stop(signal.SIGTERM)
    assert statuses == {"world": 0, "planner": 0, "policy": 0, "recorder": 0, "task": 130}
    assert "Traceback" not in nodes.logs()
    assert json.loads((out / "run.json").read_text())["status"] == "interrupted"
    assert score_files.load_scores(score_files.newest_scores(out))[0].success
