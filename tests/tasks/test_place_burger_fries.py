"""What looks like a meal served and is not, with its twins; skill calls and raw actions alike."""

from __future__ import annotations

import numpy as np
import pytest
from staging import Stage, call, fails, fails_with, succeeds

from bench_tasks.view import compose
from bench_tasks.vocabulary import ARMS

THINGS = ("burger", "fries")
FLOOR = 0.008


@pytest.fixture(scope="module", params=["place_burger_fries", "place_burger_fries_ee"])
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
    for name in THINGS:
        stage.lift_once(arms(stage)[name], name)
    return stage.hold(0.2).branch()


def arms(stage: Stage) -> dict[str, str]:
    return stage.scene.params["arms"]


def half(stage: Stage, name: str) -> tuple[float, float, float]:
    return stage.scene.object(name).half_size_m


def on_tray(stage: Stage, y: float, z: float, x: float = 0.0) -> np.ndarray:
    """A point of the tray's floor, `z` above it."""
    local = [x, y, FLOOR - half(stage, "tray")[2] + z, 1, 0, 0, 0]
    return compose(stage.view.pose("tray"), np.array(local))[:3]


def serve(stage: Stage, only=THINGS) -> Stage:
    for name, y in zip(THINGS, (0.07, -0.07), strict=True):
        if name in only:
            stage.put(name, on_tray(stage, y, half(stage, name)[2]))
    return stage


def test_the_meal_itself(carried):
    succeeds(serve(carried()).hold(1.0))


def test_served_by_the_expert(begun):
    succeeds(begun().expert())


def test_put_there_by_nobody(begun):
    stage = serve(begun()).hold(1.0)
    assert stage.unmet() == []
    fails(stage, *(f"{n} carried by the {arms(stage)[n]} arm before" for n in THINGS))


@pytest.mark.parametrize("name", THINGS)
def test_only_one_of_them(carried, name):
    other = THINGS[1 - THINGS.index(name)]
    fails(serve(carried(), (name,)).hold(1.0), f"{other} on the tray")


def test_one_arm_serves_both(world, task):
    stage = Stage(world, task)
    arm = arms(stage)["burger"]
    stage.lift_once(arm, "burger")
    x, y = stage.view.position("burger")[:2]
    stage.put("burger", on_tray(stage, 0.07, half(stage, "burger")[2]))
    stage.put("fries", [x, y, half(stage, "fries")[2]]).hold(0.1).lift_once(arm, "fries")
    serve(stage).hold(1.0)
    assert stage.unmet() == []
    fails_with(stage, f"invariant broken: fries not taken by the {arm} arm")


@pytest.mark.parametrize(("name", "check"), [("burger", "burger upright"), ("fries", None)])
def test_upside_down(carried, name, check):
    stage = serve(carried()).hold(0.02)
    quat = [0.0, 1.0, 0.0, 0.0] if check else [1.0, 0.0, 0.0, 0.0]
    stage.put(name, stage.view.position(name) + [0, 0, 0.001], quat=quat).hold(1.0)
    fails(stage, check) if check else succeeds(stage)


def test_fries_spilt_on_the_tray(carried):
    stage, s = serve(carried()), np.sqrt(0.5)
    at = on_tray(stage, -0.07, half(stage, "fries")[0] + 0.001)
    fails(stage.put("fries", at, quat=[s, 0.0, s, 0.0]).hold(1.0), "fries upright")


def test_fries_on_top_of_the_burger(carried):
    stage = serve(carried()).hold(0.02)
    at = stage.view.position("burger") + [0, 0, half(stage, "burger")[2] + half(stage, "fries")[2]]
    stage.put("fries", at).hold(1.0)
    assert stage.view.supported_by("fries", "burger")
    fails(stage, "fries on the tray")


@pytest.mark.parametrize(("y", "good"), [(0.12, True), (0.22, False)])
def test_beside_the_tray(carried, y, good):
    stage = serve(carried())
    at = on_tray(stage, y, half(stage, "burger")[2])
    at[2] -= 0.0 if good else FLOOR
    stage.put("burger", at).hold(1.0)
    succeeds(stage) if good else fails(stage, "burger on the tray")


@pytest.mark.parametrize(("shift", "good"), [(0.03, True), (0.09, False)])
def test_the_tray_is_brought_to_the_food(carried, shift, good):
    stage = carried()
    stage.put("tray", stage.view.position("tray") + [0.0, shift, 0.0]).hold(0.02)
    serve(stage).hold(1.0)
    succeeds(stage) if good else fails(stage, "tray in its place")


@pytest.mark.parametrize(("height", "unmet"), [(0.0, "let go"), (0.05, "burger on the tray")])
def test_still_in_the_hand(carried, height, unmet):
    stage = serve(carried(), ("fries",))
    arm = arms(stage)["burger"]
    y = 0.07 if arm == "left" else -0.07
    stage.put("fries", on_tray(stage, -y, half(stage, "fries")[2])).hold(0.1)
    stage.run(call("grasp", arm, object="burger"))
    pose = on_tray(stage, y, half(stage, "burger")[2] + height - 0.002)
    stage.run(call("place", arm, object="burger", pose=pose, release=False)).hold(1.0)
    assert unmet in stage.unmet()
    fails(stage, unmet, "let go")
    succeeds(stage.run(call("open", arm), call("home", arm)).hold(1.0))


@pytest.mark.parametrize(("height", "good"), [(0.002, True), (0.25, False)])
def test_flying_over(carried, height, good):
    stage = serve(carried())
    stage.put("burger", on_tray(stage, 0.07, half(stage, "burger")[2] + height))
    if not good:
        stage.throw("burger", [1.5, 0.0, 1.0])
    stage.hold(1.5)
    succeeds(stage) if good else fails(stage, "burger on the tray")


def test_the_side_of_each_thing_is_drawn(world, task):
    drawn = {tuple(arms(Stage(world, task, seed)).items()) for seed in range(6)}
    assert len(drawn) == len(ARMS)


def test_raw_actions_take_both_at_once_and_put_down_in_turn(world):
    stage = Stage(world, "place_burger_fries_ee")
    steps = stage.task.expert(stage.view, 0)
    opening = np.array([[c.args["opening_m"] for c in step] for step in steps])
    assert (opening[2:4] == 0.0).all(), "both close in the same step"
    first = int(np.flatnonzero(opening[4:].any(axis=1))[0]) + 4
    assert np.count_nonzero(opening[first]) == 1, "one lets go while the other holds on"
    assert np.count_nonzero(opening[-1]) == 2
    for k, name in enumerate(sorted(THINGS, key=lambda n: arms(stage)[n])):
        at = np.array(steps[1][k].args["pose"][:2])
        assert np.linalg.norm(at - stage.view.position(name)[:2]) < 0.01
