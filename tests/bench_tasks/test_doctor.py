"""The doctor on this machine, and on machines made ill."""

import importlib.util
import json
import os
import sys

import pytest

import bench_tasks.tasks as tasks
import policies
from bench_tasks import runner
from bench_tasks.cli import main
from bench_tasks.commands import doctor
from bench_tasks.config import RunConfig
from bench_tasks.errors import UsageError


def test_it_is_well_here_and_every_illness_would_name_a_remedy(capsys):
    assert main(["doctor", "--json"]) == 0
    checks = json.loads(capsys.readouterr().out)["checks"]
    names = [check["name"] for check in checks]
    assert {"python", "mujoco", "robot model", "tasks", "policies", "renderer", "ROS 2",
            "disk"} <= set(names)
    assert all(check["remedy"] and check["found"] for check in checks)
    renderer = next(check for check in checks if check["name"] == "renderer")
    assert renderer["ok"] and "drew a picture" in renderer["found"]


def test_a_renderer_that_does_not_work_is_found(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "frob")
    finding = doctor._renderer()
    assert not finding.ok and finding.needed and "frob" in finding.found
    assert "apt-get" in finding.remedy


def test_a_missing_package_is_found_and_the_status_says_so(monkeypatch, capsys):
    monkeypatch.setitem(doctor._PACKAGES, "no-such-package", "no_such_module")
    assert main(["doctor"]) == 1
    lines = capsys.readouterr().out.splitlines()
    at = next(k for k, line in enumerate(lines) if "no-such-package" in line)
    assert lines[at].startswith("FAIL") and "pip install" in lines[at + 1]


def test_an_old_python_and_a_full_disk_are_found(monkeypatch):
    monkeypatch.setattr(doctor, "MIN_PYTHON", (9, 0))
    monkeypatch.setattr(doctor, "MIN_FREE_GB", 1e9)
    assert not doctor._python().ok and not doctor._disk().ok


def test_ros_that_is_broken_is_only_a_part(monkeypatch, tmp_path):
    (tmp_path / "rclpy.py").write_text("raise ImportError('half installed')")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    (finding,) = doctor._ros()
    assert not finding.ok and not finding.needed and "half installed" in finding.found


def test_trying_takes_no_longer_than_its_limit(monkeypatch):
    monkeypatch.setattr(doctor, "TIMEOUT_S", 0.2)
    assert doctor._try("import time; time.sleep(60)") == (False, "no answer within 0.2 s")


BROKEN = {
    "wrong_import": ("import no_such_module", "ModuleNotFoundError: No module named"),
    "wrong_syntax": ("def", "SyntaxError"),
    "abstract": (
        "from bench_tasks.tasks.base import Task\nclass Half(Task):\n    pass\nTASK = Half()",
        "TypeError: Can't instantiate abstract class Half",
    ),
    "no_instance": ("from bench_tasks.tasks.base import Task as TASK", "instance of Task"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_task_is_one_line_for_every_command(monkeypatch, tmp_path, capsys, name):
    text, reason = BROKEN[name]
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setattr(tasks, "__path__", [*tasks.__path__, str(tmp_path)])
    tasks._registry.cache_clear()
    try:
        for command in (["list"], ["run", "--tasks", "lift_pot", "--no-record"]):
            assert main(command) == 2
            error = capsys.readouterr().err
            assert error.startswith(f"bench_tasks: task module {name} cannot be loaded: ")
            assert reason in error and error.count("\n") == 1
        finding = doctor._registered("tasks", doctor._tasks, "mend it")
        assert not finding.ok and finding.needed and name in finding.found
    finally:
        tasks._registry.cache_clear()


@pytest.mark.parametrize("entry", ["no_such_module:Class", "policies.skills:NoSuch", "nothing"])
def test_a_wrong_entry_is_one_line(monkeypatch, capsys, entry):
    monkeypatch.setitem(policies.PLANNERS, "mine", entry)
    monkeypatch.setitem(policies.POLICIES, "mine", entry)
    for kind in ("planner", "policy"):
        assert main(["run", "--tasks", "lift_pot", "--no-record", f"--{kind}", "mine"]) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"bench_tasks: {kind} mine cannot be loaded from '{entry}': ")
        assert error.count("\n") == 1
    finding = doctor._registered("policies", doctor._policies, "mend it")
    assert not finding.ok and "planner mine" in finding.found


def test_interfaces_that_import_but_do_not_publish_are_found(monkeypatch, tmp_path):
    package = tmp_path / "bench_interfaces"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "msg.py").write_text("class WorldState:\n    pass\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setattr(doctor, "ROOT", tmp_path)
    found = doctor._ros()
    if found[0].ok:
        assert not found[1].ok and "make setup" in found[1].remedy


def test_what_needs_an_extra_that_is_not_installed_says_which(tmp_path, monkeypatch):
    (tmp_path / "wants_torch.py").write_text("import torch\nclass Mine: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(policies.POLICIES, "mine", "wants_torch:Mine")
    said = "policy mine needs torch: pip install -r requirements/policies.txt"
    with pytest.raises(UsageError, match=f"^{said}$"):
        policies.make_policy("mine")
    extras = [finding for finding in doctor._registries() if said in finding.found]
    assert len(extras) == 1 and not extras[0].ok and not extras[0].needed
    assert doctor._registered("policies", doctor._policies, "mend it").ok


def test_a_humanoid_that_cannot_be_had_is_refused_before_anything_is_made(tmp_path, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "mjlab" else find(name, *a)
    )
    config = RunConfig(("reach_both_hands",), out=str(tmp_path / "out"), cameras=())
    said = "the humanoid needs mjlab: pip install --no-deps -r requirements/humanoid.txt"
    with pytest.raises(UsageError, match=f"^{said}$"):
        runner.check(config)
    assert not (tmp_path / "out").exists()
    assert said in [finding.found for finding in doctor._registries()]
