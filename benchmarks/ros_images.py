# ruff: noqa: T201
"""Control at 20 Hz with pictures over ROS: three cameras of 224 x 224, every one of them decoded.

Usage: python benchmarks/ros_images.py [lockstep|realtime] [SECONDS] [TURNS].

The policy waves both arms and asks for head and wrist cameras at each call. In lockstep its
chunks are 2 and 3 periods of 20 ms in turn, which is 20 calls a second to the dot; the same
episode runs in one process and over the nodes in turn, recorded both times, the second one after
the start so that nothing has to be opened, and what ROS adds is given as the share of its wall
time (bar: 20 %). In realtime a call is made every 2 periods, 25 a
second at best (bar: 20), while the arms follow the chunk before; times are the policy's own, on
the wall clock.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import cv2
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import policies
from bench_tasks import tasks
from bench_tasks.bags.bag import read_bag
from bench_tasks.config import RunConfig
from bench_tasks.errors import UsageError
from bench_tasks.images import camera_of_topic
from bench_tasks.ros.domain import claim_domain
from bench_tasks.ros.middleware import middleware
from bench_tasks.runner import run
from bench_tasks.verdicts import scoring
from bench_tasks.vocabulary import ActionChunk, Metadata, Observation, Plan, Scene

CAMERAS = ("head", "left_wrist", "right_wrist")
SIZE, TASK = (224, 224), "grab_roller"
PARAMETERS = {"image_size": "224x224"}
AHEAD = 10
"""Actions in a chunk in realtime, of which two are to be executed."""


class Waving:
    """Decodes what it sees; moves the arms by a few degrees, not looking."""

    metadata = Metadata("waving", "1", CAMERAS)

    def reset(self, scene: Scene, seed: int) -> None:
        """Begin."""
        self._home: np.ndarray | None = None
        self._calls: list[float] = []

    def accept(self, plan: Plan) -> None:
        """It needs none."""

    def infer(self, observation: Observation) -> ActionChunk:
        """A few periods of a slow wave, from where the arms were at first."""
        for frame in observation.frames:
            pixels = cv2.imdecode(np.frombuffer(frame.data, np.uint8), cv2.IMREAD_COLOR)
            assert pixels.shape == (SIZE[1], SIZE[0], 3), pixels.shape
        self._calls.append(time.monotonic())
        if "WAVING_CALLS" in os.environ:
            Path(os.environ["WAVING_CALLS"]).write_text(json.dumps(self._calls))
        state = observation.state
        if self._home is None:
            self._home = state.command.copy()
        count = AHEAD if "WAVING_AHEAD" in os.environ else 2 + len(self._calls) % 2
        phase = (state.seq + 1 + np.arange(count)) / 50.0
        values = np.tile(self._home, (count, 1))
        values[:, [0, 8]] += 0.05 * np.sin(2.0 * phase)[:, None]
        return ActionChunk(state.seq, values)


def prepare(seconds: float) -> None:
    """Make the policy known and the task short, in this process or in a node's."""
    policies.POLICIES["waving"] = "benchmarks.ros_images:Waving"
    tasks.get(TASK).time_limit_s = seconds  # type: ignore[misc]


