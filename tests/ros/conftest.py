"""Starts the nodes of a test as processes of their own, in a ROS domain of their own."""

from __future__ import annotations

import itertools
import json
import os
import queue
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("bench_interfaces")

from bench_tasks.ros.middleware import THIS_MACHINE, middleware

ROOT = Path(__file__).resolve().parents[2]
EXIT_S = 15.0
SAFE = "/policy/action_chunk:=/safety/action_chunk"
"""The world gets its commands from the safety node."""
DEADLINE_S = 30.0


class Nodes:
    """The processes of one test. What is still running at its end is killed by its pid."""

    def __init__(self, folder: Path, domain: int) -> None:
        self.folder, self.domain = folder, domain
        self.before = ""
        self.running: dict[str, subprocess.Popen] = {}
        self.env = {
            **os.environ,
            "ROS_DOMAIN_ID": str(self.domain),
            "TMPDIR": str(folder),  # What is killed in the end leaves nothing elsewhere.
            **middleware(THIS_MACHINE),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        }

    def start(
        self, name: str, remap: tuple[str, ...] = (), **parameters: object
    ) -> subprocess.Popen:
        """Start a node of the project with parameters and remappings (`old:=new`)."""
        words = [f"{key}:={json.dumps(value)}" for key, value in parameters.items()]
        code = f"{self.before}from bench_tasks.ros.start import {name}; {name}()"
        options = ["--ros-args", *itertools.chain.from_iterable(("-p", word) for word in words)]
        options += itertools.chain.from_iterable(("-r", rule) for rule in remap)
        with open(self.folder / f"{name}.log", "wb") as log:
            self.running[name] = subprocess.Popen(
                [sys.executable, "-c", code, *options],
                env=self.env, cwd=self.folder, stdout=log, stderr=subprocess.STDOUT,
            )
        return self.running[name]

    def start_all(
        self, out: Path, record: bool = True, clock: str = "lockstep", safety: bool = False, **task
    ) -> None:
        """Start the five nodes (four without a recorder) as the launch file does."""
        world = task.pop("world", {})
        limits = task.pop("limits", "fr3_pair")
        if safety:
            world, task = {**world, "remap": (SAFE,)}, {**task, "safety": True}
            self.start("safety", clock=clock, confirm=True, listeners=2 + record, limits=limits)
        agents = {"planner": task.get("planner", "expert"), "policy": task.get("policy", "skills")}
        self.start("world", clock=clock, **world)
        self.start("planner", planner=agents["planner"])
        names = ("execution", "policy_latency", "execute", "policy_deadline_s")
        execution = {name: task[name] for name in names if name in task}
        self.start(
            "policy", policy=agents["policy"], clock=clock, listeners=1 + record, **execution
        )
        if record:
            self.start("recorder")
        self.start("task", out=str(out), record=record, clock=clock, **task)

    def start_franka(self, standin: str, cell: str, out: Path) -> None:
        """Start all that bimanual.launch.py starts with robot:=franka, to lift a pot."""
        self.start(standin)
        self.start("franka_world", cell=cell)
        self.start(
            "safety", clock="realtime", confirm=True, listeners=3, cell=cell, limits="fr3_pair"
        )
        self.start("planner", planner="expert")
        self.start("policy", policy="skills", clock="realtime", listeners=2)
        self.start("recorder")
        self.start("task", out=str(out), record=True, clock="realtime", tasks="lift_pot",
                   safety=True, robot="franka")  # fmt: skip

    def wait(self, name: str, timeout_s: float = 120.0) -> int:
        """Exit status of a node that ends by itself; fails with all logs when it does not."""
        try:
            return self.running[name].wait(timeout_s)
        except subprocess.TimeoutExpired:
            pytest.fail(f"{name} still runs after {timeout_s:g} s\n{self.logs()}")

    def wait_for_file(self, path: Path, timeout_s: float = 90.0, at_least: int = 1) -> None:
        """Wait until a file exists and holds at least so many bytes."""
        end = time.monotonic() + timeout_s
        while not (path.exists() and path.stat().st_size >= at_least):
            if time.monotonic() > end:
                pytest.fail(f"{path} did not come\n{self.logs()}")
            time.sleep(0.02)

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def logs(self) -> str:
        return "\n".join(f"--- {name}\n{self.log(name)}" for name in self.running)

    def stop(self, number: int = signal.SIGINT) -> dict[str, int]:
        """Signal every running node and return the exit statuses."""
        for process in self.running.values():
            if process.poll() is None:
                process.send_signal(number)
        return {name: self.wait(name, EXIT_S) for name in self.running}

    def kill(self) -> None:
        for process in self.running.values():
            if process.poll() is None:
                process.kill()
                process.wait()


