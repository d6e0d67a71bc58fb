"""Set-up: what it decides, what it skips, and that nothing of ours hides a real ROS."""

import importlib
import os
import shutil
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


STEPS = {"environment", "rendering", "packages", "interfaces", "package"}
STUBS = {
    "system.py": "def check_tools(): pass\ndef rendering(steps): pass\n",
    "workspace.py": """
def build_interfaces(root, ros, steps, key): steps.step("interfaces", key, "interfaces", int)
def build_package(root, ros, steps, key): steps.step("package", key, "package", int)
def install_small_ros2(root): (root / "installed").touch()
def link_libraries(root): pass
""",
}


@pytest.fixture
def checkout(tmp_path):
    """A repository with nothing in it but the set-up, of which only the environment is real."""
    root = tmp_path / "checkout"
    shutil.copytree(PROVISION, root / "ros_ws/provision",
                    ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in STUBS.items():
        (root / "ros_ws/provision" / name).write_text(text)
    (root / "requirements").mkdir()
    for name in ("base", "dev", "ros", "build"):
        (root / f"requirements/{name}.txt").touch()
    (root / "ros_ws/from_wheels").mkdir()
    (root / "ros_ws/from_wheels/prepare.py").write_text(
        "import pathlib, sysconfig\n"
        "for name in ('numpy', 'mujoco', 'rclpy'):\n"
        "    pathlib.Path(sysconfig.get_path('purelib'), name).mkdir(exist_ok=True)\n"
    )
    return root


def set_up(root, python):
    env = {k: v for k, v in os.environ.items() if k not in ("ROS_DISTRO", "PYTHONPATH")}
    return subprocess.run([python, root / "ros_ws/provision", "run"], env=env,
                          capture_output=True, text=True, cwd=root)


def test_set_up_from_any_environment_and_after_losing_it(checkout, tmp_path):
    def stamps():
        return {path.name for path in (checkout / ".stamps").iterdir() if not path.suffix}

    venv = checkout / ".venv"
    done = set_up(checkout, BASE_PYTHON)
    assert done.returncode == 0, done.stderr
    assert stamps() == STEPS
    other = tmp_path / "other"
    subprocess.run([BASE_PYTHON, "-m", "venv", "--without-pip", other], check=True)
    for python in (venv / "bin/python3", venv / "bin/python", other / "bin/python3"):
        done = set_up(checkout, python)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), python

    # It must be made anew, and the set-up is run from it.
    (checkout / ".stamps/environment").write_text("for another Python")
    (venv / "old").touch()
    done = set_up(checkout, venv / "bin/python3")
    assert done.returncode == 0, done.stderr
    assert not (venv / "old").exists()
    assert {line.split("] ")[1].split()[0] for line in done.stdout.splitlines()} >= {
        "virtual", "Python", "interfaces", "package", "set-up"}  # fmt: skip
    home = (venv / "pyvenv.cfg").read_text().split("home = ")[1].splitlines()[0]
    assert Path(home).is_relative_to(sys.base_prefix)

    shutil.rmtree(venv)
    done = set_up(checkout, BASE_PYTHON)
    assert "Python packages" in done.stdout and "interfaces" in done.stdout
    assert stamps() == STEPS


def test_environment_that_lost_its_configuration_is_not_taken_for_a_python(load, tmp_path,
                                                                           monkeypatch):
    interpreter = load("interpreter")
    venv = tmp_path / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin/python3").symlink_to(BASE_PYTHON)
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    monkeypatch.setattr(sys, "executable", str(venv / "bin/python3"))
    monkeypatch.setattr(sys, "_base_executable", str(venv / "bin/python3"))
    assert interpreter.runs_from(venv)
    assert interpreter.base_python(venv) == BASE_PYTHON


def test_path_that_cannot_be_written_gives_one_line(checkout):
    (checkout / ".stamps").touch()
    done = set_up(checkout, BASE_PYTHON)
    assert done.returncode == 1
    assert done.stderr == "set-up failed: .stamps: File exists\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_checkout_of_another_user_gives_one_line(checkout):
    for path in [checkout, *checkout.parents]:
        if path.stat().st_uid == 0 and path.is_relative_to(checkout.parents[2]):
            path.chmod(0o755)
    python = "/usr/bin/python3"
    if subprocess.run([python, "--version"], user=65534, capture_output=True).returncode:
        pytest.skip("no Python that everybody may run")
    done = subprocess.run([python, checkout / "ros_ws/provision", "run"], user=65534, group=65534,
                          extra_groups=[], cwd="/", capture_output=True, text=True,
                          env={"PATH": os.environ["PATH"]})
    assert done.returncode == 1
    assert done.stderr.startswith("set-up failed: .stamps is not writable by you"), done.stderr
    assert done.stderr.count("\n") == 1


def test_what_is_installed_already_is_not_touched(load, tmp_path, monkeypatch):
    workspace = load("workspace")
    site = tmp_path / ".venv/lib/python3.11/site-packages"
    site.mkdir(parents=True)
    (tmp_path / ".venv/bin").mkdir()
    built = tmp_path / "ros_ws/install/bench_interfaces/lib/libbench_interfaces__x.so"
    built.parent.mkdir(parents=True)
    built.touch()
    link = tmp_path / ".venv/lib" / built.name
    for _ in range(2):
        workspace.link_libraries(tmp_path)
        workspace.install_small_ros2(tmp_path)
        assert link.resolve() == built
        assert os.access(tmp_path / ".venv/bin/ros2", os.X_OK)
        for name in ("chmod", "unlink", "symlink_to", "write_text"):
            monkeypatch.setattr(Path, name, lambda *_: pytest.fail("written again"))
    monkeypatch.undo()
    link.unlink()
    workspace.link_libraries(tmp_path)
    assert link.resolve() == built


def test_step_is_done_again_when_what_it_made_has_gone(load, tmp_path):
    steps = load("progress").Steps(tmp_path / ".stamps")
    made = tmp_path / "made"
    for _ in range(2):
        steps.step("one", "k", "first", made.mkdir, [made])
    made.rmdir()
    steps.step("one", "k", "first", made.mkdir, [made])
    assert made.exists()


def test_sign_of_life_names_the_step_and_its_log(load, tmp_path, monkeypatch, capsys):
    progress = load("progress")
    monkeypatch.setattr(progress, "LIFE_S", 0.05)
    steps = progress.Steps(tmp_path / ".stamps")
    steps.run("packages", [sys.executable, "-c", "import time; time.sleep(0.5)"], "")
    assert "packages: still at it, log in .stamps/packages.log" in capsys.readouterr().out
