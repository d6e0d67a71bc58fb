"""Replay gives the same states as the recorded planner; a person plans at a real terminal."""

from __future__ import annotations

import os
import pty

import pytest

from bench_tasks import tasks
from bench_tasks.bags import bag
from bench_tasks.bags.recording import BagSink
from bench_tasks.episode import Options, run_episode
from bench_tasks.errors import BenchError, UsageError
from bench_tasks.vocabulary import Observation, PlanRequest, Question
from policies import make_planner
from policies.planners.human import HumanOptions, HumanPlanner


def record(world, skills, planner, path, task="lift_pot", seed=0):
    sink = BagSink(path)
    verdict, _ = run_episode(tasks.get(task), seed, world, planner, skills, sink, Options())
    sink.writer.close()
    return verdict, bag.read_bag(path)


@pytest.mark.parametrize("task", ["lift_pot", "spatial_sparse"])
def test_replay_gives_the_same_states_and_verdict(task, world, skills, tmp_path):
    first, recorded = record(world, skills, make_planner("expert"), tmp_path / "run/a", task)
    for where in ("run", "run/a"):
        planner = make_planner(f"replay:bag={tmp_path / where}")
        again, replayed = record(world, skills, planner, tmp_path / f"b{len(where)}", task)
        assert first.success and again == first
        assert replayed.state_hash == recorded.state_hash


def test_replay_without_a_fitting_recording_says_so(world, skills, tmp_path):
    record(world, skills, make_planner("expert"), tmp_path / "run/a")
    scene, _ = world.reset("lift_pot", 1)
    with pytest.raises(UsageError, match="no recording of lift_pot seed 1"):
        make_planner(f"replay:bag={tmp_path}").reset(scene, 1)


def test_replay_repeats_refusals_and_the_failure_that_ended_it(world, skills, tmp_path):
    from model_server import ModelServer, error

    with ModelServer("nonsense", error(400, "quota")) as server:
        spec = f"openai:model=m,base_url={server.url},cameras=none"
        first, _ = record(world, skills, make_planner(spec), tmp_path / "run/a")
    again, replayed = record(
        world, skills, make_planner(f"replay:bag={tmp_path / 'run'}"), tmp_path / "b"
    )
    assert again == first and "status 400" in again.cause
    said = [e.data for e in replayed.events if e.kind == "plan"]
    assert said[0]["refused"] == "no JSON object in the answer" and said[0]["raw"] == "nonsense"


@pytest.fixture
def terminal():
    """(planner's ends, typing end) of a pseudo-terminal."""
    master, slave = pty.openpty()
    source, sink = os.fdopen(slave, "r"), open(os.devnull, "w")
    yield source, sink, lambda text: os.write(master, text.encode())
    sink.close()
    source.close()
    os.close(master)


def test_a_person_lifts_the_pot(terminal, world, skills, tmp_path):
    source, sink, write = terminal
    planner = HumanPlanner(HumanOptions(), source, sink)
    write("left fly\n\n")
    write("left grasp object=pot grasp=left_handle | right grasp object=pot grasp=right_handle\n")
    write("left move_by offset=[0,0,0.16] | right move_by offset=[0,0,0.16]\n\n")
    write("\n")
    verdict, recorded = record(world, skills, planner, tmp_path / "a")
    assert verdict.success, verdict.cause
    said = [e.data for e in recorded.events if e.kind == "plan"]
    assert "unknown skill 'fly'" in said[0]["refused"] and said[1]["raw"].startswith("left grasp")


def test_a_person_answers_and_may_pass(terminal, world):
    source, sink, write = terminal
    planner = HumanPlanner(HumanOptions(help="none"), source, sink)
    scene, state = world.reset("spatial_sparse", 0)
    planner.reset(scene, 0)
    write("LEFT\n\n")
    question = Question("arm", "Which?", {"a": ("left", "right"), "b": ("left", "right")})
    assert planner.ask(question, Observation(state)).values == {"a": "left"}


def test_nobody_at_the_terminal_is_an_error_not_a_hang(terminal, world, monkeypatch):
    _, state = world.reset("lift_pot", 0)
    source, sink, _ = terminal
    with pytest.raises(BenchError, match="before it was reset"):
        HumanPlanner(None, source, sink).plan(PlanRequest("", Observation(state), 0))
    with open(os.devnull) as nobody:
        monkeypatch.setattr("sys.stdin", nobody)
        with pytest.raises(UsageError, match="needs a terminal"):
            make_planner("human")
