"""Runs episodes in this process, without middleware, and scores what was recorded.

With `doctor` and `gallery` the only module of the package that knows the simulator and the
policies; both are imported when a run begins.
"""

from __future__ import annotations

import datetime
import time
import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench_tasks import scoring, tasks
from bench_tasks.config import RunConfig
from bench_tasks.diagnosis import Diagnosis, diagnose
from bench_tasks.episode import Options, run_episode
from bench_tasks.errors import BenchError, unknown
from bench_tasks.manifest import RunManifest, episode_manifest
from bench_tasks.progress import Progress, duration
from bench_tasks.recording import BagSink, HashSink, RecordingError
from bench_tasks.scoring import EpisodeScore
from bench_tasks.tasks.base import Task
from bench_tasks.vocabulary import Planner, Policy, Verdict, World, WorldState

__all__ = ["Interrupted", "RunResult", "check", "policy_server", "run"]


@dataclass(frozen=True)
class RunResult:
    """What came out: a score per episode, the folder, the result file (None without recording)."""

    episodes: list[EpisodeScore]
    out: Path | None
    scores: Path | None

    @property
    def evaluated(self) -> bool:
        """Whether every episode got a verdict, and the same one live and offline."""
        return all(e.evaluated for e in self.episodes)


class Interrupted(BenchError):
    """Ctrl-C: what was finished is kept."""

    exit_status = 130


def check(config: RunConfig) -> RunConfig:
    """Return the configuration, its `out` filled in; UsageError before anything is created."""
    from policies import check_planner, check_policy

    config.checked()
    check_planner(config.planner)
    check_policy(config.policy)
    import sim.world  # noqa: F401 - chooses the renderer, before anything else brings in mujoco
    from sim.scene import CAMERAS

    for camera in config.cameras:
        if camera not in CAMERAS:
            raise unknown("camera", camera, CAMERAS)
    if config.out:
        return config
    now = datetime.datetime.now(datetime.timezone.utc)
    return replace(config, out=f"results/{now:%Y%m%dT%H%M%SZ}")


def policy_server(spec: str, host: str, port: int) -> Any:
    """A `policies.remote.serve.PolicyServer`; UsageError when the policy cannot be served."""
    from policies.remote.serve import PolicyServer

    return PolicyServer(spec, host, port)


@dataclass
class _Cell:
    """What is made once and used for every episode."""

    world: World
    planner: Planner
    policy: Policy


def _from_live(task: Task, seed: int, verdict: Verdict, known: dict[str, Any]) -> EpisodeScore:
    """The result of an episode that was not recorded."""
    return EpisodeScore(
        task.name, seed, verdict.success, verdict.progress, verdict.cause, sim_s=verdict.sim_s,
        stages=verdict.stages, tier=task.tier, mode=task.mode, kind=task.kind, bag="",
        details=verdict.details, end_seq=verdict.end_seq, task_version=task.version, **known,
    )  # fmt: skip


