"""The command line as its users meet it: results, JSON, and one line for every mistake."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import made
import pytest

from bench_tasks import tasks
from bench_tasks.bags.recording import BagSink
from bench_tasks.cli import main

ROOT = Path(__file__).parents[2]
FIELDS = {
    "task", "seed", "success", "progress", "cause", "state_hash", "bag", "wall_s", "sim_s",
}  # fmt: skip


STARTED: list[subprocess.Popen] = []


def command(*args, **options):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    STARTED.append(subprocess.Popen(
        [sys.executable, "-m", "bench_tasks.cli", *args], text=True, env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
    ))  # fmt: skip
    return STARTED[-1]


@pytest.fixture(autouse=True)
def nothing_left_running():
    yield
    for process in STARTED:  # a run's workers end with it
        process.kill()
        process.communicate()
    STARTED.clear()


@pytest.fixture
def folder(tmp_path):
    for seed, y in enumerate((made.IN_ORDER, made.OUT_OF_ORDER)):
        sink = BagSink(tmp_path / "run" / "blocks_ranking_rgb" / f"{seed:06d}")
        made.ranking_episode(sink, y=y, seed=seed)
        sink.writer.close(wall_s=2.0)
    return tmp_path / "run"


def test_list(capsys):
    assert main(["list", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [item["name"] for item in found] == tasks.names(None) + tasks.names(None, apart=True)
    keys = {"name", "tier", "mode", "kind", "robot", "summary"}
    assert all(set(item) == keys for item in found)
    pair = {item["name"] for item in found if item["robot"] == "fr3_pair"}
    assert pair == {*tasks.names(), *tasks.names(apart=True)}
    assert {item["kind"] for item in found} == {"task", "probe"}
    assert main(["list"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in tasks.names(None))


def test_run_score_and_report_from_end_to_end(tmp_path):
    out = tmp_path / "out"
    done = command("run", "--tasks", "lift_pot", "--seed", "5", "--out", str(out), "--json")
    text, progress = done.communicate(timeout=300)
    assert done.returncode == 0, progress
    (episode,) = json.loads(text)["episodes"]
    assert set(episode) >= FIELDS and episode["success"] and episode["seed"] == 5
    assert Path(episode["bag"]).is_dir() and "[1/1] lift_pot seed 5: success" in progress
    done = command("score", str(out), "--json")
    (again,) = json.loads(done.communicate(timeout=60)[0])["episodes"]
    assert done.returncode == 0 and again == episode
    assert len(list(out.glob("scores-*.json"))) == 2
    done = command("report", str(out), "--json")
    page = Path(json.loads(done.communicate(timeout=60)[0])["report"])
    assert done.returncode == 0 and page == out / "report.html"
    text = re.sub("<[^>]*>", "", page.read_text())
    assert f"bench_tasks run --tasks lift_pot --seed 5 --out {out} --json" in text


def test_score_prints_a_table_and_counts_disagreement(folder, capsys):
    assert main(["score", str(folder)]) == 0
    shown = capsys.readouterr()
    assert "1/2" in shown.out and "agree in 2 of 2" in shown.out
    assert "goal not reached (1)" in shown.out and "[2/2]" in shown.err


def test_score_exits_1_when_something_has_no_verdict_and_writes_on_request_only(folder, capsys):
    (bag,) = (folder / "blocks_ranking_rgb" / "000001").glob("*.mcap")
    bag.write_bytes(bag.read_bytes()[:500])
    assert main(["score", str(folder), "--json", "--no-save"]) == 1
    episodes = json.loads(capsys.readouterr().out)["episodes"]
    assert [e["success"] for e in episodes] == [True, False]
    assert episodes[1]["cause"].startswith("incomplete recording: ")
    assert not list(folder.glob("scores-*"))


def test_episodes_that_the_run_asked_for_and_are_not_there_are_missed(folder, capsys):
    run = {"configuration": {"tasks": ["blocks_ranking_rgb"], "episodes": 3}}
    (folder / "run.json").write_text(json.dumps(run))
    assert main(["score", str(folder)]) == 1
    said = "1 of the 3 episodes that the run asked for are missing: blocks_ranking_rgb seed 2"
    assert said in capsys.readouterr().err
    assert main(["score", str(folder.parent)]) == 1, "each run of a folder is looked at"
    assert f"run: {said}" in capsys.readouterr().err
    (folder / "blocks_ranking_rgb" / "000002").mkdir()
    assert main(["score", str(folder), "--json"]) == 1
    last = json.loads(capsys.readouterr().out)["episodes"][2]
    assert (last["task"], last["seed"], last["scored"]) == ("blocks_ranking_rgb", 2, False)
    assert last["cause"] == "incomplete recording: there is no MCAP file"
    (folder / "blocks_ranking_rgb" / "000002").rmdir()
    assert main(["report", str(folder)]) == 0
    assert "1 of the 3 episodes" in (folder / "report.html").read_text()


def test_a_run_that_is_not_what_its_file_says_is_one_line_and_status_2(folder, capsys):
    for text in ('{"configuration": [1]}', "[" * 200_000, '{"configuration": {"tasks": 3}}',
                 '{"configuration": {"tasks": [], "episodes": "x"}}'):  # fmt: skip
        (folder / "run.json").write_text(text)
        for what in ("score", "report"):
            assert main([what, str(folder)]) == 2
            assert "run.json" in capsys.readouterr().err.splitlines()[-1]


def test_results_that_cannot_be_saved_are_printed_all_the_same(folder, capsys, monkeypatch):
    def refuse(*args, **options):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "write_text", refuse)
    assert main(["score", str(folder), "--json"]) == 2
    shown = capsys.readouterr()
    assert len(json.loads(shown.out)["episodes"]) == 2
    assert shown.err.splitlines()[-1].endswith("Read-only file system")


def test_json_is_json_whatever_a_manifest_says(folder, capsys):
    bag = folder / "blocks_ranking_rgb" / "000000"
    value = json.loads((bag / "manifest.json").read_text())
    (bag / "manifest.json").write_text(json.dumps(value | {"wall_s": float("nan")}))
    assert main(["score", str(folder), "--json"]) == 0
    shown = capsys.readouterr().out
    assert "NaN" not in shown and json.loads(shown)["episodes"][0]["wall_s"] is None


def test_output_that_nobody_reads_is_no_error():
    done = command("list")
    done.stdout.close()
    done.stdout = None
    assert "Exception" not in done.communicate(timeout=60)[1]
    assert done.returncode in (0, 141)


MISTAKES = {
    "no command": [],
    "unknown command": ["frobnicate"],
    "unknown option": ["list", "--frob"],
    "no task": ["run"],
    "unknown task": ["run", "--tasks", "juggle"],
    "unknown planner": ["run", "--tasks", "lift_pot", "--planner", "oracle"],
    "unknown policy": ["run", "--tasks", "lift_pot", "--policy", "oracle"],
    "unknown execution": ["run", "--tasks", "lift_pot", "--execution", "fast"],
    "no deadline": ["run", "--tasks", "lift_pot", "--policy-deadline-s", "soon"],
    "wrong type": ["run", "--tasks", "lift_pot", "--episodes", "many"],
    "wrong value": ["run", "--tasks", "lift_pot", "--seed", "-1"],
    "no configuration": ["run", "--config", "{tmp}/missing.yaml"],
    "no jobs": ["run", "--tasks", "lift_pot", "--jobs", "0"],
    "too many jobs": ["run", "--tasks", "lift_pot", "--jobs", "257"],
    "a person in two places": ["run", "--tasks", "lift_pot", "--planner", "human:help=names",
                               "--jobs", "2"],
    "unwritable out": ["run", "--tasks", "lift_pot", "--out", "{tmp}/file/out"],
    "no folder": ["score", "{tmp}/missing"],
    "nothing to score": ["score", "{tmp}"],
    "a file to score": ["score", "{tmp}/file"],
    "no report": ["report", "{tmp}"],
    "an empty folder's name": ["remember", "score", ""],
    "an empty name to write to": ["remember", "run", "--out", ""],
    "an empty name for pictures": ["remember", "run", "--out", "{tmp}/new", "--pictures="],
    "an empty page's name": ["report", "{tmp}/run", "--out", ""],
    "unwritable page": ["report", "{tmp}/run", "--out", "{tmp}/file/page.html"],
}


@pytest.mark.parametrize("args", MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_one_line_and_status_2(args, folder, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    if "report" not in args or "{tmp}/run" not in args:
        (folder / "blocks_ranking_rgb").rename(tmp_path.parent / f"{tmp_path.name}-aside")
    assert main([a.replace("{tmp}", str(tmp_path)) for a in args]) == 2
    shown = capsys.readouterr()
    lines = shown.err.strip().splitlines()
    assert shown.out == "" and len(lines) == 1 and lines[0].startswith("bench_tasks: "), shown.err
    if args[:1] != ["report"]:
        assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "run"], "nothing was created"


CONFIGS = {
    "tasks: [lift_pot": "not valid YAML",
    "- a list": "must hold a mapping, not a list",
    "tasks: [lift_pot]": "format_version must be 1, got None",
    "format_version: 2": "format_version must be 1, got 2",
    "format_version: 1\nfrobs: 3": "unknown key 'frobs': choose from cameras",
    "format_version: 1\nepisodes: many": "episodes must be of type int, got 'many'",
    "format_version: 1\nepisodes: true": "episodes must be of type int, got True",
    "format_version: 1\njobs: all": "jobs must be of type int, got 'all'",
    "format_version: 1\ntasks: [lift_pot]\njobs: 0": "jobs must be from 1 to 256, got 0",
    "format_version: 1\nrecord: 'no'": "record must be of type bool, got 'no'",
    "format_version: 1\ntasks: 3": "tasks must be a list of names, got 3",
    "format_version: 1\ntasks: [3]": "tasks must be a list of names, got [3]",
    "format_version: 1\nlatency: []": "latency must be",
    "format_version: 1\npolicy_latency: true": "policy_latency must be free, measured or seconds",
    "format_version: 1\nexecute: all": "execute must be of type int, got 'all'",
    "format_version: 1\npolicy_deadline_s: soon": "policy_deadline_s must be of type float",
    "format_version: 1\ntasks: [juggle]": "unknown task 'juggle'",
    "format_version: 1\nplanner: 2020-99-99": "not valid YAML: month must be in 1..12",
    "format_version: 1\nseed: 1\nseed: 2": "key 'seed' is given twice",
    "tasks: " + "[" * 5000: "not valid YAML",
    "format_version: 1\nplanner: !!timestamp ''": "not valid YAML",
    "\x00": "not valid YAML",
}


@pytest.mark.parametrize("text,message", CONFIGS.items())
def test_a_malformed_configuration_is_one_line_and_status_2(text, message, tmp_path, capsys):
    (tmp_path / "run.yaml").write_text(text)
    assert main(["run", "--config", str(tmp_path / "run.yaml")]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and message in lines[0], lines


def test_a_configuration_is_used_and_the_command_line_overrides_it(tmp_path, capsys):
    (tmp_path / "run.yaml").write_text(
        "format_version: 1\ntasks: spatial_sparse\nseed: 3\nrecord: false\ncameras: []\n"
        "latency: 0.5\npolicy_latency: 0.1\npolicy_deadline_s: 5\n"
    )
    args = ["--seed", "4", "--policy-latency", "0.2", "--execution", "async", "--execute", "7"]
    assert main(["run", "--config", str(tmp_path / "run.yaml"), *args, "--json"]) == 0
    (episode,) = json.loads(capsys.readouterr().out)["episodes"]
    how = {key: episode["execution"][key] for key in ("mode", "latency", "execute", "deadline_s")}
    assert how == {"mode": "async", "latency": "0.2", "execute": 7, "deadline_s": 5.0}
    assert (episode["task"], episode["seed"], episode["bag"]) == ("spatial_sparse", 4, "")


def small_files():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))


def test_a_full_disk_is_one_line_and_status_2(tmp_path):
    """The kernel refuses to let files grow, as a full disk does."""
    out = tmp_path / "out"
    args = ["--tasks", "spatial_sparse,lift_pot", "--cameras", "", "--out", str(out)]
    done = command("run", *args, preexec_fn=small_files)
    _, shown = done.communicate(timeout=120)
    assert done.returncode == 2 and "Traceback" not in shown
    assert shown.strip().splitlines()[-1].startswith("bench_tasks: cannot write ")
    run = json.loads((out / "run.json").read_text())
    assert run["status"] == "interrupted" and run["evaluated"] == 1
    done = command("score", str(out), "--json", "--no-save")
    episodes = json.loads(done.communicate(timeout=60)[0])["episodes"]
    assert [e["task"] for e in episodes if e["scored"]] == ["spatial_sparse"]
    assert [e["task"] for e in episodes if not e["success"]] == ["lift_pot"]


def test_a_killed_run_keeps_what_was_finished_and_scores_the_rest_as_incomplete(tmp_path):
    out = tmp_path / "out"
    args = ["--tasks", "spatial_sparse,lift_pot", "--policy", "hold", "--cameras", ""]
    done = command("run", *args, "--out", str(out))
    file = out / "lift_pot" / "000000" / "000000_0.mcap"
    until = time.monotonic() + 60
    while not (file.exists() and file.stat().st_size > 5000) and time.monotonic() < until:
        time.sleep(0.01)
    done.kill()
    done.communicate(timeout=60)
    assert json.loads((out / "run.json").read_text())["status"] == "running"
    done = command("score", str(out), "--json")
    episodes = json.loads(done.communicate(timeout=60)[0])["episodes"]
    assert done.returncode == 1 and [e["task"] for e in episodes] == ["lift_pot", "spatial_sparse"]
    assert episodes[0]["cause"].startswith("incomplete recording: the file ends ")
    assert episodes[1]["success"] and episodes[1]["agrees"]


def test_ctrl_c_ends_the_run_with_one_line(tmp_path):
    out = tmp_path / "out"
    args = ["--tasks", "lift_pot", "--episodes", "500", "--cameras", "", "--out", str(out)]
    done = command("run", *args)
    until = time.monotonic() + 60
    while not (out / "lift_pot" / "000001").exists() and time.monotonic() < until:
        time.sleep(0.05)
    done.send_signal(signal.SIGINT)
    _, shown = done.communicate(timeout=60)
    assert done.returncode == 130 and "Traceback" not in shown
    assert shown.strip().splitlines()[-1].startswith("bench_tasks: interrupted: ")
    assert json.loads((out / "run.json").read_text())["status"] == "interrupted"


def workers(of):
    """The processes that a run has started for its episodes."""
    try:
        pids = Path(f"/proc/{of.pid}/task/{of.pid}/children").read_text().split()
        return [p for p in pids if b"spawn_main" in Path(f"/proc/{p}/cmdline").read_bytes()]
    except OSError:
        return []


def shared_run(out, *args):
    """A run by two processes, both of which are in their first episode."""
    args = ("--tasks", "lift_pot", "--cameras", "", "--out", str(out), "--jobs", "2", *args)
    done = command("run", *args, start_new_session=True)
    until = time.monotonic() + 90
    while len(list(out.glob("lift_pot/*/*.mcap"))) < 2 and time.monotonic() < until:
        time.sleep(0.02)
    return done, workers(done)


def test_an_episode_whose_process_is_killed_has_no_verdict_and_the_run_goes_on(tmp_path):
    out = tmp_path / "out"
    done, pids = shared_run(out, "--episodes", "4", "--json")
    assert len(pids) == 2
    os.kill(int(pids[0]), signal.SIGKILL)
    text, shown = done.communicate(timeout=120)
    assert done.returncode == 1 and "Traceback" not in shown
    episodes = json.loads(text)["episodes"]
    assert [e["seed"] for e in episodes] == [0, 1, 2, 3]
    (lost,) = (e for e in episodes if not e["scored"])
    assert lost["cause"] == "crash: the worker process was killed by SIGKILL"
    assert (lost["task"], lost["tier"], lost["planner"]) == ("lift_pot", 2, "expert")
    assert json.loads((out / "run.json").read_text())["status"] == "complete"
    again = command("score", str(out), "--json").communicate(timeout=60)[0]
    assert json.loads(again)["episodes"] == episodes


def test_ctrl_c_ends_all_processes_of_a_run_with_one_line(tmp_path):
    out = tmp_path / "out"
    done, pids = shared_run(out, "--episodes", "500")
    until = time.monotonic() + 60
    while len(list(out.glob("lift_pot/*/*.mcap"))) < 4 and time.monotonic() < until:
        time.sleep(0.05)
    os.killpg(done.pid, signal.SIGINT)  # as a terminal does
    _, shown = done.communicate(timeout=60)
    assert done.returncode == 130 and "Traceback" not in shown, shown
    said = shown.strip().splitlines()[-1]
    count = int(re.match(r"bench_tasks: interrupted: (\d+) of 500 episodes", said)[1])
    (file,) = out.glob("scores-*.json")
    assert count >= 2 and len(json.loads(file.read_text())["episodes"]) == count
    run = json.loads((out / "run.json").read_text())
    assert (run["status"], run["evaluated"]) == ("interrupted", count)
    statuses = [json.loads(f.read_text())["status"] for f in out.glob("lift_pot/*/manifest.json")]
    assert set(statuses) <= {"complete", "interrupted"}
    assert len(pids) == 2 and not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_full_disk_ends_the_run_of_several_processes_with_one_line(tmp_path):
    out = tmp_path / "out"
    args = ["--tasks", "lift_pot", "--episodes", "3", "--cameras", "", "--out", str(out)]
    done = command("run", *args, "--jobs", "2", preexec_fn=small_files)
    _, shown = done.communicate(timeout=120)
    assert done.returncode == 2 and "Traceback" not in shown
    assert shown.strip().splitlines()[-1].startswith("bench_tasks: cannot write ")
    assert json.loads((out / "run.json").read_text())["status"] == "interrupted"


@pytest.mark.parametrize("args", ["--help", "run --help", "score --help", "--version"])
def test_help(args, capsys):
    with pytest.raises(SystemExit) as stop:
        main(args.split())
    assert stop.value.code == 0 and capsys.readouterr().out


def test_the_command_line_imports_neither_simulator_nor_ros_to_list():
    code = (
        "import sys; from bench_tasks.cli import main; main(['list']); "
        "print(sorted({'mujoco', 'rclpy', 'sim', 'policies'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.stdout.strip().splitlines()[-1] == "[]"
