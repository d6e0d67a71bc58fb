"""Pose algebra by group axioms, and questions about contacts by made-up states."""

from __future__ import annotations

from dataclasses import replace

import made
import numpy as np
import pytest

from bench_tasks.errors import UnscoredError, UsageError
from bench_tasks.view import (
    View,
    compose,
    invert,
    quat_from_yaw,
    rotate,
    rotation_matrix,
    yaw_of,
)

IDENTITY = np.array([0, 0, 0, 1, 0, 0, 0.0])
ENTITIES = (
    "table", "floor",
    *(f"{a}_{p}" for a in ("left", "right") for p in ("arm", "hand", "finger1", "finger2")),
    "block", "block2",
)  # fmt: skip


def random_pose(rng) -> np.ndarray:
    quat = rng.normal(size=4)
    return np.concatenate([rng.normal(size=3), quat / np.linalg.norm(quat)])


def same(a, b) -> bool:
    return np.allclose(a[:3], b[:3]) and abs(a[3:] @ b[3:]) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(5))
def test_poses_form_a_group(seed):
    rng = np.random.default_rng(seed)
    a, b, c = (random_pose(rng) for _ in range(3))
    assert same(compose(a, invert(a)), IDENTITY) and same(compose(invert(a), a), IDENTITY)
    assert same(compose(a, IDENTITY), a) and same(compose(IDENTITY, a), a)
    assert same(compose(compose(a, b), c), compose(a, compose(b, c)))
    assert same(invert(compose(a, b)), compose(invert(b), invert(a)))
    assert np.linalg.norm(compose(a, b)[3:]) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(5))
def test_rotations_are_proper_and_compose_as_matrices(seed):
    rng = np.random.default_rng(seed)
    a, b = random_pose(rng), random_pose(rng)
    matrix = rotation_matrix(a[3:])
    assert matrix @ matrix.T == pytest.approx(np.eye(3))
    assert np.linalg.det(matrix) == pytest.approx(1.0)
    assert rotation_matrix(compose(a, b)[3:]) == pytest.approx(matrix @ rotation_matrix(b[3:]))
    assert rotate(a[3:], b[:3]) == pytest.approx(matrix @ b[:3])


@pytest.mark.parametrize("yaw", [-3.1, -1.0, 0.0, 0.5, 3.0])
def test_yaw_turns_about_the_vertical_counter_clockwise_from_above(yaw):
    quat = quat_from_yaw(yaw)
    assert yaw_of(quat) == pytest.approx(yaw)
    assert rotate(quat, [1, 0, 0]) == pytest.approx([np.cos(yaw), np.sin(yaw), 0])


def view(*contacts: tuple[str, str, float], **changes) -> View:
    scene = replace(made.scene(objects=2), entities=ENTITIES)
    pairs = [[ENTITIES.index(a), ENTITIES.index(b)] for a, b, _ in contacts]
    state = replace(
        made.state(0, objects=2),
        contact_pair=np.array(pairs, np.uint16).reshape(-1, 2),
        contact_force=np.array([f for *_, f in contacts], float),
        **changes,
    )
    return View(scene, state)


def test_force_is_summed_over_both_orders_and_zero_without_contact():
    seen = view(("block", "table", 1.0), ("table", "block", 2.0), ("block", "block2", 5.0))
    assert seen.force("block", "table") == seen.force("table", "block") == 3.0
    assert seen.force("block2", "table") == 0.0 and view().force("block", "table") == 0.0
    assert seen.touching("block", "block2", 4.9) and not seen.touching("block", "block2", 5.0)


def test_a_grasp_needs_both_fingers_of_one_arm():
    assert view(("block", "left_finger1", 9.0)).holder("block") is None
    crossed = view(("block", "left_finger1", 9.0), ("block", "right_finger2", 9.0))
    assert crossed.holder("block") is None and crossed.touched_by_robot("block")
    weak = view(("block", "left_finger1", 9.0), ("block", "left_finger2", 0.1))
    assert not weak.grasped("block", "left")
    right = view(("block", "right_finger1", 9.0), ("block", "right_finger2", 9.0))
    assert right.holder("block") == "right" and right.holder("block2") is None


@pytest.mark.parametrize("part", ["arm", "hand", "finger1", "finger2"])
def test_any_part_of_the_robot_counts_as_touch(part):
    assert view(("block", f"right_{part}", 0.01)).touched_by_robot("block")
    assert not view(("block", "table", 9.0)).touched_by_robot("block")


def poses(*heights: float) -> np.ndarray:
    return np.array([[0.4, 0.0, z, 1, 0, 0, 0] for z in heights])


def test_support_is_contact_from_below():
    on_top = view(("block", "block2", 1.0), object_pose=poses(0.06, 0.02))
    assert on_top.supported_by("block", "block2") and not on_top.supported_by("block2", "block")
    apart = view(object_pose=poses(0.06, 0.02))
    assert not apart.supported_by("block", "block2")
    assert view(("block", "table", 1.0)).supported_by("block", "table")


def test_rest_needs_both_speeds_to_be_small():
    def moving(*twist: float) -> View:
        return view(object_twist=np.array([np.zeros(6), twist]))

    assert moving(0.01, 0, 0, 0, 0, 0.1).all_at_rest()
    assert not moving(0.03, 0, 0, 0, 0, 0).all_at_rest()
    assert not moving(0, 0, 0, 0, 0.3, 0).all_at_rest()
    assert moving(0, 0, 0, 0, 0.3, 0).at_rest("block")


@pytest.mark.parametrize("tilt", [0.0, 0.4, 1.5, np.pi])
def test_tilt_ignores_the_heading(tilt):
    turned = compose(
        np.concatenate([np.zeros(3), quat_from_yaw(1.0)]),
        np.array([0, 0, 0, np.cos(tilt / 2), np.sin(tilt / 2), 0, 0]),
    )
    assert view(object_pose=np.array([turned, turned])).tilt("block") == pytest.approx(tilt)


def test_start_is_the_first_state_and_unknown_names_are_named():
    first, last = made.state(0), made.state(1, height=0.3)
    seen = View(made.scene(), last, first)
    assert seen.start.position("block")[2] == 0.02 and seen.position("block")[2] == 0.3
    assert View(made.scene(), last).start.position("block")[2] == 0.3
    with pytest.raises(UsageError, match="unknown object 'teapot': choose from block"):
        seen.pose("teapot")
    with pytest.raises(UsageError, match="unknown entity 'teapot'"):
        seen.force("block", "teapot")


def test_what_a_cell_without_touch_cannot_know_is_not_taken_for_no():
    seen = view(("left_finger1", "block", 5.0))
    felt = View(replace(seen.scene, contacts="hands"), seen.state)
    assert felt.force("block", "left_finger1") == 5.0
    assert not felt.touching("block", "right_finger2")
    for ask in (
        lambda: felt.touching("block", "table"), lambda: felt.force("left_hand", "block"),
        lambda: felt.touched_by_robot("block"), lambda: felt.supported_by("block", "table"),
    ):  # fmt: skip
        with pytest.raises(UnscoredError, match="nothing here measures whether"):
            ask()
