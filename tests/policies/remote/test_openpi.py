"""The OpenPI client against a server written from the wire: nothing hangs, nothing bad moves."""

from __future__ import annotations

import re
import threading
import time

import drill_world
import numpy as np
import peers
import pytest

import policies
from bench_tasks.errors import BenchError, UsageError
from bench_tasks.vocabulary import Observation

LIMIT_S = 10.0
"""Far more than any deadline here: an episode that lasts longer hangs."""


def client(port: int, **options):
    options = {"deadline_s": peers.SAFE_S, "connect_s": 0.3, **options}
    more = ",".join(f"{key}={value}" for key, value in options.items())
    return policies.make_policy(f"openpi:port={port},{more}")


def good(observation, connection):
    return {"actions": peers.good_values(observation["command"]), "server_timing": {}}


def after(count: int, bad):
    """A server that answers well `count` times and then badly."""
    asked = []

    def answer(observation, connection):
        asked.append(1)
        return (good if len(asked) <= count else bad)(observation, connection)

    return answer


def refused(peer, why: str, calls: int, **options):
    """Run an episode that must end because of the policy, after `calls` good chunks."""
    begun = time.monotonic()
    if "no complete answer" in why:
        options = {"deadline_s": peers.DEADLINE_S, **options}
        options = {"first_deadline_s": options["deadline_s"] if calls == 0 else 10, **options}
    verdict, world = drill_world.run(client(peer.port, **options))
    took = time.monotonic() - begun
    assert verdict.cause.startswith(f"policy error: policy server 127.0.0.1:{peer.port}: ")
    assert re.search(why, verdict.cause), verdict.cause
    assert "\n" not in verdict.cause and len(verdict.cause) < 400
    assert took < LIMIT_S
    assert_only_good(world.commands, calls)


def assert_only_good(commands, calls: int) -> None:
    expected, command = [], drill_world.HOME
    for _ in range(calls):
        expected += list(peers.good_values(command))
        command = expected[-1]
    assert np.array_equal(np.array(commands), np.array(expected)), "only what was good moved it"


def test_good_answers_move_the_arms_to_the_bit():
    with peers.OpenPIPeer(good) as peer:
        verdict, world = drill_world.run(client(peer.port))
    assert verdict.cause.startswith("time limit")
    assert_only_good(world.commands, 3)
    sent = peer.seen[0]
    assert np.array_equal(sent["state"], drill_world.HOME) and sent["state"].dtype == np.float64
    assert sent["prompt"] == "Lift the block." and sent["seed"] == 0


@pytest.mark.parametrize("what", peers.BAD_VALUES)
def test_bad_values_move_nothing(what):
    spoil, why = peers.BAD_VALUES[what]

    def bad(observation, connection):
        return {"actions": spoil(peers.good_values(observation["command"]))}

    with peers.OpenPIPeer(after(1, bad)) as peer:
        refused(peer, why, 1)


@pytest.mark.parametrize("what", peers.BAD_BYTES)
def test_bad_messages_move_nothing(what):
    message, why = peers.BAD_BYTES[what]
    with peers.OpenPIPeer(after(1, lambda *_: message())) as peer:
        refused(peer, why, 1)


@pytest.mark.parametrize("what", peers.BAD_WIRE)
def test_a_bad_wire_moves_nothing(what):
    act, why = peers.BAD_WIRE[what]
    with peers.OpenPIPeer(after(1, lambda _, connection: act(connection))) as peer:
        refused(peer, why, 1)


@pytest.mark.parametrize(
    "what", ["the connection drops", "silence", "a trickle", "a frame that claims a terabyte"]
)
def test_a_bad_greeting_ends_the_episode_before_the_first_move(what):
    act, why = peers.BAD_WIRE[what]
    with peers.OpenPIPeer(good, metadata=act) as peer:
        refused(peer, why, 0)


def test_a_text_is_an_error_of_which_the_last_line_is_told():
    trace = "Traceback (most recent call last):\n  File x\nKeyError: 'observation/state'\n"
    with peers.OpenPIPeer(after(1, lambda *_: trace)) as peer:
        refused(peer, "it sent an error: KeyError: 'observation/state'$", 1)


@pytest.mark.parametrize("extra", [1, 2000])
def test_an_answer_that_nobody_asked_for_is_not_taken_for_the_next(extra):
    sent = threading.Event()

    def twice(observation, connection):
        for _ in range(extra):
            connection.send(peers.packed(good(observation, connection)))
            if not sent.is_set():
                time.sleep(0.05)  # the first answer is taken, the second one waits
                connection.send(peers.packed(good(observation, connection)))
                sent.set()

    with peers.OpenPIPeer(twice) as peer:
        policy = client(peer.port)
        policy.reset(drill_world.scene(), 0)
        policy.infer(Observation(drill_world.state()))
        assert sent.wait(5)
        time.sleep(0.05)
        with pytest.raises(BenchError, match="not asked for: stale answers are not used"):
            policy.infer(Observation(drill_world.state(seq=10)))


def test_a_late_answer_is_never_taken_for_a_later_one():
    """The first episode gives up; the answer to it comes while the second one is running."""
    late, asked_again = [], threading.Event()

    def answer(observation, connection):
        if not late:
            late.append(connection)
            asked_again.wait(30)
            return {"actions": peers.good_values(observation["command"]) + 0.01}
        asked_again.set()
        return good(observation, connection)

    with peers.OpenPIPeer(answer) as peer:
        policy = client(peer.port, deadline_s=10, first_deadline_s=1.0)
        verdict, world = drill_world.run(policy)
        assert "no complete answer" in verdict.cause and not world.commands
        with pytest.raises(BenchError, match="no complete answer"):
            policy.infer(Observation(drill_world.state()))  # given up until the next episode
        verdict, world = drill_world.run(policy)
        assert verdict.cause.startswith("time limit")
        assert_only_good(world.commands, 3)
        assert peer.connections == 2


