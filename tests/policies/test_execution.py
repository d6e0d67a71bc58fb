"""How chunks are executed, without a simulator: each action says which state it was meant for."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_tasks import execution as options
from bench_tasks.errors import BenchError, UsageError
from bench_tasks.execution import CALL, Execution
from bench_tasks.vocabulary import (
    CONTROL_PERIOD_NS,
    ActionChunk,
    Event,
    Metadata,
    ObjectInfo,
    Observation,
    Scene,
    WorldState,
)
from policies.execution import ExecutedPolicy, executed, overlap_weights

PERIOD_S = CONTROL_PERIOD_NS / 1e9
HOLD = round(options.HOLD_S / PERIOD_S)
HOME = np.full(16, -1.0)
"""The command before the first one of a policy."""
SCENE = Scene("drill", 1, 0, "", (ObjectInfo("a", "a", "red", (0.1,) * 3),), ("a",), (), {})


def state(seq: int, command: np.ndarray) -> WorldState:
    zeros = np.zeros
    return WorldState(
        seq, seq * CONTROL_PERIOD_NS, zeros(14), zeros(14), zeros(14), zeros(2), zeros((2, 7)),
        command, zeros((1, 7)), zeros((1, 6)), zeros((0, 2), np.uint16), zeros(0),
    )  # fmt: skip


class Labelled:
    """Its action i for state s is [s + i, s, number of the call, its own number + noise, ...]."""

    metadata = Metadata("labelled", "1")

    def __init__(self, count: int = 16) -> None:
        self.count, self.calls = count, 0

    def reset(self, scene, seed):
        self.calls = 0

    def accept(self, plan):
        raise AssertionError("it takes no plans")

    def infer(self, observation):
        self.calls += 1
        seq = observation.state.seq
        values = np.zeros((self.count, 16))
        values[:, 0] = seq + np.arange(self.count)
        values[:, 1], values[:, 2] = seq, self.calls
        return ActionChunk(seq, values)


def roll(policy, periods: int = 200):
    """Run a world that only counts: the commands of each period, the record of each call, why it
    ended.
    """
    policy.reset(SCENE, 0)
    commands, calls, command = [], [], HOME
    while len(commands) < periods:
        now = len(commands)
        try:
            chunk = policy.infer(Observation(state(now, command))).checked(now)
        except BenchError as error:
            return np.array(commands), calls, str(error)
        assert not chunk.needs_plan
        if CALL in chunk.detail:
            calls.append(chunk.detail[CALL])
            assert calls[-1]["answers"] == now and calls[-1]["until_next"] == len(chunk.values)
        commands += list(chunk.values)
        command = chunk.values[-1]
    return np.array(commands), calls, ""


def declared(mode: str, delay: int, **more) -> Execution:
    return Execution(mode, f"{delay * PERIOD_S:.2f}", **more)


def is_hold(commands: np.ndarray) -> np.ndarray:
    """Which of the commands repeat the one before."""
    before = np.vstack([HOME, commands[:-1]])
    return (commands == before).all(axis=1)


# -- what is executed when -----------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["async", "rtc"]), st.integers(1, 40), st.integers(0, 30), st.integers(0, 40)
)
def test_an_action_is_executed_at_the_state_it_was_meant_for_or_never(mode, count, delay, execute):
    policy = ExecutedPolicy(Labelled(count), declared(mode, delay, execute=execute))
    commands, calls, end = roll(policy)
    held = is_hold(commands)
    at = np.arange(len(commands))
    assert (commands[~held, 0] == at[~held]).all()
    assert held.sum() == sum(call["held"] for call in calls)
    if mode == "async":
        # It is also known at that time: its call was answered, and no newer one was.
        assert (commands[~held, 1] + delay <= at[~held]).all()
        newest = {c["answers"] + delay: c["answers"] for c in calls if not c["late"]}
        known = np.maximum.accumulate([newest.get(t, -1) for t in at])
        assert (commands[~held, 1] == known[~held]).all()
    for call in calls:
        assert call["dropped"] == (count if call["late"] else delay)
        assert call["latency_ns"] == delay * CONTROL_PERIOD_NS and call["delay"] == delay
    if delay >= count:
        assert "were stale" in end and held.all() and len(commands) == delay + HOLD
    else:
        assert end == ""


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 40), st.integers(0, 30), st.integers(0, 40))
def test_sync_holds_while_it_waits_and_then_begins_at_the_first_action(count, delay, execute):
    policy = ExecutedPolicy(Labelled(count), declared("sync", delay, execute=execute))
    commands, calls, end = roll(policy)
    each = min(count, execute or count)
    assert end == "" and all(call["dropped"] == call["blended"] == 0 for call in calls)
    command = HOME
    for call in calls:
        part = commands[call["answers"] :][: call["until_next"]]
        assert len(part) == delay + each and (part[:delay] == command).all()
        assert (part[delay:, 0] == call["answers"] + np.arange(each)).all()
        command = part[-1]


@pytest.mark.parametrize("mode", options.MODES)
def test_without_latency_every_mode_is_the_policy_itself(mode):
    plain, _, _ = roll(Labelled())
    commands, calls, _ = roll(ExecutedPolicy(Labelled(), Execution(mode, "0", execute=16)))
    assert np.array_equal(commands, plain) and len(calls) == 13
    assert all(c["dropped"] == c["held"] == c["blended"] == 0 for c in calls)


def test_nothing_stands_between_when_there_is_nothing_to_do():
    policy = Labelled()
    assert executed(policy, Execution()) is policy
    assert isinstance(executed(policy, Execution("async")), ExecutedPolicy)


@pytest.mark.parametrize(
    ("mode", "count", "delay", "execute", "until_next"),
    [
        ("async", 32, 5, 0, 27),  # five are left to run during the next call
        ("async", 32, 20, 0, 20),  # not before the answer is there
        ("async", 32, 5, 8, 8),
        ("async", 32, 10, 4, 10),
        ("rtc", 32, 5, 0, 16),
        ("rtc", 32, 20, 0, 20),
        ("sync", 32, 5, 0, 37),
        ("sync", 32, 5, 8, 13),
    ],
)
def test_periods_from_call_to_call(mode, count, delay, execute, until_next):
    policy = ExecutedPolicy(Labelled(count), declared(mode, delay, execute=execute))
    _, calls, _ = roll(policy)
    assert {call["until_next"] for call in calls} == {until_next}
    held = [call["held"] for call in calls[1:]]
    if mode == "async" and count >= 2 * delay and until_next <= count - delay:
        assert set(held) == {0}, "the arms never stand still after the first answer"


def test_a_conductor_that_lets_time_pass_between_calls_gets_no_stale_action():
    policy = ExecutedPolicy(Labelled(16), declared("async", 2, execute=8))
    policy.reset(SCENE, 0)
    policy.infer(Observation(state(0, HOME)))
    chunk = policy.infer(Observation(state(11, HOME)))  # three periods after it was due
    assert list(chunk.values[:, 0]) == list(range(11, 19))
    assert list(chunk.values[:3, 1]) == [0, 0, 11]
    late = policy.infer(Observation(state(99, HOME)))  # the old chunk is over long ago
    assert (late.values[:2] == HOME).all() and late.values[2, 0] == 101


# -- real-time chunking --------------------------------------------------------------------------


def test_overlap_weights_are_those_of_the_paper():
    weights = overlap_weights(10, 4)
    assert (weights[:4] == 1).all() and (np.diff(weights[3:]) < 0).all() and weights[-1] > 0
    c = 6 / 7  # (H - s - i) / (H - s - d + 1) with H - s = 10, i = d = 4
    assert weights[4] == pytest.approx(c * (np.e**c - 1) / (np.e - 1))
    assert (overlap_weights(3, 5) == 1).all() and len(overlap_weights(0, 2)) == 0


class Jumps(Labelled):
    """Each of its chunks lies 1 beside the one before, in column 5."""

    def infer(self, observation):
        chunk = super().infer(observation)
        values = chunk.values.copy()
        values[:, 5] = self.calls % 2
        return replace(chunk, values=values)


def test_rtc_blends_what_async_jumps_over():
    steps = {}
    for mode in ("async", "rtc"):
        execution = declared(mode, 4, execute=10)
        commands, calls, _ = roll(ExecutedPolicy(Jumps(30), execution))
        steps[mode] = np.abs(np.diff(commands[10:, 5])).max()
        assert {call["blended"] for call in calls[1:]} == {16 if mode == "rtc" else 0}
        assert calls[0]["blended"] == 0
    assert steps["async"] == 1.0 and steps["rtc"] < 0.15
    weights = overlap_weights(20, 4)
    assert np.allclose(commands[10:20, 5], np.r_[np.ones(4), weights[4:10]]), "from 1 towards 0"


class Inpaints(Labelled):
    """Continues what it is told that the arms do."""

    def infer_with_prefix(self, observation, prefix, weights):
        """Repeat the prefix and note it."""
        self.told = prefix, weights
        chunk = self.infer(observation)
        values = chunk.values.copy()
        values[:, 5] = 7.0
        values[: len(prefix)] = prefix
        return replace(chunk, values=values)


def test_a_policy_that_inpaints_is_asked_to_and_not_blended():
    policy = Inpaints(20)
    commands, calls, _ = roll(ExecutedPolicy(policy, declared("rtc", 3, execute=8)), periods=16)
    assert [call["inpainted"] for call in calls] == [False, True]
    prefix, weights = policy.told
    assert list(prefix[:, 0]) == list(range(8, 20)) and np.array_equal(
        weights, overlap_weights(12, 3)
    )
    assert (commands[8:16, 1] == 0).all(), "its prefix, as it is"
    commands, calls, _ = roll(ExecutedPolicy(policy, declared("async", 3, execute=8)), periods=16)
    assert not any(call["inpainted"] for call in calls)


# -- deadlines -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", options.MODES)
def test_an_answer_after_the_deadline_is_never_executed(mode):
    execution = declared(mode, 30, deadline_s=0.5)
    commands, calls, end = roll(ExecutedPolicy(Labelled(100), execution))
    assert end == ("no action for 1 s: the answer to state 60 took 0.600 s, the deadline is 0.5 s")
    assert (commands == HOME).all() and len(commands) == 25 + HOLD
    assert [call["answers"] for call in calls] == [0, 30, 60]
    assert all(call["late"] and call["dropped"] == 100 for call in calls)


def sometimes(delays: dict[int, int], otherwise: int):
    """An execution whose latency depends on the number of the call."""

    class Sometimes(Execution):
        count = 0

        def charged_ns(self, wall_ns):
            Sometimes.count += 1
            return delays.get(Sometimes.count, otherwise) * CONTROL_PERIOD_NS

    return Sometimes


@pytest.mark.parametrize("mode", ["async", "rtc"])
def test_until_the_next_answer_the_old_chunk_goes_on_and_then_the_arms_hold(mode):
    kind = sometimes({2: 40}, 5)
    policy = ExecutedPolicy(Labelled(50), kind(mode, "0.1", 20, 0.5))
    commands, calls, end = roll(policy)
    assert end == "" and [bool(c["late"]) for c in calls[:3]] == [False, True, False]
    held = is_hold(commands)
    assert (commands[5:50, 1] == 0).all(), "call 2 began at 20 and is late: the first chunk is used"
    assert held[50:65].all() and calls[1]["held"] == 10 and calls[2]["held"] == 5
    assert commands[65, 1] == 60 and commands[65, 0] == 65, "the third took over"
    assert not held[65:].any(), "and all is well again"


def test_in_sync_the_arms_hold_and_go_on_when_an_answer_is_in_time():
    kind = sometimes({2: 40}, 5)
    commands, calls, end = roll(ExecutedPolicy(Labelled(20), kind("sync", "0.1", 0, 0.5)))
    assert end == "" and calls[1]["late"] and calls[1]["until_next"] == 40
    assert (commands[25:65] == commands[24]).all() and commands[70, 1] == 65


def test_patience_is_counted_over_calls_and_begins_anew_after_an_answer():
    late = {1: 40, 2: 40, 3: 5, 4: 40, 5: 40}
    execution = sometimes(late, 5)("sync", "0.1", 0, 0.5)
    _, calls, end = roll(ExecutedPolicy(Labelled(20), execution), periods=400)
    # 15 + 40 of 50 periods are over when the second late answer comes: it ends there.
    assert end.startswith("no action for 1 s: the answer to state 40 took") and len(calls) == 2
    execution = sometimes({k: 40 for k in range(1, 100, 2)}, 5)("sync", "0.1", 0, 0.5)
    _, calls, end = roll(ExecutedPolicy(Labelled(20), execution), periods=400)
    assert end == "" and sum(bool(c["late"]) for c in calls) >= 5


# -- measured latency ----------------------------------------------------------------------------


def test_measured_latency_is_charged_in_whole_periods(monkeypatch):
    class Clock:
        now = 0
        perf_counter_ns = staticmethod(lambda: Clock.now)

    class Takes(Labelled):
        def infer(self, observation):
            Clock.now += {1: 1, 2: 100_000_001}.get(self.calls + 1, 20_000_000)
            return super().infer(observation)

    monkeypatch.setattr("policies.execution.time", Clock)
    _, calls, end = roll(ExecutedPolicy(Takes(40), Execution("async", "measured", 20)), periods=80)
    assert end == "" and [call["delay"] for call in calls] == [1, 6, 1, 1]
    assert [call["latency_ns"] for call in calls[:2]] == [1, 100_000_001]
    assert all(c["latency_ns"] == c["wall_ns"] and c["delay"] == c["dropped"] for c in calls)


def test_a_policy_that_never_answers_ends_the_episode_in_bounded_time(monkeypatch):
    monkeypatch.setattr("policies.execution.HOLD_S", 0.1)
    gate = threading.Event()

    class Hangs(Labelled):
        def infer(self, observation):
            gate.wait(60)
            return super().infer(observation)

    policy = ExecutedPolicy(Hangs(16), Execution("async", "measured", 8, deadline_s=0.1))
    begun = time.monotonic()
    commands, calls, end = roll(policy)
    assert time.monotonic() - begun < 30
    assert "no answer to state 0" in end and "the deadline is 0.1 s" in end
    assert [bool(call["late"]) for call in calls] == [True] and (commands == HOME).all()
    with pytest.raises(BenchError, match="still busy with a call of an earlier episode"):
        policy.reset(SCENE, 1)
    gate.set()
    policy._thread.join(30)
    policy.reset(SCENE, 1)


# -- what goes wrong -----------------------------------------------------------------------------


def spoilt(what):
    class Spoilt(Labelled):
        def infer(self, observation):
            chunk = super().infer(observation)
            return what(chunk) if self.calls == 2 else chunk

    return Spoilt(16)


def nan(chunk):
    values = chunk.values.copy()
    values[-1, 3] = np.nan
    return replace(chunk, values=values)


@pytest.mark.parametrize("latency", ["0.04", "measured"])
@pytest.mark.parametrize("mode", options.MODES)
def test_a_wrong_chunk_raises_before_anything_of_it_is_executed(mode, latency):
    for what, reason in (
        (nan, "not finite"),
        (lambda c: replace(c, seq=c.seq - 1), "answers state"),
        (lambda c: replace(c, values=c.values[:, :15]), "must be"),
    ):
        commands, calls, end = roll(ExecutedPolicy(spoilt(what), Execution(mode, latency)))
        assert reason in end and len(calls) == 1 and len(commands) == calls[0]["until_next"]


@pytest.mark.parametrize("latency", ["0.04", "measured"])
def test_what_the_policy_raises_is_raised(latency):
    def crash(chunk):
        raise ZeroDivisionError("1/0")

    policy = ExecutedPolicy(spoilt(crash), Execution("async", latency))
    with pytest.raises(ZeroDivisionError):
        roll(policy)


class Plans(Labelled):
    """Asks for a plan first; then hands out one motion, four actions at a time."""

    def infer(self, observation):
        chunk = super().infer(observation)
        if self.calls == 1:
            return ActionChunk(chunk.seq, np.zeros((0, 16)), True, {"status": "idle"})
        return replace(chunk, values=chunk.values[:4])


@pytest.mark.parametrize("mode", options.MODES)
def test_a_policy_that_takes_plans_is_left_as_it_is(mode):
    policy, plain = ExecutedPolicy(Plans(), declared(mode, 5)), Plans()
    for agent in (policy, plain):
        agent.reset(SCENE, 0)
    for seq in (0, 0, 4, 8):
        a, b = (agent.infer(Observation(state(seq, HOME))) for agent in (policy, plain))
        assert a.needs_plan == b.needs_plan and np.array_equal(a.values, b.values)
        assert a.detail == b.detail


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"mode": "fast"}, "unknown execution 'fast': choose from async, rtc, sync"),
        ({"latency": "-1"}, "policy_latency must be free, measured or a number of seconds"),
        ({"latency": "nan"}, "policy_latency must be free"),
        ({"execute": -1}, "execute must not be negative, got -1"),
        ({"deadline_s": 0.0}, "policy_deadline_s must be more than 0"),
        ({"deadline_s": float("nan")}, "policy_deadline_s must be more than 0"),
    ],
)
def test_wrong_options(wrong, text):
    with pytest.raises(UsageError, match=text):
        ExecutedPolicy(Labelled(), Execution(**wrong))


def test_where_time_is_real_it_is_measured():
    assert Execution("async").on_clock("realtime").latency == "measured"
    assert Execution("async", "0.2").on_clock("lockstep").latency == "0.2"
    assert not Execution().on_clock("realtime").active
    with pytest.raises(UsageError, match="measured when the clock is realtime, got '0.2'"):
        Execution("async", "0.2").on_clock("realtime")


def test_in_realtime_the_chunk_also_says_what_comes_after_the_next_call():
    policy = ExecutedPolicy(Labelled(16), declared("async", 2, execute=8), realtime=True)
    policy.reset(SCENE, 0)
    chunk = policy.infer(Observation(state(0, HOME)))
    assert chunk.detail[CALL]["until_next"] == 8
    assert list(chunk.values[2:, 0]) == list(range(2, 16)), "the world goes on by itself"


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["async", "rtc"]), st.integers(0, 12), st.integers(0, 3), st.integers(0, 20),
    st.integers(0, 2**32 - 1),
)
def test_in_realtime_too_an_action_is_executed_at_its_time_or_never(
    mode, delay, most, execute, seed
):
    """The world goes on by itself: it takes of the newest chunk that came the action that is due.

    An answer comes `delay` periods after the question, as charged, and some periods on the wire.
    """
    policy = ExecutedPolicy(Labelled(16), declared(mode, delay, execute=execute), realtime=True)
    policy.reset(SCENE, 0)
    wire = np.random.default_rng(seed)
    commands, current, under_way, ask_at = [HOME], None, None, 0
    for now in range(150):
        if under_way is None and now >= ask_at:
            chunk = policy.infer(Observation(state(now, commands[-1])))
            ask_at = now + chunk.detail[CALL]["until_next"]
            under_way = (now + delay + wire.integers(most + 1), chunk)
        if under_way is not None and now >= under_way[0]:
            current, under_way = under_way[1], None
        index = now - current.seq if current is not None else 99
        fits = current is not None and index < len(current.values)
        commands.append(current.values[index] if fits else commands[-1])
    executed_ = np.array(commands[1:])
    held = is_hold(executed_)
    assert (executed_[~held, 0] == np.arange(150)[~held]).all()
    assert not held.all(), "and it does act"


@pytest.mark.parametrize("key", ["calls", "wall_s", "execute", "deadline_s"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1, True, "1", None])
def test_numbers_that_cannot_be_are_none_of_a_result(key, value):
    begin = Event("begin", 0, 0, {"execution": Execution("rtc", "0.1").to_dict()})
    call = Event(CALL, 0, 0, {"latency_ns": 100_000_000, "wall_ns": 5, "actions": 20, "held": 5})
    good = options.execution_of([begin, call])
    assert (good["mode"], good["calls"], good["latency_s"], good["held"]) == ("rtc", 1, 0.1, 5)
    options.check_execution(good)
    with pytest.raises(TypeError, match="execution is"):
        options.check_execution({**good, key: value})
    if key in begin.data["execution"]:
        wrong = replace(begin, data={"execution": {**begin.data["execution"], key: value}})
        assert options.execution_of([wrong, call]) == {}
