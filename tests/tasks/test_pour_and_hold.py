"""What looks like beads poured into a held bowl and is not, each with its twin that is."""

from __future__ import annotations

import numpy as np
import pytest
from staging import Stage, call, fails, fails_with, succeeds

from bench_tasks.tasks.pour_and_hold import BEADS, HOLDER, POURER, _in_bowl, _middle
from bench_tasks.view import compose

TASK, SEED = "pour_and_hold", 1
POURED = "cup tipped over the bowl before"


@pytest.fixture
def stage(world) -> Stage:
    return Stage(world, TASK, SEED)


@pytest.fixture(scope="module")
def ready(world):
    """The bowl is held up, the full cup upright above it."""
    stage = Stage(world, TASK, SEED)
    for turn in range(2):
        stage.run(*stage.task.expert(stage.view, turn))
    assert stage.verdict.stages["bowl held up empty"]
    return stage.branch()


@pytest.fixture(scope="module")
def tipped(ready):
    """The cup has begun to tip; the beads are still in it."""
    stage = ready()
    stage.run(
        *stage.task.expert(stage.view, 2),
        until=lambda: stage.verdict.stages["cup tipped over the bowl"],
    )
    assert _in_bowl(stage.view) == 0
    return stage.branch()


def spread(stage: Stage, inside: int, up: float = 0.0) -> Stage:
    """Put the beads: so many side by side in the bowl, the others on the table."""
    middle = compose(stage.view.pose("bowl"), _middle(stage.scene.object("bowl")))[:3]
    low = -stage.scene.object("bowl").half_size_m[2] + 0.017 + up
    for k, name in enumerate(BEADS):
        if k < inside:
            stage.put(name, middle + [0.03 * (k % 3 - 1), 0.03 * (k // 3) - 0.015, low])
        else:
            stage.put(name, [0.7, 0.05 * k, 0.006])
    return stage


def test_poured(ready):
    stage = ready()
    stage.run(*stage.task.expert(stage.view, 2)).hold(1.0)
    succeeds(stage)


def test_held_over_the_bowl_and_not_tipped(ready):
    fails(ready().hold(1.0), "most beads in the bowl", POURED)


def test_put_into_the_bowl_by_nobody(ready):
    stage = spread(ready(), 6).hold(1.0)
    assert stage.unmet() == []
    fails(stage, POURED)


@pytest.mark.parametrize(("inside", "good"), [(4, False), (5, True)])
def test_how_many_are_in(tipped, inside, good):
    stage = spread(tipped(), inside).hold(1.0)
    assert _in_bowl(stage.view) == inside
    succeeds(stage) if good else fails(stage, "most beads in the bowl")


def test_above_the_bowl_and_falling(tipped):
    stage = spread(tipped(), 6, up=0.15)
    stage.hold(0.1)
    fails(stage, "most beads in the bowl")


@pytest.mark.parametrize(("height", "good"), [(0.0, False), (0.06, True)])
def test_poured_into_the_bowl_on_the_table(world, height, good):
    stage = Stage(world, TASK, SEED)
    stage.run((call("grasp", HOLDER, object="bowl"), call("grasp", POURER, object="cup")))
    if height:
        stage.run(call("move_by", HOLDER, offset=[0.0, 0.0, height])).hold(0.2)
    spread(stage, 1).hold(0.3)
    if good:
        fails(stage, "most beads in the bowl")
    else:
        fails_with(stage, "invariant broken: bowl not filled on the table")


def test_the_bowl_is_set_down_at_the_end(tipped):
    stage = spread(tipped(), 6).hold(0.2)
    stage.run(call("move_by", HOLDER, offset=[0.0, 0.0, -0.105])).hold(0.5)
    fails_with(stage, "invariant broken: bowl not filled on the table")


def test_held_too_low(ready):
    stage = ready()
    stage.run(call("move_by", HOLDER, offset=[0.0, 0.0, -0.07])).hold(0.2)
    assert not stage.view.touching("bowl", "table")
    spread(stage, 6).hold(1.0)
    fails(stage, "bowl held up", POURED)


def test_the_bowl_is_let_go(tipped):
    stage = spread(tipped(), 6).hold(0.2)
    stage.run(call("open", HOLDER)).hold(1.0)
    fails_with(stage, "invariant broken: bowl not filled on the table")


def test_a_bead_is_put_in_with_the_fingers(stage):
    for opening in (0.03, 0.02, 0.011, 0.0, 0.0):
        hand = stage.state.ee_pose[1]
        stage.put("bead_1", hand[:3], quat=hand[3:]).grip(POURER, opening, 0.1)
    assert stage.view.touched_by_robot("bead_1")
    fails_with(stage, "invariant broken: no bead picked up")


def test_the_full_cup_stands_in_the_bowl(tipped):
    """The beads are within the bowl's wall, but still in the cup."""
    stage = tipped()
    view = stage.view
    middle = compose(view.pose("bowl"), _middle(stage.scene.object("bowl")))[:3]
    stage.run(call("open", POURER), call("move_by", POURER, offset=[-0.1, 0.0, 0.1]))
    floor = middle[2] - 0.025 + 0.01
    stage.put("cup", [middle[0], middle[1], floor + 0.066])
    for k, name in enumerate(BEADS):
        x, y = 0.007 * (2 * (k & 1) - 1), 0.007 * (k & 2) - 0.007
        stage.put(name, middle + np.array([x, y, 0.0]) + [0, 0, -0.0045 + 0.0115 * (k >> 2)])
    stage.hold(0.8)
    assert np.linalg.norm((stage.view.position("cup") - middle)[:2]) < 0.04
    fails(stage, "most beads in the bowl")