def test_a_server_that_does_not_read_is_given_up(tmp_path):
    """What is sent is larger than the socket's buffers, so that sending it does not end."""
    big = (policies.__file__.rsplit("/", 1)[0] + "/remote/embodiments/fr3_pair_images.yaml")
    text = open(big).read().replace("camera: head", "camera: head, width: 2000, height: 2000")
    (tmp_path / "big.yaml").write_text(text)

    def deaf(connection):
        connection.send(peers.packed({}))
        connection.recv_flow_control.acquire()
        time.sleep(4 * peers.DEADLINE_S)
        connection.recv_flow_control.release()

    with peers.OpenPIPeer(good, metadata=deaf) as peer:
        refused(peer, "no complete answer", 0, embodiment=tmp_path / "big.yaml")


def test_every_episode_has_its_own_connection():
    with peers.OpenPIPeer(good) as peer:
        policy = client(peer.port)
        for _ in range(3):
            drill_world.run(policy)
        assert peer.connections == 3


def test_nobody_listens():
    with peers.RawPeer(lambda sock: None) as peer:
        pass
    refused(peer, "connection refused: is the server running", 0)


def test_a_server_that_comes_up_late_is_waited_for():
    with peers.RawPeer(lambda sock: None) as free:
        pass
    found = []
    waiting = threading.Thread(
        target=lambda: found.append(drill_world.run(client(free.port, connect_s=5))), daemon=True
    )
    waiting.start()
    time.sleep(0.3)
    peer = peers.OpenPIPeer.__new__(peers.OpenPIPeer)
    original = peers.serve
    try:
        peers.serve = lambda handler, host, port, **more: original(handler, host, free.port, **more)
        peer.__init__(good)
    finally:
        peers.serve = original
    with peer:
        waiting.join(LIMIT_S)
        assert found and found[0][0].cause.startswith("time limit")


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (lambda sock: (sock.recv(4096), sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n")),
         "status 200"),
        (lambda sock: sock.sendall(b"SSH-2.0-OpenSSH_9.6\r\n"), "broke off|not speak websocket"),
        (lambda sock: None, "broke off|not speak websocket"),
        (lambda sock: time.sleep(1.0), "no complete answer"),
        (lambda sock: [(sock.sendall(b"x"), time.sleep(0.01)) for _ in range(100)],
         "no complete answer|not speak websocket"),
    ],
    ids=["http", "ssh", "drop", "silence", "trickle"],
)  # fmt: skip
def test_what_is_no_policy_server_ends_the_episode(act, why):
    with peers.RawPeer(act) as peer:
        refused(peer, why, 0)


# -- the key -------------------------------------------------------------------------------------


def test_the_key_comes_from_the_environment_and_is_told_to_nobody_else(monkeypatch):
    monkeypatch.setenv("OPENPI_API_KEY", "sesame-7")

    def tells(observation, connection):
        return "ValueError: the key sesame-7 is not enough"

    with peers.OpenPIPeer(tells) as peer:
        verdict, _ = drill_world.run(client(peer.port))
        assert peer.headers[0]["Authorization"] == "Api-Key sesame-7"
        assert verdict.cause.endswith("ValueError: the key *** is not enough")


def test_what_a_server_says_cannot_paint_the_terminal():
    with peers.OpenPIPeer(after(1, lambda *_: "ValueError: \x1b[2J\x07\u202egone")) as peer:
        refused(peer, r"error: ValueError: \[2J gone$", 1)


def test_a_key_that_is_refused_is_named():
    def refuse(connection, request):
        return connection.respond(401, "no")

    with peers.OpenPIPeer(good, before=refuse) as peer:
        refused(peer, "status 401: is the API key right", 0)


def test_a_key_is_no_option():
    with pytest.raises(UsageError, match="unknown option of policy openpi 'api_key'"):
        policies.make_policy("openpi:api_key=secret")


# -- metadata and options ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ({"action_dim": 14}, "its action_dim is 14, here it is 16"),
        ({"control_hz": 15}, "its control_hz is 15, here it is 50"),
        ({"action_dim": {"left": np.arange(2), "right": (1,)}}, "its action_dim is {'left': "),
        ({"embodiment": "droid"}, "its embodiment is droid, here it is fr3_pair"),
    ],
)
def test_metadata_that_disagrees_ends_the_episode_before_the_first_move(metadata, why):
    with peers.OpenPIPeer(good, metadata=metadata) as peer:
        refused(peer, f"does not fit the embodiment fr3_pair: {why}", 0)
        assert not peer.seen, "it was not even asked"


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("openpi:port=0", "port must be 1 to 65535"),
        ("openpi:port=x", "port must be a whole number"),
        ("openpi:host=ws://a", "host must be"),
        ("openpi:deadline_s=0", "deadline_s must be above 0"),
        ("openpi:deadline_s=nan", "deadline_s must be"),
        ("openpi:embodiment=nonesuch", "unknown embodiment 'nonesuch': choose from aloha"),
        ("openpi:frob=1", "unknown option of policy openpi 'frob': choose from api_key_env"),
        ("hold:host=1", "policy hold takes no options"),
        ("openpi:host", "each option is key=value"),
    ],
)
def test_wrong_options_are_one_line(spec, why):
    with pytest.raises(UsageError, match=why) as caught:
        policies.make_policy(spec)
    assert "\n" not in str(caught.value)
