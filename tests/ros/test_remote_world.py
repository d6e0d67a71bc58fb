"""What the conductor makes of what world and safety node say, in whatever order it is heard."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from bench_tasks.errors import BenchError, LostNode, SafetyStop
from bench_tasks.vocabulary import ActionChunk, Event, Scene

pytestmark = pytest.mark.ros

DROPPED = Event("safety_dropped", 0, 0, {"reason": "stale"})
STOPPED = Event("safety_stopped", 0, 0, {"reason": "the button"})
AGAIN = Event("safety_stopped", 0, 0, {"reason": "not ready"})
SLOWED = Event("safety_slowed", 0, 0, {"reason": "too fast"})
LOST = Event("world_lost", 0, 0, {"reason": "the arm is gone", "fatal": True})
LATE = Event("late_chunk", 0, 0, {})


def made(world=(), safety=(), states=(), realtime=False, fails=None):
    """A RemoteWorld whose graph has heard these events and states, and the events it relays."""
    from bench_tasks.ros.remote_ros import RemoteWorld

    heard = {"world": list(world), "safety": list(safety)}
    states = list(states)

    def take(name):
        events, heard[name] = heard[name], []
        return events

    def next_state(seq, wait_s):
        if not states and fails is not None:
            raise fails
        return states.pop(0)

    graph = SimpleNamespace(
        realtime=realtime, safety=False, recorded=False, dry_run=False, deadline_s=5.0, period_ns=0,
        sent=Counter(), begin=lambda: take("world") + take("safety"), refusal="",
        more_states=lambda: states,
        new_world_events=lambda: take("world"), new_safety_events=lambda: take("safety"),
        next_state=next_state, count_state=lambda state: None,
        node=SimpleNamespace(watch=SimpleNamespace(check=lambda *names: None)),
    )  # fmt: skip
    relayed: list[Event] = []
    return RemoteWorld(graph, SimpleNamespace(event=relayed.append)), relayed


@pytest.mark.parametrize(
    ("world", "safety", "kind", "says"),
    [
        ([], [DROPPED, STOPPED], SafetyStop, "the button"),
        ([], [STOPPED, DROPPED, SLOWED], SafetyStop, "the button"),
        ([], [STOPPED, AGAIN], SafetyStop, "the button"),
        ([LOST, LATE], [SLOWED, STOPPED], SafetyStop, "the button"),
        ([LATE, LOST], [DROPPED, SLOWED], BenchError, "the arm is gone"),
        ([LATE], [DROPPED, SLOWED], BenchError, "an action chunk was dropped: stale"),
    ],
)
def test_all_is_on_record_before_anything_is_decided_and_a_stop_comes_first(
    world, safety, kind, says
):
    remote, relayed = made(world, safety)
    with pytest.raises(kind) as caught:
        remote.report()
    assert str(caught.value) == says and type(caught.value) is kind
    assert relayed == world + safety
    remote.report()  # once is enough


def test_in_realtime_a_dropped_command_is_only_on_record():
    remote, relayed = made([LATE], [DROPPED], realtime=True)
    remote.report()
    assert relayed == [LATE, DROPPED]


@pytest.mark.parametrize("stopped", [True, False])
@pytest.mark.parametrize("fails", [None, LostNode("gone"), BenchError("state 2 did not come")])
def test_the_states_before_a_stop_are_seen_and_a_stop_explains_a_failure(fails, stopped):
    first = SimpleNamespace(seq=1)
    remote, relayed = made(safety=[STOPPED] if stopped else [], states=[first], fails=fails)
    chunk = ActionChunk(0, np.zeros((1 if fails is None else 2, 16)))
    seen = []
    expected = SafetyStop if stopped else type(fails)
    if expected is type(None):
        seen += remote.step(chunk)
    else:
        with pytest.raises(expected):
            for state in remote.step(chunk):
                seen.append(state)
    assert seen == [first] and relayed == ([STOPPED] if stopped else [])


def test_people_have_time_to_lay_things_out(client):
    """A minute is none: they confirm, guide an arm home and put objects where they belong."""
    from bench_tasks.ros.graph_ros import BY_HAND_S, Graph

    limits = {}
    for by_hand in (False, True):
        graph = Graph(client, 60.0, 300.0, False, True, {}, by_hand=by_hand)
        limits[by_hand] = {
            name: getattr(graph, name).deadline_s for name in ("load", "move", "capture", "infer")
        }
    assert limits[False] == dict.fromkeys(("load", "move", "capture", "infer"), 60.0)
    assert limits[True] == {**limits[False], "load": BY_HAND_S, "move": BY_HAND_S}
    assert BY_HAND_S > 4 * 600.0, "longer than all that a cell waits for"


@pytest.mark.parametrize("realtime", [True, False])
def test_a_button_that_was_pressed_between_two_episodes_is_on_record_in_the_next(realtime):
    world, relayed = made(world=[LATE], safety=[STOPPED], realtime=realtime)
    scene, first = Scene("t", 1, 0, "", (), (), (), {}), SimpleNamespace(seq=0)
    graph = world._graph
    graph.load = SimpleNamespace(call=lambda _: SimpleNamespace(scene=scene.to_json()))
    graph.first_state = lambda: first
    assert world.reset("t", 0) == (scene, first), "which is not stopped for it"
    said = {"event": "safety_stopped", "reason": "the button"}
    wanted = [Event("before", 0, 0, {"event": "late_chunk"}), Event("before", 0, 0, said)]
    assert relayed == (wanted if realtime else [])
    world.report()


@pytest.mark.parametrize("released", [True, False])
def test_a_stop_while_the_robot_gets_ready_is_no_failure_of_the_episode(released):
    world, relayed = made(realtime=True)
    scene, first = Scene("t", 1, 0, "", (), (), (), {}), SimpleNamespace(seq=0)
    graph, come = world._graph, []
    answer = SimpleNamespace(success=released, message="" if released else "stopped: the button")
    graph.safety, graph.wait_until_safe = True, lambda limit_s: None
    graph.ready = SimpleNamespace(call=lambda _: answer)
    graph.new_safety_events = lambda: [come.pop()] if come else []

    def load(_):
        come.append(STOPPED)
        return SimpleNamespace(scene=scene.to_json())

    graph.load, graph.first_state = SimpleNamespace(call=load), lambda: first
    if released:
        assert world.reset("t", 0) == (scene, first)
    else:
        with pytest.raises(BenchError, match="while the robot got ready: stopped: the button"):
            world.reset("t", 0)
    assert relayed == [Event("before", 0, 0, {"event": "safety_stopped", "reason": "the button"})]
    world.report()  # it does not end the episode


@pytest.mark.parametrize(("realtime", "count"), [(True, 3), (False, 0)])
def test_in_realtime_what_was_passed_on_must_be_in_the_bag(monkeypatch, realtime, count):
    """In lockstep each is counted when it is asked for."""
    from bench_tasks.ros import graph_ros

    come = [[b"a", b"b"], [], [b"c"]]
    monkeypatch.setattr(graph_ros, "take_all", lambda passed: passed.pop(0))
    graph = SimpleNamespace(sent=Counter(), _every={}, safety=True, realtime=realtime, _passed=come)
    for _ in range(3):
        graph_ros.Graph.count_state(graph, SimpleNamespace(seq=1, stamp_ns=0))
    assert graph.sent["/safety/action_chunk"] == count and graph.sent["/world/state"] == 3
