"""A policy on a server of its own, over five processes as in one: good answers, then a bad one."""

from __future__ import annotations

import pytest

from bench_tasks.config import RunConfig
from bench_tasks.runner import run
from bench_tasks.verdicts import score_files
from tests.policies.remote import peers

pytestmark = [pytest.mark.ros, pytest.mark.slow]


def test_a_policy_server_gives_the_same_episode_both_ways(nodes, tmp_path):
    """Its fifth answer of each episode has a jump in it: four are executed, the same ones."""

    def answer(observation, connection):
        values = peers.good_values(observation["command"])
        left_joint_1 = observation["command"][0]
        return {"actions": values + 1.0 if left_joint_1 > 3.9 * 10 * peers.STEP_RAD else values}

    out, here = tmp_path / "ros", tmp_path / "here"
    with peers.OpenPIPeer(answer) as peer:
        policy = f"openpi:port={peer.port},embodiment=fr3_pair_images,deadline_s=20"
        nodes.start_all(out, tasks="lift_pot", episodes=2, policy=policy)
        assert nodes.wait("task", 90.0) == 0, nodes.logs()
        run(RunConfig(("lift_pot",), episodes=2, policy=policy, out=str(here)))
        assert peer.connections == 4 and len(peer.seen) == 20
    over_ros, in_process = (
        score_files.load_scores(score_files.newest_scores(folder)) for folder in (out, here)
    )
    for ours, theirs in zip(over_ros, in_process, strict=True):
        assert ours.scored and not ours.success and ours.agrees
        assert ours.cause == theirs.cause
        assert ours.cause.startswith(f"policy error: policy server 127.0.0.1:{peer.port}: ")
        assert "left joint 1" in ours.cause or "gripper" in ours.cause
        assert (ours.end_seq, ours.state_hash) == (theirs.end_seq, theirs.state_hash)
        assert ours.end_seq == 40
