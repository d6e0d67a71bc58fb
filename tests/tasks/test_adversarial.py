"""How many of the tests of each task stage what looks like success and is not."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from bench_tasks import tasks

LEAST = 4
MODULES = [
    path for path in sorted(Path(__file__).parent.glob("test_*.py"))
    if path.stem not in ("test_adversarial", "test_every_task", "test_monitor")
]  # fmt: skip


def calls(node: ast.AST) -> set[str]:
    """Names of the functions that are called in it."""
    called = [n.func for n in ast.walk(node) if isinstance(n, ast.Call)]
    return {function.id for function in called if isinstance(function, ast.Name)}


def strings(node: ast.AST) -> set[str]:
    return {n.value for n in ast.walk(node) if isinstance(n, ast.Constant)} & set(tasks.names(None))


def adversarial(source: str) -> dict[str, list[str]]:
    """Task -> its tests that assert a failure (`fails`, `fails_with`).

    A module's tests are about the tasks it names outside of its functions and in its fixtures; a
    test that names tasks of its own is about those alone.
    """
    tree = ast.parse(source)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    tests = [f for f in functions if f.name.startswith("test_")]
    shared = set().union(*(strings(node) for node in tree.body if node not in tests))
    found: dict[str, list[str]] = {}
    for test in tests:
        if calls(test) & {"fails", "fails_with"}:
            for name in strings(test) or shared:
                found.setdefault(name, []).append(test.name)
    return found


@pytest.mark.parametrize("task", tasks.names(None))
def test_each_task_has_adversarial_tests(task):
    found = [
        name for path in MODULES for name in adversarial(path.read_text()).get(task, [])
    ]
    assert len(found) >= LEAST, f"{task} has only {found}: stage what only looks like success"


def test_what_counts():
    source = """
TASK = "lift_pot"
def test_one(stage): fails(stage, "level")
def test_two(stage): fails_with(stage, "wrong") if stage else succeeds(stage)
def test_good(stage): succeeds(stage)
def test_other(world): fails(Stage(world, "carry_tray"))
def helper(stage): fails(stage)
"""
    want = {"lift_pot": ["test_one", "test_two"], "carry_tray": ["test_other"]}
    assert adversarial(source) == want
    assert adversarial("def test_none(stage): fails(stage)") == {}
