"""Whether the recordings of a run are the episodes that it was asked for, each once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_tasks.errors import UsageError
from bench_tasks.manifest import read_json

if TYPE_CHECKING:
    from bench_tasks.verdicts.episode_score import EpisodeScore

__all__ = ["runs_below", "wrong_episodes", "wrong_runs"]

NAMED = 5
"""Episodes that a message names; more are counted."""


def runs_below(folder: Path) -> dict[Path, dict[str, Any]]:
    """Folders of the runs in and below a folder, each with its run.json; UsageError if malformed.

    Also the run that the folder itself lies in, when it holds one episode or one task of it.
    """
    files = [path / "run.json" for path in folder.absolute().parents[:2]]
    files = [file for file in files if file.is_file()]
    return {file.parent: read_json(file) for file in [*files, *sorted(folder.rglob("run.json"))]}


def wrong_runs(folder: Path, scores: list[EpisodeScore]) -> list[str]:
    """What to say of each run in and below a folder that has not just the episodes it asked for."""
    found = []
    for path, run in runs_below(folder).items():
        if not path.is_relative_to(folder):
            continue  # only a part of that run was scored
        inside = [(s.task, s.seed) for s in scores if Path(s.bag).is_relative_to(path)]
        said = wrong_episodes(run, inside)
        if said:
            found.append(said if path == folder else f"{path.relative_to(folder)}: {said}")
    return found


def wrong_episodes(run: dict[str, Any], present: Iterable[tuple[str, int | None]]) -> str:
    """What to say when the (task, seed) that are present are not those a run.json asked for.

    "" when each is there exactly once. UsageError when the configuration is malformed.
    """
    asked = run.get("configuration")
    if asked is None:
        return "run.json does not say which episodes were asked for"
    if not isinstance(asked, dict):
        raise UsageError("run.json is malformed: its configuration is not a mapping")
    tasks, seed, episodes = asked.get("tasks"), asked.get("seed", 0), asked.get("episodes")
    if not isinstance(tasks, list) or not all(isinstance(name, str) for name in tasks):
        raise UsageError("run.json is malformed: its configuration names no tasks")
    if type(seed) is not int or type(episodes) is not int:
        raise UsageError("run.json is malformed: its seed or episodes is not a whole number")
    seeds = range(seed, seed + episodes)
    found = Counter(present)
    right = {(name, s) for name, s in found if name in tasks and type(s) is int and s in seeds}
    planned = len(set(tasks)) * max(0, episodes)
    missing = planned - len(right)
    absent = ((name, s) for name in dict.fromkeys(tasks) for s in seeds if (name, s) not in right)
    extra = [pair for pair, n in found.items() for _ in range(n - (pair in right))]
    said = []
    if missing:
        said.append(f"{missing} of the {planned} episodes that the run asked for are missing: "
                    f"{_named(absent, missing)}")  # fmt: skip
    if extra:
        said.append(f"{len(extra)} that the run did not ask for, or has already: "
                    f"{_named(extra, len(extra))}")  # fmt: skip
    return "; ".join(said)


def _named(pairs: Iterable[tuple[str, int | None]], count: int) -> str:
    names = [f"{task or 'unknown task'} seed {seed}" for task, seed in islice(pairs, NAMED)]
    return ", ".join(names) + (f" and {count - NAMED} more" if count > NAMED else "")
