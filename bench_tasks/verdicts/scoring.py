"""Scores recordings: the verdict derived again from a bag alone, by the same Monitor as live.

Nothing here needs the simulator, a policy or ROS. What is missing never scores well: a recording
that ends early, lacks a state or cannot be judged is a failure whose cause begins with
"incomplete recording: " or "unscored: ".
"""

from __future__ import annotations

import dataclasses
import json
import reprlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from bench_tasks import tasks
from bench_tasks.bags.bag import Recording, find_bags, place_of, read_bag
from bench_tasks.diagnosis import Diagnosis, diagnose
from bench_tasks.errors import UnscoredError, UsageError
from bench_tasks.execution import execution_of
from bench_tasks.tasks.base import Task
from bench_tasks.verdicts.dreams import dreams_of
from bench_tasks.verdicts.episode_score import EpisodeScore
from bench_tasks.verdicts.monitor import Monitor
from bench_tasks.verdicts.scored_runs import runs_below
from bench_tasks.verdicts.teamwork import teamwork_of
from bench_tasks.verdicts.usage import usage_of
from bench_tasks.vocabulary import Event, Verdict

__all__ = ["live_score", "one_name", "replay", "score_bag", "score_folder", "score_recording"]


def same_verdict(a: Verdict, b: Verdict) -> bool:
    """Whether two verdicts are equal once written down (tuples and lists are the same then).

    Coordination is compared where both measured it: older recordings did not.
    """
    if ("coordination" in a.details) != ("coordination" in b.details):
        a, b = (
            dataclasses.replace(
                v, details={k: d for k, d in v.details.items() if k != "coordination"}
            )
            for v in (a, b)
        )
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
    if recording.manifest and recording.manifest.get("state_hash") != recording.state_hash:
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
    except UnscoredError:
        raise
    except ValueError as error:
        raise UnscoredError(f"unscored: {error}") from None
    except Exception as error:  # noqa: BLE001
        # A recording of another version may lack what the task's code of today looks for.
        raise UnscoredError(f"unscored: {task.name} cannot judge it: {error!r}") from None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _agent(recording: Recording, role: str) -> str:
    for event in recording.events:
        if event.kind == "begin" and isinstance(event.data.get(role), dict):
            return _text(event.data[role].get("name"))
    return _text(recording.manifest.get(role))


def _conditions(recording: Recording) -> dict[str, str]:
    """Versions of the agents, and what of the world was varied; what is not said is not there."""
    found: dict[str, str] = {}
    begin = next((event.data for event in recording.events if event.kind == "begin"), {})
    for role in ("planner", "policy"):
        agent = begin.get(role)
        if isinstance(agent, dict) and _text(agent.get("version")):
            found[f"version of the {role}"] = agent["version"]
    axes = recording.manifest.get("vary")
    if isinstance(axes, list | tuple):
        found["vary"] = ",".join(map(str, axes)) or "nothing"
    for key in ("objects", "dynamics"):
        if isinstance(recording.manifest.get(key), str):
            found[key] = recording.manifest[key][:12] or "its own"
    return found


def help_of(events: Iterable[Event]) -> str:
    """The level of help that a planner's transcripts name; "" where they name none."""
    for event in events:
        transcript = event.data.get("transcript")
        if isinstance(transcript, dict) and _text(transcript.get("help")):
            return transcript["help"]
    return ""


def _asked(recording: Recording) -> bool | None:
    """Whether the planner had anything to do; None for an episode that ended before it could."""
    kinds = {event.kind for event in recording.events}
    if kinds & {"plan_request", "question", "show"}:
        return True
    return False if "act" in kinds else None


def _completeness(recording: Recording) -> None:
    """UnscoredError unless the manifest of a bag's folder says that it is whole, and it is.

    An MCAP file named by itself has no manifest: its events and states must do.
    """
    manifest = recording.manifest
    if recording.problems or not recording.path.is_dir():
        return
    if not manifest:
        raise UnscoredError("incomplete recording: manifest.json is missing")
    if manifest.get("status") != "complete":
        status = reprlib.repr(manifest.get("status"))
        why = _text(manifest.get("cause")) or _text(manifest.get("error"))
        raise UnscoredError(f"incomplete recording: the manifest's status is {status}"
                            + (f": {why}" if why else ""))  # fmt: skip
    counts = manifest.get("message_counts")
    if not isinstance(counts, dict):
        raise UnscoredError("incomplete recording: the manifest has no message_counts")
    for topic in sorted({*counts, *recording.counts}):
        if recording.counts[topic] != counts.get(topic, 0):
            raise UnscoredError(f"incomplete recording: {recording.counts[topic]} of "
                                f"{counts.get(topic, 0)} messages on {topic}")  # fmt: skip


