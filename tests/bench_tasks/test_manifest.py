"""A run's manifest says how the run ended, whatever the disk does."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench_tasks import manifest as manifests
from bench_tasks.errors import UsageError
from bench_tasks.manifest import RunManifest

ROOT = Path(__file__).parents[2]
OWN_DISK = """
set -e
mount -t tmpfs -o size=128k tmpfs {disk}
cd {root}
exec {python} -c '{code}'
"""
FILL = """
import itertools, json
from pathlib import Path
from bench_tasks.errors import BenchError
from bench_tasks.manifest import RunManifest, write_json
disk = Path("{disk}")
def fill(leave=0):
    written = 0
    with open(disk / "others", "ab", buffering=0) as file:
        for size in (4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                pass
        file.truncate(max(0, file.tell() - leave))
"""


def on_a_disk_of_its_own(tmp_path, code: str) -> dict:
    """What `code` prints, as JSON, run where `disk` is a small file system that it can fill."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare here")
    script = OWN_DISK.format(
        disk=disk, root=ROOT, python=sys.executable, code=FILL.format(disk=disk) + code
    )
    if subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", disk]).returncode:
        pytest.skip("file systems cannot be mounted here")
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_run_ends_on_a_full_disk_that_others_fill_on(tmp_path):
    """What is given back is taken at once by another process; the end is on record all the same."""
    value = on_a_disk_of_its_own(
        tmp_path,
        """
manifest = RunManifest(disk / "out", {"tasks": ["lift_pot"]}, {"lift_pot": 1})
fill()
unlink = Path.unlink
def greedy(path, missing_ok=False):
    unlink(path, missing_ok)
    fill()
Path.unlink = greedy
manifest.finish("failed", cause="disk full")
print((disk / "out/run.json").read_text())
""",
    )
    assert (value["status"], value["cause"]) == ("failed", "disk full")
    assert value["configuration"] == {"tasks": ["lift_pot"]}


def test_a_run_that_cannot_begin_leaves_no_manifest_that_says_it_runs(tmp_path):
    value = on_a_disk_of_its_own(
        tmp_path,
        """
(disk / "out").mkdir()
fill(leave=16384)
try:
    RunManifest(disk / "out", {}, {})
except BenchError as error:
    print(json.dumps({"error": str(error), "left": [p.name for p in (disk / "out").iterdir()]}))
""",
    )
    assert value["left"] == [] and "No space left on device" in value["error"]


def test_a_folder_is_claimed_once_and_given_back_nothing_but_the_manifest(tmp_path):
    manifest = RunManifest(tmp_path / "out", {"tasks": []}, {})
    assert json.loads((tmp_path / "out/run.json").read_text())["status"] == "running"
    with pytest.raises(UsageError, match="holds a run already"):
        RunManifest(tmp_path / "out", {}, {})
    manifest.finish("complete", evaluated=0)
    (only,) = (tmp_path / "out").iterdir()
    value = json.loads(only.read_text())
    assert (only.name, value["status"], value["evaluated"]) == ("run.json", "complete", 0)


def test_of_two_that_claim_a_folder_at_once_one_gets_it(tmp_path, monkeypatch):
    def meanwhile(end: bool):
        """Another run begins (and ends) just after this one has seen that the folder is free."""
        monkeypatch.undo()
        other = RunManifest(tmp_path / "out", {"whose": "the other's"}, {})
        if end:
            other.finish("complete")
        return {}

    for end in (False, True):
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        monkeypatch.setattr(manifests, "environment", lambda end=end: meanwhile(end))
        with pytest.raises(UsageError, match="holds a run already"):
            RunManifest(tmp_path / "out", {"whose": "mine"}, {})
        value = json.loads((tmp_path / "out/run.json").read_text())
        assert value["configuration"] == {"whose": "the other's"}
        assert value["status"] == ("complete" if end else "running")
        left = {path.name for path in (tmp_path / "out").iterdir()}
        assert left == {"run.json"} | (set() if end else {".run.json.reserve"})
