"""The conductor over a world that does not wait."""

from __future__ import annotations

import numpy as np
import pytest

from bench_tasks.bags.bag import read_bag
from bench_tasks.execution import CALL
from bench_tasks.verdicts import score_files

pytestmark = pytest.mark.ros


def test_an_episode_in_realtime_is_recorded_without_a_gap_and_scored(nodes, tmp_path):
    out = tmp_path / "out"
    nodes.start_all(out, clock="realtime", tasks="lift_pot")
    assert nodes.wait("task", 200) == 0, nodes.logs()
    (score,) = score_files.load_scores(score_files.newest_scores(out))
    # Whether the arms keep up is the machine's affair; that the record is whole is ours.
    assert score.scored and score.agrees, score
    bag = read_bag(out / "lift_pot" / "000000")
    assert not bag.problems
    assert [s.seq for s in bag.states] == list(range(len(bag.states)))
    assert bag.states[-1].seq >= score.end_seq > 0
    assert {e.kind for e in bag.events} >= {"begin", "act", "plan", "end"}
    assert bag.manifest["clock"] == "realtime"


def test_in_realtime_no_action_is_executed_but_at_its_time(nodes, tmp_path):
    """Whatever the machine's load: what comes late is on record, and is not done."""
    nodes.before = "from tests.ros.agents import register; register(); "
    out, limit_s = tmp_path / "out", 0.5
    nodes.start_all(
        out, clock="realtime", tasks="lift_pot", policy="slow_once", execution="rtc",
        policy_deadline_s=limit_s, keyframe_cameras="",
    )  # fmt: skip
    assert nodes.wait("task", 200) == 0, nodes.logs()
    (score,) = score_files.load_scores(score_files.newest_scores(out))
    assert score.scored and score.agrees, score
    assert score.cause.startswith(("policy error: that was all", "policy error: no action for 1 s"))
    bag = read_bag(out / "lift_pot" / "000000", chunks=True)
    calls = [e.data for e in bag.events if e.kind == CALL]
    assert bag.manifest["execution"]["mode"] == "rtc" and len(calls) == len(bag.chunks)
    late = [c for c in calls if c["late"]]
    assert late and all(c["latency_ns"] > limit_s * 1e9 or "stale" in c["late"] for c in late)
    assert {c["answers"] for c in calls} == {chunk.seq for chunk in bag.chunks}
    # Rows by the state that they lead to; a world without one that is due repeats the last.
    due = {
        (chunk.seq + k + 1, row.tobytes()) for chunk in bag.chunks for k, row in
        enumerate(chunk.values)
    }  # fmt: skip
    for before, state in zip(bag.states, bag.states[1:], strict=False):
        held = np.array_equal(before.command, state.command)
        assert held or (state.seq, state.command.tobytes()) in due, state.seq
    moved = sum((a.command != b.command).any() for a, b in zip(bag.states, bag.states[1:],
                                                               strict=False))  # fmt: skip
    assert moved > 0 or len(late) == len(calls)
