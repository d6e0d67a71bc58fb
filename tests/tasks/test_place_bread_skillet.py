"""What looks like bread in a fetched skillet and is not; skill calls and raw actions alike."""

from __future__ import annotations

import numpy as np
import pytest
from staging import Stage, call, fails, fails_with, succeeds

from bench_tasks.robots.fr3 import HOME_RAD
from bench_tasks.robots.kinematics import dual_arm
from bench_tasks.view import compose

MIDDLE = np.array([0.47, 0.0])
FETCHED = "skillet carried by its handle before"


@pytest.fixture(scope="module", params=["place_bread_skillet", "place_bread_skillet_ee"])
def task(request):
    return request.param


@pytest.fixture(scope="module")
def begun(world, task):
    """Nothing done yet."""
    return Stage(world, task).branch()


@pytest.fixture(scope="module")
def carried(world, task):
    """Each arm has had its thing in the air and let it fall; both are home."""
    stage = Stage(world, task)
    stage.lift_once(fetcher(stage), "skillet").lift_once(filler(stage), "bread")
    return stage.hold(0.2).branch()


def fetcher(stage: Stage) -> str:
    return stage.scene.params["fetcher"]


def filler(stage: Stage) -> str:
    return stage.scene.params["filler"]


def skillet_at(stage: Stage, point) -> np.ndarray:
    """Pose (7,) of the skillet on the table with its pan at a point, its handle to the robot."""
    half = stage.scene.object("skillet").half_size_m
    pan = np.array([*point, half[2], 0.0, 0.0, 0.0, 1.0])
    return compose(pan, np.array([half[0] - half[1], 0, 0, 1, 0, 0, 0]))


def bread_height(stage: Stage) -> float:
    return 0.0055 + stage.scene.object("bread").half_size_m[2]


def cook(stage: Stage, point=MIDDLE, shift=(0.0, 0.0), up: float = 0.0) -> Stage:
    """Skillet with its pan at `point`, the bread `shift` (x, y) off the pan's centre."""
    pose = skillet_at(stage, point)
    stage.put("skillet", pose[:3], quat=pose[3:])
    return stage.put("bread", [*(np.asarray(point) + shift), bread_height(stage) + up])


def test_the_bread_in_the_skillet(carried):
    succeeds(cook(carried()).hold(1.0))


def test_done_by_the_expert(begun):
    succeeds(begun().expert())


def test_put_there_by_nobody(begun):
    stage = cook(begun()).hold(1.0)
    assert stage.unmet() == []
    fails(stage, FETCHED, f"bread carried by the {filler(stage)} arm before")


def test_bread_brought_but_the_skillet_only_appeared(begun):
    stage = begun()
    cook(stage.lift_once(filler(stage), "bread")).hold(1.0)
    assert stage.unmet() == []
    fails(stage, FETCHED)


def test_one_arm_does_both(carried):
    stage = carried()
    arm = fetcher(stage)
    cook(stage).put("bread", [0.47, 0.3 if arm == "left" else -0.3, bread_height(stage)]).hold(0.1)
    stage.lift_once(arm, "bread")
    cook(stage).hold(1.0)
    assert stage.unmet() == []
    fails_with(stage, f"invariant broken: bread not taken by the {arm} arm")


@pytest.mark.parametrize(("point", "good"), [((0.50, 0.03), True), ((0.47, 0.12), False)])
def test_away_from_the_middle(carried, point, good):
    stage = cook(carried(), point).hold(1.0)
    succeeds(stage) if good else fails(stage, "skillet in the middle")


def test_the_bread_in_the_skillet_where_it_stood(carried):
    stage = carried()
    away = 0.42 if fetcher(stage) == "left" else -0.42
    fails(cook(stage, (0.5, away)).hold(1.0), "skillet in the middle")


@pytest.mark.parametrize(("shift", "good"), [((0.02, 0.0), True), ((0.11, 0.0), False)])
def test_bread_beside_the_pan(carried, shift, good):
    stage = cook(carried(), shift=shift)
    if not good:
        stage.put("bread", [*(MIDDLE + shift), bread_height(stage) - 0.005], yaw=np.pi / 2)
    stage.hold(1.0)
    succeeds(stage) if good else fails(stage, "bread in the pan")


def test_bread_on_the_handle(carried):
    stage = cook(carried())
    top = 2 * stage.scene.object("skillet").half_size_m[2] + bread_height(stage) - 0.005
    stage.put("bread", [*(MIDDLE - [0.12, 0.0]), top], yaw=np.pi / 2).hold(1.0)
    assert stage.view.supported_by("bread", "skillet")
    fails(stage, "bread in the pan")


def test_bread_under_the_skillet(carried):
    stage = cook(carried())
    stage.put("bread", [*MIDDLE, bread_height(stage) - 0.005])
    pose = skillet_at(stage, MIDDLE)
    stage.put("skillet", pose[:3] + [0.0, 0.0, 0.046], quat=pose[3:]).hold(1.0)
    fails(stage, "bread in the pan", "skillet level on the table")


def test_skillet_upside_down_with_the_bread_on_it(carried):
    stage = carried()
    half = stage.scene.object("skillet").half_size_m
    flipped = compose(skillet_at(stage, MIDDLE), np.array([0, 0, 0, 0.0, 1.0, 0, 0]))
    stage.put("skillet", flipped[:3] + [0.0, 0.0, 0.001], quat=flipped[3:])
    stage.put("bread", [*MIDDLE, 2 * half[2] + bread_height(stage)]).hold(1.0)
    fails(stage, "skillet level on the table", "bread in the pan")


@pytest.mark.parametrize(("dz", "unmet"), [(-0.001, "let go"), (0.06, "bread in the pan")])
def test_bread_still_in_the_hand(carried, dz, unmet):
    stage = cook(carried())
    arm = filler(stage)
    stage.put("bread", [0.45, -0.25 if arm == "right" else 0.25, bread_height(stage)]).hold(0.2)
    stage.run(call("grasp", arm, object="bread"))
    pose = [*MIDDLE, bread_height(stage) + dz]
    stage.run(call("place", arm, object="bread", pose=pose, release=False)).hold(1.0)
    fails(stage, unmet, "let go")
    succeeds(stage.run(call("open", arm), call("home", arm)).hold(1.0))


def test_the_skillet_stands_where_the_filler_does_not_reach(world, task):
    for seed in range(8):
        stage = Stage(world, task, seed)
        for grasp in stage.scene.object("skillet").grasps:
            hand = compose(stage.view.pose("skillet"), np.array(grasp.pose))
            assert dual_arm().inverse(filler(stage), hand, HOME_RAD) is None, seed
