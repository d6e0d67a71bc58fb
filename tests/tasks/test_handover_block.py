"""What looks like a bar handed over and is not, each with its twin that is."""

from __future__ import annotations

import numpy as np
import pytest
from staging import Stage, call, fails, succeeds

SEED = 0
FLAT = 0.015
ALONG_Y = [1.0, 0.0, 0.0, 0.0]
MEETING = [0.42, 0.0, 0.25, *ALONG_Y]


@pytest.fixture
def stage(world) -> Stage:
    return Stage(world, "handover_block", SEED)


@pytest.fixture(scope="module")
def received(world):
    """The receiver alone has the bar and has been over the pad with it; it is in the air."""
    stage = Stage(world, "handover_block", SEED)
    giver, receiver = arms(stage)
    for turn in range(2):
        stage.run(*stage.task.expert(stage.view, turn))
    stage.run(call("open", giver), call("move_by", giver, offset=[0.0, 0.0, 0.12]))
    stage.run(call("home", giver))
    for pose in ([*pad(stage, z=0.15), *ALONG_Y], MEETING):
        stage.run(place(stage, pose, release=False))
    assert stage.view.grasped("bar", receiver)
    return stage.branch()


def arms(stage: Stage) -> tuple[str, str]:
    return stage.scene.params["giver"], stage.scene.params["receiver"]


def pad(stage: Stage, dx=0.0, dy=0.0, z=FLAT) -> list[float]:
    x, y, _ = stage.view.position("pad")
    return [x + dx, y + dy, z]


def place(stage: Stage, pose, release=True):
    pose = pose if len(pose) == 7 else [*pose, *ALONG_Y]
    return call("place", arms(stage)[1], object="bar", pose=pose, release=release)


def test_the_handover_itself(received):
    stage = received()
    succeeds(stage.run(place(stage, pad(stage))).hold(1.0))


def test_put_on_the_pad_by_nobody(stage):
    stage.put("bar", pad(stage)).hold(1.0)
    assert stage.unmet() == []
    fails(stage, "in the receiver's hand alone before")


@pytest.mark.parametrize("seed", [1, 3, 4])
def test_put_on_the_pad_by_nobody_whoever_gives(world, seed):
    stage = Stage(world, "handover_block", seed)
    fails(stage.put("bar", pad(stage)).hold(1.0), "in the receiver's hand alone before")


def test_the_receiver_takes_it_from_the_table(stage):
    _, receiver = arms(stage)
    stage.put("bar", [0.45, 0.0, FLAT]).hold(0.1)
    stage.run(call("grasp", receiver, object="bar", grasp=f"{receiver}_end"))
    stage.run(place(stage, pad(stage))).hold(1.0)
    assert stage.unmet() == []
    fails(stage, "in the receiver's hand alone before")


def test_passed_on_by_way_of_the_table(stage):
    giver, receiver = arms(stage)
    on_table = [0.45, 0.0, FLAT, *ALONG_Y]
    stage.run(
        call("grasp", giver, object="bar", grasp=f"{giver}_end"),
        call("place", giver, object="bar", pose=on_table),
        call("home", giver),
        call("grasp", receiver, object="bar", grasp=f"{receiver}_end"),
        place(stage, pad(stage)),
    )
    stage.hold(1.0)
    assert stage.unmet() == []
    assert stage.verdict.stages["taken by the giver"]
    fails(stage, "in the receiver's hand alone before")


def test_both_hands_on_the_bar_on_the_table(stage):
    giver, receiver = arms(stage)
    stage.run(
        call("grasp", giver, object="bar", grasp=f"{giver}_end"),
        call("place", giver, object="bar", pose=[0.45, 0.0, FLAT, *ALONG_Y], release=False),
        call("grasp", receiver, object="bar", grasp=f"{receiver}_end"),
    )
    assert all(stage.view.grasped("bar", arm) for arm in arms(stage))
    stage.run(call("open", giver), call("home", giver), place(stage, pad(stage))).hold(1.0)
    assert stage.unmet() == []
    fails(stage, "in the receiver's hand alone before")


def test_the_receiver_lets_go_and_the_giver_keeps_it(stage):
    giver, receiver = arms(stage)
    for turn in range(2):
        stage.run(*stage.task.expert(stage.view, turn))
    stage.run(call("open", receiver), call("home", receiver))
    assert stage.verdict.stages["in both hands in the air"]
    assert stage.view.grasped("bar", giver)
    # As if the giver's arm were long enough.
    stage.run(call("open", giver)).put("bar", pad(stage)).hold(1.0)
    assert stage.unmet() == []
    fails(stage, "in the receiver's hand alone before")


