"""The node `task`: conducts the episodes, has them recorded and scored, and reports.

It runs the same conductor as the in-process runner (`episode.run_episode`), over the node graph.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench_interfaces.srv import Record

from bench_tasks import tasks
from bench_tasks.bags.recording import RecordingError
from bench_tasks.commands.progress import Progress
from bench_tasks.config import RunConfig
from bench_tasks.episode import Options, run_episode
from bench_tasks.errors import BenchError, UnscoredError, UsageError, trace_of
from bench_tasks.execution import HOLD_S
from bench_tasks.hopeless import Hopeless, SetUps
from bench_tasks.images import DEFAULT_SIZE
from bench_tasks.manifest import RunManifest, episode_manifest, read_json
from bench_tasks.reports.outcome import episode_line, results_table
from bench_tasks.ros.conductor_ros import Conductor, finish_recording
from bench_tasks.ros.graph_ros import Graph
from bench_tasks.ros.node_ros import Caller, LostNode, Stopped, parameter
from bench_tasks.ros.node_ros import main as run_node
from bench_tasks.ros.remote_ros import RemotePlanner, RemotePolicy, RemoteWorld, TopicSink
from bench_tasks.streams import parse_streams
from bench_tasks.tasks.base import Task
from bench_tasks.verdicts import score_files, scoring
from bench_tasks.verdicts.episode_score import EpisodeScore
from bench_tasks.verdicts.scoring import live_score
from bench_tasks.vocabulary import Verdict

__all__ = ["TaskNode", "main"]

CLOSE_S = 1.7
"""How long results may still be written after Ctrl-C."""
CUT_S = 0.8
"""Of these: how long the recorder may take to complete the bag."""


def _names(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _is_recording(path: Path) -> bool:
    """Whether a bag's manifest, which is written last, says that it is not complete yet."""
    try:
        return read_json(path / "manifest.json").get("status") == "recording"
    except UsageError:
        return True


class TaskNode(Conductor):
    """Conducts one run and ends when it is over.

    Exit status 0: every episode has a verdict, and the same one live and offline; 1: some has
    not, or a node was lost; 2: a parameter is wrong; 130: interrupted.
    """

    def __init__(self) -> None:
        """Read and check the parameters; UsageError names the first wrong one."""
        super().__init__("task")
        chosen = _names(parameter(self, "tasks", ""))
        self.config = RunConfig(
            tasks=tuple(tasks.names()) if chosen == ("all",) else chosen,
            planner=parameter(self, "planner", "expert"),
            policy=parameter(self, "policy", "skills"),
            episodes=parameter(self, "episodes", 1),
            seed=parameter(self, "seed", 0),
            out=parameter(self, "out", "results/ros"),
            cameras=_names(parameter(self, "keyframe_cameras", "head")),
            latency=parameter(self, "latency", "free"),
            record=parameter(self, "record", True),
            vary=_names(parameter(self, "vary", "")),
            objects=parameter(self, "objects", ""),
            image_size=parameter(self, "image_size", DEFAULT_SIZE),
            execution=parameter(self, "execution", "sync"),
            policy_latency=parameter(self, "policy_latency", "free"),
            execute=parameter(self, "execute", 0),
            policy_deadline_s=parameter(self, "policy_deadline_s", 10.0),
            dynamics=parameter(self, "dynamics", ""),
        ).checked()
        self.clock = parameter(self, "clock", "lockstep")
        self.robot = parameter(self, "robot", "sim")
        self.command = parameter(self, "command", "")
        self.safety = parameter(self, "safety", False)
        self.startup_s = parameter(self, "startup_s", 60.0)
        # A node is not given up while the policy has time left to answer.
        patience_s = self.config.policy_deadline_s + HOLD_S + 10.0
        deadline_s = max(parameter(self, "deadline_s", 60.0), patience_s)
        planner_deadline_s = parameter(self, "planner_deadline_s", 300.0)
        self.graph = Graph(
            self, deadline_s, planner_deadline_s, self.config.record, self.clock == "realtime",
            parse_streams(parameter(self, "streams", "")), self.safety, self.robot != "sim",
        )  # fmt: skip
        self.recorder = Caller(self, Record, "/recorder/record", deadline_s)

    def conduct(self) -> int:
        """All episodes."""
        return _Run(self).whole()

    def close(self) -> None:
        """Let the run write down what it has."""
        self._thread.join(timeout=CLOSE_S)


