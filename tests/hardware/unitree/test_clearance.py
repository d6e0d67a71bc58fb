"""The G1's distances against MuJoCo's, and ways that are blocked."""

import numpy as np
import pytest

from bench_tasks.robots import g1
from hardware.unitree.clearance import BodyClearance
from sim.g1 import TABLE_DEPTH_M, TABLE_EDGE_M, TABLE_THICKNESS_M, TABLE_WIDTH_M, build_g1_cell

import mujoco  # isort: skip  # after sim, which chooses its renderer

TABLE = {"edge_m": TABLE_EDGE_M, "depth_m": TABLE_DEPTH_M, "width_m": TABLE_WIDTH_M,
         "thickness_m": TABLE_THICKNESS_M}  # fmt: skip
HOME = g1.HOME_RAD


def least(distance_m):
    return dict.fromkeys(("hands", "arms", "itself", "table"), distance_m)


@pytest.fixture(scope="module")
def body():
    return BodyClearance()


def test_distances_are_mujocos(body):
    model = build_g1_cell((), 0.74).model
    data = mujoco.MjData(model)
    pelvis = np.array([0.02, -0.01, 0.05, 0.9988, 0.0, 0.05, 0.0])
    pelvis[3:] /= np.linalg.norm(pelvis[3:])
    body.set_table(pelvis, TABLE)
    rng = np.random.default_rng(0)
    base = model.joint("pelvis_free").qposadr[0]
    rows = [model.joint(name).qposadr[0] for name in g1.JOINT_NAMES]
    near = 0
    for _ in range(30):
        joints = np.clip(HOME + rng.uniform(-1.0, 1.0, 17), *g1.LIMITS_RAD[g1.LEGS :].T)
        data.qpos[base : base + 7] = pelvis
        data.qpos[rows] = np.concatenate([g1.DEFAULT_RAD[: g1.LEGS], joints])
        mujoco.mj_kinematics(model, data)
        distance, between = body.nearest(joints)
        first, second = (name.replace(" ", "_") for name in between.split(" to "))
        ids = [model.geom(n if n == "table" else f"{n}_collision").id for n in (first, second)]
        found = mujoco.mj_geomDistance(model, data, *ids, 1.0, None)
        # MuJoCo's own depth of overlap is no less than a few tenths of a millimetre off.
        assert distance == pytest.approx(found, abs=2e-3), between
        near += distance < 0.05
    assert near > 5


def test_home_is_free_and_crossed_arms_are_not(body):
    body.set_table(np.array([0.0, 0, 0.03, 1, 0, 0, 0]), TABLE)
    assert body.nearest(HOME)[0] > 0.02
    inward = HOME.copy()
    inward[[5, 12]] = -1.2, 1.2
    blocked = body.blocked(HOME, np.stack([inward]), least(0.0))
    assert blocked.row == 0 and "left" in blocked.between and blocked.distance_m < 0.0
    assert "m, at least 0" in str(blocked)


def test_a_table_in_the_way_is_found_between_the_points(body):
    body.set_table(np.array([0.0, 0, -0.05, 1, 0, 0, 0]), TABLE)
    down, up = HOME.copy(), HOME.copy()
    down[[6, 13]], up[[6, 13]] = 1.4, -1.0
    assert "table" in body.blocked(down, np.stack([down, up]), least(0.0)).between
    assert body.blocked(down, np.stack([down, up]), least(0.0)).row == 1
    body.set_table(np.array([-0.6, 0, -0.05, 1, 0, 0, 0]), TABLE)
    assert body.blocked(down, np.stack([up]), least(0.0)) is None


def test_what_is_too_near_may_move_away(body):
    body.set_table(np.array([-1.0, 0, 0.0, 1, 0, 0, 0]), TABLE)
    distance, _ = body.nearest(HOME)
    apart = HOME.copy()
    apart[[4, 11]] = 0.6, -0.6
    assert body.blocked(HOME, np.stack([apart]), least(distance + 0.02)) is None
    assert body.blocked(HOME, np.stack([2 * HOME - apart]), least(distance + 0.02)) is not None
