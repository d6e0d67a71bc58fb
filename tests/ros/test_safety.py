"""The safety node between policy and world: what reaches the arms, and what the bag says of it."""

from __future__ import annotations

import json
import queue
import time
from importlib.resources import files

import numpy as np
import pytest

from bench_tasks.bags.bag import messages, read_bag
from bench_tasks.bags.cdr import decode_chunk, decode_event, encode_chunk
from bench_tasks.verdicts import score_files
from bench_tasks.vocabulary import ARM_COLUMNS
from bench_tasks.vocabulary import ActionChunk as VocabularyChunk
from tests.ros.conftest import DEADLINE_S, SAFE

pytestmark = pytest.mark.ros


def patient(folder) -> str:
    """The limits of a robot whose states may be seconds old: the machine may be busy."""
    text = (files("hardware.limits") / "fr3_pair.yaml").read_text(encoding="utf-8")
    path = folder / "limits.yaml"
    path.write_text(text.replace("state_age_s: 0.1", "state_age_s: 20.0"), encoding="utf-8")
    return str(path)


class Safe:
    """A world that listens to the safety node alone, both in realtime, and a client of both."""

    def __init__(self, nodes, client, make_world, button=None, **parameters):
        from bench_interfaces.msg import EpisodeEvent
        from std_msgs.msg import Bool
        from std_srvs.srv import Trigger

        from bench_tasks.ros.node_ros import TRACK, Caller, wait_for_listeners

        self.nodes, self.client = nodes, client
        self.told: queue.Queue = queue.Queue()
        client.create_subscription(EpisodeEvent, "/safety/events", self.told.put, TRACK, raw=True)
        nodes.start("safety", clock="realtime", limits=patient(nodes.folder), **parameters)
        self.button = client.create_publisher(Bool, "/safety/estop", button or TRACK)
        self.call = {
            name: Caller(client, Trigger, f"/safety/{name}", DEADLINE_S)
            for name in ("ready", "confirm", "stop", "release")
        }
        self.world = make_world(clock="realtime", listeners=2, remap=(SAFE,))
        wait_for_listeners([(self.button, 1), (self.world.chunks, 1)], DEADLINE_S)
        self.state = self.world.start

    def ask(self, name: str) -> tuple[bool, str]:
        from std_srvs.srv import Trigger

        answer = self.call[name].call(Trigger.Request())
        return answer.success, answer.message

    def newest(self):
        """The newest state."""
        from bench_tasks.bags.cdr import decode_state

        self.state = self.world.state()
        while not self.world.states.empty():
            self.state = decode_state(self.world.states.get_nowait())
        return self.state

    def event(self, what: str):
        """The next event about `what`; others are passed over."""
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            event = decode_event(self.told.get(timeout=DEADLINE_S))
            if event.data["what"] == what:
                return event
        raise AssertionError(f"no event about {what}\n{self.nodes.logs()}")

    def wave(self) -> None:
        """Ask for a slow motion that takes so long that a busy machine sees some of it."""
        state = self.newest()
        path = np.tile(state.command, (240, 1))
        u = np.arange(1, 241)[:, None] / 240
        path[:, [0, 8]] += 0.5 * (10 * u**3 - 15 * u**4 + 6 * u**5) * [1, -1]
        self.world.send(state.seq, path)

    def move(self) -> None:
        """Ask for motion until there is some: on a busy machine a command can come too late."""
        begun, end = self.newest().command, time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            self.wave()
            for _ in range(100):
                if not np.array_equal(self.newest().command, begun):
                    return
        raise AssertionError(f"the arms do not move\n{self.nodes.logs()}")

    def at_rest(self) -> None:
        """Wait until the command no longer changes."""
        end, before = time.monotonic() + DEADLINE_S, self.newest().command
        while time.monotonic() < end:
            for _ in range(3):
                command = self.newest().command
            if np.array_equal(command, before):
                return
            before = command
        raise AssertionError("the arms do not come to rest")


