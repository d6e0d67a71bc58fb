"""The clients of RoboArena's and GR00T's servers, against servers written from their wires."""

from __future__ import annotations

import re
import time

import drill_world
import numpy as np
import peers
import pytest

import policies
from bench_tasks.errors import BenchError, UsageError
from bench_tasks.robots.fr3 import HOME_RAD
from bench_tasks.vocabulary import Observation

CONFIG = {
    "image_resolution": [180, 320], "n_external_cameras": 2, "needs_wrist_camera": True,
    "needs_stereo_camera": False, "needs_session_id": True, "action_space": "joint_position",
}  # fmt: skip


def client(wire: str, port: int, **options):
    options = {"deadline_s": peers.SAFE_S, "connect_s": 0.3, **options}
    more = ",".join(f"{key}={value}" for key, value in options.items())
    return policies.make_policy(f"{wire}:port={port},{more}")


def slow_options():
    return {"deadline_s": peers.DEADLINE_S, "first_deadline_s": peers.DEADLINE_S}


# -- RoboArena -----------------------------------------------------------------------------------


def droid_rows(observation) -> np.ndarray:
    """15 actions (1 s) that turn joint 1 a little, with the gripper open."""
    joints = np.asarray(observation["observation/joint_position"], np.float64)
    rows = np.tile(np.append(joints, 0.0), (15, 1))
    rows[:, 0] += 0.01 * np.arange(1, 16)
    return rows


@pytest.mark.parametrize("wrap", [lambda a: a, lambda a: {"actions": a}], ids=["bare", "dict"])
def test_roboarena_end_points_session_and_pictures(wrap):
    with peers.OpenPIPeer(
        lambda obs, _: wrap(droid_rows(obs)), metadata=CONFIG, endpoints=True
    ) as peer:
        policy = client("dreamzero", peer.port)
        for episode in range(2):
            verdict, world = drill_world.run(policy, limit_s=1.9, seed=episode)
            assert verdict.cause.startswith("time limit")
            assert world.commands[24][0] == pytest.approx(25 * 0.02 * 15 * 0.01)
    first, second = peer.seen[:3], peer.seen[3:]
    for said in (first, second):
        assert [m["endpoint"] for m in said] == ["reset", "infer", "infer"]
        assert len({m["session_id"] for m in said}) == 1
    assert first[0]["session_id"] != second[0]["session_id"]
    wrist = "observation/wrist_image_left"
    assert first[1][wrist].shape == (180, 320, 3), "one picture at first"
    assert first[2][wrist].shape == (4, 180, 320, 3), "then one for each quarter of the chunk"


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("image_resolution", [224, 224], r"its image_resolution is \[224, 224\], here it is"),
        ("n_external_cameras", 1, "its n_external_cameras is 1, here it is 2"),
        ("needs_wrist_camera", False, "its needs_wrist_camera is False, here it is True"),
        ("needs_stereo_camera", True, "its needs_stereo_camera is True"),
        ("action_space", "cartesian_velocity", "its action_space is cartesian_velocity, here it"),
    ],
)
def test_roboarena_config_that_disagrees(key, value, why):
    answer = lambda obs, _: droid_rows(obs)  # noqa: E731
    with peers.OpenPIPeer(answer, metadata={**CONFIG, key: value}, endpoints=True) as peer:
        with pytest.raises(BenchError, match=why):
            client("dreamzero", peer.port).reset(drill_world.scene(), 0)
        assert not peer.seen


def test_roboarena_any_picture_size_will_do_for_a_server_without_one():
    config = {**CONFIG, "image_resolution": None}
    with peers.OpenPIPeer(lambda obs, _: droid_rows(obs), metadata=config, endpoints=True) as peer:
        assert drill_world.run(client("dreamzero", peer.port))[0].cause.startswith("time limit")


