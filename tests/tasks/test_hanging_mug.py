"""What looks like a mug on its peg and is not, each with its twin that is."""

from __future__ import annotations

import numpy as np
import pytest
from staging import Stage, call, fails, succeeds

from bench_tasks.tasks.hanging_mug import MIDDLE_M
from bench_tasks.view import compose

PASSED = "mug set down in the middle before"


@pytest.fixture(scope="module")
def begun(world):
    """Nothing done yet."""
    return Stage(world, "hanging_mug").branch()


@pytest.fixture(scope="module")
def passed(world):
    """The first arm has set the mug down in the middle and is home."""
    stage = Stage(world, "hanging_mug")
    stage.run(*stage.task.expert(stage.view, 0))
    assert stage.verdict.stages[PASSED.removesuffix(" before")]
    return stage.branch()


@pytest.fixture(scope="module")
def taken(passed):
    """The second arm has the mug in the air, before the tip of the peg."""
    stage = passed()
    stage.run(call("grasp", hanger(stage), object="mug"))
    steps = stage.task.expert(stage.view, 2)
    return stage.run(steps[0]).branch()


@pytest.fixture(scope="module")
def on_peg(taken):
    """The mug over the peg, still in the hand."""
    stage = taken()
    steps = stage.task.expert(stage.view, 2)
    return stage.run(*steps[1:3]).branch()


@pytest.fixture(scope="module")
def hung(on_peg):
    """Pose (7,) in which the mug comes to hang."""
    stage = on_peg()
    arm = hanger(stage)
    stage.run(call("open", arm), call("move_by", arm, offset=[0, 0, 0.1]), call("home", arm))
    stage.hold(3.0)
    succeeds(stage)
    return stage.view.pose("mug").copy()


def hanger(stage: Stage) -> str:
    return stage.scene.params["hanger"]


def had(stage: Stage) -> Stage:
    """Both arms have done their part, but the mug is back in the middle and free."""
    return stage.run(call("home", hanger(stage))).put("mug", [*MIDDLE_M, 0.0425]).hold(0.1)


def let_go(stage: Stage) -> Stage:
    arm = hanger(stage)
    stage.run(call("open", arm), call("move_by", arm, offset=[0, 0, 0.1]), call("home", arm))
    return stage.hold(2.5)


def test_hung_as_the_expert_does(on_peg):
    succeeds(let_go(on_peg()))


def test_hung_by_nobody(begun, hung):
    stage = begun().put("mug", hung[:3], quat=hung[3:]).hold(1.5)
    assert stage.unmet() == []
    fails(stage, PASSED)


def test_not_set_down_by_the_first_arm(begun, on_peg):
    stage = begun().put("mug", [*MIDDLE_M, 0.0425]).hold(0.2)
    stage.run(call("grasp", hanger(stage), object="mug"))
    stage.run(*stage.task.expert(stage.view, 1)).hold(2.5)
    assert stage.unmet() == []
    fails(stage, PASSED)


def test_set_down_but_not_taken_by_the_second(passed, hung):
    stage = passed().put("mug", hung[:3], quat=hung[3:]).hold(1.5)
    assert stage.unmet() == []
    fails(stage, f"mug carried by the {hanger(stage)} arm before")


def test_still_in_the_hand(on_peg):
    stage = on_peg().hold(1.0)
    assert "let go" in stage.unmet()
    fails(stage, "let go")


def test_let_go_before_the_peg(taken):
    fails(let_go(taken()), "peg through the handle", "hanging free")


@pytest.mark.parametrize(("along", "good"), [(0.08, True), (0.02, False)])
def test_how_far_onto_the_peg(taken, along, good):
    stage = taken()
    move, down = stage.task.expert(stage.view, 2)[1:3]
    offset = np.array(move[0].args["offset"])
    offset *= along / np.linalg.norm(offset)
    stage.run(call("move_by", hanger(stage), offset=offset), down)
    let_go(stage)
    succeeds(stage) if good else fails(stage, "peg through the handle")


def on_rack(stage: Stage, local) -> np.ndarray:
    """A pose (7,) in the rack's frame, in the world."""
    return compose(stage.view.pose("rack"), np.asarray(local, dtype=float))


def post_y(stage: Stage) -> float:
    """The post's y in the rack's frame."""
    return -(stage.scene.object("rack").half_size_m[1] - 0.05)


def test_over_the_top_of_the_post(taken):
    stage = had(taken())
    # Upside down, the cup over the post: its axis is 21 mm off the mug's middle.
    pose = on_rack(stage, [0.021, post_y(stage), 0.09, 0.0, 1.0, 0.0, 0.0])
    stage.put("mug", pose[:3], quat=pose[3:]).hold(2.0)
    assert stage.view.touching("mug", "rack")
    assert not stage.view.touching("mug", "table")
    fails(stage, "peg through the handle")


def test_standing_on_the_foot(taken):
    stage = had(taken())
    pose = on_rack(stage, [0.021, post_y(stage) + 0.06, -0.11 + 0.012 + 0.0435, 1, 0, 0, 0])
    stage.put("mug", pose[:3], quat=pose[3:]).hold(1.5)
    fails(stage, "peg through the handle")


def test_slips_off_after_a_moment(taken, hung):
    stage = taken()
    onto = stage.task.expert(stage.view, 2)[1]
    back = call("move_by", hanger(stage), offset=[-v for v in onto[0].args["offset"]])
    had(stage.run(onto, back)).put("mug", hung[:3], quat=hung[3:]).hold(0.3)
    assert stage.unmet() == []
    pose = on_rack(stage, [0.0, 0.2, 0.0, 1, 0, 0, 0])
    fails(stage.put("mug", [*pose[:2], 0.0425]).hold(1.0), "peg through the handle")
    succeeds(stage.put("mug", hung[:3], quat=hung[3:]).hold(1.5))


def test_hung_by_nobody_after_both_had_it(taken, hung):
    stage = had(taken()).put("mug", hung[:3], quat=hung[3:]).hold(1.5)
    assert stage.unmet() == []
    fails(stage, f"put on the peg by the {hanger(stage)} arm before")


def test_left_on_the_table(passed):
    fails(passed().hold(1.0), "peg through the handle", "hanging free")
