"""Every planner says the same behind a node's services as it says in this process."""

from __future__ import annotations

import time
from dataclasses import asdict
from types import SimpleNamespace

import pytest
from bench_interfaces.srv import Ask, Plan, ResetAgent

import policies
from bench_tasks import tasks
from bench_tasks.errors import BenchError, UsageError
from bench_tasks.ros.node_ros import Caller
from bench_tasks.ros.remote_ros import RemotePlanner
from bench_tasks.tasks.base import Ask as AskStep
from bench_tasks.vocabulary import Observation, PlanRequest
from sim.world import SimWorld
from tests.policies.planner_cases import CASES, ready, timeless

pytestmark = pytest.mark.ros
DEADLINE_S = 60.0
BY_DEFAULT = ("random", "openai:dialect")
"""The others take a node each, and go the same way."""


def remote(nodes, client, spec: str) -> RemotePlanner:
    """A planner in a node of its own."""
    nodes.start("planner", planner=spec)

    def caller(kind, name):
        made = Caller(client, kind, name, DEADLINE_S)
        end = time.monotonic() + DEADLINE_S
        while not made.ready:
            assert time.monotonic() < end, nodes.logs()
            time.sleep(0.02)
        return made

    return RemotePlanner(
        SimpleNamespace(
            planner_reset=caller(ResetAgent, "/planner/reset"),
            plan=caller(Plan, "/planner/plan"), ask=caller(Ask, "/planner/ask"),
        )
    )  # fmt: skip


def said(world, planner) -> list:
    """Metadata, plans and answers of two short episodes, or the error that one of them ends in."""
    found: list = [asdict(planner.metadata)]

    def see():
        wanted = planner.metadata
        frames = world.capture(wanted.cameras, wanted.depth) if wanted.cameras else ()
        return Observation(world.state, frames)

    def note(call) -> None:
        try:
            found.append(call())
        except BenchError as error:
            found.append((isinstance(error, UsageError), str(error)))

    scene, state = world.reset("lift_pot", 0)
    note(lambda: planner.plan(PlanRequest("", Observation(state), 0)))
    note(lambda: planner.reset(scene, 3))
    for turn, status in enumerate(({}, {"status": "done", "completed": 1, "held": {}})):
        planner.observe(see())
        request = PlanRequest(scene.instruction, see(), turn, status)
        note(lambda request=request: timeless(asdict(planner.plan(request))))
    scene, _ = world.reset("spatial_sparse", 0)
    (step,) = [s for s in tasks.get("spatial_sparse").prologue(scene) if isinstance(s, AskStep)]
    note(lambda: planner.reset(scene, 3))
    note(lambda: timeless(asdict(planner.ask(step.question, see()))))
    return found


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=() if c in BY_DEFAULT else pytest.mark.slow) for c in CASES]
)
def test_a_planner_says_the_same_in_a_node(case, nodes, client, tmp_path, monkeypatch):
    world = SimWorld(width=64, height=48)
    if case == "human":  # nobody is at a terminal: that is what it must say
        with open("/dev/null") as nobody:
            monkeypatch.setattr("policies.planners.human.sys", SimpleNamespace(stdin=nobody))
            with pytest.raises(UsageError, match="needs a terminal") as here:
                policies.make_planner(case)
        nodes.start("planner", planner=case)
        assert nodes.wait("planner") == 2 and str(here.value) in nodes.logs()
        return
    with ready(case, tmp_path, monkeypatch) as spec:
        there = said(world, remote(nodes, client, spec))
        here = said(world, policies.make_planner(spec))
    assert "before it was reset" in here[1][1]
    assert len(here) == 7 and isinstance(here[3], dict) and isinstance(here[6], dict)
    assert here == there
