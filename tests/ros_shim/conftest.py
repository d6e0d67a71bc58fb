"""The small ros2 as a user runs it: real processes, each with a bounded wait."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROS2 = Path(sys.executable).parent / "ros2"
HEADER = """
from launch import LaunchDescription
from launch.actions import *
from launch.conditions import IfCondition, UnlessCondition
from launch.event_handlers import OnProcessExit, OnProcessStart, OnShutdown
from launch import events
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import *
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

def generate_launch_description():
    return LaunchDescription(description())

def say(text, *cmd, **options):
    return ExecuteProcess(cmd=["echo", text], name="say", output="screen", **options)

def sh(script, **options):
    options = {"name": "sh", "output": "screen", **options}
    return ExecuteProcess(cmd=["sh", "-c", script], **options)

def description():
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not ROS2.exists():
        skip = pytest.mark.skip(reason="a ROS distribution is used, not the small ros2")
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(skip)


@dataclass
class Result:
    status: int
    out: str
    err: str
    seconds: float


def running(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(condition: Callable[[], object], seconds: float = 10.0) -> object:
    """The condition's value once it is true; the test fails after `seconds`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    pytest.fail(f"did not come true in {seconds} s")


class Ros2:
    """Starts ros2; what is still running when the test ends is killed by its process id."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[subprocess.Popen] = []

    def start(self, *words: str, **env: str) -> subprocess.Popen:
        env = {**os.environ, "ROS_LOG_DIR": str(self.folder / "log"), **env}
        process = subprocess.Popen(
            [str(ROS2), *words], cwd=self.folder, env=env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        self.started.append(process)
        return process

    def finish(self, process: subprocess.Popen, timeout: float = 20.0) -> Result:
        begin = time.monotonic()
        out, err = process.communicate(timeout=timeout)
        return Result(process.returncode, out, err, time.monotonic() - begin)

    def __call__(self, *words: str, **env: str) -> Result:
        return self.finish(self.start(*words, **env))

    def file(self, body: str, name: str = "test.launch.py") -> str:
        path = self.folder / name
        path.write_text(HEADER + textwrap.indent(textwrap.dedent(body), "    "))
        return str(path)

    def launch(self, body: str, *words: str, **env: str) -> Result:
        return self("launch", self.file(body), *words, **env)

    def close(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.communicate(timeout=10)


@pytest.fixture
def ros2(tmp_path: Path) -> Iterator[Ros2]:
    made = Ros2(tmp_path)
    yield made
    made.close()
