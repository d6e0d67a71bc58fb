"""Scores recordings: the verdict derived again from a bag alone, by the same Monitor as live.

Nothing here needs the simulator, a policy or ROS. What is missing never scores well: a recording
that ends early, lacks a state or cannot be judged is a failure whose cause begins with
"incomplete recording: " or "unscored: ".
"""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench_tasks import tasks
from bench_tasks.bag import Recording, find_bags, read_bag
from bench_tasks.errors import BenchError, UnscoredError, UsageError
from bench_tasks.manifest import FORMAT_VERSION, environment, read_json, utc_now
from bench_tasks.monitor import Monitor
from bench_tasks.tasks.base import Task
from bench_tasks.vocabulary import Event, Verdict

__all__ = [
    "EpisodeScore", "load_scores", "newest_scores", "replay", "save_scores", "score_bag",
    "score_folder",
]  # fmt: skip


@dataclass(frozen=True)
class EpisodeScore:
    """One episode's result. `bag` is its folder, "" if nothing was recorded.

    `wall_s` is None when the recording does not say. `scored` is False when no verdict could be
    derived. `agrees`: whether the live verdict says the same; None when there is none to compare.
    """

    task: str
    seed: int | None
    success: bool
    progress: float
    cause: str
    state_hash: str
    bag: str
    wall_s: float | None
    sim_s: float
    stages: dict[str, bool] = field(default_factory=dict)
    tier: int | None = None
    mode: str = ""
    kind: str = ""
    planner: str = ""
    policy: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    end_seq: int | None = None
    task_version: int | None = None
    scored: bool = True
    agrees: bool | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return dataclasses.asdict(self)


def same_verdict(a: Verdict, b: Verdict) -> bool:
    """Whether two verdicts are equal once written down (tuples and lists are the same then)."""
    texts = [json.dumps(dataclasses.asdict(v), sort_keys=True) for v in (a, b)]
    return texts[0] == texts[1]


def _end_of(recording: Recording) -> Event:
    """The event that ends the episode; UnscoredError when the record is not whole."""
    if recording.problems:
        raise UnscoredError(f"incomplete recording: {recording.problems[0]}")
    if recording.scene is None:
        raise UnscoredError("unscored: no scene was recorded")
    if not recording.states:
        raise UnscoredError("incomplete recording: no state was recorded")
    ends = [event for event in recording.events if event.kind == "end"]
    last = recording.states[-1].seq
    if len(ends) != 1:
        many = "no end event" if not ends else f"{len(ends)} end events"
        raise UnscoredError(f"incomplete recording: {many}, the last state is {last}")
    if recording.states[0].seq != 0:
        raise UnscoredError(f"unscored: the first state is {recording.states[0].seq}, not 0")
    if last < ends[0].seq:
        raise UnscoredError(f"incomplete recording: states {last + 1} to {ends[0].seq} are missing")
    promised = recording.manifest.get("state_hash")
    if promised is not None and promised != recording.state_hash:
        raise UnscoredError("unscored: the state track is not the one its manifest vouches for")
    return ends[0]


def replay(task: Task, recording: Recording) -> Verdict:
    """Judge a recording: states up to the end event, each followed by the events it carried.

    UnscoredError, with the cause to report, when that cannot be done.
    """
    end = _end_of(recording)
    events = sorted(recording.events, key=lambda event: event.seq)  # stable: recorded order
    try:
        monitor = Monitor(task, recording.scene)  # type: ignore[arg-type]
        k = 0
        for state in recording.states:
            if state.seq > end.seq:
                break
            monitor.on_state(state)
            while k < len(events) and events[k].seq <= state.seq:
                monitor.on_event(events[k])
                k += 1
        return monitor.verdict()
    except ValueError as error:
        raise UnscoredError(f"unscored: {error}") from None
    except (KeyError, IndexError, TypeError, AttributeError, BenchError) as error:
        # A recording of another version may lack what the task's code of today looks for.
        raise UnscoredError(f"unscored: {task.name} cannot judge it: {error!r}") from None


def _agent(recording: Recording, role: str) -> str:
    for event in recording.events:
        if event.kind == "begin" and isinstance(event.data.get(role), dict):
            return str(event.data[role].get("name", ""))
    return str(recording.manifest.get(role, ""))


def score_bag(path: Path) -> EpisodeScore:
    """Score one bag folder. Never raises for what is in it: a bad bag is an unscored episode."""
    return score_recording(read_bag(path))


