"""What looks like a microphone handed over and is not, each with its twin that is."""

from __future__ import annotations

import pytest
from staging import Stage, both, call, fails, succeeds

from bench_tasks.tasks.families.handover import MEETING_M

SEED = 0
ALONE = "in the receiver's hand alone before"


def arms(stage: Stage) -> tuple[str, str]:
    return stage.scene.params["giver"], stage.scene.params["receiver"]


def other_way(stage: Stage) -> list[float]:
    """The meeting pose with the handle towards the giver."""
    w, x, y, z = stage.task.meeting_quat(stage.scene)
    return [*MEETING_M, -z, x, y, w]


@pytest.fixture
def stage(world) -> Stage:
    return Stage(world, "handover_mic", SEED)


@pytest.fixture(scope="module")
def both_hold(world):
    """The giver has the head, the receiver has the handle, in the air."""
    stage = Stage(world, "handover_mic", SEED)
    for turn in range(2):
        stage.run(*stage.task.expert(stage.view, turn))
    assert all(stage.view.grasped("mic", arm) for arm in arms(stage))
    return stage.branch()


@pytest.fixture(scope="module")
def received(both_hold):
    stage = both_hold()
    giver, _ = arms(stage)
    stage.run(call("open", giver), call("move_by", giver, offset=[0.0, 0.0, 0.12]))
    return stage.branch()


def test_the_handover_itself(received):
    succeeds(received().hold(0.6))


def test_the_giver_does_not_let_go(both_hold):
    stage = both_hold().hold(1.0)
    fails(stage, "by nothing else", ALONE)


def test_the_giver_opens_and_rests_its_hand_on_it(both_hold):
    stage = both_hold()
    giver, _ = arms(stage)
    stage.grip(giver, 0.07).run(call("move_by", giver, offset=[0.02, 0.0, 0.0])).hold(1.0)
    assert any(stage.view.touching("mic", f"{giver}_finger{k}") for k in (1, 2))
    fails(stage, "by nothing else")


def test_the_giver_keeps_it(stage):
    giver, _ = arms(stage)
    stage.run(*stage.task.expert(stage.view, 0))
    stage.run(call("move_by", giver, offset=[0.0, 0.0, 0.15])).hold(1.0)
    fails(stage, "in the receiver's hand", "by the handle", ALONE)


def taken_from_the_table(stage: Stage, grasp: str) -> Stage:
    receiver = arms(stage)[1]
    x, y, _ = MEETING_M
    stage.put("mic", [x, y, 0.013], quat=other_way(stage)[3:]).hold(0.1)
    stage.run(call("grasp", receiver, object="mic", grasp=grasp))
    return stage.run(call("move_by", receiver, offset=[0.0, 0.0, 0.15])).hold(1.0)


def test_the_receiver_takes_it_from_the_table(stage):
    taken_from_the_table(stage, "handle")
    assert stage.unmet() == []
    fails(stage, ALONE)


def test_the_receiver_has_the_head(stage):
    taken_from_the_table(stage, "head")
    assert stage.unmet() == ["by the handle"]
    fails(stage, "by the handle", ALONE)


def test_passed_on_head_first(stage):
    giver, receiver = arms(stage)
    x, y, _ = stage.view.position("mic")
    stage.put("mic", [x, y, 0.013], quat=other_way(stage)[3:]).hold(0.1)
    stage.run(
        call("grasp", giver, object="mic", grasp="handle"),
        call("place", giver, object="mic", pose=other_way(stage), release=False),
        call("grasp", receiver, object="mic", grasp="head"),
        call("open", giver), call("move_by", giver, offset=[0.0, 0.0, 0.12]),
    )
    stage.hold(1.0)
    assert stage.verdict.stages["in the receiver's hand alone"]
    fails(stage, "by the handle")


@pytest.mark.parametrize(("drop", "good"), [(0.10, True), (0.17, False)])
def test_held_low(both_hold, drop, good):
    # Both hands go down with it before the giver lets go.
    stage = both_hold()
    giver, receiver = arms(stage)
    stage.run(both("move_by", offset=[0.0, 0.0, -drop]), call("open", giver))
    stage.run(call("move_by", giver, offset=[0.0, 0.0, 0.12])).hold(1.0)
    assert stage.view.grasped("mic", receiver)
    succeeds(stage) if good else fails(stage, "held up")


def test_dropped_after_the_handover(both_hold):
    stage = both_hold()
    giver, receiver = arms(stage)
    stage.run((call("open", giver), call("open", receiver))).hold(1.0)
    fails(stage, "in the receiver's hand", "held up", ALONE)


def test_thrown_over(stage):
    side = 1.0 if arms(stage)[0] == "left" else -1.0
    stage.put("mic", [0.45, 0.2 * side, 0.3]).throw("mic", [0.0, -1.0 * side, 1.0])
    height = 0.0
    for _ in range(40):
        stage.hold(0.02)
        height = max(height, float(stage.view.position("mic")[2]))
        assert "in the receiver's hand" in stage.unmet()
    assert height > 0.3
    fails(stage, ALONE)
