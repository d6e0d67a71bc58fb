"""A planner that points gets the same depth over five processes and in one, and plans the same."""

from __future__ import annotations

import json

import pytest

from bench_tasks.bags.bag import measured_frames, read_bag
from bench_tasks.config import RunConfig
from bench_tasks.runner import run
from tests.policies.planners.model_server import ModelServer

pytestmark = pytest.mark.ros

TASK, SPEC = "stack_blocks_three", "dialect=qwen3-vl,cameras=head+third,retries=0"


def answer(skill: str, *point: int) -> str:
    target = {"point_2d": list(point), "frame": 1}
    call = {"skill": skill, "arm": "left", "args": target}
    return json.dumps({"executable_plan": [[call]]})


def story(path):
    """Events without wall-clock values and the server's address."""
    found = read_bag(path)
    assert not found.problems
    for event in found.events:
        event.data.pop("latency_ns", None)
        event.data.get("transcript", {}).pop("attempts", None)
    return found, [(e.kind, e.seq, e.data) for e in found.events]


def test_depth_and_points_are_the_same_both_ways(nodes, tmp_path):
    from bench_tasks import tasks
    from sim.world import SimWorld
    from tests.policies.planners.pointing_model import PointingModel, top

    world = SimWorld()
    scene, state = world.reset(TASK, 0)
    model = PointingModel(world, "qwen3-vl", None)
    from bench_tasks.view import View

    red = model.scaled(top(View(scene, state), "red_block"))
    script = [answer("grasp", *red), answer("grasp", 5, 5), '{"executable_plan": []}']
    folders = {"ros": tmp_path / "ros", "here": tmp_path / "here"}
    with ModelServer(*script) as server:
        spec = f"openai:model=m,base_url={server.url},{SPEC}"
        nodes.start_all(folders["ros"], tasks=TASK, planner=spec)
        assert nodes.wait("task", 100.0) == 0, nodes.logs()
        del server.requests[:]
        run(RunConfig((TASK,), spec, out=str(folders["here"])))
    assert tasks.get(TASK).tier == 2
    (ours, told), (theirs, heard) = (story(f / TASK / "000000") for f in folders.values())
    assert told == heard and ours.state_hash == theirs.state_hash and len(ours.states) > 50
    plans = [data for kind, _, data in told if kind == "plan"]
    assert [bool(plan["refused"]) for plan in plans] == [False, True, False]
    assert plans[0]["steps"][0][0]["args"]["point"]
    for topic in ("/head/depth", "/third/depth"):
        assert ours.manifest["message_counts"][topic] == 3
        assert theirs.manifest["message_counts"][topic] == 3
    seen = [measured_frames(f / TASK / "000000") for f in folders.values()]
    assert seen[0] == seen[1] and len(seen[0]) >= 4
