"""The policy node by itself: it answers the state that it is asked about, or says why not."""

from __future__ import annotations

import json
import queue
import threading
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from bench_tasks.bags import cdr
from bench_tasks.errors import BenchError, LateInput
from bench_tasks.vocabulary import ObjectInfo, Observation, Scene, WorldState

pytestmark = pytest.mark.ros

SCENE = Scene(
    "lift_pot", 1, 0, "", (ObjectInfo("pot", "pot", "red", (0.1, 0.1, 0.1)),),
    ("pot", "table"), tuple(f"joint{i}" for i in range(14)), {},
)


def state(seq: int) -> bytes:
    zeros = np.zeros
    return cdr.encode_state(
        WorldState(
            seq, seq * 20_000_000, zeros(14), zeros(14), zeros(14), zeros(2), zeros((2, 7)),
            np.full(16, float(seq)), zeros((1, 7)), zeros((1, 6)), zeros((0, 2), np.uint16),
            zeros(0),
        )
    )


@pytest.fixture
def policy(nodes, client):
    """A node that holds: (publish a state, call infer, received chunks)."""
    from bench_interfaces.msg import ActionChunk as ChunkMsg
    from bench_interfaces.msg import WorldState as StateMsg
    from bench_interfaces.srv import Infer, ResetAgent

    from bench_tasks.ros.node_ros import TRACK, Caller, wait_for_listeners

    nodes.start("policy", policy="hold", input_wait_s=2.0)
    chunks: queue.Queue = queue.Queue()
    client.create_subscription(ChunkMsg, "/policy/action_chunk", chunks.put, TRACK, raw=True)
    out = client.create_publisher(StateMsg, "/world/state", TRACK)
    wait_for_listeners([(out, 1)], 30.0)
    reset = Caller(client, ResetAgent, "/policy/reset", 30.0)
    infer = Caller(client, Infer, "/policy/infer", 30.0)
    while not (reset.ready and infer.ready):
        assert nodes.running["policy"].poll() is None, nodes.logs()
    return out, reset, infer, chunks


def begin(reset):
    from bench_interfaces.srv import ResetAgent

    return reset.call(ResetAgent.Request(scene=SCENE.to_json(), seed=0))


def test_it_answers_the_state_it_is_asked_about_even_when_that_comes_later(policy):
    from bench_interfaces.srv import Infer

    out, reset, infer, chunks = policy
    assert json.loads(begin(reset).metadata)["name"] == "hold"
    for seq in range(20):
        # The question overtakes the state, as it can between processes.
        late = threading.Timer(0.05 if seq % 2 else 0.0, out.publish, [state(seq)])
        late.start()
        response = infer.call(Infer.Request(seq=seq))
        assert response.actions == 10 and not response.needs_plan
        chunk = cdr.decode_chunk(chunks.get(timeout=30))
        assert chunk.seq == seq and (chunk.values == seq).all()
        late.join()


def test_a_state_that_does_not_come_is_an_error_in_bounded_time(policy):
    from bench_interfaces.srv import Infer

    out, reset, infer, chunks = policy
    begin(reset)
    out.publish(state(3))
    with pytest.raises(LateInput, match="has not got state 4 .* but 3"):
        infer.call(Infer.Request(seq=4))
    assert infer.call(Infer.Request(seq=3)).actions == 10, "it goes on afterwards"
    assert cdr.decode_chunk(chunks.get(timeout=30)).seq == 3


def test_before_the_first_episode_it_says_so(policy):
    from bench_interfaces.srv import Infer

    _, _, infer, chunks = policy
    with pytest.raises(BenchError, match="before it was reset"):
        infer.call(Infer.Request(seq=0))
    assert chunks.empty()


class Counting:
    """A caller that counts its calls."""

    def __init__(self, caller) -> None:
        self.caller, self.begun = caller, 0

    def begin(self, request):
        self.begun += 1
        return self.caller.begin(request)

    def call(self, request):
        return self.begin(request).result()


def test_the_conductor_asks_ahead_and_again_when_that_was_too_early(policy):
    """What the world takes its time for is not the policy's failure."""
    from bench_tasks.ros.remote_ros import RemotePolicy

    out, reset, infer, _ = policy
    counted = Counting(infer)
    remote = RemotePolicy(SimpleNamespace(policy_reset=reset, infer=counted, sent=Counter()))
    remote.reset(SCENE, 0)

    def answered(seq: int) -> bool:
        data = state(seq)
        out.publish(data)
        chunk = remote.infer(Observation(cdr.decode_state(data)))
        return (chunk.seq, len(chunk.values)) == (seq, 10)

    streamed = RemotePolicy(SimpleNamespace(policy_reset=reset, infer=counted), ahead=False)
    streamed._has_seen = True
    streamed.ask(cdr.decode_state(state(0)))
    assert counted.begun == 0, "pictures that nobody asked for must not answer it"
    remote.ask(cdr.decode_state(state(0)))
    assert counted.begun == 0, "of the first pictures nobody knows how long they take"
    assert answered(0) and counted.begun == 1
    remote.ask(cdr.decode_state(state(10)))
    assert counted.begun == 2
    assert answered(10) and counted.begun == 2
    remote.ask(cdr.decode_state(state(20)))
    assert remote._asked is not None and remote._asked._done.wait(30.0), "it gives up waiting"
    assert answered(20) and counted.begun == 4, "asked ahead in vain, then again"
    with pytest.raises(LateInput, match="has not got state 30 .* but 20"):
        remote.infer(Observation(cdr.decode_state(state(30))))


@pytest.mark.parametrize(
    ("detail", "said"),
    [("", "answered state None, asked about 5"), ('{"seq": 4}', "answered state 4, asked about 5")],
)
def test_a_node_that_answers_another_state_is_told_in_one_line(detail, said):
    from bench_tasks.ros.remote_ros import RemotePolicy

    class Fixed:
        """A caller that always gets the same answer."""

        def __init__(self, **answer) -> None:
            self.answer = SimpleNamespace(**answer)

        def begin(self, _):
            return SimpleNamespace(result=lambda: self.answer)

        def call(self, _):
            return self.answer

    words = {"name": "odd", "version": "1", "cameras": [], "privileged": False, "depth": False}
    about = Fixed(metadata=json.dumps(words))
    graph = SimpleNamespace(policy_reset=about, infer=None, sent=Counter())
    remote = RemotePolicy(graph)
    observation = Observation(cdr.decode_state(state(5)))
    for answer, right in ((detail, False), ('{"seq": 6}', True)):
        graph.infer = Fixed(detail=answer, needs_plan=False, actions=10)
        if right:
            assert remote.infer(observation).values.shape == (11, 16)
            continue
        with pytest.raises(BenchError, match=said):
            remote.infer(observation)
