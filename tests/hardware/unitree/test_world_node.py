"""What the node `world` of a G1 does between states, without a middleware."""

from types import SimpleNamespace

import numpy as np
import pytest

from bench_tasks.errors import BenchError
from bench_tasks.robots import embodiments
from hardware.signals import Signals

HOME = embodiments.get("g1").home


@pytest.fixture
def node():
    """Its methods, on a driver, sensors and arms of the test's own."""
    pytest.importorskip("rclpy")
    pytest.importorskip("bench_interfaces")
    from hardware.unitree.world_node import UnitreeWorldNode

    events, did = [], []
    made = UnitreeWorldNode.__new__(UnitreeWorldNode)
    vars(made).update(
        events=events, did=did, ticking=False, chunk=None, refused=[],
        _loading=False, _laying=False, _trouble="", _gaps=[], _held=False,
        drivers=SimpleNamespace(coming=[], mode="following"),
        _steering=SimpleNamespace(
            tell=lambda *_: did.append("tell"), stay=lambda: did.append("stay"),
            follow=lambda action: "too far" if abs(action[3] - HOME[3]) > 0.15 else "",
        ),
        _cell=SimpleNamespace(raw={"layout": {"wait_s": 1.0}, "contacts": {"topic": ""}}),
        sensors=SimpleNamespace(),
        _preparation=SimpleNamespace(go_home=lambda: did.append("home")),
        event=lambda kind, reason, fatal=False: events.append((kind, reason)),
        get_logger=lambda: SimpleNamespace(error=lambda _: None),
    )  # fmt: skip

    def poll():
        found, made.drivers.coming = made.drivers.coming, []
        return found

    made.drivers.poll = poll
    made.refuse = lambda kind, why: made.refused.append((kind, why))
    made._signals = Signals()
    return made


def test_what_the_driver_says_while_objects_are_laid_out_is_heard(node):
    def lay_out(*_):
        node.drivers.coming = [("robot_gap", "no rt/lowstate for 60 ms"), ("driver_lost", "ended")]
        node._turn(0.0)
        assert node.did[-1] == "tell"
        raise BenchError("nobody lays anything out")

    node.sensors.lay_out = lay_out
    with pytest.raises(BenchError, match="nobody lays"):
        node.load("reach_both_hands", 0, {})
    assert node.events == [("robot_gap", "no rt/lowstate for 60 ms"), ("driver_lost", "ended")]
    assert node.did == ["home", "tell", "stay"] and not node._loading and not node._laying


def test_who_gets_ready_hears_the_driver_alone(node):
    def go_home():
        node.drivers.coming = [("driver_lost", "ended")]
        node._turn(0.0)
        raise BenchError(node.drivers.poll()[0][1])

    node._preparation.go_home = go_home
    with pytest.raises(BenchError, match="ended"):
        node.load("reach_both_hands", 0, {})
    assert node.events == []


def test_what_goes_wrong_again_and_again_is_on_record_once(node):
    node.ticking = True
    for _ in range(50):
        node._give_up("the same")
    assert node.events == [("world_lost", "the same")] and not node.ticking
    node._give_up("another")
    node.ticking = True  # the next episode
    node._give_up("another")
    assert [reason for _, reason in node.events] == ["the same", "another", "another"]


def test_refused_commands_stop_the_arms_and_a_lost_driver_ends_the_episode(node):
    node.chunk = object()
    node.drivers.coming = [("command_refused", "why")]
    node._heed()
    assert node.did == ["stay"] and node.chunk is None and node.events[0][0] == "command_refused"
    node.drivers.coming = [("driver_lost", "ended")]
    with pytest.raises(BenchError, match="ended"):
        node._heed()
    node.drivers.coming = [("command_refused", "no rt/lowstate")]
    node._turn(0.0)
    assert node.did == ["stay", "stay", "tell"]


def test_an_action_that_begins_far_away_is_refused_with_its_chunk(node):
    node.chunk = object()
    node._follow(np.zeros((0, 19)))
    node._follow(HOME[None])
    assert node.chunk is not None
    node._follow(HOME[None] + 0.2)
    assert node.chunk is None and node.refused == [("bad_chunk", "too far")]


def test_who_confirms_what_nobody_asked_for_is_told_so(node):
    said = node._confirm(None, SimpleNamespace(success=None, message=None))
    assert not said.success and "nothing is to be confirmed" in said.message
    assert not node._signals.confirmed.is_set()
    node._signals.ask()
    said = node._confirm(None, SimpleNamespace(success=None, message=None))
    assert said.success and node._signals.confirmed.is_set()
