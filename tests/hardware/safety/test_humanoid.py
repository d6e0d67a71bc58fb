"""The supervisor with a humanoid: the same rules, for a waist as well, on a pelvis that moves."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from bench_tasks.bags import cdr
from bench_tasks.robots import embodiments, g1
from bench_tasks.vocabulary import ROBOT_PART, ActionChunk, ObjectInfo, Scene, WorldState
from hardware.safety import Supervisor
from hardware.safety.limits import read_limits
from hardware.unitree.cell import read_cell
from hardware.unitree.narrowed import narrowed

LIMITS = read_limits("g1")
ROBOT = embodiments.get("g1")
HOME, COLUMNS = ROBOT.home, ROBOT.joint_columns
PELVIS = ObjectInfo(g1.PELVIS, ROBOT_PART, "gray", (0.1, 0.1, 0.1))
SCENE = Scene(
    "t", 1, 0, "", (PELVIS,), ("table",), g1.JOINT_NAMES, {}, embodiment="g1",
    base_height_m=-0.74,
)  # fmt: skip


def at(action=HOME, height_m=0.03, seq=0, **changes) -> WorldState:
    joints = np.concatenate([g1.DEFAULT_RAD[: g1.LEGS], action[COLUMNS]])
    pelvis = np.array([[0.0, 0.0, height_m, 1.0, 0.0, 0.0, 0.0]])
    state = WorldState(
        seq, 0, joints, np.zeros(29), np.zeros(29), np.zeros(2), np.zeros((2, 7)), action, pelvis,
        np.zeros((1, 6)), np.zeros((0, 2), np.uint16), np.zeros(0),
    )  # fmt: skip
    return replace(state, **changes)


def judged(values, state=None, limits=LIMITS, scene=SCENE):
    """What is sent of a chunk, and the intervention, if there was one."""
    supervisor = Supervisor(limits, confirmed=True)
    supervisor.begin(scene)
    supervisor.on_state(state or at(), 0.0)
    decision = supervisor.on_chunk(ActionChunk(0, np.asarray(values)), 0.0)
    return decision.send, (decision.interventions or (None,))[0]


def way(change: dict[int, float], count=60):
    """Minimum jerk from home by `change` (column -> rad), actions (count, 19)."""
    end = np.zeros(19)
    end[list(change)] = list(change.values())
    s = np.linspace(0, 1, count + 1)[1:, None]
    return HOME + (s**3 * (10 - 15 * s + 6 * s**2)) * end


def test_limits_are_those_of_the_model_and_layout_that_of_actions():
    assert LIMITS.joint_names == g1.JOINT_NAMES[g1.LEGS :] and LIMITS.size == ROBOT.action_size
    np.testing.assert_array_equal(LIMITS.columns, COLUMNS)
    np.testing.assert_array_equal(LIMITS.openings, ROBOT.opening_columns)
    np.testing.assert_allclose(LIMITS.position, g1.LIMITS_RAD[g1.LEGS :], atol=1e-5)
    np.testing.assert_allclose(LIMITS.torque, g1.EFFORT_NM[g1.LEGS :])


def test_what_is_good_passes_unchanged():
    good = way({0: 0.3, 2: 0.2, 3: -0.3, 11: -0.3})
    sent, told = judged(good)
    assert told is None
    np.testing.assert_array_equal(sent.values, good)


@pytest.mark.parametrize(
    ("values", "kind", "said"),
    [
        (way({3: -0.3})[:, :16], "length", r"\(1 to 250, 19\), got \(60, 16\)"),
        (way({3: np.nan}), "not_finite", "number 3 is nan"),
        (np.rad2deg(way({3: 0.1})), "units", "look like degrees"),
        (np.concatenate([way({}), way({})[::-1] + 0.5 * np.eye(19)[9]]), "jump",
         "left_wrist_yaw_joint would jump by 0.500"),
        (way({1: 0.6}), "position", "waist_roll_joint: position"),
        (way({10: 0.05}), "gripper", "the left hand cannot open"),
        (way({5: -1.4, 13: 1.4}), "distance", " to "),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_by_name(values, kind, said):
    _, told = judged(values)
    assert (told.action, told.kind) == ("refused", kind), told.reason
    assert re.search(said, told.reason)


def test_arms_that_are_swapped_are_named():
    turned = HOME.copy()
    turned[[4, 12]] = 0.9, -0.2
    swapped = turned[np.r_[0:3, 11:19, 3:11]]
    _, told = judged(np.tile(swapped, (5, 1)), at(turned))
    assert told.kind == "joint_order" and "left and right swapped" in told.reason


def test_what_is_too_fast_is_slowed():
    sent, told = judged(way({0: 0.8}, 15))
    assert told.action == "slowed" and "waist_yaw_joint" in told.reason
    assert len(sent.values) > 15
    np.testing.assert_allclose(sent.values[-1], way({0: 0.8})[-1])


def test_the_table_is_where_it_is_from_where_the_pelvis_is():
    down = way({6: 1.1})
    assert judged(down, at(height_m=0.5))[1] is None
    _, told = judged(down, at(height_m=0.0))
    assert told.kind == "distance" and "table" in told.reason


@pytest.mark.parametrize(
    "poses",
    [np.zeros((0, 7)), np.zeros((1, 3)), np.zeros((1, 7)), np.full((1, 7), np.nan),
     np.array([[0.0, 0.0, 0.03, 5.0, 0.0, 0.0, 0.0]])],
)  # fmt: skip
def test_from_a_pelvis_that_is_nowhere_no_path_is_free(poses):
    _, told = judged(way({0: 0.1}), at(object_pose=poses))
    assert told.action == "refused" and "(nan, nan, nan) m is outside" in told.reason


def test_measurements_are_those_of_waist_and_arms_the_legs_being_none_of_its_business():
    efforts, speeds = np.zeros(29), np.zeros(29)
    efforts[3], speeds[3] = 130.0, 15.0  # a knee
    assert judged(way({0: 0.1}), at(joint_effort=efforts, joint_velocity=speeds))[1] is None
    efforts[20] = 30.0
    supervisor = Supervisor(LIMITS, confirmed=True)
    supervisor.begin(SCENE)
    (told,) = supervisor.on_state(at(joint_effort=efforts), 0.0).interventions
    assert told.kind == "torque" and g1.JOINT_NAMES[20] in told.reason


@pytest.mark.parametrize(
    ("measured", "good", "bad", "kind"),
    [
        ("joint_effort", 0.79 * 25.0, 0.81 * 25.0, "torque"),
        ("joint_position", 0.19, 0.21, "tracking"),
    ],
)
def test_an_arm_that_is_held_back_is_stopped_before_its_motors_give_all(measured, good, bad, kind):
    """Of an elbow 0.2 rad are 16 Nm."""
    elbow = g1.JOINT_NAMES.index("left_elbow_joint")
    assert g1.UPPER_KP[elbow - g1.LEGS] * LIMITS.measured["tracking_rad"] == pytest.approx(16.0)
    for value in (good, bad):
        values = getattr(at(), measured).copy()
        values[elbow] += value
        supervisor = Supervisor(LIMITS, confirmed=True)
        supervisor.begin(SCENE)
        told = supervisor.on_state(at(**{measured: values}), 0.0).interventions
        assert [i.kind for i in told] == ([kind] if value == bad else [])


def test_states_that_come_before_the_scene_stop_nothing():
    supervisor = Supervisor(LIMITS, confirmed=True)
    assert supervisor.on_state(at(), 0.0).interventions == () and supervisor.why_not == ""
    short = at(joint_position=np.zeros(10), joint_velocity=np.zeros(10), joint_effort=np.zeros(10))
    (told,) = supervisor.on_state(replace(short, seq=1), 0.0).interventions
    assert told.kind == "state" and "(10,), not (17,)" in told.reason


def test_a_real_robot_needs_its_cell_and_a_pair_other_limits():
    real = replace(SCENE, robot="unitree")
    assert judged(way({0: 0.1}), scene=real)[1].kind == "cell"
    mine = narrowed(LIMITS, read_cell("standin"))
    assert judged(way({0: 0.1}), scene=real, limits=mine)[1] is None
    slow = narrowed(LIMITS, read_cell("cell"))
    assert slow.commands["jump_rad"] == 0.15 and slow.lead_periods == 1
    pair = judged(way({0: 0.1}), limits=read_limits("fr3_pair"))[1]
    assert pair.action == "stopped" and "shape (19,), not (16,)" in pair.reason


def test_messages_are_those_of_a_humanoid():
    supervisor = Supervisor(LIMITS, confirmed=True)
    supervisor.begin(SCENE)
    supervisor.on_state(at(), 0.0)
    good = way({0: 0.1})
    message = cdr.encode_chunk(ActionChunk(0, good), 0, 20_000_000)
    plain = {"stamp": cdr.split_ns(0), "seq": 0, "period_ns": 20_000_000,
             "layout": "joint_position", "values": np.tile(HOME, (16, 1)).ravel()}  # fmt: skip
    for data, kind in (
        (cdr.encode("bench_interfaces/msg/ActionChunk", plain), "layout"),
        (message.replace(b"position:19", b"position:18"), "layout"),
        (cdr.encode_chunk(ActionChunk(0, good), 0, 5_000_000), "period"),
    ):
        (told,) = supervisor.on_message(data, 0.0).interventions
        assert told.kind == kind, told.reason
    decision = supervisor.on_message(message, 0.0)
    assert decision.interventions == ()
    np.testing.assert_array_equal(decision.send.values, good)


def test_the_table_is_the_one_in_the_cells_file():
    real, cell = replace(SCENE, robot="unitree"), read_cell("standin")
    cell.raw["table"] = {**cell.raw["table"], "edge_m": 0.15}
    near, tasks = narrowed(LIMITS, cell), narrowed(LIMITS, read_cell("standin"))
    down = way({3: 0.6, 6: 0.5})
    assert judged(down, scene=real, limits=tasks)[1] is None
    _, told = judged(down, scene=real, limits=near)
    assert told.kind == "distance" and "table" in told.reason
