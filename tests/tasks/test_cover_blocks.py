"""What looks like the block uncovered and is not, each with its twin that is."""

from __future__ import annotations

import numpy as np
import pytest
from staging import Stage, call, fails, fails_with, succeeds

LOW = 0.0495
TASK = "cover_blocks"


def parts(stage: Stage) -> tuple[str, str, list[str]]:
    """The block asked for, its cover, the other covers."""
    at, target = stage.scene.params["at"], stage.scene.params["target"]
    place = next(p for p, block in at.items() if block == target)
    return target, f"{place}_cover", [f"{p}_cover" for p in at if p != place]


def arm_for(stage: Stage, name: str) -> str:
    return "left" if stage.view.position(name)[1] >= 0.0 else "right"


def aside(stage: Stage, name: str, x: float = 0.34) -> list[float]:
    return [x, float(stage.view.position(name)[1]), LOW]


def uncover(stage: Stage, name: str, release: bool = True, x: float = 0.34) -> Stage:
    arm = arm_for(stage, name)
    place = call("place", arm, object=name, pose=aside(stage, name, x), release=release)
    return stage.run(call("grasp", arm, object=name), place)


@pytest.fixture
def stage(world) -> Stage:
    return Stage(world, TASK)


@pytest.fixture(scope="module")
def lifted(world):
    """The right cover is in the hand, high above its block."""
    stage = Stage(world, TASK)
    _, cover, _ = parts(stage)
    arm = arm_for(stage, cover)
    stage.run(call("grasp", arm, object=cover), call("move_by", arm, offset=[0.0, 0.0, 0.12]))
    assert stage.verdict.stages["its cover lifted"]
    return stage.branch()


@pytest.mark.parametrize("seed", range(4))
def test_uncovered_and_answered(world, seed):
    stage = Stage(world, TASK, seed)
    succeeds(uncover(stage, parts(stage)[1]).hold(1.0))


def test_answered_and_nothing_moved(stage):
    fails(stage.hold(2.0), "its cover aside", "its cover lifted before")
    assert stage.verdict.progress == pytest.approx(0.5)


@pytest.mark.parametrize("answer", ["left", "middle", "right", "Left", " left", "", "nowhere"])
def test_moved_rightly_after_this_answer(world, answer):
    scene, _ = world.reset(TASK, 0)
    target = scene.params["target"]
    place = next(p for p, block in scene.params["at"].items() if block == target)
    stage = Stage(world, TASK, answer={target: answer})
    uncover(stage, parts(stage)[1]).hold(1.0)
    succeeds(stage) if answer == place else fails_with(stage, "wrong answer: where")


def test_moved_rightly_without_an_answer(world):
    stage = Stage(world, TASK, answer=None)
    fails_with(uncover(stage, parts(stage)[1]).hold(1.0), "unanswered: where")


def test_another_cover_opened_first(stage):
    _, cover, others = parts(stage)
    uncover(stage, others[0])
    uncover(stage, cover).hold(1.0)
    fails_with(stage, "invariant broken: no other cover touched")


def test_another_cover_opened_without_hands(stage):
    _, cover, others = parts(stage)
    x, y, z = stage.view.position(others[0])
    stage.put(others[0], [x, y, z + 0.1]).hold(0.5)
    uncover(stage, cover).hold(1.0)
    assert stage.unmet() == []
    fails_with(stage, "invariant broken: no other cover opened")


@pytest.mark.parametrize(("which", "good"), [("right", True), ("other", False)])
def test_a_fist_tries_a_cover(stage, which, good):
    _, cover, others = parts(stage)
    name = cover if good else others[0]
    arm = arm_for(stage, name)
    x, y, _ = stage.view.position(name)
    for z in (0.2, 0.094):
        stage.run(call("move_to", arm, pose=[x, y, z, 0.0, 1.0, 0.0, 0.0], opening_m=0.0))
    stage.run(call("move_by", arm, offset=[0.0, 0.0, 0.15]), call("home", arm))
    uncover(stage, cover).hold(1.0)
    succeeds(stage) if good else fails_with(stage, "invariant broken: no other cover touched")


def test_cover_lifted_and_still_in_the_hand(lifted):
    fails(lifted().hold(1.0), "its cover aside", "let go")


def test_cover_aside_and_still_in_the_hand(stage):
    _, cover, _ = parts(stage)
    arm = arm_for(stage, cover)
    pose = aside(stage, cover)
    pose[2] -= 0.002
    stage.run(
        call("grasp", arm, object=cover),
        call("place", arm, object=cover, pose=pose, release=False),
    ).hold(1.0)
    assert stage.unmet() == ["let go"]
    fails(stage, "let go")
    succeeds(stage.run(call("open", arm)).hold(1.0))


