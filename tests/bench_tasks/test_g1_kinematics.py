"""Kinematics of the G1 against MuJoCo, which is built from the same model file."""

from __future__ import annotations

import numpy as np
import pytest

from bench_tasks.robots import g1
from bench_tasks.robots.g1_kinematics import LIMIT_MARGIN_RAD, upper_body
from bench_tasks.vocabulary import ARMS
from sim.g1 import G1Body, build_g1_cell

import mujoco  # isort: skip  # after sim, which chooses its renderer


@pytest.fixture(scope="module")
def arms():
    return upper_body()


def near_home(rng) -> np.ndarray:
    spread = np.array([0.3, 0.2, 0.3, *[0.5] * 14])
    return np.clip(g1.HOME_RAD + rng.uniform(-spread, spread), *g1.LIMITS_RAD[g1.LEGS :].T * 0.95)


def test_forward_agrees_with_mujoco(arms):
    model = build_g1_cell((), 0.74).model
    data, body = mujoco.MjData(model), G1Body(model)
    body.place(data)
    rng = np.random.default_rng(1)
    for _ in range(50):
        joints = rng.uniform(arms.lower, arms.upper)
        data.qpos[body.q_rows[g1.LEGS :]] = joints
        mujoco.mj_kinematics(model, data)
        for pose, arm in zip(arms.forward(joints), ARMS, strict=True):
            site = model.site(f"{arm}_tcp").id
            pelvis = data.xpos[model.body("pelvis").id]
            assert pose[:3] == pytest.approx(data.site_xpos[site] - pelvis, abs=1e-9)
            quat = np.zeros(4)
            mujoco.mju_mat2Quat(quat, data.site_xmat[site])
            assert abs(quat @ pose[3:]) == pytest.approx(1.0, abs=1e-12)


def test_inverse_brings_both_hands_there_at_once(arms):
    rng = np.random.default_rng(2)
    for _ in range(40):
        wanted = arms.forward(near_home(rng))
        joints, left = arms.inverse(dict(zip(ARMS, wanted, strict=True)), g1.HOME_RAD)
        assert left == 0.0
        assert np.abs(arms.forward(joints)[:, :3] - wanted[:, :3]).max() < 2e-4
        low, high = g1.LIMITS_RAD[g1.LEGS :].T
        assert (joints >= low + LIMIT_MARGIN_RAD).all()
        assert (joints <= high - LIMIT_MARGIN_RAD).all()


def test_one_hand_leaves_the_other_arm_as_it_is(arms):
    target = arms.forward(g1.HOME_RAD)[0] + [0.1, 0.0, 0.05, 0, 0, 0, 0]
    joints, left = arms.inverse({"left": target}, g1.HOME_RAD)
    assert left == 0.0
    assert (joints[10:] == g1.HOME_RAD[10:]).all()
    assert np.abs(joints[3:10] - g1.HOME_RAD[3:10]).max() > 0.1


def test_the_waist_bends_only_when_it_may(arms):
    far = arms.forward(g1.HOME_RAD)[0] + [0.32, 0.0, -0.1, 0, 0, 0, 0]
    joints, left = arms.inverse({"left": far}, g1.HOME_RAD)
    assert left == 0.0 and joints[2] > 0.05
    joints, left = arms.inverse({"left": far}, g1.HOME_RAD, waist=False)
    assert left > 0.01 and (joints[:3] == 0.0).all()


def test_what_is_out_of_reach_is_said_to_be_so_far(arms):
    far = arms.forward(g1.HOME_RAD)[1] + [1.0, 0.0, 0.0, 0, 0, 0, 0]
    _, left = arms.inverse({"right": far}, g1.HOME_RAD)
    assert 0.4 < left < 1.0


def test_gravity_agrees_with_mujoco_however_the_pelvis_is_turned(arms):
    model = build_g1_cell((), 0.74).model
    data, body = mujoco.MjData(model), G1Body(model)
    rng = np.random.default_rng(2)
    base = model.joint("pelvis_free").qposadr[0]
    for _ in range(10):
        body.place(data)
        joints, quat = near_home(rng), rng.normal(size=4)
        quat /= np.linalg.norm(quat)
        data.qpos[base + 3 : base + 7] = quat
        data.qpos[body.q_rows[g1.LEGS :]] = joints
        mujoco.mj_forward(model, data)
        wanted = data.qfrc_bias[body.v_rows[g1.LEGS :]]
        assert arms.gravity(joints, quat) == pytest.approx(wanted, abs=1e-6)