def score_recording(recording: Recording) -> EpisodeScore:
    """Score what was read of one bag."""
    manifest, scene = recording.manifest, recording.scene
    wall_s = manifest.get("wall_s")
    known: dict[str, Any] = {
        "task": scene.task if scene else str(manifest.get("task", "")),
        "seed": scene.seed if scene else manifest.get("seed"),
        "state_hash": recording.state_hash if recording.states else "",
        "bag": str(recording.path),
        "wall_s": float(wall_s) if isinstance(wall_s, int | float) else None,
        "planner": _agent(recording, "planner"), "policy": _agent(recording, "policy"),
    }  # fmt: skip
    sim_s = recording.states[-1].stamp_ns / 1e9 if recording.states else 0.0
    failed: dict[str, Any] = {"success": False, "progress": 0.0, "sim_s": sim_s, "scored": False}
    try:
        task = tasks.get(known["task"])
    except UsageError as error:
        cause = f"unscored: {error}"
        if recording.problems:
            cause = f"incomplete recording: {recording.problems[0]}"
        return EpisodeScore(**known, **failed, cause=cause)
    known |= {
        "tier": task.tier, "mode": task.mode, "kind": task.kind, "task_version": task.version
    }
    if manifest.get("status") == "failed" and manifest.get("cause"):
        return EpisodeScore(**known, **failed, cause=str(manifest["cause"]))
    try:
        verdict = replay(task, recording)
    except UnscoredError as error:
        return EpisodeScore(**known, **failed, cause=str(error))
    live = recording.verdict
    notes = ()
    if scene is not None and scene.task_version != task.version:
        notes = (f"recorded with version {scene.task_version} of {task.name}, "
                 f"scored with version {task.version}",)  # fmt: skip
    return EpisodeScore(
        **known, success=verdict.success, progress=verdict.progress, cause=verdict.cause,
        sim_s=verdict.sim_s, stages=verdict.stages, details=verdict.details,
        end_seq=verdict.end_seq, agrees=None if live is None else same_verdict(live, verdict),
        notes=notes,
    )  # fmt: skip


def score_folder(
    folder: Path, progress: Callable[[int, int, EpisodeScore], None] | None = None
) -> list[EpisodeScore]:
    """Score every bag in and below a folder; `progress` hears (done, all, score) after each.

    UsageError when the folder holds no recording.
    """
    bags, scores = find_bags(folder), []
    for bag in bags:
        scores.append(score_bag(bag))
        if progress is not None:
            progress(len(scores), len(bags), scores[-1])
    return scores


# ---- result files -----------------------------------------------------------------------------


def save_scores(folder: Path, scores: list[EpisodeScore]) -> Path:
    """Write `scores-<UTC time>.json` into the folder beside older ones, and return its path.

    Bags are named relative to the folder. BenchError when it cannot be written.
    """
    episodes = []
    for score in scores:
        bag = Path(score.bag)
        inside = score.bag and bag.is_relative_to(folder)
        name = bag.relative_to(folder).as_posix() if inside else score.bag
        episodes.append({**score.to_dict(), "bag": name})
    result = {
        "format_version": FORMAT_VERSION, "created": utc_now(), "environment": environment(),
        "episodes": episodes,
    }  # fmt: skip
    text = json.dumps(result, indent=1) + "\n"  # unsorted: stages keep their order
    while True:
        now = datetime.datetime.now(datetime.timezone.utc)
        path = folder / f"scores-{now:%Y%m%dT%H%M%S.%f}Z.json"
        try:
            with open(path, "x") as file:
                file.write(text)
            return path
        except FileExistsError:
            continue  # another one in the same microsecond: take the next
        except OSError as error:
            raise BenchError(f"cannot write {path}: {error.strerror}") from None


def newest_scores(folder: Path) -> Path | None:
    """The latest result file of a folder; None when it was never scored."""
    return max(folder.glob("scores-*.json"), default=None)


def load_scores(path: Path) -> list[EpisodeScore]:
    """Read a result file; bags are named from its folder. UsageError when it is malformed."""
    raw = read_json(path)
    if raw.get("format_version") != FORMAT_VERSION:
        raise UsageError(
            f"{path} has format_version {raw.get('format_version')!r}, this is {FORMAT_VERSION}"
        )
    try:
        return [
            EpisodeScore(**{
                **episode, "notes": tuple(episode["notes"]),
                "bag": str(path.parent / episode["bag"]) if episode["bag"] else "",
            })
            for episode in raw["episodes"]
        ]  # fmt: skip
    except (KeyError, TypeError) as error:
        raise UsageError(f"{path} is not a result file: {error}") from None