def test_from_confirmation_to_release(nodes, client, make_world):
    """One start of the nodes, since that takes longest."""
    from std_msgs.msg import Bool

    safe = Safe(nodes, client, make_world)
    home = safe.newest().command
    ready, why = safe.ask("ready")
    assert not ready and "no human has confirmed motion" in why
    safe.wave()
    assert safe.event("not_ready").kind == "safety_stopped"
    assert safe.ask("confirm")[0] and safe.ask("ready") == (True, "")
    assert np.array_equal(safe.newest().command, home)

    safe.move()
    safe.world.send(safe.newest().seq, np.full((10, 16), np.nan))
    event = safe.event("not_finite")
    assert event.kind == "safety_refused" and event.data["command"][0][0] == "nan"
    safe.at_rest()

    safe.button.publish(Bool(data=True))
    assert safe.event("estop").kind == "safety_stopped"
    safe.wave()
    safe.event("not_ready")
    assert safe.ask("release") == (False, "/safety/estop still says true")
    safe.button.publish(Bool(data=False))
    end = time.monotonic() + DEADLINE_S
    while not safe.ask("release")[0]:
        assert time.monotonic() < end
    safe.move()
    # Killed in motion: what was sent last ends in a stop.
    nodes.running["safety"].kill()
    safe.at_rest()


def test_a_button_is_heard_however_it_speaks(nodes, client):
    """Also by best effort, and when it was pressed before the node was there."""
    from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
    from std_msgs.msg import Bool
    from std_srvs.srv import Trigger

    from bench_tasks.ros.node_ros import LATCHED, TRACK, Caller, wait_for_listeners
    careless = QoSProfile(
        depth=1, reliability=ReliabilityPolicy.BEST_EFFORT, durability=DurabilityPolicy.VOLATILE
    )
    first, *others = (
        client.create_publisher(Bool, "/safety/estop", qos) for qos in (LATCHED, TRACK, careless)
    )
    first.publish(Bool(data=True))
    nodes.start("safety", clock="realtime", confirm=True, listeners=0)
    call = {
        name: Caller(client, Trigger, f"/safety/{name}", DEADLINE_S)
        for name in ("ready", "release")
    }
    end = time.monotonic() + DEADLINE_S
    while not call["ready"].ready:
        assert time.monotonic() < end, nodes.logs()
        time.sleep(0.05)

    def wait_for(name: str, success: bool) -> str:
        while True:
            answer = call[name].call(Trigger.Request())
            if answer.success == success:
                return answer.message
            assert time.monotonic() < end, (name, answer, nodes.logs())
            time.sleep(0.05)

    # Heard by as many subscriptions as can: the careless one by one alone.
    wait_for_listeners([(first, 3), (others[0], 2), (others[1], 1)], DEADLINE_S)
    assert "/safety/estop said true" in wait_for("ready", False)
    for publisher in (first, *others):
        publisher.publish(Bool(data=True))
        wait_for("ready", False)
        wait_for("release", False)
        publisher.publish(Bool(data=False))
        wait_for("release", True)
        wait_for("ready", True)


@pytest.mark.parametrize(
    ("task", "limits"), [("lift_pot", "fr3_pair"), ("reach_both_hands", "g1")]
)
def test_an_episode_in_lockstep_is_the_same_to_the_bit_with_the_safety_node(
    nodes, tmp_path, task, limits
):
    from bench_tasks.config import RunConfig
    from bench_tasks.runner import run

    out = tmp_path / "out"
    nodes.start_all(out, safety=True, limits=limits, tasks=task, keyframe_cameras="")
    assert nodes.wait("task", 280) == 0, nodes.logs()
    bag = read_bag(out / task / "000000")
    alone = run(RunConfig((task,), cameras=(), out=str(tmp_path / "alone"))).episodes[0]
    assert bag.state_hash == alone.state_hash and bag.verdict.success
    assert not [e for e in bag.events if e.kind.startswith("safety_")]
    asked, passed = (
        [m.data for m in messages(out / task / "000000", [], {topic})]
        for topic in ("/policy/action_chunk", "/safety/action_chunk")
    )
    assert len(asked) == len(passed) > 20


def test_a_policy_that_jumps_is_on_record_and_moves_nothing(nodes, tmp_path):
    nodes.before = "from tests.ros.agents import register; register(); "
    out = tmp_path / "out"
    nodes.start_all(out, safety=True, tasks="lift_pot", policy="jumps", keyframe_cameras="")
    assert nodes.wait("task", 280) == 0, nodes.logs()
    (score,) = score_files.load_scores(score_files.newest_scores(out))
    assert score.scored and score.agrees and not score.success
    bag = read_bag(out / "lift_pot" / "000000")
    refused = [e for e in bag.events if e.kind == "safety_refused"]
    assert len(refused) == 3 and {e.data["what"] for e in refused} == {"jump"}
    assert refused[0].data["value"] == pytest.approx(1.0)
    assert refused[0].data["joint"] == "left_fr3_joint1"
    assert np.asarray(refused[0].data["command"]).shape == (10, 16)
    commands = np.array([state.command for state in bag.states])
    assert np.ptp(commands[:, ARM_COLUMNS], axis=0).max() == 0.0


