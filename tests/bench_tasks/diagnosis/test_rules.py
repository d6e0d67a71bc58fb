"""The rules' parts: the reference, what counts as mended, and records that are no good."""

from __future__ import annotations

import dataclasses
import json
from functools import partial

import numpy as np
import pytest
from sabotage import Broken, Case, Planner, Stop

from bench_tasks import tasks
from bench_tasks.bags.recording import BagSink, HashSink
from bench_tasks.diagnosis import KINDS, Diagnosis, diagnose
from bench_tasks.diagnosis.faults import faults
from bench_tasks.diagnosis.reference import imagine
from bench_tasks.diagnosis.trace import Trace
from bench_tasks.episode import run_episode
from bench_tasks.errors import UsageError
from bench_tasks.runner import run
from bench_tasks.verdicts.episode_score import EpisodeScore
from bench_tasks.verdicts.score_files import load_scores, save_scores
from bench_tasks.verdicts.scoring import score_bag
from bench_tasks.vocabulary import Event, Plan, SkillCall
from policies.planners.expert import ExpertPlanner
from policies.skills import SkillPolicy


@pytest.fixture(scope="module")
def world():
    from sim.world import SimWorld

    return SimWorld()


@pytest.fixture(scope="module")
def lifted(world):
    """A whole episode of the expert: task, scene, states, events, verdict."""
    return episode(world, "lift_pot")


def episode(world, name, planner=ExpertPlanner, seed=1):
    task, sink = tasks.get(name), HashSink()
    verdict, _ = run_episode(task, seed, world, planner(), SkillPolicy(), sink)
    return task, sink.scene_seen, sink.states, sink.events, verdict


@pytest.mark.parametrize(
    "name,moved",
    [
        ("stack_blocks_three", ["red_block", "green_block", "blue_block"]),
        ("place_object_basket", ["block", "basket"]),
        ("handover_block", ["bar", "bar"]),
        ("stack_blocks_two", ["green_block", "red_block"]),
        ("grab_roller_ee", ["roller"]),
    ],
)
def test_the_reference_runs_the_expert_to_its_end(world, name, moved):
    scene, state = world.reset(name, 1, ())
    found = imagine(tasks.get(name), scene, state, state, 0)
    assert found.known and [move.object for move in found.moves] == moved
    assert found.steps


def test_the_reference_stacks_on_what_it_has_put_down(world):
    scene, state = world.reset("stack_blocks_three", 2, ())
    moves = imagine(tasks.get("stack_blocks_three"), scene, state, state, 0).moves
    half = scene.object("red_block").half_size_m[2]
    heights = [float(move.pose[2]) for move in moves]
    assert heights == pytest.approx([half, 3 * half, 5 * half], abs=1e-3)
    assert all(np.linalg.norm(m.pose[:2] - [0.45, 0.0]) < 1e-3 and m.released for m in moves)


def test_a_success_has_no_diagnosis_and_nothing_to_accuse(lifted):
    assert lifted[-1].success and diagnose(*lifted) is None
    assert [f for f in faults(Trace(*lifted)) if not f.weak] == []


class WrongThenRight(Planner):
    """Its first plan cannot be done, its second is refused; it then does all, but stops early."""

    def spoil(self, steps, turn):
        if turn == 0:
            pose = [1.4, 0.0, 0.3, 0.0, 1.0, 0.0, 0.0]
            return self.calls([[SkillCall("move_to", "left", {"pose": pose})]], lambda c: c)
        if turn == 1:
            return self.calls([[SkillCall("grasp", "left", {"object": "kettle"})]], lambda c: c)
        return self.calls(steps if turn == 2 else [], lambda c: c)


def test_what_was_mended_is_no_cause(world):
    found = diagnose(*episode(world, "lift_pot", WrongThenRight))
    assert found is not None and found.kind == "sequencing" and "move_by pot" in found.evidence
    assert "stopped early" in found.evidence


def test_the_first_fault_counts_and_not_the_last(world):
    class Both(WrongThenRight):
        def spoil(self, steps, turn):
            return super().spoil(steps, turn) if turn < 2 else super().spoil([], 3)

    found = diagnose(*episode(world, "lift_pot", Both))
    assert found is not None and found.kind == "unreachable goal" and found.seq == 0


@pytest.mark.parametrize("how", ["expert", "events", "goal"])
def test_what_others_wrote_never_costs_the_verdict(lifted, how):
    task, scene, states, events, verdict = lifted

    class Bad(type(task)):
        def expert(self, view, turn):
            raise KeyError("gone")

        def goal(self, scene):
            if how == "goal":
                raise KeyError("gone")
            return super().goal(scene)

    failed = dataclasses.replace(verdict, success=False, cause="goal not reached: level")
    if how == "events":
        events = [e for e in events if e.kind != "plan"] + [Event("plan", 3, 3, {"steps": 7})]
    found = diagnose(Bad() if how != "events" else task, scene, states, events, failed)
    assert found is not None and found.kind in KINDS
    if how == "events":
        assert found.kind == "undetermined" and "KeyError" in found.evidence


