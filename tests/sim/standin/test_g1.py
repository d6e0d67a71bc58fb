"""The stand-in G1: what its firmware refuses, what its motors can do, and how it is laid out."""

import queue
import socket
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from bench_tasks.errors import BenchError
from bench_tasks.robots import g1
from bench_tasks.robots import unitree_hg as hg
from sim.standin.g1_firmware import LAYING_OUT, MEASURED, SILENT_S, Elsewhere, why_refused


def test_a_weight_that_is_no_number_is_refused():
    ones = np.ones(17)
    message = hg.motor_commands(slice(12, 29), ones, ones, ones, ones, ones, 5)
    message["motor"][hg.WEIGHT]["q"] = 1.0
    assert why_refused(hg.signed(message), 5) == ""
    message["motor"][hg.WEIGHT]["q"] = np.nan
    assert why_refused(hg.signed(message), 5) == "not_finite"


def test_motors_are_no_stronger_than_the_robots():
    from sim.standin.g1_driven import added

    rows = np.zeros((29, 5))
    rows[:, 2] = np.where(np.arange(29) % 2, 1000.0, -1000.0)
    assert (np.abs(added(rows)) == g1.EFFORT_NM).all()
    rows[:, 2], rows[:, 1], rows[:, 4] = 1.0, 0.5, 2.0
    assert (added(rows) == 2.0).all()


def test_a_scene_that_hangs_is_no_robot_that_stands_still():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    joints = Elsewhere(theirs.detach())
    joints.step(100.0, 0.004)
    assert joints.measured() is None
    numbers = np.arange(97.0)
    ours.send(MEASURED.pack(*numbers))
    assert (joints.measured() == numbers).all()
    joints.step(99.99 + SILENT_S, 0.004)
    assert (joints.measured() == numbers).all()
    joints.step(100.01 + SILENT_S, 0.004)
    assert joints.measured() is None
    ours.send(LAYING_OUT)
    assert (joints.measured() == numbers).all()
    joints.step(160.0, 0.004)
    assert (joints.measured() == numbers).all()
    ours.send(MEASURED.pack(*(numbers + 1)))
    assert (joints.measured() == numbers + 1).all()
    joints.step(161.0, 0.004)
    assert joints.measured() is None
    ours.close()


def test_it_is_laid_out_with_waist_and_arms_at_home_only():
    pytest.importorskip("rclpy")
    pytest.importorskip("bench_interfaces")
    from sim.standin.g1_node import G1StandInNode

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    q = np.concatenate([g1.DEFAULT_RAD[: g1.LEGS], g1.HOME_RAD])
    world = SimpleNamespace(
        state=SimpleNamespace(joint_position=q + 0.2), scene=None, reset=lambda *what: what,
        capture=lambda _: None,
    )  # fmt: skip
    node = SimpleNamespace(
        _jobs=queue.SimpleQueue(), _end=ours, world=world, stopping=threading.Event(),
        period=lambda: None, _due_s=float("-inf"),
    )  # fmt: skip
    for name in ("_run", "comes", "leave", "in_scene", "lay_out", "_say_standing"):
        setattr(node, name, getattr(G1StandInNode, name).__get__(node))
    thread = threading.Thread(target=node._run, daemon=True)
    thread.start()
    with pytest.raises(BenchError, match=r"0\.20 rad away from their starting pose"):
        node.lay_out("reach_both_hands", 0, ())
    world.state.joint_position = q + 0.02
    assert node.lay_out("reach_both_hands", 0, ()) == ("reach_both_hands", 0, ())
    assert theirs.recv(64) == LAYING_OUT
    node.stopping.set()
    thread.join(5)
    ours.close()
    theirs.close()