@pytest.mark.parametrize(
    ("reply", "why"), [("no such endpoint", "did not reset"), (peers.packed({}), "no text")]
)
def test_roboarena_a_reset_that_fails_ends_the_episode(reply, why):
    with peers.OpenPIPeer(lambda obs, _: reply, metadata=CONFIG) as peer:
        with pytest.raises(BenchError, match=why):
            client("dreamzero", peer.port).reset(drill_world.scene(), 0)


# -- GR00T ---------------------------------------------------------------------------------------


def command_of(observation) -> np.ndarray:
    s = {key: np.asarray(value[0, 0], np.float64) for key, value in observation["state"].items()}
    return np.concatenate(
        [s["left_arm"], 0.08 * s["left_hand"], s["right_arm"], 0.08 * s["right_hand"]]
    )


def gr00t_good(observation, peer):
    return peers.gr00t_answer(peers.good_values(command_of(observation)))


MODALITIES = {
    name: {"__ModalityConfig_class__": True, "as_json": {"modality_keys": keys,
                                                         "delta_indices": [0]}}
    for name, keys in {
        "video": ["head", "left_wrist", "right_wrist"],
        "state": ["left_arm", "left_hand", "right_arm", "right_hand"],
        "action": ["left_arm", "left_hand", "right_arm", "right_hand"],
        "language": ["task"],
    }.items()
}


def test_gr00t_speaks_its_modalities_and_resets(monkeypatch):
    monkeypatch.setenv("GR00T_API_TOKEN", "sesame")
    with peers.Gr00tPeer(gr00t_good, MODALITIES) as peer:
        policy = client("gr00t", peer.port)
        for _ in range(2):
            verdict, world = drill_world.run(policy)
            assert verdict.cause.startswith("time limit")
        assert peer.resets == 2
    seen = peer.seen[0]
    assert seen["video"]["head"].shape == (1, 1, 256, 256, 3)
    assert seen["state"]["left_arm"].shape == (1, 1, 7)
    assert np.allclose(seen["state"]["left_arm"][0, 0], HOME_RAD)
    assert seen["language"]["task"] == [["Lift the block."]] and seen["token"] == "sesame"
    assert np.allclose(world.commands[24][0], 10 * peers.STEP_RAD, atol=1e-6)
    assert len(world.commands) % 25 == 0, "10 actions at 20 Hz are 25 periods"


def test_gr00t_names_may_carry_their_modality():
    def prefixed(observation, peer):
        action, info = gr00t_good(observation, peer)
        return [{f"action.{key}": value for key, value in action.items()}, info]

    with peers.Gr00tPeer(prefixed) as peer:
        assert drill_world.run(client("gr00t", peer.port))[0].cause.startswith("time limit")


@pytest.mark.parametrize(
    ("name", "change", "why"),
    [
        ("state", {"modality_keys": ["x"], "delta_indices": [0]}, "its state keys are x, here"),
        ("action", {"modality_keys": ["left_arm"]}, "its action keys are left_arm, here"),
        ("video", {"modality_keys": ["head", "left_wrist", "right_wrist"],
                   "delta_indices": [-1, 0]}, "it wants 2 pictures of each camera"),
        ("language", '{"modality_keys": ["annotation"]}', "its language keys are annotation"),
    ],
)  # fmt: skip
def test_gr00t_modalities_that_disagree(name, change, why):
    said = {**MODALITIES, name: {"__ModalityConfig_class__": True, "as_json": change}}
    with peers.Gr00tPeer(gr00t_good, said) as peer:
        with pytest.raises(BenchError, match=why):
            client("gr00t", peer.port).reset(drill_world.scene(), 0)
        assert not peer.seen and not peer.resets


