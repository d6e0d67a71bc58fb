"""The launch files, started as a user starts them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench_tasks.probes.bags import probe_bags
from bench_tasks.verdicts import score_files

pytestmark = pytest.mark.ros
ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 180.0


def ros2() -> str:
    """The ros2 beside this interpreter, else the distribution's."""
    beside = Path(sys.executable).with_name("ros2")
    found = str(beside) if beside.exists() else shutil.which("ros2")
    if found is None:
        pytest.skip("there is no ros2 here")
    return found


@pytest.fixture
def launch(nodes, tmp_path):
    """Start a launch file; one that is still running at the end is ended with its nodes."""
    started = []

    def start(file: str, *arguments: str) -> subprocess.Popen:
        with open(tmp_path / "launch.log", "wb") as log:
            process = subprocess.Popen(
                [ros2(), "launch", str(ROOT / "launch" / file), *arguments],
                env=nodes.env, cwd=tmp_path, stdout=log, stderr=subprocess.STDOUT,
            )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def node_pids(domain: int) -> dict[str, int]:
    """Nodes that run in a domain: executable -> pid."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environment = (entry / "environ").read_bytes().split(b"\0")
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if f"ROS_DOMAIN_ID={domain}".encode() not in environment:
            continue
        for word in words:
            name = os.path.basename(word.decode(errors="replace"))
            if name.endswith("_node"):
                found[name] = int(entry.name)
    return found


def log(tmp_path) -> str:
    return (tmp_path / "launch.log").read_text()


def wait_for(tmp_path, nodes, path: Path, process) -> None:
    end = time.monotonic() + 90.0
    while not path.exists():
        assert process.poll() is None and time.monotonic() < end, log(tmp_path)
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("tasks:=juggle", "unknown task 'juggle': choose from"),
        ("planner:=oracle", "unknown planner 'oracle': choose from"),
        ("planner:=openai", "planner openai needs a model"),
        ("planner:=human", "launched nodes have none"),
        ("policy:=magic", "unknown policy 'magic': choose from"),
        ("execution:=fast", "unknown execution 'fast': choose from async, rtc, sync"),
        ("episodes:=many", "episodes must be a whole number, got 'many'"),
        ("objects:=nowhere.yaml", "cannot read the object set"),
        ("robot:=panda", "unknown robot 'panda': choose from franka, sim, unitree"),
        ("dry_run:=true", "dry_run must be false without safety:=true"),
        ("streams:=head@fast", "camera 'head': the rate must be in Hz, got 'fast'"),
        ("cameras:=head", "the argument is called streams now; write streams:=head"),
        ("out:=/proc/nowhere", "cannot write to /proc/nowhere"),
    ],
)
def test_a_wrong_argument_is_one_line_and_status_2(launch, nodes, tmp_path, argument, message):
    extra = [] if argument.startswith("out") else [f"out:={tmp_path / 'out'}"]
    assert launch("bimanual.launch.py", argument, *extra).wait(60) == 2
    (line,) = log(tmp_path).strip().splitlines()
    assert message in line
    assert not (tmp_path / "out").exists()


def test_a_launch_evaluates_reports_and_leaves_nothing(launch, nodes, tmp_path):
    out = tmp_path / "out"
    chosen = (
        "execution:=rtc", "policy_latency:=0.2", "execute:=7", "policy_deadline_s:=5",
        "safety:=true", "confirm:=true",
    )  # fmt: skip
    process = launch(
        "bimanual.launch.py", "tasks:=spatial_sparse", "seed:=3", *chosen, f"out:={out}"
    )
    assert process.wait(LIMIT_S) == 0, log(tmp_path)
    (score,) = score_files.load_scores(score_files.newest_scores(out))
    assert score.success and score.agrees and score.seed == 3
    assert node_pids(nodes.domain) == {}
    assert "Traceback" not in log(tmp_path)
    command = json.loads((out / "run.json").read_text())["command"]
    assert command == [
        "ros2", "launch", "bench_tasks", "bimanual.launch.py", "tasks:=spatial_sparse",
        "seed:=3", *chosen, f"out:={out}",
    ]
    how = {"mode": "rtc", "latency": "0.2", "execute": 7, "deadline_s": 5.0}
    assert {key: score.execution[key] for key in how} == how
    assert launch("rescore.launch.py", f"dir:={out}").wait(LIMIT_S) == 0, log(tmp_path)
    assert len(list(out.glob("scores-*.json"))) == 2


def test_a_memory_probe_has_a_launch_of_its_own(launch, nodes, tmp_path):
    out, file = tmp_path / "out", "memory.launch.py"
    for wrong, message in (
        ("memory:=elephant", "unknown memory 'elephant': choose from "),
        ("memory:=oracle", "memory oracle must be told what to recall"),
        ("reader:=expert", "unknown model 'expert': choose from "),
        ("user:=openai:model=m", "probe conversations has nobody that a model could play"),
        ("probe:=quiz", "unknown probe 'quiz': choose from "),
        ("seeds:=0", "seeds must be 1 or more and seed 0 or more, got 0 and 0"),
    ):
        assert launch(file, wrong, f"out:={out}").wait(60) == 2
        (line,) = log(tmp_path).strip().splitlines()
        assert line.startswith(f"{file}: {message}") and not out.exists()
    probe = "conversations:sessions=3,questions=1,attributes=4,small_talk=2,mode=text"
    assert launch(file, f"probe:={probe}", f"out:={out}").wait(LIMIT_S) == 0, log(tmp_path)
    assert len(list(out.glob("memory-*.json"))) == 1 and len(probe_bags(out)) == 1
    assert node_pids(nodes.domain) == {} and "Traceback" not in log(tmp_path)


def test_the_humanoid_has_a_launch_of_its_own(launch, nodes, tmp_path):
    out = tmp_path / "out"
    assert launch("humanoid.launch.py", "robot:=franka", f"out:={out}").wait(60) == 2
    (line,) = log(tmp_path).strip().splitlines()
    assert line == "humanoid.launch.py: unknown robot 'franka': choose from sim, unitree"
    process = launch(
        "humanoid.launch.py", "tasks:=reach_both_hands", "seed:=1", f"out:={out}"
    )
    assert process.wait(LIMIT_S) == 0, log(tmp_path)
    (score,) = score_files.load_scores(score_files.newest_scores(out))
    assert score.success and score.agrees and (score.task, score.seed) == ("reach_both_hands", 1)
    assert node_pids(nodes.domain) == {} and "Traceback" not in log(tmp_path)


@pytest.mark.parametrize("victim", ["planner_node", "recorder_node"])
def test_a_killed_node_ends_the_launch_with_its_status(launch, nodes, tmp_path, victim):
    out = tmp_path / "out"
    process = launch("bimanual.launch.py", "tasks:=lift_pot", "episodes:=50", f"out:={out}")
    wait_for(tmp_path, nodes, out / "lift_pot" / "000000" / "metadata.yaml", process)
    os.kill(node_pids(nodes.domain)[victim], signal.SIGKILL)
    assert process.wait(60) != 0
    assert node_pids(nodes.domain) == {}
    run = json.loads((out / "run.json").read_text())
    gone = f"node /{victim.removesuffix('_node')} is gone"
    assert (run["status"], run["cause"]) == ("failed", gone)
    assert score_files.load_scores(score_files.newest_scores(out))[0].success


def test_ctrl_c_ends_everything_and_keeps_what_is_finished(launch, nodes, tmp_path):
    out = tmp_path / "out"
    process = launch("bimanual.launch.py", "tasks:=lift_pot", "episodes:=50", f"out:={out}")
    wait_for(tmp_path, nodes, out / "lift_pot" / "000000" / "metadata.yaml", process)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) != 0
    assert node_pids(nodes.domain) == {}
    assert "Traceback" not in log(tmp_path)
    assert json.loads((out / "run.json").read_text())["status"] == "interrupted"
    done = log(tmp_path).count(": success,")
    assert done
    assert f"interrupted: {done} of 50 episodes; results in {out}" in log(tmp_path)