def node(name: str, seconds: float, **parameters: object) -> subprocess.Popen:
    """Start one node as the launch file does."""
    words = [w for key, value in parameters.items() for w in ("-p", f"{key}:={json.dumps(value)}")]
    code = (f"from benchmarks.ros_images import prepare; prepare({seconds}); "
            f"from bench_tasks.ros.start import {name}; {name}()")  # fmt: skip
    env = {
        "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **os.environ,
        **middleware(os.environ), "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    return subprocess.Popen([sys.executable, "-c", code, "--ros-args", *words], env=env)


def over_ros(out: Path, seconds: float, clock: str, **execution: object) -> Path:
    """Run two episodes over the nodes; the second one's bag."""
    common = {"clock": clock}
    started = [
        node("world", seconds, **common, **PARAMETERS), node("planner", seconds),
        node("policy", seconds, **common, **execution, policy="waving", listeners=2),
        node("recorder", seconds),
    ]
    conductor = node("task", seconds, **common, **execution, **PARAMETERS, tasks=TASK, episodes=2,
                     policy="waving", out=str(out), keyframe_cameras="")  # fmt: skip
    try:
        assert conductor.wait(120 + 20 * seconds) == 0
    finally:
        for process in (conductor, *started):
            process.terminate()
        for process in (conductor, *started):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
    return out / TASK / "000001"


def _pictures(bag: Path) -> dict[str, int]:
    """How many pictures a bag holds, by topic."""
    counts = read_bag(bag).manifest["message_counts"]
    return {topic: count for topic, count in counts.items() if camera_of_topic(topic)}


def lockstep(seconds: float, turns: int) -> None:
    """What ROS adds to the wall time of the same episode."""
    prepare(seconds)
    rows = []
    print(f"{'turn':>4} {'here s':>8} {'ROS s':>8} {'messaging':>10}  states equal")
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(turns):
            here = RunConfig((TASK,), policy="waving", episodes=2, image_size="224x224",
                             cameras=(), out=f"{folder}/here{turn}")  # fmt: skip
            one = run(here).episodes[1]
            bag = over_ros(Path(folder, f"ros{turn}"), seconds, "lockstep")
            two = scoring.score_bag(bag)
            assert one.scored and two.scored and one.wall_s and two.wall_s
            pictures = _pictures(bag), _pictures(Path(here.out, TASK, "000001"))
            assert pictures[0] == pictures[1], pictures
            share = 1 - one.wall_s / two.wall_s
            rows.append((one.wall_s, two.wall_s, share))
            print(f"{turn:4} {one.wall_s:8.2f} {two.wall_s:8.2f} {share:10.1%}  "
                  f"{one.state_hash == two.state_hash}", flush=True)  # fmt: skip
    here_s, ros_s, share = (statistics.median(column) for column in zip(*rows, strict=True))
    print(f"median: {here_s:.2f} s in one process, {ros_s:.2f} s over ROS for {seconds:g} s "
          f"simulated; messaging is {share:.1%} of the wall time")


def realtime(seconds: float, turns: int) -> None:
    """Whether the policy's loop keeps its rate."""
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(turns):
            calls = Path(folder, f"calls{turn}.json")
            os.environ |= {"WAVING_CALLS": str(calls), "WAVING_AHEAD": "1"}
            bag = over_ros(
                Path(folder, f"ros{turn}"), seconds, "realtime", execution="async", execute=2
            )
            recording = read_bag(bag)
            kinds = Counter(event.kind for event in recording.events)
            late = sum(bool(e.data.get("late")) for e in recording.events
                       if e.kind == "policy_call")  # fmt: skip
            times = np.array(json.loads(calls.read_text()))
            gaps = np.diff(times[5:])  # the first ones open the renderer
            span, sim_s = times[-1] - times[5], recording.states[-1].stamp_ns / 1e9
            print(
                f"turn {turn}: {len(gaps) / span:.1f} calls a second of wall time over {span:.1f} "
                f"s; interval median {1e3 * np.median(gaps):.1f} ms, p95 "
                f"{1e3 * np.percentile(gaps, 95):.1f}, worst {1e3 * gaps.max():.1f}; over "
                f"50 ms: {np.mean(gaps > 0.05):.1%}; answers late {late}, chunks that came late "
                f"{kinds['late_chunk']}, too late {kinds['stale_chunk']} of "
                f"{kinds['policy_call']}; {sim_s:.1f} s simulated", flush=True,
            )


def main() -> None:
    """Measure what was asked for."""
    os.environ.setdefault("ROS_DOMAIN_ID", "91")
    try:
        claim_domain()  # another run in it would be heard
    except UsageError as error:
        sys.exit(str(error))
    mode, seconds, turns = (sys.argv[1:] + ["lockstep", "10", "3"][len(sys.argv) - 1 :])[:3]
    {"lockstep": lockstep, "realtime": realtime}[mode](float(seconds), int(turns))


if __name__ == "__main__":
    main()
