"""An agent that fails does so in the same words over five processes and in one."""

from __future__ import annotations

import json

import pytest

from bench_tasks.bags.bag import read_bag
from bench_tasks.config import RunConfig
from bench_tasks.runner import run
from bench_tasks.verdicts import score_files

pytestmark = pytest.mark.ros


def story(path):
    """Events without wall-clock values; tracebacks only as far as they are there."""
    bag = read_bag(path)
    assert not bag.problems
    return [
        (e.kind, e.seq, {k: bool(v) if k == "traceback" else v for k, v in e.data.items()})
        for e in bag.events
    ]


@pytest.mark.parametrize(
    ("task", "chosen", "cause"),
    [
        ("lift_pot", {"planner": "malformed"}, "malformed plan: no JSON in it"),
        ("spatial_sparse", {"planner": "malformed"}, "malformed answer: no JSON in it"),
        ("lift_pot", {"planner": "silent"}, "planner error: server: refused"),
        ("lift_pot", {"planner": "crashes"}, r"planner error: crash: ValueError('a\nb')"),
        (
            "lift_pot", {"policy": "not_finite"},
            "policy error: an action chunk holds a number that is not finite",
        ),
        ("lift_pot", {"policy": "wrong_seq"}, "policy error: an action chunk answers state "),
        ("lift_pot", {"policy": "sees_depth"}, "policy error: saw "),
        ("lift_pot", {"policy": "crashes"}, "policy error: crash: ZeroDivisionError('1/0')"),
    ],
)
def test_the_same_failure_both_ways_and_the_run_goes_on(
    nodes, known, tmp_path, task, chosen, cause
):
    nodes.before = "from tests.ros.agents import register; register(); "
    out, here = tmp_path / "ros", tmp_path / "here"
    nodes.start_all(out, tasks=task, episodes=2, **chosen)
    assert nodes.wait("task", 60.0) == 0, nodes.logs()
    assert json.loads((out / "run.json").read_text())["status"] == "complete"
    run(RunConfig((task,), episodes=2, out=str(here), **chosen))
    for ours, theirs in zip(
        *(score_files.load_scores(score_files.newest_scores(folder)) for folder in (out, here)),
        strict=True,
    ):
        assert ours.scored and not ours.success and ours.agrees
        assert ours.cause == theirs.cause and ours.cause.startswith(cause)
        assert (ours.end_seq, ours.state_hash) == (theirs.end_seq, theirs.state_hash)
    for seed in ("000000", "000001"):
        assert story(out / task / seed) == story(here / task / seed)
