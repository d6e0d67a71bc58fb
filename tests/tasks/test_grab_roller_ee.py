"""The roller by sixteen numbers: what is refused, and what only looks like success."""

from __future__ import annotations

import numpy as np
import pytest
from staging import Stage, fails, fails_with, succeeds

from bench_tasks.actions import step_from_action
from bench_tasks.errors import UsageError


@pytest.fixture(scope="module")
def gripped(world):
    """Both hands on the handles, the roller on the table."""
    stage = Stage(world, "grab_roller_ee", 3)
    stage.run(*stage.task.expert(stage.view, 0))
    assert all(stage.view.grasped("roller", arm) for arm in ("left", "right"))
    return stage.branch()


def action(stage: Stage, up=(0.0, 0.0), grippers=(0.0, 0.0)):
    """Both hands moved up from where they are."""
    parts = []
    for pose, rise, gripper in zip(stage.state.ee_pose, up, grippers, strict=True):
        parts += [*pose[:2], pose[2] + rise, *pose[3:], gripper]
    return step_from_action([float(v) for v in parts])


def test_by_the_expert(world):
    succeeds(Stage(world, "grab_roller_ee", 1).expert())


@pytest.mark.parametrize(("rise", "good"), [(0.08, False), (0.12, True)])
def test_height(gripped, rise, good):
    stage = gripped()
    stage.run(action(stage, (rise, rise))).hold(1.0)
    succeeds(stage) if good else fails(stage, "10 cm up")


def test_one_hand_stays_behind(gripped):
    stage = gripped()
    stage.run(action(stage, grippers=(0.0, 1.0)))
    stage.run(action(stage, (0.2, 0.0), (0.0, 1.0))).hold(1.0)
    fails_with(stage, "invariant broken: roller not tipped")


def test_let_go_at_the_top(gripped):
    stage = gripped()
    stage.run(action(stage, (0.12, 0.12)), until=lambda: stage.view.position("roller")[2] > 0.11)
    stage.run(action(stage, grippers=(1.0, 1.0))).hold(1.0)
    fails(stage, "10 cm up", "in both hands")


def test_askew(gripped):
    stage = gripped()
    stage.run(action(stage, (0.20, 0.11))).hold(1.0)
    fails(stage, "level")


def test_closed_beside_the_handles(world):
    stage = Stage(world, "grab_roller_ee", 3)
    steps = stage.task.expert(stage.view, 0)
    for hands in (steps[0], steps[2]):  # closed on the way down: two fists on the handles
        low = hands is steps[2]
        shut = []
        for c in hands:
            x, y, z, *quat = c.args["pose"]
            shut += [x - 0.05, y, z + 0.01 * low, *quat, 0.0]
        stage.run(step_from_action(shut))
    stage.run(action(stage, (0.12, 0.12))).hold(1.0)
    fails(stage, "10 cm up", "in both hands")


@pytest.mark.parametrize(("where", "value", "message"), [
    (3, 0.7, "left pose: quaternion"), (15, 1.4, "right gripper"), (2, np.nan, "finite"),
])  # fmt: skip
def test_a_malformed_action_is_refused(world, where, value, message):
    stage = Stage(world, "grab_roller_ee")
    values = np.concatenate([np.append(pose, 0.0) for pose in stage.state.ee_pose])
    values[where] = value
    if where == 3:
        values[4:7] = value
    with pytest.raises(UsageError, match=message):
        step_from_action(values.tolist())
