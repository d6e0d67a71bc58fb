"""Chunks of an expert's motion, executed with latency in the simulation: what succeeds, and how."""

from __future__ import annotations

import numpy as np
import pytest

import policies
from bench_tasks import runner, tasks
from bench_tasks.bags.bag import read_bag
from bench_tasks.bags.recording import HashSink
from bench_tasks.config import RunConfig
from bench_tasks.episode import run_episode
from bench_tasks.execution import CALL, execution_of
from bench_tasks.verdicts.score_files import load_scores
from bench_tasks.verdicts.scoring import score_folder
from bench_tasks.vocabulary import ActionChunk, Metadata
from sim.world import SimWorld

TASK, COUNT, DELAY = "lift_pot", 32, 10


@pytest.fixture(scope="module")
def world():
    return SimWorld()


class Track:
    """Answers with the expert's next commands after the one that the arms have now.

    It goes by the command and not by the clock: arms that were held are not ahead of themselves.
    """

    metadata = Metadata("track", "1")
    commands = np.zeros((0, 16))
    asked: list[int] = []

    def reset(self, scene, seed):
        self.asked.clear()

    def accept(self, plan):
        raise AssertionError("it takes no plans")

    def infer(self, observation):
        state = observation.state
        self.asked.append(state.seq)
        found = np.flatnonzero((self.commands == state.command).all(axis=1))
        begin = found[-1] + 1 if len(found) else 0
        index = np.minimum(begin + np.arange(COUNT), len(self.commands) - 1)
        return ActionChunk(state.seq, self.commands[index])


@pytest.fixture(scope="module", autouse=True)
def track(world):
    """Record the expert's commands and register the policy that knows them."""
    sink = HashSink()
    agents = policies.make_planner("expert"), policies.make_policy("skills")
    verdict, _ = run_episode(tasks.get(TASK), 0, world, *agents, sink)
    assert verdict.success
    Track.commands = np.array([state.command for state in sink.states[1:]])
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(policies.POLICIES, "track", f"{__name__}:Track")
        yield sink.states


def run(world, out, **options):
    """The score, and the recording, of one episode of the policy."""
    config = RunConfig((TASK,), policy="track", out=str(out), cameras=(), **options)
    (score,) = runner.run(config, world).episodes
    assert score.evaluated, score
    return score, read_bag(out / TASK / "000000")


def test_without_latency_it_is_the_expert_to_the_bit(world, tmp_path, track):
    plain, bag = run(world, tmp_path / "plain")
    assert plain.success and not any(e.kind == CALL for e in bag.events)
    known = {s.seq: s for s in track}
    assert all(np.array_equal(s.object_pose, known[s.seq].object_pose)
               for s in bag.states if s.seq in known)  # fmt: skip
    for mode in ("sync", "async", "rtc"):
        score, _ = run(world, tmp_path / mode, execution=mode, policy_latency="0", execute=COUNT)
        assert score.state_hash == plain.state_hash and score.execution["latency_s"] == 0


def test_latency_costs_sync_time_and_async_the_first_actions(world, tmp_path):
    plain, _ = run(world, tmp_path / "plain")
    found = {}
    for mode in ("sync", "async", "rtc"):
        latency = {"execution": mode, "policy_latency": "0.2"}
        found[mode], bag = run(world, tmp_path / mode, **latency)
        calls = [e.data for e in bag.events if e.kind == CALL]
        assert [c["answers"] for c in calls] == Track.asked and not any(c["late"] for c in calls)
        assert {c["dropped"] for c in calls} == {0 if mode == "sync" else DELAY}
        held = [c["held"] for c in calls]
        assert held == [DELAY] * len(calls) if mode == "sync" else held[0] == sum(held) == DELAY
        # What was asked for is what was done, at the state it was asked for.
        commands = {s.seq: s.command for s in bag.states}
        assert all((commands[c["answers"] + c["held"] + 1] != commands[c["answers"]]).any()
                   for c in calls[:3])  # fmt: skip
    sums = found["sync"].execution
    assert found["sync"].success and found["sync"].sim_s > plain.sim_s + 0.9 * sums["latency_s"]
    assert found["async"].success and found["async"].sim_s < plain.sim_s + 0.3
    assert found["rtc"].success and found["rtc"].sim_s < plain.sim_s + 0.3
    assert found["rtc"].execution["blended"] > 0 == found["async"].execution["blended"]


def test_the_record_tells_it_again_and_so_do_result_files(world, tmp_path):
    score, bag = run(world, tmp_path, execution="async", policy_latency="0.2", execute=12)
    assert score.execution == execution_of(bag.events) and score.execution["mode"] == "async"
    assert bag.manifest["execution"] == {
        "mode": "async", "latency": "0.2", "execute": 12, "deadline_s": 10.0,
    }  # fmt: skip
    sums = score.execution
    assert sums["calls"] == len(Track.asked) and sums["latency_s"] / sums["calls"] == (
        pytest.approx(0.2)
    )
    assert sums["actions"] == COUNT * sums["calls"] and sums["dropped"] == DELAY * sums["calls"]
    assert [s.execution for s in score_folder(tmp_path)] == [sums]
    assert [s.execution for s in load_scores(next(tmp_path.glob("scores-*.json")))] == [sums]


def test_too_late_is_a_policy_error_with_the_reason(world, tmp_path):
    late = {"execution": "rtc", "policy_latency": "0.6", "policy_deadline_s": 0.5}
    score, bag = run(world, tmp_path, **late)
    assert score.cause == ("policy error: no action for 1 s: the answer to state 60 took 0.600 s, "
                           "the deadline is 0.5 s")  # fmt: skip
    assert score.execution["late"] == score.execution["calls"] == 3
    begin = next(e for e in bag.events if e.kind == "act").seq
    still = np.array([s.command for s in bag.states if s.seq >= begin])
    assert (still == still[0]).all(), "nothing of a late answer was executed"
