"""How a driver's process is started, and how it ends."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from hardware import process
from hardware.link import Gone

CHILD = """#!{python}
import os, socket, sys
end = socket.socket(fileno=int(sys.argv[3]))
settings = end.recv(1 << 16)
end.send(settings[:-1] + b', "argv": "%s", "path": "%s", "library": "%s"}}' % (
    sys.argv[2].encode(), os.environ["PYTHONPATH"].encode(),
    os.environ.get("LD_LIBRARY_PATH", "none").encode()))
sys.exit(7)
"""


@pytest.fixture
def python(tmp_path, monkeypatch):
    """What is started in place of an interpreter: it says how, and ends."""
    monkeypatch.setattr(process, "REAP_S", 20.0)  # a busy machine takes its time
    monkeypatch.setenv("PYTHONPATH", "/ros/packages")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/ros/lib")
    path = tmp_path / "python"
    path.write_text(CHILD.format(python=sys.executable))
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("ros", [False, True])
def test_a_driver_has_the_packages_of_its_environment_and_those_of_ros_if_it_wants(python, ros):
    child, link = process.start(python, "hardware.it", {"speed": 0.5}, ros=ros)
    said = link.settings()
    assert said["speed"] == 0.5 and said["argv"] == "hardware.it"
    root, _, more = said["path"].partition(":")
    assert (process.ROOT / "hardware/process.py").is_file() and root == str(process.ROOT)
    assert (more, said["library"]) == (("/ros/packages", "/ros/lib") if ros else ("", "none"))
    with pytest.raises(Gone):
        link.settings()
    assert process.ending(child, "") == " (exit status 7)"
    assert process.ending(child, "ValueError: it") == " (exit status 7): ValueError: it"


def test_one_that_does_not_end_is_killed(monkeypatch):
    child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"])
    monkeypatch.setattr(process, "REAP_S", 0.0)
    assert process.ending(child, "") == "" and process.ending(child, "it hangs") == ": it hangs"
    monkeypatch.setattr(process, "STOP_S", 20.0)
    process.reap(child)
    assert process.ending(child, "") == " (SIGKILL)" and child.returncode == -signal.SIGKILL
