"""The node `world` of a G1 against the stand-in: Unitree's DDS below, ROS above."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from bench_tasks.robots import embodiments
from tests.ros.conftest import DEADLINE_S

DRIVER = Path(sys.prefix) / "unitree/bin/python"
PERIOD_S = 0.02

pytestmark = [
    pytest.mark.ros,
    pytest.mark.slow,
    pytest.mark.skipif(not DRIVER.exists(), reason="make unitree"),
]


class Cell:
    """The world of the stand-in's cell, and a commander that the safety node would be."""

    def __init__(self, nodes, client):
        from bench_interfaces.msg import ActionChunk, EpisodeEvent, WorldState
        from bench_interfaces.srv import LoadEpisode
        from std_msgs.msg import UInt64

        from bench_tasks.bags import cdr
        from bench_tasks.ros.node_ros import LATEST, TRACK, Caller

        self.nodes, self._cdr, self._ended = nodes, cdr, threading.Event()
        self.states, self.events, self.beating = [], [], True
        client.create_subscription(
            WorldState, "/world/state", lambda d: self.states.append(cdr.decode_state(d)), TRACK,
            raw=True,
        )  # fmt: skip
        client.create_subscription(
            EpisodeEvent, "/world/events", lambda d: self.events.append(cdr.decode_event(d)), TRACK,
            raw=True,
        )  # fmt: skip
        self._chunks = client.create_publisher(ActionChunk, "/safety/action_chunk", TRACK)
        self._beats, self._count = client.create_publisher(UInt64, "/safety/heartbeat", LATEST), 0
        self._kind = UInt64
        nodes.start("standin_g1")
        nodes.start("unitree_world", cell="standin")
        self._load = Caller(client, LoadEpisode, "/world/load_episode", 90.0)
        self._request = LoadEpisode.Request
        self._beater = threading.Thread(target=self._beat, daemon=True)
        self._beater.start()

    def close(self):
        self._ended.set()
        self._beater.join()

    def _beat(self):
        while not self._ended.wait(PERIOD_S):
            if self.beating:
                self._count += 1
                self._beats.publish(self._kind(data=self._count))

    def load(self, task, seed=0):
        end = time.monotonic() + DEADLINE_S * 2
        while not self._load.ready:
            assert time.monotonic() < end, self.nodes.logs()
            time.sleep(0.05)
        request = self._request(task=task, seed=seed, config=json.dumps({}))
        response = self._load.call(request)
        self.wait(lambda: self.states)
        return response

    def wait(self, true, seconds=DEADLINE_S):
        end = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < end, self.nodes.logs()
            time.sleep(0.02)

    def send(self, values):
        from bench_tasks.vocabulary import ActionChunk

        state = self.states[-1]
        chunk = ActionChunk(state.seq, np.asarray(values))
        self._chunks.publish(self._cdr.encode_chunk(chunk, state.stamp_ns, 20_000_000))

    def kinds(self):
        return [event.kind for event in self.events]


@pytest.fixture
def cell(nodes, client):
    made = Cell(nodes, client)
    yield made
    made.close()


def test_waist_and_arms_follow_and_hold_without_the_safety_node(nodes, cell):
    cell.load("reach_both_hands")
    home = embodiments.get("g1").home
    first = cell.states[-1]
    assert first.joint_position.shape == (29,) and first.command == pytest.approx(home, abs=1e-3)
    assert first.joint_position[12:] == pytest.approx(home[embodiments.get("g1").joint_columns],
                                                      abs=0.05)  # fmt: skip
    columns = embodiments.get("g1").joint_columns
    begun, moving = len(cell.states), np.zeros(19)
    moving[[3, 11]] = -0.3
    for k in range(118):  # until they are on their way back as fast as ever
        ahead = 0.5 - 0.5 * np.cos(0.04 * (k + np.arange(1, 12)))
        cell.send(home + ahead[:, None] * moving)
        seq = cell.states[-1].seq
        cell.wait(lambda seq=seq: cell.states[-1].seq > seq)
    states = cell.states[begun:]
    away = np.array([s.joint_position[12:] - s.command[columns] for s in states])
    assert np.sqrt(np.mean(away**2)) < 0.03
    assert max(s.command[3] for s in states) - min(s.command[3] for s in states) > 0.2
    heights = [s.object_pose[0, 2] for s in states]
    assert max(heights) - min(heights) < 0.05, "on its feet"
    # No heartbeat: it holds, and says so; what is commanded then is not done.
    shoulder = 12 + 3
    speed = cell.states[-1].joint_velocity[shoulder]
    begun = len(cell.states)
    cell.send(home + (0.5 - 0.5 * np.cos(0.04 * (118 + np.arange(1, 30))))[:, None] * moving)
    cell.beating = False
    cell.wait(lambda: "heartbeat_lost" in cell.kinds())
    time.sleep(0.3)
    still = cell.states[-1].command
    # They brake, and are not thrown back.
    speeds = [s.joint_velocity[shoulder] for s in cell.states[begun:]]
    assert speed > 0.15 and min(speeds) > -0.3 * speed, speeds
    at = [s.joint_position[shoulder] for s in cell.states[-5:]]
    assert max(at) - min(at) < 0.01 and at[-1] == pytest.approx(still[3], abs=0.02)
    cell.send(np.tile(still + moving / 10, (20, 1)))
    time.sleep(0.5)
    assert cell.states[-1].command == pytest.approx(still, abs=1e-6)
    assert "world_lost" not in cell.kinds()
    cell.beating = True
    time.sleep(0.3)
    # The bus dies: the episode ends with the reason, and another bus lets go of the arms.
    found = subprocess.run(
        ["pgrep", "-f", "hardware.unitree.bus", "-P", str(nodes.running["unitree_world"].pid)],
        capture_output=True, text=True,
    ).stdout.split()  # fmt: skip
    os.kill(int(found[0]), signal.SIGKILL)
    cell.wait(lambda: "world_lost" in cell.kinds())
    lost = next(event for event in cell.events if event.kind == "world_lost")
    assert "the robot's bus has ended" in lost.data["reason"]
    cell.states.clear()
    cell.load("reach_both_hands", 1)
    assert cell.states[-1].command == pytest.approx(home, abs=1e-3)


def test_an_episode_runs_to_a_verdict_with_the_safety_node(nodes, tmp_path):
    from bench_tasks.verdicts import score_files

    out = tmp_path / "out"
    nodes.start("standin_g1")
    nodes.start("unitree_world", cell="standin")
    nodes.start("safety", clock="realtime", confirm=True, listeners=3, limits="g1", cell="standin")
    nodes.start("planner", planner="expert")
    nodes.start("policy", policy="skills", clock="realtime", listeners=2)
    nodes.start("recorder")
    nodes.start(
        "task", out=str(out), record=True, clock="realtime", tasks="reach_both_hands",
        safety=True, robot="unitree",
    )  # fmt: skip
    assert nodes.wait("task", 280.0) == 0, nodes.logs()
    (score,) = score_files.load_scores(score_files.newest_scores(out))
    assert score.agrees and score.success, (score, nodes.logs())