def test_an_expert_that_cannot_say_does_not_say_that_all_was_done(world, monkeypatch):
    """Nothing was done at all; that the task's expert raises afterwards proves nothing."""

    class Nothing(ExpertPlanner):
        def plan(self, request):
            return Plan(())

    stopped = episode(world, "lift_pot", Nothing)
    assert diagnose(*stopped).kind == "sequencing"

    def lost(*_):
        raise RuntimeError("there is no such thing in this scene")

    monkeypatch.setattr(type(stopped[0]), "expert", lost)
    found = diagnose(*stopped)
    assert found.kind == "undetermined" and "expert cannot say" in found.evidence
    late = dataclasses.replace(stopped[4], cause="time limit: 40 s of simulated time")
    events = [*stopped[3][:-1], Event("end", 50, 0, {"cause": late.cause})]
    found = diagnose(*stopped[:3], events, late)
    assert found.kind == "timeout" and "nothing still to do" not in found.evidence


@pytest.mark.parametrize("cause,kind", [
    ("safety stop: /safety/estop said true", "undetermined"),
    ("safety stop: left_fr3_joint4: 71 Nm", "control error"),
])  # fmt: skip
def test_who_was_stopped_did_not_stop_early(lifted, cause, kind):
    task, scene, states, events, verdict = lifted
    half = [s for s in states if s.seq <= verdict.end_seq // 2]
    last = half[-1]
    until = [e for e in events if e.kind != "end" and e.seq <= last.seq]
    until.append(Event("end", last.seq, last.stamp_ns, {"cause": cause, "stopped": True}))
    ended = dataclasses.replace(verdict, success=False, cause=cause, end_seq=last.seq)
    found = diagnose(task, scene, half, until, ended)
    assert found is not None and (found.kind, found.evidence) == (kind, cause)


def test_numbers_that_are_not_finite_are_nobodys_fault(lifted):
    cause = "invariant broken: every number finite"
    failed = dataclasses.replace(lifted[-1], success=False, cause=cause)
    assert diagnose(*lifted[:-1], failed).kind == "unscored"


def test_only_known_kinds_and_one_line():
    assert Diagnosis("timeout", "a\n b").evidence == "a b"
    with pytest.raises(ValueError, match="bad luck"):
        Diagnosis("bad luck", "")


def test_recorded_and_unrecorded_runs_say_the_same(world, tmp_path):
    case = Case("sequencing", "stops", "lift_pot", 1, Stop)
    sink = BagSink(tmp_path / "lift_pot" / "000001")
    run_episode(tasks.get("lift_pot"), 1, world, Stop(), SkillPolicy(), sink)
    sink.writer.close(wall_s=1.0)
    score = score_bag(tmp_path / "lift_pot" / "000001")
    verdict, live = case.run(world)
    assert score.agrees and score.cause == verdict.cause
    assert live is not None and score.diagnosis == live.to_dict()
    path = save_scores(tmp_path, [score])
    assert load_scores(path)[0].diagnosis == score.diagnosis

    raw = json.loads(path.read_text())
    raw["episodes"][0]["diagnosis"]["kind"] = "bad luck"
    path.write_text(json.dumps(raw))
    with pytest.raises(UsageError, match="bad luck"):
        load_scores(path)
    del raw["episodes"][0]["diagnosis"], raw["episodes"][0]["help"]  # as older versions wrote it
    path.write_text(json.dumps(raw))
    assert load_scores(path)[0].diagnosis == {}


def test_what_could_not_be_set_up_is_unscored():
    from bench_tasks.config import RunConfig
    from bench_tasks.errors import BenchError

    class NoWorld:
        def reset(self, task, seed, vary=()):
            raise BenchError("no layout was found")

    config = RunConfig(tasks=("lift_pot",), record=False)
    score: EpisodeScore = run(config, world=NoWorld()).episodes[0]
    assert not score.scored and score.diagnosis["kind"] == "unscored"
    assert "no layout" in score.diagnosis["evidence"]


@pytest.mark.parametrize("readable,kind", [(True, "timeout"), (False, "output format")])
def test_a_budget_is_a_limit_and_what_used_it_up_is_the_cause(world, readable, kind):
    class Spent(Broken):
        def spoil(self, steps, turn):
            if turn == 0 and not readable:
                return Plan((), "red on green, please", error="no JSON object in the answer")
            return super().spoil(steps, turn)

    found = diagnose(*episode(world, "stack_blocks_three", partial(Spent, "budget", 1)))
    assert found is not None and found.kind == kind, found