class _Run:
    """All episodes of one configuration."""

    def __init__(self, node: TaskNode) -> None:
        self.node, self.config, self.graph = node, node.config, node.graph
        self.out = Path(self.config.out).absolute()
        self.done: list[EpisodeScore] = []
        self.recording: tuple[Task, int] | None = None
        self.jobs = [
            (tasks.get(name), seed) for name in self.config.tasks for seed in self.config.seeds
        ]
        self.progress, self.set_ups = Progress(len(self.jobs)), SetUps()

    def whole(self) -> int:
        """Run every episode, write down the results and return the exit status."""
        manifest = self._manifest() if self.config.record else None
        begun = time.perf_counter()
        status, cause, code, cut_off = "interrupted", "", 0, ""
        try:
            recorder = {"recorder": self.node.recorder} if self.config.record else {}
            self.graph.wait_for_nodes(recorder, self.node.startup_s)
            self.planner = RemotePlanner(self.graph)
            self.policy = RemotePolicy(self.graph, ahead=not self.graph.streamed)
            for task, seed in self.jobs:
                self._count(self._episode(task, seed))
                self._give_up_hope()
                self.graph.wait_for_nodes(recorder, 2.0)
            status = "complete"
        except Hopeless as error:
            status, cause, code = "failed", str(error), 1
        except LostNode as error:
            status, cause, code = "failed", str(error), 1
        except RecordingError as error:
            status, cause, code = "failed", str(error), 2
        except Stopped:
            before = len(self.done)
            self._interrupted()
            if self.node.died:
                status, cause, code = "failed", self.node.died, 1
            else:
                # The one under way may have been over but for its line.
                cut_off = self._cut_off(before + sum(s.scored for s in self.done[before:]))
        finally:
            self.progress.close()
            wrong = self._write_down(manifest, status, cause, time.perf_counter() - begun)
        if cause or wrong or cut_off:
            sys.stderr.write(f"{cause or wrong or cut_off}\n")
            return code or (130 if cut_off else 2)
        return 0 if all(s.evaluated for s in self.done) else 1

    def _write_down(
        self, manifest: RunManifest | None, status: str, cause: str, wall_s: float
    ) -> str:
        """Keep and print the results, each as far as it can be done; what could not, in words."""
        wrong: list[str] = []
        self.done = scoring.one_name({"configuration": self.config.to_dict()}, self.done)

        def finish() -> None:
            assert manifest is not None
            manifest.finish(
                status, wall_s=wall_s, evaluated=len(self.done),
                agreeing=sum(score.agrees is True for score in self.done),
                **({"cause": cause} if cause else {}),
            )  # fmt: skip

        steps: list[Callable[[], object]] = [] if manifest is None else [finish]
        if manifest is not None and self.done:
            # Behind the manifest, which gives back the space that it kept free.
            steps.append(lambda: score_files.save_scores(self.out, self.done))
        for step in (*steps, self._report):
            try:
                step()
            except (BenchError, OSError) as error:
                wrong.append(str(error))
        return wrong[0] if wrong else ""

    def _manifest(self) -> RunManifest:
        node = self.node
        configuration = self.config.to_dict() | {
            "clock": node.clock, "robot": node.robot, "middleware": "ROS 2",
            "safety": node.safety,
        }  # fmt: skip
        versions = {name: tasks.get(name).version for name in self.config.tasks}
        manifest = RunManifest(self.out, configuration, versions)
        if node.command:
            manifest.value["command"] = node.command.split()
        return manifest

    def _count(self, score: EpisodeScore) -> None:
        """One more episode is over."""
        self.done.append(score)
        self.recording = None
        self.progress.done(episode_line(score))

    def _give_up_hope(self) -> None:
        """Hopeless when a robot has not got ready several times for one cause: nobody is there.

        In simulation a set-up that fails costs nothing, and other seeds and tasks may do better.
        """
        if self.node.robot == "sim" or not self.set_ups.count(self.done[-1]):
            return
        left = [(task.name, seed) for task, seed in self.jobs[len(self.done) :]]
        raise Hopeless(self.set_ups.why(self.done[-1], left))

    def _report(self) -> None:
        """Print the table, and write the page unless there is no time for it."""
        if not self.done:
            return
        sys.stdout.write(results_table(self.done))
        if self.config.record:
            if not self.node.stopping.is_set():
                from bench_tasks.reports.report import write_report

                sys.stdout.write(f"report: {write_report(self.out, None)}\n")
            sys.stdout.write(f"recorded in {self.out}\n")
        sys.stdout.flush()

    # -- one episode -----------------------------------------------------------------------------

    def _path(self, task: Task, seed: int) -> Path:
        return self.out / task.name / f"{seed:06d}"

    def _episode(self, task: Task, seed: int) -> EpisodeScore:
        """Run, record and score one episode. What prevents its evaluation becomes its cause."""
        config = self.config
        if config.record:
            self._start_recording(task, seed, self._path(task, seed))
        sink = TopicSink(self.graph)
        world = RemoteWorld(self.graph, sink)
        cameras = config.cameras if config.record else ()
        options = Options(cameras, config.latency, config.vary, config.executing)
        clock = time.perf_counter()
        verdict: Verdict | None = None
        more: dict[str, Any] = {}
        lost: LostNode | None = None
        try:
            verdict, _ = run_episode(
                task, seed, world, self.planner, self.policy, sink, options,
                lambda state: self._note(task, seed, state.stamp_ns / 1e9),
            )  # fmt: skip
        except LostNode as error:
            more, lost = {"cause": f"lost node: {error}"}, error
        except UnscoredError as error:
            more = {"cause": str(error)}
        except BenchError as error:
            more = {"cause": f"{'world error' if sink.begun else 'setup'}: {error}"}
        except Exception as error:  # noqa: BLE001 - a crash costs this episode, never the run
            more = {"cause": f"crash: {error!r}", "traceback": trace_of(error)}
        more["wall_s"] = time.perf_counter() - clock
        if config.record:
            score = self._finish_recording(task, seed, sink, verdict, more)
        else:
            score = self._live(task, seed, sink, verdict, more)
        if lost is not None:
            self._count(score)
            raise lost
        return score

    def _note(self, task: Task, seed: int, sim_s: float) -> None:
        if self.node.stopping.is_set():
            raise Stopped
        text = f"{task.name} seed {seed}: {sim_s:.1f} s simulated"
        self.progress.note(text, min(1.0, sim_s / task.time_limit_s))

    def _start_recording(self, task: Task, seed: int, path: Path) -> None:
        self.recording = task, seed
        manifest = episode_manifest(
            task.name, task.version, seed, self.config.planner, self.config.policy,
            latency=self.config.latency, vary=self.config.vary, objects=self.config.objects_hash,
            execution=self.config.executing.to_dict(), dynamics=self.config.dynamics_hash,
            clock=self.node.clock, robot=self.node.robot,
        )  # fmt: skip
        try:
            self.node.recorder.call(
                Record.Request(start=True, path=str(path), manifest=json.dumps(manifest))
            )
        except LostNode:
            raise
        except BenchError as error:
            raise RecordingError(str(error)) from None

    def _finish_recording(
        self, task: Task, seed: int, sink: TopicSink, verdict: Verdict | None,
        more: dict[str, Any],
    ) -> EpisodeScore:
        """Close the bag once everything has arrived, and score it."""
        status = "complete" if verdict else "failed"
        expected = dict(self.graph.sent) if verdict else {}
        pictures = self.graph.pictures if verdict else {}
        try:
            request = Record.Request(
                start=False, last_seq=sink.last_seq,
                manifest=json.dumps(
                    {"status": status, "expected": expected, "pictures": pictures, **more}
                ),
            )
            finish_recording(self.node.recorder, request)
        except (LostNode, RecordingError):
            # The bag is scored as it is: as an incomplete recording.
            self._count(self._score(task, seed))
            raise
        except BenchError as error:
            self.node.get_logger().error(str(error))
        return self._score(task, seed)

    def _score(self, task: Task, seed: int) -> EpisodeScore:
        """What the bag says of an episode; whose it is, is known even if the bag is gone."""
        score = scoring.score_bag(self._path(task, seed))
        if score.task == task.name and score.seed is not None:
            return score
        return replace(
            score, task=task.name, seed=seed, tier=task.tier, mode=task.mode, kind=task.kind,
            planner=self.config.planner, policy=self.config.policy, task_version=task.version,
        )  # fmt: skip

    def _cut_off(self, finished: int) -> str:
        """The line that `bench_tasks run` ends with, too."""
        where = f"; results in {self.out}" if self.config.record else ""
        return f"interrupted: {finished} of {len(self.jobs)} episodes{where}"

    def _interrupted(self) -> None:
        """The recorder, told to stop as well, closes its bag: score what there is of it."""
        if self.recording is None:
            return
        path = self._path(*self.recording)
        end = time.monotonic() + CUT_S
        while time.monotonic() < end and _is_recording(path):
            time.sleep(0.02)
        if path.exists():
            self._count(self._score(*self.recording))

    def _live(
        self, task: Task, seed: int, sink: TopicSink, verdict: Verdict | None, more: dict[str, Any]
    ) -> EpisodeScore:
        """The result of an episode that is not recorded: the live verdict."""
        scored = verdict is not None
        verdict = verdict or Verdict(task.name, seed, False, 0.0, more["cause"], {}, 0, 0.0)
        return live_score(
            task, seed, verdict, state_hash=sink.state_hash if scored else "",
            wall_s=more["wall_s"], planner=self.config.planner, policy=self.config.policy,
            scored=scored,
        )  # fmt: skip


def main(args: list[str] | None = None) -> None:
    """Entry point of `task_node`."""
    run_node(TaskNode, args)


if __name__ == "__main__":
    main()