def test_the_receiver_gives_to_the_giver_and_back(stage):
    # The bar was in the receiver's hand alone first, then in both: the wrong way round.
    giver, receiver = arms(stage)
    stage.put("bar", [0.45, 0.0, FLAT]).hold(0.1)
    stage.run(
        call("grasp", receiver, object="bar", grasp=f"{receiver}_end"),
        call("place", receiver, object="bar", pose=MEETING, release=False),
        call("grasp", giver, object="bar", grasp=f"{giver}_end"),
    )
    assert all(stage.view.grasped("bar", arm) for arm in arms(stage))
    stage.run(call("open", receiver), call("home", receiver), call("open", giver))
    stage.put("bar", pad(stage)).hold(1.0)
    assert stage.unmet() == []
    fails(stage, "in the receiver's hand alone before")


def test_received_and_put_on_the_pad_by_nobody(stage):
    giver, receiver = arms(stage)
    for turn in range(2):
        stage.run(*stage.task.expert(stage.view, turn))
    stage.run(call("open", giver), call("home", giver)).hold(0.1)
    stage.run(call("open", receiver), call("home", receiver)).put("bar", pad(stage)).hold(1.0)
    assert stage.unmet() == []
    fails(stage, "brought to the pad by the receiver before")


@pytest.mark.parametrize(("dx", "dy", "good"), [
    (0.03, 0.03, True), (0.06, 0.0, False), (0.0, 0.12, False), (-0.09, 0.0, False),
])
def test_beside_the_pad(received, dx, dy, good):
    stage = received()
    stage.run(call("open", arms(stage)[1])).put("bar", pad(stage, dx, dy)).hold(1.0)
    succeeds(stage) if good else fails(stage, "on the pad")


def test_on_the_pad_and_still_held(received):
    stage = received()
    stage.run(place(stage, pad(stage, z=FLAT - 0.002), release=False)).hold(1.0)
    assert stage.unmet() == ["let go"]
    fails(stage, "let go")
    succeeds(stage.run(call("open", arms(stage)[1])).hold(1.0))


def test_held_above_the_pad(received):
    stage = received()
    stage.run(place(stage, pad(stage, z=FLAT + 0.05), release=False)).hold(1.0)
    fails(stage, "on the table", "lying flat", "let go")


def test_dropped_onto_the_pad_and_still_bouncing(received):
    stage = received()
    stage.run(call("open", arms(stage)[1]), call("home", arms(stage)[1]))
    stage.put("bar", pad(stage, z=0.3)).throw("bar", angular=[2.0, 0.0, 0.0])
    falling = []
    for _ in range(20):
        stage.hold(0.02)
        falling.append(stage.verdict.success)
    assert not any(falling)
    fails(stage)
    stage.put("bar", pad(stage))
    succeeds(stage.hold(1.0))


@pytest.mark.parametrize(("turn", "axis", "good"), [
    (np.pi / 2, 1, True),  # on another of its long sides: looks the same
    (np.pi, 0, True),
    (np.pi / 2, 0, False),  # on its end
])
def test_how_it_lies(received, turn, axis, good):
    stage = received()
    stage.run(call("open", arms(stage)[1]), call("home", arms(stage)[1]))
    quat = np.array([np.cos(turn / 2), 0.0, 0.0, 0.0])
    quat[1 + axis] = np.sin(turn / 2)
    stage.put("bar", pad(stage, z=FLAT if good else 0.1), quat=quat).hold(1.0)
    succeeds(stage) if good else fails(stage, "lying flat")


@pytest.mark.parametrize(("height", "good"), [(0.045, True), (0.027, False)])
def test_an_arm_still_rests_on_it(received, height, good):
    stage = received()
    _, receiver = arms(stage)
    stage.run(call("open", receiver), call("home", receiver))
    x, y, _ = pad(stage)
    near, end = ([x, y, z, 0.0, 1.0, 0.0, 0.0] for z in (0.06, height))
    stage.run(call("move_to", receiver, pose=near, opening_m=0.0))
    stage.put("bar", pad(stage)).run(call("move_to", receiver, pose=end)).hold(1.0)
    succeeds(stage) if good else fails(stage, "let go")


@pytest.mark.parametrize(("duration_s", "good"), [(0.4, False), (0.6, True)])
def test_there_only_for_a_moment(received, duration_s, good):
    stage = received()
    stage.run(call("open", arms(stage)[1]), call("home", arms(stage)[1]))
    stage.put("bar", pad(stage)).hold(duration_s).throw("bar", [1.6, 0.0, 0.0]).hold(1.0)
    succeeds(stage) if good else fails(stage, "on the pad")
