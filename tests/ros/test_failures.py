"""What goes wrong between nodes ends in bounded time and is reported, never scored well."""

from __future__ import annotations

import json
import queue
import signal
import time

import numpy as np
import pytest

from bench_tasks.bags import cdr
from bench_tasks.bags.bag import read_bag
from bench_tasks.verdicts import score_files

pytestmark = pytest.mark.ros


def only_score(out):
    (score,) = score_files.load_scores(score_files.newest_scores(out))
    return score


def test_a_missing_node_is_named(nodes, tmp_path):
    nodes.start("world")
    nodes.start("policy")
    nodes.start("task", tasks="lift_pot", out=str(tmp_path / "out"), startup_s=5.0)
    assert nodes.wait("task") == 1
    log = nodes.log("task")
    assert "not there after 5 s" in log and "planner (/planner/reset" in log
    assert "recorder (/recorder/record)" in log
    assert "world (" not in log and "policy (" not in log and "Traceback" not in log


@pytest.mark.parametrize(
    ("node", "parameters", "message"),
    [
        ("planner", {"planner": "nonesuch"}, "unknown planner 'nonesuch': choose from"),
        ("planner", {"planner": "openai"}, "planner openai needs a model"),
        ("planner", {"planner": "human"}, "planner human needs a terminal"),
        ("policy", {"policy": "nonesuch"}, "unknown policy 'nonesuch': choose from"),
        ("task", {"tasks": "nonesuch"}, "unknown task 'nonesuch': choose from"),
        ("task", {"tasks": "lift_pot", "episodes": 0}, "episodes must be at least 1"),
        ("task", {"tasks": "lift_pot", "episodes": "many"}, "episodes"),
        ("world", {"clock": "sundial"}, "clock must be lockstep or realtime, got 'sundial'"),
        ("world", {"image_size": "big"}, "image size must be WIDTHxHEIGHT"),
        ("world", {"streams": "nose"}, "unknown camera 'nose': choose from"),
    ],
)
def test_a_wrong_parameter_is_one_line_and_status_2(nodes, node, parameters, message):
    nodes.start(node, **parameters)
    assert nodes.wait(node) == 2
    (line,) = nodes.log(node).strip().splitlines()
    assert message in line


def test_a_dead_planner_ends_the_episode_and_the_run(nodes, tmp_path):
    out = tmp_path / "out"
    nodes.start_all(out, tasks="lift_pot", episodes=30, planner_deadline_s=3.0)
    nodes.wait_for_file(out / "lift_pot" / "000000" / "metadata.yaml")
    nodes.running["planner"].kill()
    assert nodes.wait("task") == 1, nodes.logs()
    run = json.loads((out / "run.json").read_text())
    assert (run["status"], run["cause"]) == ("failed", "node /planner is gone")
    assert "success" in nodes.log("task") and "Traceback" not in nodes.log("task")
    assert score_files.load_scores(score_files.newest_scores(out))[0].success


def test_a_killed_recorder_leaves_a_readable_bag(nodes, tmp_path):
    out = tmp_path / "out"
    nodes.start_all(out, tasks="lift_pot", policy="random", deadline_s=20.0)
    bag = out / "lift_pot" / "000000" / "000000_0.mcap"
    nodes.wait_for_file(bag, at_least=100_000)
    nodes.running["recorder"].kill()
    assert nodes.wait("task") == 1, nodes.logs()
    score = only_score(out)
    assert not score.success and not score.scored
    assert score.cause.startswith("incomplete recording: the file ends")
    assert score.sim_s > 0.0, "what was written before the kill is read"


def test_a_folder_that_holds_a_run_is_refused(nodes, tmp_path):
    out = tmp_path / "out"
    nodes.start_all(out, tasks="spatial_sparse", episodes=2)
    assert nodes.wait("task") == 0, nodes.logs()
    assert [s.seed for s in score_files.load_scores(score_files.newest_scores(out))] == [0, 1]
    nodes.start("task", tasks="spatial_sparse", out=str(out))
    assert nodes.wait("task") == 2
    assert "holds a run already" in nodes.log("task")


def test_an_interrupted_episode_is_reported_with_its_reason(nodes, tmp_path):
    out = tmp_path / "out"
    nodes.start_all(out, tasks="lift_pot", policy="random")
    nodes.wait_for_file(out / "lift_pot" / "000000" / "000000_0.mcap", at_least=100_000)
    nodes.stop(signal.SIGINT)
    assert nodes.running["task"].returncode == 130
    assert "Traceback" not in nodes.logs()
    score = only_score(out)
    assert not score.success and not score.scored
    assert score.cause == "incomplete recording: the manifest's status is 'interrupted'"


def test_the_recorder_names_who_died_when_the_task_node_cannot(nodes, tmp_path):
    out = tmp_path / "out"
    nodes.start_all(out, tasks="lift_pot", policy="random")
    nodes.wait_for_file(out / "lift_pot" / "000000" / "000000_0.mcap", at_least=100_000)
    task = nodes.running.pop("task")
    task.kill()
    task.wait()
    nodes.stop(signal.SIGINT)  # as a launch does then, at once
    manifest = json.loads((out / "lift_pot" / "000000" / "manifest.json").read_text())
    told = manifest["status"], manifest["cause"]
    assert told == ("failed", "lost node: node /task is gone"), nodes.log("recorder")


def test_arms_in_motion_stop_when_the_planner_dies_whom_nobody_asks_just_then(
    nodes, client, tmp_path
):
    from bench_interfaces.msg import WorldState

    from bench_tasks.ros.node_ros import TRACK

    out, states = tmp_path / "out", queue.Queue()
    nodes.start_all(out, clock="realtime", safety=True, tasks="lift_pot")
    nodes.wait_for_file(out / "lift_pot" / "000000" / "000000_0.mcap", at_least=30_000)
    client.create_subscription(WorldState, "/world/state", states.put, TRACK, raw=True)

    def steps(count):
        commands = [cdr.decode_state(states.get(timeout=20)).command for _ in range(count + 1)]
        return np.abs(np.diff(commands, axis=0)).max()

    end = time.monotonic() + 30
    while steps(5) < 0.2 * 0.02:
        assert time.monotonic() < end, nodes.logs()
    nodes.running["planner"].kill()
    nodes.running["planner"].wait()
    killed = cdr.decode_state([states.get() for _ in range(states.qsize() + 1)][-1]).seq
    assert nodes.wait("task", 30) == 1, nodes.logs()
    last = read_bag(out / "lift_pot" / "000000").states[-1].seq
    assert last < killed + 50, "the plan would have gone on for 4 s"
    assert only_score(out).cause == "lost node: node /planner is gone"
    while steps(20) > 0.0:
        assert time.monotonic() < end + 30, nodes.logs()
