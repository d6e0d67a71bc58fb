"""Manifests: what ran, with which versions, so that it can be repeated; one per run and episode.

Both are JSON with a `format_version`, written at the start (status "recording") and replaced
atomically at the end, so that a killed process leaves a manifest that says so.
"""

from __future__ import annotations

import datetime
import glob
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import bench_tasks
from bench_tasks.errors import BenchError, UsageError

__all__ = [
    "PAGE", "PICTURE", "RunManifest", "environment", "episode_manifest", "partial_folder",
    "read_json", "replaceable", "replacing", "stamped_folder", "utc_now",
    "writable_folder", "write_json",
]  # fmt: skip

FORMAT_VERSION = 1
PAGE, PICTURE = b"<!doctype html>", b"\x89PNG"
"""How files begin that `--out` may replace."""
RESERVE_BYTES = 32 * 1024
"""Kept free during a run, so that a full disk still takes how it ended."""
_PACKAGES = (
    "numpy", "scipy", "mujoco", "pin", "opencv-python-headless", "mcap", "zstandard", "PyYAML",
    "ros-rclpy", "torch", "transformers",
)  # fmt: skip


def utc_now() -> str:
    """The time now, UTC, as ISO 8601 to the second."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def stamped_folder() -> Path:
    """A folder for results, named by the time: for who names none."""
    return Path(f"results/{datetime.datetime.now(datetime.timezone.utc):%Y%m%dT%H%M%SZ}")


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


@cache
def environment() -> dict[str, Any]:
    """What a result depends on besides its configuration; looked up once per process."""
    return {
        "git": git_state(),
        "packages": packages(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cpus",
        "ros_distro": os.environ.get("ROS_DISTRO", ""),
        "command": _command(),
    }


def _command() -> list[str]:
    program = Path(sys.argv[0]).name if sys.argv else ""
    return ["bench_tasks" if program in ("", "cli.py") else program, *sys.argv[1:]]


def _as_json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=1, sort_keys=True) + "\n"


def replaceable(path: Path, begins: bytes) -> Path:
    """The path; UsageError when a file is there that does not begin as those do which we write."""
    try:
        with open(path, "rb") as file:
            found = file.read(len(begins))
    except OSError:  # nothing is there, or writing will say what is
        return path
    if found != begins:
        raise UsageError(f"{path} is another kind of file and would be overwritten: give --out "
                         "another name")  # fmt: skip
    return path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to, which takes the place of `path` in one step when the block ends well.

    Otherwise nothing is left of it. BenchError when the disk does not take it.
    """
    temporary = path.with_name(path.name + ".tmp")
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise BenchError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        with suppress(OSError):  # where there is no folder there is nothing left either
            temporary.unlink()


@contextmanager
def partial_folder(path: Path) -> Iterator[Path]:
    """The name of a folder of this process' own, which becomes `path` by being renamed to it.

    Whatever is left of it when the block ends is removed, and what killed processes left as well.
    """
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):
        try:
            os.kill(int(left.name.split(".")[-2]), 0)
        except (ProcessLookupError, ValueError, OverflowError):
            shutil.rmtree(left, ignore_errors=True)
        except OSError:
            continue
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        yield partial
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Replace `path` by `value` in one step. BenchError when the disk does not take it."""
    with replacing(path) as temporary:
        temporary.write_text(_as_json(value))


def read_json(path: Path) -> dict[str, Any]:
    """A manifest or result file; UsageError when it is missing or not a JSON object."""
    try:
        value = json.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
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


class RunManifest:
    """`run.json` of an output folder: written at the start, completed at the end."""

    def __init__(self, out: Path, configuration: dict[str, Any], versions: dict[str, int]) -> None:
        """Claim the folder for one run.

        `configuration` holds tasks, seeds, planner, policy and options; `versions` the version of
        each task. UsageError when the folder cannot be written or holds a run already.
        """
        self._path = writable_folder(out) / "run.json"
        taken = UsageError(f"{out} holds a run already: choose another output folder")
        if self._path.exists():
            raise taken
        self.value: dict[str, Any] = {
            "format_version": FORMAT_VERSION, "status": "running", "started": utc_now(),
            "configuration": configuration, "task_versions": versions, **environment(),
        }  # fmt: skip
        self._reserve = out / ".run.json.reserve"
        # First of all: a run.json without a reserve could say "running" for ever. Whoever makes
        # it has the folder, also when two begin at once.
        try:
            with open(self._reserve, "xb") as file:
                file.write(os.urandom(RESERVE_BYTES))
            if self._path.exists():
                raise taken
            write_json(self._path, self.value)
        except FileExistsError:
            raise taken from None
        except OSError as error:
            self._reserve.unlink(missing_ok=True)
            raise BenchError(f"cannot write to {out}: {error.strerror}") from None
        except BenchError:
            self._reserve.unlink(missing_ok=True)
            raise

    def finish(self, status: str, **more: Any) -> None:
        """Say how the run ended ("complete", "failed", "interrupted"), on a full disk too."""
        self.value |= {"status": status, "finished": utc_now(), **more}
        try:
            # Written into what was kept free: given back, another process might take it first.
            with open(self._reserve, "r+b") as file:
                file.write(_as_json(self.value).encode())
                file.truncate()
                os.fsync(file.fileno())
            os.replace(self._reserve, self._path)
        except OSError:
            self._reserve.unlink(missing_ok=True)
            write_json(self._path, self.value)


def episode_manifest(
    task: str, task_version: int, seed: int, planner: str, policy: str, **more: Any
) -> dict[str, Any]:
    """What an episode's manifest holds from the start; the bag writer adds status and counts."""
    return {
        "task": task, "task_version": task_version, "seed": seed, "planner": planner,
        "policy": policy, **more, **environment(),
    }  # fmt: skip
