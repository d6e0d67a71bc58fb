"""Temporary folders: what a killed process left is cleared away, and nothing that is in use."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import pytest

from bench_tasks.scratch import Scratch

HOLD = """
import time
from bench_tasks.scratch import Scratch
made = Scratch("bench_tasks_x-")
(made.path / "a").write_text("kept")
print(made.path, flush=True)
time.sleep(60)
"""


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_what_a_killed_process_left_goes_and_what_is_used_stays(temporary):
    other = temporary / "bench_tasks_y-1"
    other.mkdir()
    (temporary / "bench_tasks_x-link").symlink_to(other)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    )  # fmt: skip
    try:
        held = holder.stdout.readline().strip()
        first = Scratch("bench_tasks_x-")
        assert os.listdir(held) == ["a"] and first.path.is_dir()
    finally:
        holder.kill()
        holder.communicate()
    second = Scratch("bench_tasks_x-")
    assert not os.path.exists(held) and first.path.is_dir() and other.is_dir()
    for one in (first, second):
        one.cleanup()
    assert sorted(path.name for path in temporary.iterdir()) == ["bench_tasks_x-link", other.name]


def test_a_folder_that_is_cleared_away_before_it_is_locked_is_made_again(temporary, monkeypatch):
    make, made = tempfile.mkdtemp, []

    def taken_away_once(prefix):
        made.append(make(prefix=prefix))
        if len(made) == 1:
            os.rmdir(made[0])
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", taken_away_once)
    assert str(Scratch("x-").path) == made[1]


def test_another_users_is_not_touched(temporary, monkeypatch):
    (temporary / "x-1").mkdir()
    monkeypatch.setattr(os, "getuid", lambda: -1)
    Scratch("x-").cleanup()
    assert (temporary / "x-1").is_dir()