BAD = {
    "an error": (lambda o, p: {"error": "KeyError: 'x'"}, "it sent an error: KeyError: 'x'"),
    "a plain ERROR": (lambda o, p: b"ERROR", "without a reason"),
    "noise": (lambda o, p: bytes(range(256)), "not msgpack|no dict"),
    "a pickle": (lambda o, p: peers.BAD_BYTES["a pickle"][0](), "pickled data"),
    "objects": (lambda o, p: peers.BAD_BYTES["a .npy file of objects"][0](), "not of numbers"),
    "no right arm": (lambda o, p: [{"left_arm": np.zeros((1, 10, 7))}, {}], "no array 'left_hand'"),
    "uneven rows": (
        lambda o, p: [{**gr00t_good(o, p)[0], "right_arm": np.zeros((1, 9, 7))}, {}], "9 rows",
    ),
    "a batch of two": (
        lambda o, p: [{k: np.repeat(v, 2, 0) for k, v in gr00t_good(o, p)[0].items()}, {}],
        "must be",
    ),
    "not a number": (
        lambda o, p: [{**gr00t_good(o, p)[0], "left_hand": np.full((1, 10, 1), np.nan)}, {}],
        "not finite",
    ),
    "a file that lies": (
        lambda o, p: peers.npy_packed({"left_arm": np.zeros((1, 10, 7))}).replace(
            b"(1, 10, 7)", b"(9, 99, 9)"
        ), "bytes of data",
    ),
    "too much": (lambda o, p: bytes(17 * 2**20), "no complete answer"),
    "the server starts anew": (lambda o, p: None, "no complete answer"),
    "silence": (lambda o, p: time.sleep(2 * peers.DEADLINE_S) or b"", "no complete answer"),
}


@pytest.mark.parametrize("what", BAD)
def test_gr00t_bad_answers_move_nothing(what):
    bad, why = BAD[what]
    with peers.Gr00tPeer(bad) as peer:
        options = slow_options() if "no complete" in why else {}
        begun = time.monotonic()
        verdict, world = drill_world.run(client("gr00t", peer.port, **options))
        assert time.monotonic() - begun < 10.0
        assert verdict.cause.startswith(f"policy error: policy server 127.0.0.1:{peer.port}: ")
        assert re.search(why, verdict.cause), verdict.cause
        assert not world.commands


def test_gr00t_a_late_answer_is_never_taken_for_a_later_one():
    def late(observation, peer):
        good = gr00t_good(observation, peer)
        if len(peer.seen) == 1:
            time.sleep(1.5)
            good[0]["left_arm"] = good[0]["left_arm"] + 0.01
        return good

    with peers.Gr00tPeer(late) as peer:
        policy = client("gr00t", peer.port, deadline_s=10, first_deadline_s=1.0)
        verdict, world = drill_world.run(policy)
        assert "no complete answer to get_action" in verdict.cause and not world.commands
        time.sleep(1.0)
        verdict, world = drill_world.run(policy)
        assert verdict.cause.startswith("time limit")
        assert world.commands[24][0] == pytest.approx(10 * peers.STEP_RAD, abs=1e-6)


@pytest.mark.parametrize(
    "act", [lambda s: s.sendall(b"HTTP/1.1 400\r\n\r\n" * 9), lambda s: None, lambda s: s.recv(9)],
    ids=["http", "drop", "silence"],
)  # fmt: skip
def test_what_speaks_no_zmq_ends_the_episode(act):
    with peers.RawPeer(act) as peer:
        options = {**slow_options(), "connect_s": 0.1}
        verdict, world = drill_world.run(client("gr00t", peer.port, **options))
    assert re.search("nobody speaks ZMQ there|no complete answer", verdict.cause)
    assert not world.commands


def test_gr00t_has_no_tls():
    with pytest.raises(UsageError, match="tls must be true or false"):
        policies.make_policy("gr00t:tls=1")
    with pytest.raises(BenchError, match="no TLS on this wire"):
        policies.make_policy("gr00t:tls=true").reset(drill_world.scene(), 0)


def test_a_policy_that_was_not_reset_says_so():
    for wire in ("openpi", "dreamzero", "gr00t"):
        with pytest.raises(BenchError, match="before it was reset"):
            policies.make_policy(wire).infer(Observation(drill_world.state()))
