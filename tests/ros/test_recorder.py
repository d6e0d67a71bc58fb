"""The recorder notices what did not come, and a run whose disk is full ends as it should."""

from __future__ import annotations

import json

import pytest

from bench_tasks.bags.bag import read_bag
from bench_tasks.verdicts import score_files

pytestmark = pytest.mark.ros
HEAD = "/head/image_raw/compressed"
LOSE = f"""
import bench_tasks.ros.recorder_node as recorder
real, count = recorder.take_all, [0]
def lossy(subscription):
    for data in real(subscription):
        count[0] += subscription.topic_name == {HEAD!r}
        if subscription.topic_name != {HEAD!r} or count[0] not in (2, 6, 7):
            yield data
recorder.take_all = lossy
"""
IMPATIENT = """
import bench_tasks.ros.task_node
bench_tasks.ros.task_node.FINISH_WAIT_S = 1.0
"""
SMALL_FILES = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
"""


def start(nodes, out, recorder: str, conductor: str = "", **task) -> None:
    """Start all nodes, recorder and task node with code that comes before their own."""
    nodes.before = recorder
    nodes.start("recorder")
    nodes.before = ""
    streams = task.get("streams", "")
    nodes.start("world", streams=streams)
    nodes.start("planner")
    nodes.start("policy", listeners=2)
    nodes.before = conductor
    nodes.start("task", out=str(out), **task)


def test_streams_and_key_frames_are_all_on_record(nodes, tmp_path):
    out = tmp_path / "out"
    start(nodes, out, "", tasks="lift_pot", streams="head@10,third@5")
    assert nodes.wait("task") == 0, nodes.logs()
    bag = read_bag(out / "lift_pot" / "000000")
    plans = sum(event.kind == "plan" for event in bag.events)
    counts, last = bag.manifest["message_counts"], bag.states[-1].seq
    assert counts[HEAD] == counts["/head/camera_info"] == last // 5 + 1 + plans + 2
    assert counts["/third/image_raw/compressed"] == last // 10 + 1


def test_a_lost_picture_is_noticed_while_its_camera_streams(nodes, tmp_path):
    """The second one is the key frame at the start, the later ones are streamed."""
    out = tmp_path / "out"
    start(nodes, out, LOSE, IMPATIENT, tasks="lift_pot", streams="head@10")
    assert nodes.wait("task") == 1, nodes.logs()
    (score,) = score_files.load_scores(score_files.newest_scores(out))
    manifest = json.loads((out / "lift_pot" / "000000" / "manifest.json").read_text())
    total = manifest["message_counts"]["/head/camera_info"]
    assert manifest["status"] == "failed"
    assert manifest["cause"].startswith(
        f"incomplete recording: 3 of {total} messages on {HEAD} did not come"
    )
    assert not score.evaluated


def test_a_full_disk_ends_the_run_and_the_manifest_says_so(nodes, tmp_path):
    """The kernel refuses to let the recorder's files grow, as a full disk does."""
    out = tmp_path / "out"
    start(nodes, out, SMALL_FILES, tasks="spatial_sparse,lift_pot", keyframe_cameras="")
    assert nodes.wait("task") == 2, nodes.logs()
    run = json.loads((out / "run.json").read_text())
    assert run["status"] == "failed" and run["evaluated"] == 2
    assert run["cause"].startswith("cannot write ") and run["cause"] in nodes.log("task")
    first, second = score_files.load_scores(score_files.newest_scores(out))
    assert first.success and not second.scored
    assert "Traceback" not in nodes.logs()
