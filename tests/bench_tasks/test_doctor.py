"""The doctor on this machine, and on machines made ill."""

import json
import os

from bench_tasks import doctor
from bench_tasks.cli import main


def test_it_is_well_here_and_every_illness_would_name_a_remedy(capsys):
    assert main(["doctor", "--json"]) == 0
    checks = json.loads(capsys.readouterr().out)["checks"]
    names = [check["name"] for check in checks]
    assert {"python", "mujoco", "robot model", "renderer", "ROS 2", "disk"} <= set(names)
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
