"""Our server, with the field's own client as its peer, and with ours in the real simulation."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import urllib.request

import cv2
import drill_world
import numpy as np
import peers
import pytest
from openpi_client import msgpack_numpy
from openpi_client.websocket_client_policy import WebsocketClientPolicy
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

import policies
from bench_tasks import tasks
from bench_tasks.cli import main
from bench_tasks.config import RunConfig
from bench_tasks.errors import BenchError, UsageError
from bench_tasks.robots.fr3 import JOINT_LIMITS_RAD
from bench_tasks.runner import run
from bench_tasks.vocabulary import MAX_OPENING_M, ActionChunk, Metadata, Observation
from policies.remote import serve

# OpenPI's client uses its websocket library in a way that is going out of use.
pytestmark = pytest.mark.filterwarnings("ignore:connect:DeprecationWarning")
HOME = drill_world.HOME


@pytest.fixture
def served():
    """Starts servers and ends them."""
    servers = []

    def start(spec: str, **more):
        server = serve.PolicyServer(spec, port=0, **more)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        servers.append((server, thread))
        return server

    yield start
    for server, thread in servers:
        server.shutdown()
        thread.join(5)


def peer(port: int, **more) -> WebsocketClientPolicy:
    return WebsocketClientPolicy("127.0.0.1", port, **more)


def test_openpis_own_client_is_served_and_told_what_it_is(served):
    server = served("random")
    client = peer(server.port)
    said = client.get_server_metadata()
    assert said["policy"] == "random" and said["embodiment"] == "fr3_pair"
    assert said["action_dim"] == 16 and said["control_hz"] == 50 and said["cameras"] == []
    in_process = policies.make_policy("random")
    in_process.reset(drill_world.scene(), 5)
    command = HOME
    for k in range(3):
        answer = client.infer({"state": command, "command": command, "seed": 5, "prompt": "go"})
        expected = in_process.infer(Observation(drill_world.state(command, 10 * k))).values
        assert np.array_equal(answer["actions"], expected), "the same walk to the bit"
        timing = answer["server_timing"]
        assert timing["infer_ms"] > 0.0 and (k == 0) == ("prev_total_ms" not in timing)
        command = expected[-1]


def test_without_a_command_its_own_last_answer_counts(served):
    client = peer(served("hold").port)
    sagged = HOME.astype(np.float32) - np.float32(0.001)
    first = client.infer({"state": HOME.astype(np.float32)})["actions"]
    again = client.infer({"state": sagged})["actions"]
    assert np.array_equal(first, again), "it holds what it commanded, not what was measured"
    assert np.allclose(first, HOME, atol=1e-6)


def test_every_connection_is_an_episode_of_its_own(served):
    server = served("random")
    message = {"state": HOME, "command": HOME, "seed": 1}
    one, other = peer(server.port), peer(server.port)
    first = one.infer(message)["actions"]
    assert not np.array_equal(one.infer(message)["actions"], first), "the walk goes on"
    assert np.array_equal(other.infer(message)["actions"], first), "and begins with each client"


@pytest.mark.parametrize(
    ("first", "then", "changed"),
    [
        ({"prompt": "a", "seed": 1}, {"prompt": "b", "seed": 1}, "prompt"),
        ({"prompt": "a", "seed": 1}, {"prompt": "a", "seed": 2}, "seed"),
        ({}, {"prompt": "a"}, "prompt"),
        ({"prompt": "a", "seed": 1}, {}, ""),
    ],
)
def test_another_episode_on_the_same_connection_is_found_out(served, first, then, changed):
    # OpenPI's own client keeps its connection, and would be answered for the old instruction.
    client = peer(served("hold").port)
    client.infer({"state": HOME, **first})
    if not changed:
        assert client.infer({"state": HOME, **then})["actions"].shape == (10, 16)
        return
    with pytest.raises(RuntimeError, match=f"{changed} has changed: connect anew for another"):
        client.infer({"state": HOME, **then})


class Seeing:
    """Answers with the colour of the upper left pixel of what it saw."""

    metadata = Metadata("seeing", "1", cameras=("head",))

    def reset(self, scene, seed):
        assert scene.instruction == "look"

    def accept(self, plan):
        pass

    def infer(self, observation):
        (frame,) = observation.frames
        pixels = cv2.imdecode(np.frombuffer(frame.data, np.uint8), cv2.IMREAD_COLOR)
        values = np.tile(observation.state.command, (2, 1))
        values[:, :3] = pixels[0, 0, ::-1] / 1000
        return ActionChunk(observation.state.seq, values)


def test_what_a_policy_asks_beyond_a_joint_is_clipped_as_the_arms_do(served, monkeypatch):
    class Beyond(Seeing):
        metadata = Metadata("beyond", "1")

        def infer(self, observation):
            values = np.tile(observation.state.command, (2, 1))
            values[:, [3, 15]] = -3.2, 0.2
            return ActionChunk(observation.state.seq, values)

    monkeypatch.setattr(serve, "make_policy", lambda spec: Beyond())
    answer = peer(served("beyond").port).infer({"state": HOME, "prompt": "look"})["actions"]
    assert np.array_equal(answer[0, [3, 15]], [JOINT_LIMITS_RAD[3, 0], MAX_OPENING_M])
    assert np.array_equal(np.delete(answer[0], [3, 15]), np.delete(HOME, [3, 15]))


@pytest.mark.parametrize("layout", ["hwc", "chw"])
def test_pictures_get_to_the_policy(served, monkeypatch, layout):
    monkeypatch.setattr(serve, "make_policy", lambda spec: Seeing())
    pixels = np.zeros((24, 32, 3), np.uint8)
    pixels[0, 0] = (200, 100, 50)
    if layout == "chw":
        pixels = pixels.transpose(2, 0, 1)
    client = peer(served("seeing").port)
    message = {"state": HOME, "prompt": "look", "images": {"head": pixels}}
    assert np.allclose(client.infer(message)["actions"][0, :3], [0.2, 0.1, 0.05])
    with pytest.raises(RuntimeError, match=r"images/head must be \(h, w, 3\) uint8, not missing"):
        client.infer({"state": HOME, "prompt": "look"})


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ({}, "state must be an array of 16 finite floats, not missing"),
        ({"state": HOME[:14]}, r"not float64 of shape \(14,\)"),
        ({"state": np.full(16, np.nan)}, "16 finite floats"),
        ({"state": HOME.tolist()}, "not a list"),
        ({"state": np.degrees(HOME)}, "state: number 2 is -45, that of fr3_pair is from -1.784 to"),
        ({"state": HOME * 1e300}, "state: number 2 is -7.854e"),
        ({"state": HOME, "seed": -1}, "seed must be a whole number from 0"),
        ({"state": HOME, "seed": "x"}, "seed must be a whole number from 0, not a str"),
        ({"state": HOME, "prompt": 5}, "prompt must be a text, not a int"),
        ([1, 2], "an observation is a dict, not a list"),
        (b"\x80\x04pickle", "pickled data, which is never read"),
        (b"\xc1", "not msgpack"),
        ("hello", "an observation is a binary message"),
    ],
)
def test_a_wrong_observation_is_told_as_text_and_closes(served, message, why):
    server = served("hold")
    with connect(f"ws://127.0.0.1:{server.port}", compression=None) as wire:
        wire.recv()
        wire.send(message if isinstance(message, bytes | str) else peers.packed(message))
        said = wire.recv(timeout=5)
        assert isinstance(said, str) and "\n" not in said
        assert re.search(why, said), said
        with pytest.raises(Exception, match="1008"):
            wire.recv(timeout=5)
    assert peer(server.port).infer({"state": HOME})["actions"].shape == (10, 16), "others go on"


def test_a_policy_that_crashes_tells_what_it_was(served, monkeypatch):
    class Broken(Seeing):
        def infer(self, observation):
            raise ValueError("no\nluck")

    monkeypatch.setattr(serve, "make_policy", lambda spec: Broken())
    client = peer(served("seeing").port)
    pixels = np.zeros((8, 8, 3), np.uint8)
    with pytest.raises(RuntimeError, match="ValueError: no luck"):
        client.infer({"state": HOME, "prompt": "look", "images": {"head": pixels}})


def test_health_and_key(served, monkeypatch):
    monkeypatch.setenv("OPENPI_API_KEY", "sesame")
    server = served("hold")
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/healthz", timeout=5) as answer:
        assert answer.status == 200 and answer.read() == b"OK\n"
    with pytest.raises(InvalidStatus, match="401"):
        peer(server.port)
    with pytest.raises(InvalidStatus, match="401"):
        peer(server.port, api_key="guess")
    assert peer(server.port, api_key="sesame").get_server_metadata()["policy"] == "hold"


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("skills", "policy skills cannot be served: it needs plans and the true poses"),
        ("openpi", "policy openpi cannot be served: it is on a server already"),
        ("nonesuch", "unknown policy 'nonesuch'"),
    ],
)
def test_what_cannot_be_served_is_one_line(spec, why, capsys):
    assert main(["serve", "--policy", spec, "--port", "0"]) == 2
    line = capsys.readouterr().err.strip()
    assert why in line and "\n" not in line


def test_a_port_that_is_taken_is_one_line(served):
    with pytest.raises(UsageError, match="cannot listen on 127.0.0.1:"):
        serve.PolicyServer("hold", port=served("hold").port)


def test_the_command_serves_and_ends_with_an_interrupt():
    command = [sys.executable, "-m", "bench_tasks.cli", "serve", "--policy", "hold", "--port", "0"]
    with subprocess.Popen(
        [*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            said = json.loads(process.stdout.readline())
            assert said["policy"] == "hold"
            client = peer(int(said["url"].rsplit(":", 1)[1]))
            assert np.array_equal(client.infer({"state": HOME})["actions"][0], HOME)
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 130
            assert process.stderr.read() == "bench_tasks: interrupted\n"
        finally:
            process.kill()


def test_both_ends_agree_on_arrays():
    message = {"a": np.arange(6.0).reshape(2, 3), "b": np.float32(2), "c": np.array([True])}
    theirs = msgpack_numpy.unpackb(serve.pack(message))
    ours = serve.unpack(msgpack_numpy.packb(message))
    for found in (theirs, ours):
        assert all(np.array_equal(found[key], message[key]) for key in message)
        assert found["b"].dtype == np.float32


# -- over the wire and back: the same as in this process -----------------------------------------


def episode(policy: str):
    config = RunConfig(
        tasks=("lift_pot",), policy=policy, planner="random", seed=3, record=False, cameras=()
    )
    (score,) = run(config).episodes
    return score


def test_a_policy_over_our_own_wire_gives_the_same_states_as_in_this_process(served, monkeypatch):
    monkeypatch.setattr(type(tasks.get("lift_pot")), "time_limit_s", 3.0)
    server = served("random")
    here = episode("random")
    there = episode(f"openpi:port={server.port}")
    assert here.state_hash and there.state_hash == here.state_hash
    assert there.cause == here.cause and here.cause.startswith("time limit")
    assert there.sim_s == here.sim_s == pytest.approx(3.0)


def test_pictures_of_the_simulation_go_over_the_wire(served, monkeypatch):
    """Three cameras as they are taken, rendered only when the server is asked."""
    monkeypatch.setattr(type(tasks.get("lift_pot")), "time_limit_s", 0.5)
    with peers.OpenPIPeer(lambda obs, _: {"actions": peers.good_values(obs["command"])}) as wire:
        score = episode(f"openpi:port={wire.port},embodiment=fr3_pair_images,deadline_s=20")
    assert score.cause.startswith("time limit") and len(wire.seen) == 3, "0.5 s, 0.2 s a chunk"
    for name in ("head", "left_wrist", "right_wrist"):
        pixels = wire.seen[0]["images"][name]
        assert pixels.shape == (240, 320, 3) and pixels.std() > 5
    assert not np.array_equal(wire.seen[0]["images"]["head"], wire.seen[0]["images"]["left_wrist"])


def test_a_policy_that_sees_acts_over_our_wire_as_in_this_process(served, monkeypatch):
    """Under what `serve` says to evaluate it by: it needs the pictures as they are taken.

    Until the hands close: a client moves fingers no faster than a Franka Hand does.
    """
    pytest.importorskip("torch")
    monkeypatch.setattr(type(tasks.get("lift_pot")), "time_limit_s", 1.2)
    server = served("wam")
    assert server.client_spec == f"openpi:port={server.port},embodiment=fr3_pair_images"
    here, there = episode("wam"), episode(server.client_spec)
    assert here.state_hash and there.state_hash == here.state_hash
    assert there.cause == here.cause and here.cause.startswith("time limit")


def test_a_policy_that_sees_is_not_asked_without_pictures(served):
    pytest.importorskip("torch")
    server = served("wam")
    policy = policies.make_policy(f"openpi:port={server.port}")
    reason = "embodiment fr3_pair: it wants pictures of head, left_wrist, right_wrist, which are"
    with pytest.raises(BenchError, match=reason):
        policy.reset(drill_world.scene(), 0)


def test_a_server_that_goes_away_ends_the_episode(served):
    server = served("hold")
    policy = policies.make_policy(f"openpi:port={server.port}")
    policy.reset(drill_world.scene(), 0)
    policy.infer(Observation(drill_world.state()))
    server.shutdown()
    with pytest.raises(BenchError, match="broke off"):
        policy.infer(Observation(drill_world.state(seq=10)))
