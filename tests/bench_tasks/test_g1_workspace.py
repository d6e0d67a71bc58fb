"""The benchmark of the humanoid's workspace puts its hands where the robot's kinematics do."""

from __future__ import annotations

import numpy as np
import pytest

from bench_tasks.robots import g1
from bench_tasks.robots.g1_kinematics import upper_body
from bench_tasks.vocabulary import ARMS
from benchmarks import g1_workspace


def test_hands_are_where_the_kinematics_have_them():
    joints = np.random.default_rng(0).uniform(*g1.LIMITS_RAD.T, (20, len(g1.LIMITS_RAD)))
    for k, arm in enumerate(ARMS):
        places = g1_workspace.positions(g1_workspace.chain(arm), joints)
        expected = [upper_body().forward(row[g1.LEGS :])[k, :3] for row in joints]
        assert places == pytest.approx(np.array(expected), abs=1e-9)


def test_a_voxel_counts_once_and_the_waist_adds_some(monkeypatch):
    monkeypatch.setattr(g1_workspace, "BATCH", 10_000)
    arms, waist = (
        g1_workspace.volumes(0, waist, np.random.default_rng(0)) for waist in (False, True)
    )
    for found in (arms, waist):
        assert found["single"] < found["both"] < 2 * found["single"] <= 2 * 100_000 * 0.02**3
        assert 0.0 < found["growth"] < 0.2, "from nine batches to ten"
    assert waist["both"] > 1.2 * arms["both"]
