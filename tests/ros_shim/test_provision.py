"""Set-up: what it decides, what it skips, and that nothing of ours hides a real ROS."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROVISION = ROOT / "ros_ws/provision"


@pytest.fixture
def load(monkeypatch):
    """Import a module of the set-up, which runs before anything is installed."""
    monkeypatch.syspath_prepend(str(PROVISION))
    return importlib.import_module


@pytest.fixture
def distribution(tmp_path):
    """A pretend distribution whose Python packages hold an rclpy."""
    site = tmp_path / "opt/ros/lib/python"
    (site / "rclpy").mkdir(parents=True)
    (site / "rclpy/__init__.py").touch()
    return {"ROS_DISTRO": "jazzy", "PYTHONPATH": str(site), "PATH": os.environ["PATH"]}


BASE_PYTHON = os.path.join(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}")


def test_sourced_distribution_is_used_and_nothing_of_ours_installed(load, distribution):
    ros, warning = load("ros").choose(distribution, BASE_PYTHON)
    assert (ros.distro, warning) == ("jazzy", "")
    assert ros.venv_options == ("--system-site-packages",)
    for name in ros.requirement_files:
        text = (ROOT / f"requirements/{name}.txt").read_text()
        assert not any(line.startswith(("ros-", "colcon-")) for line in text.splitlines())
    packages = load("workspace").interface_packages(ROOT, ros)
    assert [path.name for path in packages] == ["bench_interfaces"]


def test_distribution_that_does_not_import_gives_wheels_and_a_warning(load, distribution):
    ros, warning = load("ros").choose({**distribution, "PYTHONPATH": ""}, BASE_PYTHON)
    assert not ros.real
    assert "jazzy" in warning
    assert "make PYTHON=" in warning


def test_no_distribution_gives_wheels(load):
    ros, warning = load("ros").choose({}, BASE_PYTHON)
    assert (ros.real, warning) == (False, "")
    names = {path.name for path in load("workspace").interface_packages(ROOT, ros)}
    assert {"bench_interfaces", "simulation_interfaces", "tf2_msgs"} <= names


def test_colcon_in_the_workspace_finds_only_what_is_built_everywhere():
    colcon = Path(sys.executable).parent / "colcon"
    if not colcon.exists():
        pytest.skip("colcon is the distribution's")
    done = subprocess.run(
        [colcon, "list", "--names-only"], cwd=ROOT / "ros_ws", capture_output=True, text=True
    )
    assert done.stdout.split() == ["bench_interfaces", "bench_tasks"]


def test_ros2_of_the_workspace_is_the_distributions_where_no_small_one_is(tmp_path):
    workspace = tmp_path / "ros_ws"
    (workspace / "install").mkdir(parents=True)
    script = workspace / "ros2"
    script.write_bytes((ROOT / "ros_ws/ros2").read_bytes())
    script.chmod(0o755)
    fake = tmp_path / "bin/ros2"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho real $SOURCED $@\n")
    fake.chmod(0o755)
    (workspace / "install/setup.bash").write_text(f"export SOURCED=yes PATH={fake.parent}:$PATH\n")
    done = subprocess.run([script, "bag", "info"], capture_output=True, text=True, check=True)
    assert done.stdout == "real yes bag info\n"
    (workspace / "install/setup.bash").unlink()
    done = subprocess.run([script, "bag"], capture_output=True, text=True)
    assert (done.returncode, "make setup" in done.stderr) == (2, True)


def test_step_is_done_once_per_key_and_again_after_a_failure(load, tmp_path, capsys):
    progress = load("progress")
    steps = progress.Steps(tmp_path / "stamps")
    done = []

    def fail():
        steps.run("bad", [sys.executable, "-c", "print('why'); raise SystemExit(3)"], "Do this.")

    with pytest.raises(progress.Failed, match="status 3.*Do this"):
        steps.step("one", "k1", "first", fail)
    assert "why" in capsys.readouterr().err
    for key in ("k1", "k1", "k2", "k2"):
        steps.step("one", key, "first", lambda: done.append(1))
    assert len(done) == 2


def test_digest_sees_contents_names_and_absence(load, tmp_path):
    digest = load("progress").digest
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("x")
    first = digest([one])
    assert digest([one]) == first
    assert len({first, digest([one], "word"), digest([two]), digest([one, two])}) == 4
    one.write_text("y")
    assert digest([one]) != first


def test_baked_in_paths_are_rewritten_once(tmp_path):
    sys.path.insert(0, str(ROOT / "ros_ws/from_wheels"))
    try:
        prepare = importlib.import_module("prepare")
    finally:
        sys.path.pop(0)
    file = tmp_path / "a/x.cmake"
    file.parent.mkdir()
    builder = "/opt/python/cp312-cp312"
    file.write_text(
        f'"{builder}/include/python3.12;{builder}/lib/python3.12/site-packages/numpy/_core/include"'
    )
    assert prepare.rewrite(tmp_path, "/inc", "/np") == 1
    assert file.read_text() == '"/inc;/np"'
    assert prepare.rewrite(tmp_path, "/inc", "/np") == 0


def test_every_requirement_is_pinned():
    for path in (ROOT / "requirements").glob("*.txt"):
        for line in path.read_text().splitlines():
            assert not line or line.startswith("#") or "==" in line.split(";")[0], line