def test_what_comes_too_early_or_cannot_be_read_is_on_record_and_the_node_goes_on(nodes, client):
    from bench_interfaces.msg import ActionChunk, EpisodeEvent, Scene, WorldState
    from std_msgs.msg import Bool
    from std_srvs.srv import Trigger

    from bench_tasks.ros.node_ros import LATCHED, TRACK, Caller, wait_for_listeners
    from benchmarks.safety.robot import SCENE

    told: queue.Queue = queue.Queue()
    client.create_subscription(EpisodeEvent, "/safety/events", told.put, TRACK, raw=True)
    scenes = client.create_publisher(Scene, "/world/scene", LATCHED)
    chunks = client.create_publisher(ActionChunk, "/policy/action_chunk", TRACK)
    states = client.create_publisher(WorldState, "/world/state", TRACK)
    button = client.create_publisher(Bool, "/safety/estop", TRACK)
    nodes.start("safety", clock="realtime", confirm=True, listeners=0)
    ready = Caller(client, Trigger, "/safety/ready", DEADLINE_S)
    wait_for_listeners([(scenes, 1), (chunks, 1), (states, 1), (button, 1)], DEADLINE_S)

    def event():
        return decode_event(told.get(timeout=DEADLINE_S))

    for seq in (4, 3):  # no state has come
        message = encode_chunk(VocabularyChunk(seq, np.zeros((seq, 16))), 0, 20_000_000)
        chunks.publish(message)
    early = [event() for _ in range(2)]
    assert [(e.kind, e.data["what"]) for e in early] == [("safety_refused", "no_state")] * 2
    assert [len(e.data["command"]) for e in early] == [4, 3]

    scenes.publish(b"\x00\x01\x00\x00" + b"\xff" * 60)
    chunks.publish(message)
    stopped = event()
    assert (stopped.kind, stopped.data["what"]) == ("safety_stopped", "state")
    assert stopped.data["reason"].startswith("scene: ")
    answer = ready.call(Trigger.Request())
    assert not answer.success and "scene: " in answer.message, nodes.logs()

    assert event().data["what"] == "not_ready", "the command that came with it"
    spoilt = b"\x00\x01\x00\x00" + b"\xff" * 40
    for data, what in ((message[:50], "malformed"), (spoilt, "malformed"),
                       (message.replace(b"joint_p", b"joint_v"), "layout")):  # fmt: skip
        chunks.publish(data)
        assert event().data["what"] == what
    scene = {**json.loads(SCENE.to_json()), "entities": [["table"]]}
    scenes.publish(Scene(json=json.dumps(scene)))
    states.publish(spoilt)
    told_of = [event().data for _ in range(2)]
    assert [data["what"] for data in told_of] == ["state", "state"]
    assert "entities holds ['table'], which is no name" in told_of[0]["reason"]
    button.publish(b"\x00\x01\x00\x00")
    assert event().data["what"] == "estop", "what cannot be read is a button, too"
    assert "scene: " in ready.call(Trigger.Request()).message, nodes.logs()


def test_in_realtime_a_stop_is_sent_before_it_is_told_of():
    """Whatever goes wrong with the record of it."""
    from types import SimpleNamespace

    from hardware.safety import Decision, Intervention
    from hardware.safety_node import SafetyNode

    def fails(_):
        raise RuntimeError("no room")

    sent: list = []
    node = SimpleNamespace(
        _realtime=True, _imagined=None, _over=False, _state=None,
        get_logger=lambda: SimpleNamespace(
            warning=lambda _: None), _chunk_out=SimpleNamespace(publish=sent.append),
        _event_out=SimpleNamespace(publish=fails),
    )  # fmt: skip
    node._send = lambda decision: SafetyNode._send(node, decision)
    stop = VocabularyChunk(3, np.zeros((12, 16)))
    with pytest.raises(RuntimeError, match="no room"):
        SafetyNode._do(node, Decision(stop, (Intervention("stopped", "estop", "a button"),)))
    assert decode_chunk(sent[0]).seq == 3