def check_identity(recording: Recording) -> None:
    """UnscoredError when scene, manifest and folder do not mean the same episode."""
    scene, manifest = recording.scene, recording.manifest
    if scene is None:
        return
    recorded = {"task": scene.task, "seed": scene.seed, "task_version": scene.task_version}
    for key, value in recorded.items():
        if key in manifest and manifest[key] != value:
            raise UnscoredError(f"unscored: the manifest says {key} {manifest[key]!r}, "
                                f"the recorded scene {value!r}")  # fmt: skip
    place = place_of(recording.path)
    if place is not None and place != (scene.task, scene.seed):
        raise UnscoredError(f"unscored: the folder is that of {place[0]} seed {place[1]}, the "
                            f"recording of {scene.task} seed {scene.seed}")  # fmt: skip


def score_bag(path: Path) -> EpisodeScore:
    """Score one bag folder. Never raises for what is in it: a bad bag is an unscored episode."""
    return score_recording(read_bag(path))


def score_recording(recording: Recording) -> EpisodeScore:
    """Score what was read of one bag; as `score_bag`, never raises for what is in it."""
    manifest, scene = recording.manifest, recording.scene
    task, seed = _text(manifest.get("task")), manifest.get("seed")
    place = place_of(recording.path)
    if scene is not None:
        task, seed = scene.task, scene.seed
    elif not task and place is not None:
        task, seed = place
    known: dict[str, Any] = {
        "task": task, "seed": seed if type(seed) is int else None,
        "state_hash": recording.state_hash if recording.states else "",
        "bag": str(recording.path), "wall_s": _seconds(manifest.get("wall_s")),
        "planner": _agent(recording, "planner"), "policy": _agent(recording, "policy"),
        "help": help_of(recording.events), "usage": usage_of(recording.events),
        "execution": execution_of(recording.events), "dreams": dreams_of(recording.events),
        "conditions": _conditions(recording), "asked": _asked(recording),
        "sim_s": recording.states[-1].stamp_ns / 1e9 if recording.states else 0.0,
    }  # fmt: skip
    try:
        return _judged(recording, known)
    except UnscoredError as error:
        cause = str(error)
    except Exception as error:  # noqa: BLE001 - no content may cost the other bags their verdict
        cause = f"unscored: {error!r}"
    return EpisodeScore(
        **known, success=False, progress=0.0, scored=False, cause=cause,
        diagnosis=Diagnosis("unscored", cause).to_dict(),
    )


def live_score(task: Task, seed: int, verdict: Verdict, **known: Any) -> EpisodeScore:
    """The result of an episode that was not recorded; `known` gives the other fields."""
    return EpisodeScore(
        task.name, seed, verdict.success, verdict.progress, verdict.cause, sim_s=verdict.sim_s,
        stages=verdict.stages, tier=task.tier, mode=task.mode, kind=task.kind, bag="",
        details=verdict.details, end_seq=verdict.end_seq, task_version=task.version, **known,
    )  # fmt: skip


def _seconds(value: Any) -> float | None:
    """A recorded time; None when it is no finite number."""
    if type(value) not in (int, float) or not abs(value) < 1e12:
        return None
    return float(value)


