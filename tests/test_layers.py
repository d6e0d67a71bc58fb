"""Who may import what. Read from the source, so nothing is executed."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
OURS = ("bench_tasks", "sim", "policies", "hardware")
ROS = {
    "rclpy", "bench_interfaces", "simulation_interfaces", "rosidl_runtime_py", "sensor_msgs",
    "std_msgs", "std_srvs", "geometry_msgs", "rosgraph_msgs", "builtin_interfaces", "tf2_msgs",
    "launch", "launch_ros", "ament_index_python", "trajectory_msgs", "diagnostic_msgs",
    "franka_msgs",
}
ROS_FILES = ("_node.py", "_ros.py")
"""A node, which has an entry point, and what nodes share."""
BENCH_FILES_THAT_KNOW_SIM_AND_POLICIES = {
    "runner.py", "doctor.py", "gallery.py", "evolve.py", "remember.py", "memory_runs.py",
}


@cache
def imports(path: Path) -> frozenset[str]:
    """Full names of all that a file imports, also inside functions; `from a import b` gives a.b."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(found)


def tops(path: Path) -> set[str]:
    """The packages that a file imports."""
    return {name.split(".")[0] for name in imports(path)}


def sources(folder: str) -> list[Path]:
    """All Python files of a folder of the repository."""
    return sorted((ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("folder", ["bench_tasks", "sim", "policies"])
def test_the_folders_hold_something(folder):
    assert len(sources(folder)) > 3


def test_a_node_file_is_a_node_with_an_entry_point():
    guilty = [
        name_of(path)
        for folder in OURS
        for path in sources(folder)
        if path.stem.endswith("_node") and "def main(" not in path.read_text(encoding="utf-8")
    ]
    assert guilty == []


def test_only_nodes_and_their_ros_helpers_import_ros():
    guilty = {
        name_of(path): sorted(tops(path) & ROS)
        for folder in OURS
        for path in sources(folder)
        if not path.name.endswith(ROS_FILES) and tops(path) & ROS
    }
    assert guilty == {}


@pytest.mark.parametrize(
    ("folder", "forbidden"),
    [
        ("sim", {"policies", "hardware"}),
        ("policies", {"sim", "hardware"}),
        ("hardware", {"sim", "policies"}),
    ],
)
def test_folders_do_not_reach_into_each_other(folder, forbidden):
    guilty = {
        name_of(path): sorted(tops(path) & forbidden)
        for path in sources(folder)
        if tops(path) & forbidden
    }
    assert guilty == {}


def test_bench_tasks_knows_sim_and_policies_in_few_files_only():
    guilty = {
        path.name
        for path in sources("bench_tasks")
        if tops(path) & {"sim", "policies", "hardware"}
    }
    assert guilty <= BENCH_FILES_THAT_KNOW_SIM_AND_POLICIES


def test_launch_files_import_launch_and_the_vocabulary_only():
    allowed = {"launch", "launch_ros", "bench_tasks"} | set(sys.stdlib_module_names)
    assert sources("launch")
    for path in sources("launch"):
        assert tops(path) <= allowed, name_of(path)
        assert not any(name.endswith(("_node", "_ros")) for name in imports(path)), name_of(path)


def file_of(name: str) -> Path | None:
    """The file of a module, or of the module that an imported name comes from."""
    for candidate in (name, name.rpartition(".")[0]):
        base = ROOT.joinpath(*candidate.split(".")) if candidate else None
        if base is None:
            continue
        if base.with_suffix(".py").is_file():
            return base.with_suffix(".py")
        if (base / "__init__.py").is_file():
            return base / "__init__.py"
    return None


def closure(start: list[Path]) -> dict[Path, set[str]]:
    """Every file of the repository that is reached by imports, with the packages it imports."""
    seen: dict[Path, set[str]] = {}
    todo = list(start)
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen[path] = tops(path)
        todo += [found for name in imports(path) if (found := file_of(name)) is not None]
    return seen


def test_scoring_reaches_no_simulator_no_policy_and_no_ros():
    # The tasks are found by walking their package, which no import statement shows.
    start = [ROOT / "bench_tasks/verdicts/scoring.py", *sources("bench_tasks/tasks")]
    reached = closure(start)
    assert ROOT / "bench_tasks/verdicts/monitor.py" in reached, "the closure must follow imports"
    forbidden = ROS | {"sim", "policies", "hardware", "mujoco", "torch", "transformers"}
    guilty = {
        name_of(path): sorted(packages & forbidden)
        for path, packages in reached.items()
        if packages & forbidden
    }
    assert guilty == {}


def test_the_reader_of_imports_sees_them_all(tmp_path):
    file = tmp_path / "x.py"
    file.write_text("import a.b\ndef f():\n    from c import d\n    import e as g\n")
    assert imports(file) == {"a.b", "c.d", "e"}


def test_a_benchmark_runs_from_anywhere_on_the_code_beside_it():
    """Whatever else is installed; in folders are parts of some, not run by themselves."""
    ours = re.compile(rf"^(from|import) ({'|'.join(OURS)})\b", re.MULTILINE)
    texts = {path: path.read_text(encoding="utf-8") for path in sources("benchmarks")
             if path.parent.name == "benchmarks"}  # fmt: skip
    before = {path: text[: at.start()] for path, text in texts.items() if (at := ours.search(text))}
    assert len(before) > 5
    guilty = [name_of(path) for path, text in before.items() if "\nsys.path.insert(0" not in text]
    assert guilty == []
