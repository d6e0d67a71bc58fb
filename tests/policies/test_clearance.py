"""Hands keep off what stands around where there is a choice."""

from __future__ import annotations

import drill
import numpy as np
import pytest

from bench_tasks.view import View
from bench_tasks.vocabulary import MAX_OPENING_M, SkillCall
from policies.clearance import hand_hits, widest_opening
from policies.skills import SkillPolicy
from sim.world import SimWorld

DOWN = np.array([0.0, 1.0, 0.0, 0.0])
"""Hand pointing down, fingers moving along y."""


@pytest.fixture(scope="module")
def pair():
    return SimWorld(), SkillPolicy()


@pytest.fixture
def cell(pair, monkeypatch):
    """A block with a neighbour 75 mm to the left of it, little room for a finger between them."""
    drill.register(monkeypatch, drill.blocks("close", (0.45, 0.2), (0.45, 0.275)))
    drill.fresh(*pair, "close")
    return pair


def at(x: float, y: float, z: float = 0.02) -> np.ndarray:
    return np.array([x, y, z, *DOWN])


@pytest.mark.parametrize(
    ("tcp", "opening", "hit"),
    [
        (at(0.45, 0.2), 0.075, "block1"),
        (at(0.45, 0.2), 0.045, None),
        (at(0.45, 0.2, 0.15), 0.08, None),
        (at(0.45, 0.12), 0.08, None),
        (at(0.45, 0.275, 0.1), 0.08, None),
        (np.array([0.45, 0.2, 0.02, 0.0, np.sqrt(0.5), np.sqrt(0.5), 0.0]), 0.08, None),
    ],
)
def test_what_a_hand_hits(cell, tcp, opening, hit):
    world, _ = cell
    assert hand_hits(View(world.scene, world.state), tcp, opening, ("block0",)) == hit


def test_the_housing_hits_what_is_as_high_as_it(cell):
    world, _ = cell
    view = View(world.scene, world.state)
    assert hand_hits(view, at(0.45, 0.33, -0.04), 0.0) == "block1"
    assert hand_hits(view, at(0.45, 0.33, 0.02), 0.0) is None


def test_the_grasp_that_leaves_the_neighbour_alone_is_taken(cell):
    world, _ = cell
    before = View(world.scene, world.state).pose("block1")
    detail, states = drill.run_plan(
        *cell, drill.grasp("left", "block0"), drill.move_by("left", 0, 0, 0.1)
    )
    assert detail["status"] == "done", detail
    for state in states:
        view = View(world.scene, state)
        assert not view.touched_by_robot("block1")
    assert view.pose("block1") == pytest.approx(before, abs=1e-3)


def test_fingers_open_as_wide_as_neighbours_permit(cell):
    world, _ = cell
    view = View(world.scene, world.state)
    free = widest_opening(view, at(0.45, 0.1), 0.05, MAX_OPENING_M, ("block0",))
    close = widest_opening(view, at(0.45, 0.2), 0.03, MAX_OPENING_M, ("block0",))
    assert free == MAX_OPENING_M
    assert 0.03 <= close < 0.06
    assert widest_opening(view, at(0.45, 0.24), 0.05, MAX_OPENING_M, ("block0",)) == 0.05


def test_a_way_that_takes_far_longer_than_another_comes_last(pair):
    """From this grasp the straight line with the cup passes a singular posture: 48 s."""
    world, policy = pair
    drill.fresh(world, policy, "pour_and_hold", 2)
    grasp = (SkillCall("grasp", "right", {"object": "cup", "grasp": "side_left"}),)
    pose = [0.468, 0.02, 0.265, 0.966, 0.0, 0.0, -0.259]
    place = (SkillCall("place", "right", {"object": "cup", "pose": pose, "release": False}),)
    detail, states = drill.run_plan(world, policy, grasp, place)
    assert detail["status"] == "done", detail
    assert len(states) < 15.0 / 0.02
