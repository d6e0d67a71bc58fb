"""What the safety node makes of a dry run and of the end of an episode, without a middleware."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from bench_tasks.bags import cdr
from bench_tasks.robots.kinematics import dual_arm
from bench_tasks.view import compose, invert
from bench_tasks.vocabulary import ARMS, ActionChunk
from benchmarks.safety.robot import DT, SCENE
from hardware.safety.imagined import Imagined
from tests.hardware.safety.ideal import HOME, LIMITS, reach

pytest.importorskip("rclpy")
pytest.importorskip("bench_interfaces")


@pytest.fixture
def node(robot, monkeypatch):
    """A node in realtime whose arms stay at home; `node.period()` is one, `node.said` its log."""
    from hardware.safety_node import SafetyNode

    class Bare(SafetyNode):
        def __init__(self):
            self.sent, self.told, self.said, self.clock_s = [], [], [], 100.0
            self._realtime, self._early_s, self._limits = True, 0.05, LIMITS
            self._imagined, self._state, self._early = None, None, []
            self._scene, self._judged = ("", -1), None
            self._lost, self._ticked_s, self._beats, self._ticks = "", 0.0, 0, 0
            self._pressed, self._said = False, ""
            self._supervisor, self._scenes = robot.supervisor, None
            self._supervisor._forget()
            self._chunk_out = SimpleNamespace(publish=lambda d: self.sent.append(
                cdr.decode_chunk(d)))  # fmt: skip
            self._event_out = SimpleNamespace(publish=lambda d: self.told.append(
                cdr.decode_event(d)))  # fmt: skip
            self.seen = []
            self._imagined_out = SimpleNamespace(publish=lambda d: self.seen.append(
                cdr.decode_state(d)))  # fmt: skip
            self._beat_out = SimpleNamespace(publish=lambda _: None)
            self.watch = SimpleNamespace(add=lambda _: None, died=lambda: "")
            self.scenes, self.robot = [cdr.encode_scene(SCENE)], robot

        def get_logger(self):
            log = self.said.append
            return SimpleNamespace(info=log, warning=log)

        def period(self, state=None):
            """A state comes, if any, and the timer runs."""
            self.clock_s += DT
            if state is not None:
                self._on_state(cdr.encode_state(state))
            self._tick()

        def ask(self, seq, values):
            self._on_chunk(cdr.encode_chunk(ActionChunk(seq, values), 0, 20_000_000))

    made = Bare.__new__(Bare)
    Bare.__init__(made)
    monkeypatch.setattr(time, "monotonic", lambda: made.clock_s)
    monkeypatch.setattr("hardware.safety_node.take_all", lambda _: [
        made.scenes.pop() for _ in list(made.scenes)])  # fmt: skip
    return made


def at_home(node, seq: int):
    """State `seq` of arms that stay at home."""
    hands = np.stack([dual_arm().forward(arm, q[:7])
                      for arm, q in zip(ARMS, HOME.reshape(2, 8), strict=True)])  # fmt: skip
    return replace(node.robot.state(), seq=seq, stamp_ns=seq * 20_000_000, ee_pose=hands)


def moving(node, seq: int, path: np.ndarray):
    """State `seq` of arms that have gone the path (n, 16) until then."""
    told = path[min(seq, len(path)) - 1] if seq else HOME
    node.robot.executed = [path[min(seq - 1, len(path)) - 1] if seq > 1 else HOME, told]
    return at_home(node, seq)


def played(node, path: np.ndarray, periods: int = 6):
    """An episode in which the arms go the path, until they are still in motion."""
    node.period(moving(node, 0, path))
    node.ask(0, path)
    for seq in range(1, periods):
        node.period(moving(node, seq, path))
    assert len(node.sent) == 1 and not node.told
    node.sent.clear()


@pytest.mark.parametrize("judged", [None, ("fuzz", 1), ("other", 0), ("fuzz", 0)])
def test_nothing_is_sent_for_an_episode_that_is_over(node, judged):
    played(node, reach(3, 0.2))
    if judged:
        node._on_verdict(SimpleNamespace(task=judged[0], seed=judged[1]))
    for _ in range(10):
        node.period()
    if judged != ("fuzz", 0):  # states are lost, for all that is known
        assert [event.data["what"] for event in node.told] == ["heartbeat"]
        assert [chunk.seq for chunk in node.sent] == [5]
        return
    assert not node.told and not node.sent
    assert not node._supervisor.sees, "heartbeats stand still"
    node._stop(None, SimpleNamespace())
    assert [event.kind for event in node.told] == ["safety_stopped"] and not node.sent
    node._release(None, SimpleNamespace())
    node.told.clear()
    node.scenes.append(cdr.encode_scene(SCENE))
    played(node, reach(3, 0.2))
    for _ in range(10):
        node.period()
    assert [chunk.seq for chunk in node.sent] == [5], "this one is not over"


def test_who_knows_of_no_scene_knows_of_no_end(node):
    node.scenes.clear()
    node.period(moving(node, 0, reach(3, 0.2)))
    for _ in range(10):
        node.period()
    assert [event.data["what"] for event in node.told] == ["heartbeat"]


@pytest.fixture
def dry(node):
    node._imagined = Imagined(LIMITS)
    return node


def test_in_a_dry_run_a_plan_goes_on_from_what_would_have_been_sent(dry):
    path = reach(3, 0.4)
    for seq in range(80):
        dry.period(at_home(dry, seq))
        if seq < len(path) and seq % 10 == 0:
            dry.ask(seq, path[seq : seq + 15])
    assert not dry.told and not dry.sent and len(dry.said) == 5
    np.testing.assert_allclose(dry._state.command, path[-1])
    assert dry.said[-1].startswith("answering state 40 would send 11 actions, left_fr3_joint4 at")
    assert "to rest at 0.00 -0.79 0.00 -1.96 0.00" in dry.said[-1]


def test_in_a_dry_run_a_policy_sees_the_arms_that_it_would_have_moved(dry):
    path = reach(3, 0.4)
    for seq in range(80):
        dry.period(at_home(dry, seq))
        seen = dry.seen[-1]
        if seq % 10 == 0:  # from what it sees on
            done = int(np.abs(path - seen.command).max(axis=1).argmin()) + 1 if seq else 0
            ahead = path[done : done + 15]
            dry.ask(seq, ahead if len(ahead) else path[-1:])
    assert not dry.told and not dry.sent
    assert [line.split()[2] for line in dry.said] == ["0", "10", "20", "30", "40", "50"], (
        "what is held is said once"
    )
    assert [state.seq for state in dry.seen] == list(range(80))
    np.testing.assert_allclose(dry.seen[-1].measured, path[-1])
    np.testing.assert_allclose(dry.seen[25].joint_velocity[3], (path[24] - path[23])[3] / DT)
    at_start, at_end = (dual_arm().forward("left", q[:7]) for q in (HOME, path[-1]))
    went = dry.seen[-1].ee_pose[0]
    np.testing.assert_allclose(went, compose(dry.seen[0].ee_pose[0], compose(
        invert(at_start), at_end)), atol=1e-9)  # fmt: skip
    np.testing.assert_allclose(dry.seen[-1].ee_pose[1], dry.seen[0].ee_pose[1], atol=1e-9)


def test_in_a_dry_run_it_is_said_what_would_be_done_about_a_command(dry):
    for seq, path in ((0, reach(3, 0.4, 10)), (30, np.full((5, 16), np.nan))):
        for k in range(seq, seq + 11):
            dry.period(at_home(dry, k))
            if k == seq:
                dry.ask(seq, path)
    assert [event.kind for event in dry.told] == ["safety_slowed", "safety_refused"]
    assert not dry.sent


def test_in_a_dry_run_a_state_of_another_robot_is_refused_as_ever(dry):
    path = reach(3, 0.4)
    dry.period(at_home(dry, 0))
    dry.ask(0, path)
    many = np.zeros(29)
    humanoid = replace(at_home(dry, 1), joint_position=many, joint_velocity=many,
                       joint_effort=many, command=np.zeros(19))  # fmt: skip
    dry.period(humanoid)
    assert [event.data["what"] for event in dry.told] == ["state"]