@pytest.fixture
def nodes(tmp_path, ros_domain):
    """Node processes in a domain of their own."""
    made = Nodes(tmp_path, ros_domain)
    yield made
    made.kill()


@pytest.fixture
def known(monkeypatch):
    """The agents of `agents.py` by name, in this process; `nodes.before` makes nodes know them."""
    import policies
    from tests.ros import agents

    monkeypatch.setattr(policies, "PLANNERS", dict(policies.PLANNERS))
    monkeypatch.setattr(policies, "POLICIES", dict(policies.POLICIES))
    agents.register()


@pytest.fixture
def client(nodes, monkeypatch):
    """A node of the test process in the domain of `nodes`, spun on a thread of its own."""
    import threading

    import rclpy
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.signals import SignalHandlerOptions

    from bench_tasks.ros.node_ros import BenchNode

    for key in middleware(THIS_MACHINE):
        monkeypatch.setenv(key, nodes.env[key])
    rclpy.init(domain_id=nodes.domain, signal_handler_options=SignalHandlerOptions.NO)
    node = BenchNode("test")
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    thread = threading.Thread(target=executor.spin, daemon=True)
    thread.start()
    yield node
    node.stopping.set()
    executor.shutdown()
    thread.join(5)
    node.destroy_node()
    rclpy.try_shutdown()


class World:
    """What a test says to the world node and hears from it."""

    def __init__(self, nodes, client, listeners=1, topic="/policy/action_chunk", **parameters):
        from bench_interfaces.msg import ActionChunk, EpisodeEvent, WorldState
        from bench_interfaces.srv import LoadEpisode

        from bench_tasks.ros.node_ros import TRACK, wait_for_listeners

        self.nodes, self.client = nodes, client
        nodes.start("world", **parameters)
        self.states: queue.Queue = queue.Queue()
        self.events: queue.Queue = queue.Queue()
        client.create_subscription(WorldState, "/world/state", self.states.put, TRACK, raw=True)
        client.create_subscription(EpisodeEvent, "/world/events", self.events.put, TRACK, raw=True)
        self.chunks = client.create_publisher(ActionChunk, topic, TRACK)
        load = self.caller(LoadEpisode, "/world/load_episode")
        wait_for_listeners([(self.chunks, 1)], DEADLINE_S)
        config = json.dumps({"state_listeners": listeners})
        load.call(LoadEpisode.Request(task="lift_pot", seed=0, config=config))
        self.start = self.state()

    def caller(self, kind, name):
        from bench_tasks.ros.node_ros import Caller

        made = Caller(self.client, kind, name, DEADLINE_S)
        end = time.monotonic() + DEADLINE_S
        while not made.ready:
            assert time.monotonic() < end, f"{name} is not offered\n{self.nodes.logs()}"
            time.sleep(0.02)
        return made

    def state(self):
        from bench_tasks.bags.cdr import decode_state

        return decode_state(self.states.get(timeout=DEADLINE_S))

    def event(self):
        from bench_tasks.bags.cdr import decode_event

        return decode_event(self.events.get(timeout=DEADLINE_S))

    def send(self, seq: int, values: np.ndarray) -> None:
        from bench_tasks.bags.cdr import encode_chunk
        from bench_tasks.vocabulary import ActionChunk

        self.chunks.publish(encode_chunk(ActionChunk(seq, values), 0, 20_000_000))

    def hold(self, count: int) -> np.ndarray:
        return np.tile(self.start.command, (count, 1))


@pytest.fixture
def make_world(nodes, client):
    """Start a world node with parameters and load an episode of lift_pot."""
    return lambda **parameters: World(nodes, client, **parameters)


@pytest.fixture
def world(make_world):
    """A world in lockstep with an episode of lift_pot loaded."""
    return make_world()
