"""Runs episodes without middleware, in this process or several, and scores what was recorded.

With `doctor` and `gallery` the only module of the package that knows the simulator and the
policies; both are imported when a run begins.
"""

from __future__ import annotations

import importlib
import time
import traceback
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from bench_tasks import tasks
from bench_tasks.bags.recording import BagSink, HashSink, RecordingError
from bench_tasks.commands.collect import CollectConfig, demonstrated
from bench_tasks.commands.progress import Progress, duration
from bench_tasks.config import RunConfig
from bench_tasks.diagnosis import Diagnosis, diagnose
from bench_tasks.episode import Options, run_episode
from bench_tasks.errors import BenchError, UsageError, unknown
from bench_tasks.excitation import Excitation, Fit
from bench_tasks.execution import execution_of
from bench_tasks.images import parse_size
from bench_tasks.manifest import (
    FORMAT_VERSION,
    RunManifest,
    episode_manifest,
    read_json,
    stamped_folder,
    write_json,
)
from bench_tasks.protocols import Planner, Policy, World
from bench_tasks.reports.outcome import episode_line
from bench_tasks.robots import embodiments
from bench_tasks.tasks.base import Task
from bench_tasks.verdicts import score_files, scoring
from bench_tasks.verdicts.dreams import dreams_of
from bench_tasks.verdicts.episode_score import EpisodeScore
from bench_tasks.verdicts.teamwork import teamwork_of
from bench_tasks.vocabulary import Verdict, WorldState
from bench_tasks.workers import Lost, Note, Work, work_through

__all__ = ["Interrupted", "RunResult", "check", "identified", "policy_server", "run", "training"]


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


def cell_cameras(robot: str, cell: str) -> tuple[str, ...]:
    """The cameras that a real robot's cell has; UsageError when there is no such cell."""
    return tuple(importlib.import_module(f"hardware.{robot}.cell").read_cell(cell).cameras)


def simulated_addresses(cell: str) -> dict[str, str]:
    """Where the simulated control boxes of a Franka cell are, by arm.

    UsageError when there is no such cell, or its arms are not simulated ones.
    """
    raw = importlib.import_module("hardware.franka.cell").read_cell(cell).raw
    if not raw.get("simulated"):
        raise UsageError(f"cell {cell} is not of simulated arms that speak Franka's protocol "
                         "(simulated: true)")  # fmt: skip
    return raw["addresses"]


def check(config: RunConfig, cameras: Collection[str] | None = None) -> RunConfig:
    """Return the configuration, its `out` filled in; UsageError before anything is created.

    `cameras` are those there are, by default the simulation's.
    """
    from policies import check_planner, check_policy

    if not config.out:
        config = replace(config, out=str(stamped_folder()))
    config.checked()
    if config.jobs > 1 and _name(config.planner) == "human":
        raise UsageError(f"planner human needs the terminal: jobs must be 1, got {config.jobs}")
    wanted = {
        "camera": config.cameras,
        f"camera of planner {_name(config.planner)}": check_planner(config.planner, config.jobs),
        f"camera of policy {_name(config.policy)}": check_policy(config.policy, config.tasks),
    }
    for robot in dict.fromkeys(tasks.get(name).embodiment for name in config.tasks):
        embodiments.get(robot).check_installed()
    import sim.world  # noqa: F401 - chooses the renderer, before anything else brings in mujoco
    from sim.objects import check_set
    from sim.scene import CAMERAS

    there = CAMERAS if cameras is None else cameras
    for whose, names in wanted.items():
        for camera in names:
            if camera not in there:
                raise unknown(whose, camera, there)
    if config.evolved:
        check_set(config.evolved)
    return config


def _name(spec: str) -> str:
    """Of an agent, without its options: people put secrets there."""
    return spec.partition(":")[0].strip()


def policy_server(spec: str, host: str, port: int) -> Any:
    """A `policies.remote.serve.PolicyServer`; UsageError when the policy cannot be served."""
    from policies.remote.serve import PolicyServer

    return PolicyServer(spec, host, port)


def identified(told: Excitation, other: Excitation | None = None) -> Fit:
    """The dynamics that a recording tells of, by `sim.sysid.fit`."""
    import sim.world  # noqa: F401 - chooses the renderer, before anything else brings in mujoco
    from sim.sysid import fit

    return fit(told, other)


