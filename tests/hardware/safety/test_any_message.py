"""Whatever comes: it is passed on if it is good, else refused by name, and nobody dies of it."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench_tasks.bags import cdr
from bench_tasks.vocabulary import ActionChunk
from benchmarks.safety.oracle import JERK, oracle
from benchmarks.safety.robot import JOINTS, SCENE
from hardware.safety.decision import shown
from tests.hardware.safety.ideal import HOME, reach

CHUNK = "bench_interfaces/msg/ActionChunk"
PATH = reach(0, 0.2)[:20]
WHOLE = st.integers() | st.sampled_from([-1, 0, 2**31, 2**63, 2**64, 2**200, -(2**70)])
NUMBER = st.floats() | st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 1e308, 5.0])
OTHER = st.none() | st.booleans() | st.text() | st.binary() | st.complex_numbers() | st.dates()
PLAIN = WHOLE | NUMBER | OTHER
ANY = st.recursive(
    PLAIN, lambda part: st.lists(part) | st.dictionaries(st.text(), part), max_leaves=9
)


class Untold:
    """Looks like an array and can be neither read nor shown."""

    def __array__(self, *_, **__):
        raise RuntimeError

    def __repr__(self):
        raise RuntimeError


ODD = ANY | st.builds(Untold) | st.builds(np.array, PLAIN) | st.builds(np.float64, st.floats())


shared = settings(
    max_examples=50, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # every example is a copy of it
)  # fmt: skip


@pytest.fixture
def moving(robot):
    robot.ask(0, PATH)
    for _ in range(8):
        robot.step()
    return robot


def answer(decision):
    """Action and kind of what was said, fit for a record; "" for what is passed on."""
    for told in decision.interventions:
        json.dumps(told.data(), allow_nan=False)
        assert len(told.reason) < 1000 and told.reason.isprintable()
    return [(told.action, told.kind) for told in decision.interventions]


def safe(robot):
    """What it was sent brings it to rest within the limits."""
    for _ in range(45):
        robot.step()
        if np.array_equal(robot.executed[-1], robot.executed[-3]):
            break
    commands = np.array([HOME] * 3 + robot.executed)
    assert oracle().rough(commands[:, JOINTS], JERK) == ""
    assert np.array_equal(robot.executed[-1], robot.executed[-2])


@shared
@given(seq=ODD.filter(lambda x: isinstance(x, bool) or not isinstance(x, int | np.integer)))
def test_a_state_that_is_answered_by_no_whole_number_is_refused_with_what_it_was(moving, seq):
    robot = moving.twin()
    decision = robot.ask(seq, PATH[8:])
    assert answer(decision) == [("refused", "malformed")]
    assert shown(seq) in decision.interventions[0].reason
    safe(robot)


@shared
@given(seq=WHOLE)
def test_any_whole_number_is_judged_as_one(moving, seq):
    decision = moving.twin().ask(seq, PATH[8:])
    kind = "future" if seq > 8 else "out_of_order" if -4 < seq < 1 else "stale"
    if not 0 < seq <= 8:
        assert answer(decision) == [("dropped", kind)] and decision.send is None


@shared
@given(values=ODD)
def test_what_is_no_actions_is_refused(moving, values):
    robot = moving.twin()
    ((action, kind),) = answer(robot.ask(8, values))
    assert action == "refused" and kind in ("malformed", "length", "not_finite")
    safe(robot)


@shared
@given(chunk=ODD, detail=st.dictionaries(st.text(), st.integers()), plan=ODD)
def test_what_is_no_chunk_is_refused_and_what_else_a_chunk_holds_does_not_count(
    moving, chunk, detail, plan
):
    robot = moving.twin()
    assert answer(robot.take(robot.supervisor.on_chunk(chunk, 0.16))) == [("refused", "malformed")]
    good = ActionChunk(8, PATH[8:], plan, detail)
    assert answer(moving.twin().supervisor.on_chunk(good, 0.16)) == []


def message(**changed):
    stamp = {"sec": changed.pop("sec", 0), "nanosec": changed.pop("nanosec", 0)}
    known = {"stamp": stamp, "seq": 8, "period_ns": 20_000_000, "layout": "joint_position"}
    return cdr.encode(CHUNK, {**known, "values": PATH[8:].ravel(), **changed})


FIELDS = {
    "sec": st.integers(-(2**31), -1), "nanosec": st.integers(10**9, 2**32 - 1),
    "seq": st.integers(9, 2**64 - 1),
    "period_ns": st.integers(-(2**63), 2**63 - 1).filter(lambda x: x != 20_000_000),
    "layout": st.text().filter(lambda x: x != "joint_position"),
    "values": st.lists(st.floats(), max_size=40).filter(lambda x: len(x) != 16),
}  # fmt: skip


@pytest.mark.parametrize("name", FIELDS)
@settings(shared, max_examples=15)
@given(data=st.data())
def test_a_message_with_any_field_wrong_is_not_passed_on(moving, name, data):
    robot = moving.twin()
    sent = message(**{name: data.draw(FIELDS[name])})
    decision = robot.take(robot.supervisor.on_message(sent, 0.16))
    assert len(answer(decision)) == 1
    safe(robot)


@shared
@given(at=st.integers(0, 2000), new=st.binary(min_size=1, max_size=12), end=st.integers(0, 3000))
def test_bytes_that_are_spoilt_kill_nobody(moving, at, new, end):
    """Of commands, which may still be good ones, and of states."""
    good = message()
    spoilt = (good[:at] + new + good[at + len(new) :])[:end]
    robot = moving.twin()
    answer(robot.take(robot.supervisor.on_message(spoilt, 0.16)))
    safe(robot)
    robot = moving.twin()
    robot.seq, robot.now_s = 9, 0.18
    robot.executed.append(PATH[8])
    good = cdr.encode_state(robot.state())
    try:
        state = cdr.decode_state((good[:at] + new + good[at + len(new) :])[:end])
    except ValueError:
        return
    answer(robot.take(robot.supervisor.on_state(state, 0.18)))
    answer(robot.take(robot.supervisor.stop("estop", "the button", 0.18)))


@shared
@given(name=st.sampled_from(sorted(json.loads(SCENE.to_json()))), value=ANY)
def test_a_scene_that_holds_anything_kills_nobody(moving, name, value):
    try:
        text = json.dumps({**json.loads(SCENE.to_json()), name: value})
    except TypeError:
        return  # nothing that JSON can hold
    robot = moving.twin()
    try:
        robot.supervisor.begin(cdr.decode_scene(cdr.encode(
            "bench_interfaces/msg/Scene", {"stamp": cdr.split_ns(0), "json": text}
        )))  # fmt: skip
    except ValueError:
        pass
    touching = {"contact_pair": np.array([[1, 0]], np.uint16), "contact_force": np.array([500.0])}
    robot.step(**touching)
    answer(robot.decisions[-2])
    answer(robot.ask(9, PATH[9:]))


@pytest.mark.parametrize("text", ["[" * 10**5, "3", "{}", '{"objects": [3]}', ""])
def test_what_is_no_scene_is_none(text):
    data = cdr.encode("bench_interfaces/msg/Scene", {"stamp": cdr.split_ns(0), "json": text})
    with pytest.raises(ValueError):
        cdr.decode_scene(data)


@pytest.mark.parametrize(
    "changed", [{"entities": (["table"],)}, {"joint_names": (3,)}, {"entities": ("a\0b", "\ud800")},
                {"base_height_m": "high"}, {"base_height_m": math.nan}],
)  # fmt: skip
def test_after_a_scene_that_cannot_be_used_nothing_is_passed_on(robot, changed):
    with pytest.raises(ValueError, match=next(iter(changed))):
        robot.supervisor.begin(replace(SCENE, **changed))
    assert answer(robot.ask(0, PATH)) == [("refused", "no_state")]
