"""Distances of a pair of arms along whole paths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hardware.safety.clearance import Clearance
from tests.hardware.safety.ideal import HOME, LIMITS, at


@pytest.fixture(scope="module")
def clearance():
    return Clearance(LIMITS)


def test_nothing_is_jumped_over(clearance):
    """In one period past the other hand, free before and behind."""
    before, behind = at("left", 0.25, 0.05, 0.3), at("left", 0.65, 0.05, 0.3)
    assert clearance.check(before, behind[None]) is None
    for row in (before, behind):
        row[8:] = at("right", 0.45, -0.1, 0.3)[8:]
    assert clearance.check(before, before[None]) is None
    assert clearance.check(behind, behind[None]) is None
    found = clearance.check(before, behind[None])
    assert found is not None and "to the right arm" in found.text


@pytest.mark.parametrize("arm", ["left", "right"])
def test_the_table_is_hit(arm):
    everywhere = np.array([[[-9.0] * 3, [9.0] * 3]])
    workspace = {"left": everywhere, "right": everywhere}
    clearance = Clearance(replace(LIMITS, workspace=workspace))
    path = np.linspace(HOME, at(arm, 0.45, 0.3 if arm == "left" else -0.3, -0.05), 40)
    found = clearance.check(HOME, path)
    assert found.text == f"{arm} arm (link 8) to the table"
    assert clearance.check(HOME, path[: found.row]) is None


def test_a_raised_base_is_farther_from_the_table(clearance):
    path = np.linspace(HOME, at("left", 0.45, 0.3, -0.05), 40)
    before = clearance.check(HOME, path).row
    clearance.set_base_height(0.03)
    try:
        assert clearance.check(HOME, path).row > before
    finally:
        clearance.set_base_height(0.0)


def test_the_workspace_is_that_of_the_tool_centre_point():
    x, y, z = 0.307, 0.35, 0.487  # of home, see test_kinematics
    for axis, edge in enumerate((x, y, z)):
        for sign in (-1, 1):
            box = np.array([[[-9.0] * 3, [9.0] * 3]])
            box[0, 0 if sign > 0 else 1, axis] = edge + sign * 0.004
            narrow = Clearance(replace(LIMITS, workspace={**LIMITS.workspace, "left": box}))
            assert narrow.check(HOME, HOME[None]) is not None
            box[0, 0 if sign > 0 else 1, axis] = edge - sign * 0.004
            assert narrow.check(HOME, HOME[None]) is None