def training(
    data: Sequence[str], out: str, kind: str, shape: str, recipe: dict[str, Any], cache: str,
    say: Callable[[str], None],
) -> Any:
    """Train a policy, see `policies.wam.training`; UsageError when that or torch is missing."""
    try:
        import torch  # noqa: F401 - the one thing that a plain installation lacks
    except ImportError:
        raise UsageError(
            "training needs torch: pip install -r requirements/policies.txt"
        ) from None
    from policies.wam.train import Recipe
    from policies.wam.training import train

    return train(data, out, kind, shape, Recipe(**recipe), cache, say)


@dataclass
class _Cast:
    """World, planner and policy: made once and used for every episode."""

    world: World
    planner: Planner
    policy: Policy


def _seat(config: RunConfig, world: World | None = None) -> Work:
    """What works on one (task, seed) after another, its cast being made once."""
    from policies import make_planner, make_policy
    from policies.execution import executed

    if world is None:
        from sim.world import SimWorld

        width, height = parse_size(config.image_size)
        world = SimWorld(width=width, height=height, objects=config.evolved,
                         dynamics=config.joint_dynamics)  # fmt: skip
    policy = executed(make_policy(config.policy), config.executing)
    cast = _Cast(world, make_planner(config.planner), policy)
    return partial(_episode, cast, config)


def _place(config: RunConfig, task: Task, seed: int) -> Path:
    return Path(config.out) / task.name / f"{seed:06d}"


def _begun(config: RunConfig, task: Task, seed: int) -> dict[str, Any]:
    """An episode's manifest at its start."""
    return episode_manifest(
        task.name, task.version, seed, config.planner, config.policy, latency=config.latency,
        vary=config.vary, objects=config.objects_hash, execution=config.executing.to_dict(),
        dynamics=config.dynamics_hash,
    )  # fmt: skip


def _episode(cast: _Cast, config: RunConfig, which: tuple[str, int], note: Note) -> EpisodeScore:
    """Run one episode. What prevents its evaluation becomes its cause; a full disk is raised."""
    task, seed = tasks.get(which[0]), which[1]
    sink: BagSink | HashSink = HashSink()
    if config.record:
        sink = BagSink(_place(config, task, seed), _begun(config, task, seed))
    cameras = config.cameras if config.record else ()
    options = Options(cameras, config.latency, config.vary, config.executing)
    world, policy, listener = cast.world, cast.policy, sink
    if isinstance(config, CollectConfig):  # its pictures come at a steady rate instead
        options = replace(options, keyframe_cameras=())
        world, policy, listener = demonstrated(config, world, policy, sink)
    clock = time.perf_counter()

    def heard(state: WorldState) -> None:
        sim_s, wall_s = state.stamp_ns / 1e9, duration(time.perf_counter() - clock)
        text = f"{task.name} seed {seed}: {sim_s:.1f} s simulated in {wall_s}"
        note(text, min(1.0, sim_s / task.time_limit_s))

    more: dict[str, Any] = {}
    verdict: Verdict | None = None
    agents = (cast.planner, policy)
    try:
        verdict, _ = run_episode(task, seed, world, *agents, listener, options, heard)
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
    known: dict[str, Any] = {
        "wall_s": wall_s, "planner": config.planner, "policy": config.policy,
    }  # fmt: skip
    if verdict is not None and sink.scene_seen is not None:
        found = diagnose(task, sink.scene_seen, sink.states, sink.events, verdict)
        known |= {
            "state_hash": sink.state_hash, "diagnosis": found.to_dict() if found else {},
            "help": scoring.help_of(sink.events), "execution": execution_of(sink.events),
            "dreams": dreams_of(sink.events),
            "teamwork": teamwork_of(sink.scene_seen, sink.states, sink.events),
        }  # fmt: skip
        return scoring.live_score(task, seed, verdict, **known)
    return _without(task, seed, more["cause"], known)


def _without(task: Task, seed: int, cause: str, known: dict[str, Any]) -> EpisodeScore:
    """The result of an episode that was not recorded and has no verdict."""
    failed = Verdict(task.name, seed, False, 0.0, cause, {}, 0, 0.0)
    known = {**known, "state_hash": "", "diagnosis": Diagnosis("unscored", cause).to_dict()}
    return scoring.live_score(task, seed, failed, scored=False, **known)