def _episode(
    cell: _Cell, config: RunConfig, task: Task, seed: int, path: Path | None, progress: Progress
) -> EpisodeScore:
    """Run one episode. What prevents its evaluation becomes its cause; a full disk is raised."""
    names = {"planner": config.planner, "policy": config.policy}
    sink: BagSink | HashSink = HashSink()
    if path is not None:
        begun = episode_manifest(
            task.name, task.version, seed, **names, latency=config.latency, vary=config.vary
        )
        sink = BagSink(path, begun)
    options = Options(config.cameras if path else (), config.latency, config.vary)
    clock = time.perf_counter()

    def note(state: WorldState) -> None:
        sim_s, wall_s = state.stamp_ns / 1e9, duration(time.perf_counter() - clock)
        text = f"{task.name} seed {seed}: {sim_s:.1f} s simulated in {wall_s}"
        progress.note(text, min(1.0, sim_s / task.time_limit_s))

    more: dict[str, Any] = {}
    verdict: Verdict | None = None
    agents = (cell.planner, cell.policy)
    try:
        verdict, _ = run_episode(task, seed, cell.world, *agents, sink, options, note)
    except RecordingError:
        raise
    except KeyboardInterrupt:
        if isinstance(sink, BagSink):
            sink.writer.close("interrupted")
        raise
    except BenchError as error:
        more = {"cause": f"{'world error' if sink.begun else 'setup'}: {error}"}
    except Exception as error:  # noqa: BLE001 - a crash costs this episode, never the run
        more = {"cause": f"crash: {error!r}", "traceback": traceback.format_exc()}
    wall_s = time.perf_counter() - clock
    if isinstance(sink, BagSink):
        sink.writer.close("complete" if verdict else "failed", wall_s=wall_s, **more)
        return scoring.score_bag(sink.writer.path)
    known: dict[str, Any] = {"wall_s": wall_s, **names}
    if verdict is not None and sink.scene_seen is not None:
        found = diagnose(task, sink.scene_seen, sink.states, sink.events, verdict)
        known |= {
            "state_hash": sink.state_hash, "diagnosis": found.to_dict() if found else {},
            "help": scoring.help_of(sink.events),
        }  # fmt: skip
        return _from_live(task, seed, verdict, known)
    failed = Verdict(task.name, seed, False, 0.0, more["cause"], {}, 0, 0.0)
    known |= {"state_hash": "", "diagnosis": Diagnosis("unscored", more["cause"]).to_dict()}
    return replace(_from_live(task, seed, failed, known), scored=False)


def run(
    config: RunConfig, world: World | None = None, progress: Progress | None = None
) -> RunResult:
    """Run every episode of a configuration, one bag each in `<out>/<task>/<seed>`.

    `world` replaces the simulated cell. UsageError before anything is created when the
    configuration is wrong; RecordingError when the disk is full and Interrupted on Ctrl-C, the
    finished episodes and their result file then being complete.
    """
    config = check(config)
    manifest = None
    out = Path(config.out)
    chosen = [tasks.get(name) for name in config.tasks]
    if config.record:
        versions = {task.name: task.version for task in chosen}
        manifest = RunManifest(out, config.to_dict(), versions)
    from policies import make_planner, make_policy

    if world is None:
        from sim.world import SimWorld

        world = SimWorld()
    cell = _Cell(world, make_planner(config.planner), make_policy(config.policy))
    jobs = ((task, seed) for task in chosen for seed in config.seeds)
    count = len(chosen) * config.episodes
    progress = progress or Progress(count)
    done: list[EpisodeScore] = []
    begun = time.perf_counter()
    status, scores = "interrupted", None
    try:
        for task, seed in jobs:
            path = out / task.name / f"{seed:06d}" if config.record else None
            done.append(_episode(cell, config, task, seed, path, progress))
            progress.done(_line(done[-1]))
        status = "complete"
    except KeyboardInterrupt:
        where = f"; results in {out}" if config.record else ""
        raise Interrupted(f"interrupted: {len(done)} of {count} episodes{where}") from None
    finally:
        progress.close()
        if manifest is not None:
            scores = _finish(manifest, status, out, done, time.perf_counter() - begun)
    return RunResult(done, out if config.record else None, scores)


def _finish(
    manifest: RunManifest, status: str, out: Path, done: list[EpisodeScore], wall_s: float
) -> Path | None:
    """Write the result file and complete the manifest; a disk that is full has been reported."""
    try:
        manifest.finish(
            status, wall_s=wall_s, evaluated=len(done),
            agreeing=sum(score.agrees is True for score in done),
        )  # fmt: skip
        return scoring.save_scores(out, done) if done else None
    except BenchError:
        if status == "complete":
            raise
        return None


def _line(score: EpisodeScore) -> str:
    mark = "success" if score.success else f"failure ({score.cause})"
    speed = f", {score.wall_s:.1f} s" if score.wall_s is not None else ""
    lie = "; LIVE AND OFFLINE VERDICT DIFFER" if score.agrees is False else ""
    return f"{score.task} seed {score.seed}: {mark}, {score.sim_s:.1f} s simulated{speed}{lie}"
