"""Manifests: what ran, with which versions, so that it can be repeated; one per run and episode.

Both are JSON with a `format_version`, written at the start (status "recording") and replaced
atomically at the end, so that a killed process leaves a manifest that says so.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import bench_tasks
from bench_tasks.errors import BenchError, UsageError

__all__ = ["environment", "read_json", "utc_now", "write_json", "writable_folder"]

FORMAT_VERSION = 1
_PACKAGES = (
    "numpy", "scipy", "mujoco", "pin", "opencv-python-headless", "mcap", "zstandard", "PyYAML",
    "ros-rclpy", "torch", "transformers",
)  # fmt: skip


def utc_now() -> str:
    """The time now, UTC, as ISO 8601 to the second."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def packages() -> dict[str, str]:
    """Versions of the packages that results depend on, those that are installed."""
    found = {"bench_tasks": bench_tasks.__version__}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def git_state() -> dict[str, Any]:
    """Commit of the source tree and whether it has changes; commit "" outside a checkout."""
    root = Path(bench_tasks.__file__).resolve().parents[1]

    def git(*args: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(root), *args], capture_output=True, text=True, timeout=10, check=True
        )
        return done.stdout.strip()

    try:
        if Path(git("rev-parse", "--show-toplevel")).resolve() != root:
            return {"commit": "", "dirty": False}
        return {"commit": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain"))}
    except (OSError, subprocess.SubprocessError):
        return {"commit": "", "dirty": False}


def environment() -> dict[str, Any]:
    """What a result depends on besides its configuration."""
    return {
        "git": git_state(),
        "packages": packages(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cpus",
        "ros_distro": os.environ.get("ROS_DISTRO", ""),
        "command": ["bench_tasks", *sys.argv[1:]] if sys.argv else [],
    }


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Replace `path` by `value` in one step. BenchError when the disk does not take it."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with open(temporary, "w") as file:
            json.dump(value, file, indent=1, sort_keys=True)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise BenchError(f"cannot write {path}: {error.strerror}") from None


def read_json(path: Path) -> dict[str, Any]:
    """A manifest or result file; UsageError when it is missing or not a JSON object."""
    try:
        value = json.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise UsageError(f"{path} does not hold a JSON object")
    return value


def writable_folder(path: Path) -> Path:
    """Make the folder if need be and prove that a file can be written; UsageError if not."""
    probe = path / f".write_probe_{os.getpid()}"
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"x")
    except OSError as error:
        raise UsageError(f"cannot write to {path}: {error.strerror}") from None
    finally:
        try:
            probe.unlink(missing_ok=True)
        except OSError:
            pass
    return path