def _lost(config: RunConfig, which: tuple[str, int], why: str) -> EpisodeScore:
    """The result of an episode whose process died, also said in its recording's manifest."""
    task, seed = tasks.get(which[0]), which[1]
    cause = f"crash: the worker process {why}"
    if not config.record:
        known = {"wall_s": None, "planner": config.planner, "policy": config.policy}
        return _without(task, seed, cause, known)
    path = _place(config, task, seed)
    file = path / "manifest.json"
    manifest = read_json(file) if file.exists() else _begun(config, task, seed)
    if manifest.get("status") != "complete":
        path.mkdir(parents=True, exist_ok=True)
        write_json(file, manifest | {
            "format_version": FORMAT_VERSION, "status": "failed", "cause": cause,
        })  # fmt: skip
    return scoring.score_bag(path)


def _share(
    config: RunConfig, todo: list[tuple[str, int]], count: Callable[[int, EpisodeScore], None],
    progress: Progress,
) -> None:
    """Have the episodes run by `jobs` processes, those that may take longest first."""
    order = sorted(range(len(todo)), key=lambda k: -tasks.get(todo[k][0]).time_limit_s)
    parts: dict[int, float] = {}

    def done(k: int, result: EpisodeScore | Lost) -> None:
        parts.pop(k, None)
        if isinstance(result, Lost):
            result = _lost(config, todo[order[k]], result.why)
        count(order[k], result)

    def note(k: int, text: str, part: float) -> None:
        parts[k] = part
        others = f" (and {len(parts) - 1} more)" if len(parts) > 1 else ""
        progress.note(text + others, sum(parts.values()))

    jobs = min(config.jobs, len(todo))
    work_through(jobs, partial(_seat, config), [todo[k] for k in order], done, note)


def run(
    config: RunConfig, world: World | None = None, progress: Progress | None = None
) -> RunResult:
    """Run every episode of a configuration, one bag each in `<out>/<task>/<seed>`.

    `world` replaces the simulated cell, where there is one job. UsageError before anything is
    created when the configuration is wrong; RecordingError when the disk is full and Interrupted
    on Ctrl-C, the finished episodes and their result file then being complete.
    """
    config = check(config)
    if world is not None and config.jobs > 1:
        raise UsageError(f"a world of one's own takes one job, got {config.jobs}")
    manifest = None
    out = Path(config.out)
    if config.record:
        versions = {name: tasks.get(name).version for name in config.tasks}
        manifest = RunManifest(out, config.to_dict(), versions)
    todo = [(name, seed) for name in config.tasks for seed in config.seeds]
    progress = progress or Progress(len(todo))
    done: dict[int, EpisodeScore] = {}

    def count(index: int, score: EpisodeScore) -> None:
        done[index] = score
        progress.done(episode_line(score))

    begun = time.perf_counter()
    status, scores = "interrupted", None
    try:
        if config.jobs > 1:
            _share(config, todo, count, progress)
        else:
            work = _seat(config, world)
            for index, which in enumerate(todo):
                count(index, work(which, progress.note))
        status = "complete"
    except KeyboardInterrupt:
        where = f"; results in {out}" if config.record else ""
        raise Interrupted(f"interrupted: {len(done)} of {len(todo)} episodes{where}") from None
    finally:
        progress.close()
        asked = {"configuration": config.to_dict()}
        episodes = scoring.one_name(asked, (done[index] for index in sorted(done)))
        if manifest is not None:
            scores = _finish(manifest, status, out, episodes, time.perf_counter() - begun)
    return RunResult(episodes, out if config.record else None, scores)


def _finish(
    manifest: RunManifest, status: str, out: Path, done: list[EpisodeScore], wall_s: float
) -> Path | None:
    """Write the result file and complete the manifest; a disk that is full has been reported."""
    try:
        manifest.finish(
            status, wall_s=wall_s, evaluated=len(done),
            agreeing=sum(score.agrees is True for score in done),
        )  # fmt: skip
        return score_files.save_scores(out, done) if done else None
    except BenchError:
        if status == "complete":
            raise
        return None

