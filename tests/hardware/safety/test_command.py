"""What is wrong with a command, and its name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench_tasks.bags import cdr
from bench_tasks.vocabulary import ARM_COLUMNS, ActionChunk
from benchmarks.safety.robot import SCENE, Robot
from hardware.safety import Supervisor
from hardware.safety.command import ORDERS
from tests.hardware.safety.ideal import HOME, LIMITS, only, reach, settled


def bad(kind: str) -> np.ndarray:
    path = reach(0, 0.2)[:10].copy()
    if kind == "not_finite":
        path[4, 3] = np.nan
    elif kind == "units":
        path[:, ARM_COLUMNS] = np.rad2deg(path[:, ARM_COLUMNS])
    elif kind == "joint_order":
        path = path[:, np.r_[6:-1:-1, 7, 14:7:-1, 15]]
    elif kind == "gripper":
        path[:, 7] = 40.0
    elif kind == "jump":
        path[6:, 5] += 0.5
    elif kind == "position":
        path[:, 3] = np.linspace(HOME[3], -3.1, 10)
    elif kind == "length":
        path = path[:, :14]
    return path


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("not_finite", "action 4, number 3 is nan"),
        ("units", "degrees"),
        ("joint_order", "joints of each arm reversed"),
        ("gripper", "the left hand cannot open 40 m"),
        ("jump", "left_fr3_joint6 would jump by 0.500 rad"),
        ("position", "left_fr3_joint4: position -3.1 rad"),
        ("length", "(10, 14)"),
    ],
)
def test_what_is_wrong_with_a_command_is_named(robot, kind, says):
    told = only(robot.ask(0, bad(kind)))
    assert (told.action, told.kind) == ("refused", kind) and says in told.reason, told.reason
    assert len(told.command) == 10


def test_swapped_arms_are_noticed_where_they_differ(robot):
    there = np.concatenate([HOME[:8], HOME[:8] + np.append(np.full(7, 0.2), 0)])
    settled(robot, there)
    assert robot.ask(0, np.tile(there, (5, 1))).interventions == ()
    swapped = np.tile(np.concatenate([there[8:], there[:8]]), (5, 1))
    robot.step()
    decision = robot.ask(1, swapped)
    told = only(decision)
    assert (told.action, told.kind) == ("refused", "joint_order")
    assert "left and right swapped" in told.reason
    assert (decision.send.values == there).all(), "it holds"


@pytest.mark.parametrize("order", ORDERS)
def test_every_wrong_order_is_told_by_its_name(robot, order):
    there = HOME.copy()
    there[:8] += np.append(np.full(7, 0.35), -0.02) * [1, 1, -1, 1, 1, -1, 1, 1]
    settled(robot, there)
    mixed = np.empty(16)
    mixed[ORDERS[order]] = there
    told = only(robot.ask(0, np.tile(mixed, (5, 1))))
    assert told.kind == "joint_order" and told.reason.endswith(order), told.reason


def test_messages_are_judged_as_they_came(robot):
    good = cdr.encode_chunk(ActionChunk(0, np.tile(HOME, (5, 1))), 0, 20_000_000)
    assert robot.supervisor.on_message(good, 0.0).interventions == ()
    for data, kind in (
        (good[:40], "malformed"),
        (good.replace(b"joint_position", b"joint_velocity"), "layout"),
        (cdr.encode_chunk(ActionChunk(0, np.tile(HOME, (5, 1))), 0, 5_000_000), "period"),
        (cdr.encode("bench_interfaces/msg/ActionChunk", {
            "stamp": cdr.split_ns(0), "seq": 0, "period_ns": 20_000_000,
            "layout": "joint_position", "values": np.zeros(14)}), "length"),
    ):  # fmt: skip
        assert only(robot.supervisor.on_message(data, 0.0)).kind == kind


def test_stale_commands_do_not_stop_what_is_under_way(robot):
    robot.ask(0, reach(0, 0.3)[:25])
    for _ in range(10):
        robot.step()
    for seq, kind in ((-20, "stale"), (11, "future"), (0, "out_of_order")):
        decision = robot.ask(seq, reach(0, 0.3)[:25])
        assert decision.send is None and only(decision).kind == kind


@pytest.mark.parametrize("supervisor", [
    Supervisor(None, confirmed=True), Supervisor(LIMITS, confirmed=False),
])  # fmt: skip
def test_without_limits_or_a_human_nothing_moves(supervisor):
    robot = Robot(supervisor, HOME.copy())
    decision = robot.ask(0, np.tile(HOME, (5, 1)))
    assert decision.send is None and only(decision).action == "stopped"
    assert supervisor.why_not in only(decision).reason


def test_without_a_state_nothing_moves(loaded):
    supervisor = Supervisor(LIMITS, realtime=True, confirmed=True)
    supervisor._clearance = loaded._clearance
    chunk = ActionChunk(0, np.tile(HOME, (5, 1)))
    assert only(supervisor.on_chunk(chunk, 0.0)).reason == "no scene has come from the robot yet"
    supervisor.begin(SCENE)
    assert only(supervisor.on_chunk(chunk, 0.0)).reason == "no state has come from the robot yet"
    assert supervisor.on_chunk(chunk, 0.0).send is None


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ({"joint_names": tuple(reversed(SCENE.joint_names))}, "joint_order"),
        ({"joint_names": SCENE.joint_names[:7]}, "joint_order"),
        ({"control_period_ns": 10_000_000}, "period"),
    ],
)
def test_limits_of_another_robot_let_nothing_through(robot, changed, kind):
    robot.supervisor.begin(replace(SCENE, **changed))
    decision = robot.ask(0, np.tile(HOME, (5, 1)))
    assert decision.send is None and only(decision).kind == kind


def test_at_rest_nothing_is_sent_for_what_is_refused(robot):
    assert robot.ask(0, bad("jump")).send is None


def test_in_lockstep_a_refused_command_is_replaced_so_that_time_goes_on(stepped):
    sent = stepped.ask(0, bad("jump")).send
    assert sent.seq == 0 and np.array_equal(sent.values, np.tile(HOME, (10, 1)))


@pytest.mark.parametrize(
    "made", [lambda v: v + 0j, lambda v: v.astype(str), lambda v: np.ma.masked_array(v, mask=True)]
)
def test_what_only_passes_for_numbers_is_none(robot, made):
    assert only(robot.ask(0, made(reach(0, 0.1)))).kind == "malformed"


def test_what_was_passed_on_is_changed_by_nobody(stepped):
    path = reach(0, 0.1)
    sent = stepped.ask(0, path).send.values
    path[:] = 3.0
    assert np.array_equal(sent, reach(0, 0.1))