def test_cover_put_back(lifted):
    stage = lifted()
    target, cover, _ = parts(stage)
    x, y, _ = stage.view.position(target)
    stage.run(call("place", arm_for(stage, cover), object=cover, pose=[x, y, LOW])).hold(1.0)
    fails(stage, "its cover aside")


@pytest.mark.parametrize(("distance", "good"), [(0.075, False), (0.11, True)])
def test_how_far_aside(lifted, distance, good):
    stage = lifted()
    target, cover, _ = parts(stage)
    arm = arm_for(stage, cover)
    x, y, _ = stage.view.position(target)
    stage.run(call("place", arm, object=cover, pose=[x - distance, y, LOW])).hold(1.0)
    succeeds(stage) if good else fails(stage, "its cover aside")


def test_cover_appears_aside_without_being_lifted(stage):
    _, cover, _ = parts(stage)
    stage.put(cover, aside(stage, cover)).hold(1.0)
    assert stage.unmet() == []
    fails(stage, "its cover lifted before")


def test_cover_swept_aside_by_the_hand(stage):
    target, cover, _ = parts(stage)
    arm = arm_for(stage, cover)
    begin = stage.view.position(target).copy()
    stage.run(call("grasp", arm, object=cover))
    stage.run(call("move_by", arm, offset=[-0.12, 0.0, 0.0]), call("open", arm)).hold(1.0)
    assert np.linalg.norm(stage.view.position(target) - begin) > 0.05  # dragged along
    fails(stage, "its cover aside", "the block where it was", "its cover lifted before")


def test_dragged_along_and_then_uncovered(stage):
    _, cover, _ = parts(stage)
    arm = arm_for(stage, cover)
    stage.run(call("grasp", arm, object=cover))
    stage.run(call("move_by", arm, offset=[0.06, 0.0, 0.0]), call("open", arm))
    uncover(stage, cover).hold(1.0)
    fails(stage, "the block where it was")


@pytest.mark.parametrize(("shift", "good"), [(0.02, True), (0.05, False)])
def test_block_moved_after_it_was_uncovered(stage, shift, good):
    target, cover, _ = parts(stage)
    arm = arm_for(stage, cover)
    place = call("place", arm, object=cover, pose=aside(stage, cover), release=False)
    stage.run(call("grasp", arm, object=cover), place)
    x, y, z = stage.view.position(target)
    stage.put(target, [x + shift, y, z]).run(call("open", arm)).hold(1.0)
    succeeds(stage) if good else fails(stage, "the block where it was")


def test_cover_on_top_of_its_own_block(lifted):
    # Not over it but on it, upside down: the block can be seen from the side.
    stage = lifted()
    target, cover, _ = parts(stage)
    stage.run(call("open", arm_for(stage, cover)), call("home", arm_for(stage, cover)))
    x, y, _ = stage.view.position(target)
    stage.put(cover, [x, y, 0.04 + LOW], quat=[0.0, 1.0, 0.0, 0.0]).hold(2.0)
    fails(stage, "its cover aside")


def test_cover_on_top_of_another(lifted):
    stage = lifted()
    _, cover, others = parts(stage)
    arm = arm_for(stage, cover)
    stage.run(call("open", arm), call("home", arm))
    x, y, z = stage.view.position(others[0])
    stage.put(cover, [x, y, z + 0.035 + 0.05]).hold(0.3)
    assert stage.view.touching(cover, others[0])
    stage.hold(1.0)
    fails(stage, "its cover aside")


@pytest.mark.parametrize(("upright", "good"), [(True, True), (False, False)])
def test_cover_lies_on_its_side(lifted, upright, good):
    stage = lifted()
    _, cover, _ = parts(stage)
    arm = arm_for(stage, cover)
    x, y, _ = aside(stage, cover)
    stage.run(call("open", arm), call("home", arm))
    s = np.sqrt(0.5)
    quat = [1.0, 0.0, 0.0, 0.0] if upright else [s, 0.0, s, 0.0]
    stage.put(cover, [x, y, LOW if upright else 0.036], quat=quat).hold(2.0)
    succeeds(stage) if good else fails(stage, "its cover aside")


@pytest.mark.parametrize(("shift", "good"), [(0.01, True), (0.12, False)])
def test_another_cover_shifted(stage, shift, good):
    _, cover, others = parts(stage)
    x, y, z = stage.view.position(others[0])
    stage.put(others[0], [x - shift, y, z]).hold(0.1)
    uncover(stage, cover).hold(1.0)
    succeeds(stage) if good else fails(stage, "the others covered")


def test_all_uncovered_at_once(stage):
    _, cover, others = parts(stage)
    uncover(stage, cover, release=False)
    for other in others:
        x, y, z = stage.view.position(other)
        stage.put(other, [x + 0.12, y, z])
    stage.run(call("open", arm_for(stage, cover))).hold(1.0)
    fails(stage, "the others covered")