def _judged(recording: Recording, known: dict[str, Any]) -> EpisodeScore:
    """The score of a whole recording. What is learnt on the way is added to `known`."""
    manifest, scene, live = recording.manifest, recording.scene, recording.verdict
    try:
        task = tasks.get(known["task"])
    except UsageError as error:
        if recording.problems:
            raise UnscoredError(f"incomplete recording: {recording.problems[0]}") from None
        raise UnscoredError(f"unscored: {error}") from None
    known |= {
        "tier": task.tier, "mode": task.mode, "kind": task.kind, "task_version": task.version
    }
    if manifest.get("status") == "failed" and _text(manifest.get("cause")):
        raise UnscoredError(manifest["cause"])
    _completeness(recording)
    check_identity(recording)
    verdict = replay(task, recording)
    notes = list(recording.notes)
    if scene is not None and scene.task_version != task.version:
        notes.append(f"recorded with version {scene.task_version} of {task.name}, "
                     f"scored with version {task.version}")  # fmt: skip
    if live is None:
        notes.append("no live verdict was recorded")
    found = None
    if scene is not None:
        found = diagnose(task, scene, recording.states, recording.events, verdict)
    return EpisodeScore(
        **{**known, "sim_s": verdict.sim_s}, success=verdict.success, progress=verdict.progress,
        cause=verdict.cause, stages=verdict.stages, details=verdict.details,
        end_seq=verdict.end_seq, agrees=None if live is None else same_verdict(live, verdict),
        notes=tuple(notes), diagnosis=found.to_dict() if found is not None else {},
        teamwork=teamwork_of(scene, recording.states, recording.events),
    )  # fmt: skip


def _unscored(score: EpisodeScore, why: str) -> EpisodeScore:
    return dataclasses.replace(
        score, success=False, progress=0.0, scored=False, cause=f"unscored: {why}", agrees=None,
        stages={}, details={}, end_seq=None,
        diagnosis=Diagnosis("unscored", f"unscored: {why}").to_dict(),
    )  # fmt: skip


def score_folder(
    folder: Path, progress: Callable[[int, int, EpisodeScore], None] | None = None
) -> list[EpisodeScore]:
    """Score every bag in and below a folder; `progress` hears (done, all, score) after each.

    Within a run an episode counts once, and so does a recording that is in no run: its copies
    are unscored. UsageError when the folder holds no recording.
    """
    bags, scores = find_bags(folder), []
    places: dict[Path | None, list[int]] = {}
    runs = {path.absolute(): run for path, run in runs_below(folder).items()}
    first: dict[tuple[Any, ...], str] = {}
    for bag in bags:
        recording = read_bag(bag)
        score = score_recording(recording)
        run = next((path for path in bag.absolute().parents if path in runs), None)
        key = (run, score.task, score.seed)
        if run is None:
            key += (score.planner, score.policy, score.state_hash)
        if score.scored and run is not None:
            said = _stranger(runs[run], recording.manifest)
            score = _unscored(score, said) if said else score
        if score.scored:
            if key in first:
                score = _unscored(score, f"{score.task} seed {score.seed} is in {first[key]} too")
            first.setdefault(key, bag.relative_to(folder).as_posix())
        places.setdefault(run, []).append(len(scores))
        scores.append(score)
        if progress is not None:
            progress(len(scores), len(bags), score)
    for run, members in places.items():
        if run is not None:
            named = one_name(runs[run], [scores[k] for k in members])
            for k, score in zip(members, named, strict=True):
                scores[k] = score
    return scores


def _stranger(run: dict[str, Any], manifest: dict[str, Any]) -> str:
    """What shows that an episode is not of this run; "" when nothing does."""
    asked = run.get("configuration")
    for key, name in (("planner", ""), ("policy", ""), ("objects", "object set")):
        one = asked.get("objects_hash" if name else key) if isinstance(asked, dict) else None
        other = manifest.get(key)
        if None not in (one, other) and one != other:
            return f"the {name or key} was {other or 'none'}, the run's is {one or 'none'}"
    return ""


def one_name(run: dict[str, Any], scores: Iterable[EpisodeScore]) -> list[EpisodeScore]:
    """The episodes of one run, each under the names that its agents have.

    An episode that never began knows only what its agents were asked for by: left under that, it
    would drop out of their rate.
    """
    found, asked = list(scores), run.get("configuration")
    if not isinstance(asked, dict):
        return found
    for role in ("planner", "policy"):
        spec = _text(asked.get(role))
        names = {getattr(score, role) for score in found if score.scored} - {spec, ""}
        if len(names) == 1:
            name = names.pop()
            found = [
                dataclasses.replace(s, **{role: name}) if getattr(s, role) == spec else s
                for s in found
            ]  # fmt: skip
    return found
