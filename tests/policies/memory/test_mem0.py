"""Mem0 as a memory, beside what the contract asks of all."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest

from bench_tasks.errors import UsageError
from bench_tasks.probes.stream import Item, Query
from policies.memory import make_memory
from tests.policies.memory.test_contract import QUERY, ROOT, conversation, filled, needs


@pytest.fixture
def installed():
    needs("mem0")


def test_without_the_package_it_is_one_line_that_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    line = "^memory mem0 needs mem0: pip install --no-deps -r requirements/mem0.txt$"
    with pytest.raises(UsageError, match=line):
        make_memory("mem0")


def test_a_wrong_option_is_one_line():
    with pytest.raises(UsageError, match="memory mem0: items must be 1 or more, got 0"):
        make_memory("mem0:items=0")


ALONE = """
import socket
tried = []
def refuse(*arguments, **more):
    tried.append(arguments)
    raise OSError("no network here")
socket.socket.connect = socket.socket.connect_ex = socket.socket.sendto = refuse
socket.getaddrinfo = socket.create_connection = refuse
from tests.policies.memory.test_contract import QUERY, filled
memory = filled("mem0")
assert memory.recall(QUERY)
memory.forget(["i3"])
assert memory.recall(QUERY)
from mem0.memory import telemetry
assert telemetry.client_telemetry.posthog is None
telemetry.capture_event("mem0.init", memory._index, {})
assert telemetry._oss_telemetry_instance is None
print("tried", tried)
"""


def test_it_reaches_for_no_network_and_writes_nothing_into_the_home(installed, tmp_path):
    at = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    told = {"HOME": str(tmp_path), "PYTHONPATH": at, "MEM0_TELEMETRY": "True"}
    done = subprocess.run(
        [sys.executable, "-c", ALONE], cwd=ROOT, env={**os.environ, **told}, text=True,
        capture_output=True, timeout=200, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "tried []\n"), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_it_finds_the_nearest_that_are_near_at_all(installed):
    from policies.memory.vectors import Vectors
    from policies.sentences import embed

    items = [*conversation(), Item("x", 0, "s", "Ana", "Tea for two, please.")]
    memory = make_memory("mem0:items=4")
    for item in items:
        memory.observe(item)
    for text in ("What does Ana drink?", "Look here.", "7 8 9"):
        rows = Vectors.of(memory.vectors, list(enumerate(items))).astype(float)
        cosines = rows @ embed(text) / np.linalg.norm(rows, axis=1)
        near = [k for k in np.argsort(-cosines) if cosines[k] >= 0.1][:4]
        found = [items.index(item) for item in memory.recall(Query("q", 0, text))]
        assert np.allclose(cosines[found], cosines[near], atol=1e-6)


def test_what_another_process_forgot_is_not_recalled(installed, tmp_path):
    one, two = filled("mem0", tmp_path / "m.db"), filled("mem0", tmp_path / "m.db")
    before = one.recall(QUERY)
    two.forget([before[0].id])
    assert one.recall(QUERY) == before[1:] == two.recall(QUERY)
