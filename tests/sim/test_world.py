"""The simulated world: exact to the bit, honest about what it executed, strict about input."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import drill
import numpy as np
import pytest

from bench_tasks.errors import BenchError, UsageError
from bench_tasks.robots.fr3 import HOME_RAD
from bench_tasks.robots.kinematics import dual_arm
from bench_tasks.tasks.base import ObjectSpec
from bench_tasks.tasks.families.layouts import arm_for, upright
from bench_tasks.view import View
from bench_tasks.vocabulary import (
    ARMS,
    CONTROL_PERIOD_NS,
    MAX_OPENING_M,
    ActionChunk,
    SkillCall,
)
from policies.skills import SkillPolicy
from sim.objects import DENSITY_KG_M3
from sim.world import SimWorld

TASK, SEED = "blocks_ranking_rgb", 3
WEIGHT_N = DENSITY_KG_M3 * drill.SIZE_M**3 * 9.81
ARM_COLUMNS = np.r_[0:7, 8:15]


def digest(world, watch=None, task: str = TASK, seed: int = SEED) -> str:
    """Hash of every state of an episode in which a block is grasped and lifted."""
    policy = SkillPolicy()
    scene, state = drill.fresh(world, policy, task, seed)
    name = scene.objects[0].name
    arm = arm_for(View(scene, state), name)
    detail, states = drill.run_plan(
        world, policy, drill.grasp(arm, name), drill.move_by(arm, 0, 0, 0.1), watch=watch
    )
    assert detail["status"] == "done", detail
    text = hashlib.sha256()
    for state in [world.restart(), *states]:
        for value in vars(state).values():
            text.update(np.asarray(value).tobytes())
    return text.hexdigest()


@pytest.fixture(scope="module")
def world():
    return SimWorld()


@pytest.fixture(scope="module")
def reference(world):
    return digest(world)


# -- the same seed gives the same bits -----------------------------------------------------------


def test_same_bits_again_and_after_other_episodes(world, reference):
    assert digest(world) == reference
    digest(world, seed=SEED + 1)
    digest(world, task="stack_blocks_two")
    world.reset("handover_block", 0)
    drill.hold(world, 20)
    assert digest(world) == reference


def test_another_seed_gives_other_bits(world, reference):
    assert digest(world, seed=SEED + 1) != reference


def test_same_bits_in_another_process(reference):
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r});"
        "import test_world; print(test_world.digest(test_world.SimWorld()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout.strip() == reference, done.stderr


def test_same_bits_while_pictures_are_taken(world, reference):
    assert digest(world, watch=lambda _: world.capture(("head", "left_wrist"))) == reference


def test_same_bits_with_the_pretty_visuals(reference):
    assert digest(SimWorld(pretty=True)) == reference


# -- snapshots -----------------------------------------------------------------------------------


def in_motion(world) -> np.ndarray:
    """Bring the world into the middle of a grasp; returns the actions that come next."""
    policy = SkillPolicy()
    scene, state = drill.fresh(world, policy, TASK, SEED)
    arm = arm_for(View(scene, state), "red_block")
    steps = (drill.grasp(arm, "red_block"), drill.move_by(arm, 0, 0, 0.1))
    _, states = drill.run_plan(world, policy, *steps)
    actions = np.array([s.command for s in states[1:]])
    world.restart()
    world.step(ActionChunk(0, actions[:60]))
    return actions[60:]


def test_restore_in_mid_motion_continues_to_the_same_bits(world):
    actions = in_motion(world)
    assert np.abs(world.state.joint_velocity).max() > 0.05, "it must move"
    saved = world.save()
    first = world.step(ActionChunk(60, actions))
    assert world.restore(saved).seq == 60
    world.step(ActionChunk(60, np.tile(first[-1].command, (30, 1))))
    world.restore(saved)
    second = world.step(ActionChunk(60, actions))
    assert all(drill.same(a, b) for a, b in zip(first, second, strict=True))


def test_restore_puts_fixed_objects_back(world):
    world.reset("handover_block", 0)
    saved, before = world.save(), world.state.object_pose
    world.move_objects({"pad": upright(0.5, 0.0, 0.0005, 1.0)})
    moved = drill.hold(world, 1)[-1].object_pose
    assert moved[1] == pytest.approx(upright(0.5, 0.0, 0.0005, 1.0))
    world.restore(saved)
    assert np.array_equal(drill.hold(world, 1)[-1].object_pose[1], before[1])


def test_snapshot_of_another_task_is_refused(world):
    world.reset(TASK, 0)
    saved = world.save()
    world.reset("lift_pot", 0)
    with pytest.raises(BenchError, match="snapshot is of blocks_ranking_rgb, not of lift_pot"):
        world.restore(saved)


def test_restart_puts_everything_back_and_nothing_snaps(world):
    _, start = world.reset(TASK, SEED)
    in_motion(world)
    again = world.restart()
    assert drill.same(start, again) and (again.seq, again.stamp_ns) == (0, 0)
    assert world.data.time == 0.0
    for state in drill.hold(world, 10):
        assert np.abs(state.joint_velocity).max() < 0.01
        assert np.abs(state.joint_position - start.joint_position).max() < 1e-3
        assert np.abs(state.object_twist).max() < 0.01
    assert state.seq == 10 and state.stamp_ns == 10 * CONTROL_PERIOD_NS


def test_reset_itself_is_at_rest_at_home(world):
    _, start = world.reset(TASK, SEED)
    assert start.joint_position == pytest.approx(np.tile(HOME_RAD, 2), abs=2e-3)
    assert np.abs(start.joint_velocity).max() < 0.01
    assert start.gripper_opening == pytest.approx([MAX_OPENING_M] * 2, abs=1e-3)


def test_states_that_were_returned_do_not_change(world):
    _, start = world.reset(TASK, SEED)
    copies = {k: np.array(v) for k, v in vars(start).items()}
    values = np.tile(start.command, (5, 1))
    values[:, 0] += 0.05
    world.step(ActionChunk(0, values))
    assert all(np.array_equal(copies[k], v) for k, v in vars(start).items())


# -- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seq", "values", "message"),
    [
        (7, np.zeros((1, 16)), "stale action: it answers state 7, now is 0"),
        (0, np.zeros((1, 15)), r"must be \(k, 16\), got \(1, 15\)"),
        (0, np.zeros(16), r"must be \(k, 16\), got \(16,\)"),
        (0, np.zeros((0, 16)), r"must be \(k, 16\), got \(0, 16\)"),
        (0, np.full((2, 16), np.nan), "not finite"),
        (0, np.full((2, 16), np.inf), "not finite"),
    ],
)
def test_a_wrong_chunk_is_refused_and_changes_nothing(world, seq, values, message):
    _, start = world.reset(TASK, SEED)
    with pytest.raises(BenchError, match=message) as caught:
        world.step(ActionChunk(seq, values))
    assert "\n" not in str(caught.value)
    assert world.state is start and len(drill.hold(world, 1)) == 1


def test_clipping_shows_in_the_reported_command(world):
    _, start = world.reset(TASK, SEED)
    low, high = world._body._low, world._body._high
    assert low[3] == pytest.approx(-3.0421, abs=1e-3) and high[7] == MAX_OPENING_M
    asked = start.command.copy()
    asked[[6, 7, 15]] = [9.0, -0.1, 0.2]
    (state,) = world.step(ActionChunk(0, asked[None]))
    want = start.command.copy()
    want[[6, 7, 15]] = [high[6], 0.0, MAX_OPENING_M]
    assert np.array_equal(state.command, want)


@pytest.mark.parametrize(
    ("poses", "message"),
    [
        ({"teapot": upright(0.5, 0, 0.02)}, "unknown object 'teapot': choose from .*red_block"),
        ({"red_block": np.array([0.5, 0, 0.02])}, "red_block.*must have 7 numbers, got 3"),
        ({"red_block": np.full(7, np.nan)}, "red_block.*must be finite"),
        ({"red_block": np.array([0.5, 0, 0.02, 2, 0, 0, 0])}, "red_block.*length 2.000, not 1"),
    ],
)
def test_moving_objects_wrongly_is_refused_and_moves_nothing(world, poses, message):
    _, start = world.reset(TASK, SEED)
    with pytest.raises(UsageError, match=message):
        world.move_objects({"green_block": upright(0.5, 0.0, 0.3), **poses})
    (state,) = drill.hold(world, 1)
    assert state.object_pose == pytest.approx(start.object_pose, abs=1e-3)


def test_moved_objects_show_in_the_next_state_and_are_at_rest(world):
    world.reset(TASK, SEED)
    world.move_objects({"red_block": upright(0.5, 0.0, 0.0201)})
    (state,) = drill.hold(world, 1)
    assert state.object_pose[0, :3] == pytest.approx([0.5, 0.0, 0.02], abs=5e-4)
    assert np.abs(state.object_twist[0]).max() < 0.05


def test_nothing_runs_before_the_first_reset():
    idle = SimWorld()
    chunk = ActionChunk(0, np.zeros((1, 16)))
    for call in (
        lambda: idle.step(chunk), lambda: idle.state, lambda: idle.save(), lambda: idle.restart(),
        lambda: idle.capture(("head",)), lambda: idle.move_objects({}),
    ):
        with pytest.raises(BenchError, match="no episode is loaded"):
            call()


def test_unknown_task_and_negative_seed(world):
    with pytest.raises(UsageError, match="unknown task 'juggle': choose from .*lift_pot"):
        world.reset("juggle", 0)
    with pytest.raises(UsageError, match="seed must not be negative, got -1"):
        world.reset(TASK, -1)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (
            drill.blocks("bad", (0.45, 0.0), (0.47, 0.0)),
            "layout of bad seed 0: block. overlaps block. by 20.0 mm",
        ),
        (
            drill.blocks("bad", upright(0.45, 0.0, 0.01)),
            "(table overlaps block0|block0 overlaps table) by 10.0 mm",
        ),
        (drill.blocks("bad", upright(0.45, 0.0, 0.2)), "block0 moved 180 mm before the start"),
        (
            drill.blocks("bad", (0.95, 0.0), reach={"block0": ARMS}),
            "block0 is out of reach of left and right",
        ),
        (
            drill.blocks("bad", (0.40, 0.75), reach={"block0": ("right",)}),
            "block0 is out of reach of right",
        ),
        (drill.Drill("bad", [ObjectSpec("b", "block")], {}), "the layout has no pose for b"),
        (
            drill.Drill("bad", [ObjectSpec("b", "block")], {"b": np.full(7, np.nan)}),
            "b.*must be finite",
        ),
        (
            drill.Drill("bad", [ObjectSpec("b", "teapot")], {"b": upright(0.4, 0, 0.02)}),
            "unknown object kind 'teapot'",
        ),
    ],
)
def test_a_layout_that_cannot_be_used_is_an_error(world, monkeypatch, task, message):
    drill.register(monkeypatch, task)
    world.reset(TASK, SEED)
    with pytest.raises(BenchError, match=message) as caught:
        world.reset("bad", 0)
    assert "\n" not in str(caught.value)
    with pytest.raises(BenchError, match="no episode is loaded"):
        world.step(ActionChunk(0, np.zeros((1, 16))))
    world.reset(TASK, SEED)


def test_things_that_still_move_at_the_start_are_an_error(world, monkeypatch):
    # Standing on its edge, it tips over slowly: it moves little, but it is not at rest.
    quat = [np.cos(0.39), np.sin(0.39), 0, 0]
    task = drill.blocks("tipping", [0.45, 0, 0.02 * 2**0.5, *quat])
    drill.register(monkeypatch, task)
    with pytest.raises(BenchError, match="tipping seed 0: (objects are not at rest|block0 moved)"):
        world.reset("tipping", 0)


# -- physics -------------------------------------------------------------------------------------


@pytest.fixture
def stack(world, monkeypatch):
    """One block on another."""
    task = drill.blocks("stack", (0.45, 0.15), upright(0.45, 0.15, 1.5 * drill.SIZE_M))
    drill.register(monkeypatch, task)
    policy = SkillPolicy()
    scene, _ = drill.fresh(world, policy, "stack")
    return world, policy, scene


def test_contact_pairs_and_forces_are_those_of_a_stack(stack):
    world, _, scene = stack
    state = drill.hold(world, 50)[-1]
    view = View(scene, state)
    assert view.force("block1", "block0") == pytest.approx(WEIGHT_N, rel=0.01)
    assert view.force("block0", "table") == pytest.approx(2 * WEIGHT_N, rel=0.01)
    assert len(state.contact_pair) == 2 and not view.touching("block1", "table")
    assert state.contact_pair.dtype == np.uint16
    assert (np.diff(state.contact_pair.astype(int), axis=1) > 0).all(), "each pair once, ascending"


def test_gripper_holds_a_block_with_force_and_nothing_else_touches_it(stack):
    world, policy, scene = stack
    detail, _ = drill.run_plan(
        world, policy, drill.grasp("left", "block1"), drill.move_by("left", 0, 0, 0.1)
    )
    assert detail["status"] == "done", detail
    states = drill.hold(world, 170)[20:]
    for state in states[::10]:
        view = View(scene, state)
        for finger in ("left_finger1", "left_finger2"):
            assert 5.0 < view.force("block1", finger) < 300.0
        assert not view.touching("block1", "block0") and view.at_rest("block1")
    slip = states[-1].object_pose[1, :3] - states[0].object_pose[1, :3]
    assert np.linalg.norm(slip) < 0.002
    assert states[-1].gripper_opening[0] == pytest.approx(drill.SIZE_M, abs=0.002)


@pytest.mark.parametrize(
    ("kind", "height"), [("can", 0.1), ("bottle", 0.18), ("burger", 0.05)]
)
@pytest.mark.parametrize("yaw", [0.0, 0.2])
def test_what_is_round_stays_where_it_is_let_go_of(world, monkeypatch, kind, height, yaw):
    """It bulges into a finger's pad: no part of the pad may clamp it, so that it is lifted."""
    at = upright(0.45, 0.15, height / 2 + 0.0005, yaw)
    drill.register(monkeypatch, drill.Drill("round", [ObjectSpec("it", kind)], {"it": at}))
    policy = SkillPolicy()
    scene, state = drill.fresh(world, policy, "round")
    open_up = (SkillCall("open", "left", {}),)
    detail, states = drill.run_plan(
        world, policy, drill.grasp("left", "it"), open_up, drill.move_by("left", 0, 0, 0.15)
    )
    assert detail["status"] == "done", detail
    assert any(View(scene, s).grasped("it", "left") for s in states)
    assert max(s.object_pose[0, 2] for s in states) < state.object_pose[0, 2] + 0.002
    assert np.linalg.norm(states[-1].object_pose[0, :2] - states[0].object_pose[0, :2]) < 0.004


def test_twist_is_the_rate_of_the_pose(stack):
    world, policy, scene = stack
    step = (drill.grasp("left", "block1"), drill.move_by("left", 0, -0.1, 0.1))
    _, states = drill.run_plan(world, policy, *step)
    poses = np.array([s.object_pose[1] for s in states])
    twists = np.array([s.object_twist[1] for s in states])
    rate = (poses[2:, :3] - poses[:-2, :3]) / (2 * CONTROL_PERIOD_NS * 1e-9)
    assert np.abs(twists[:, :3]).max() > 0.1, "it must move"
    assert np.abs(rate - twists[1:-1, :3]).mean() < 0.01


def test_joints_follow_their_commands(stack):
    world, policy, _ = stack
    moves = (drill.move_by("left", 0.1, -0.1, -0.1), drill.move_by("left", -0.1, 0.1, 0.1))
    _, states = drill.run_plan(world, policy, *moves)
    lag = np.array([s.command[ARM_COLUMNS] - s.joint_position for s in states])
    speed = np.array([s.joint_velocity for s in states])
    assert np.abs(speed).max() > 0.3, "it must move"
    assert np.abs(lag).max() < 0.12, "the servo lags a tenth of a second behind"
    end = drill.hold(world, 50)[-1]
    assert np.abs(end.command[ARM_COLUMNS] - end.joint_position).max() < 3e-3


def test_end_effector_pose_is_the_forward_kinematics(stack):
    world, policy, _ = stack
    moves = (drill.move_by("left", 0.1, -0.1, -0.1), drill.move_by("right", 0.1, 0.1, -0.05))
    _, states = drill.run_plan(world, policy, *moves)
    for state in states[::7]:
        for k, arm in enumerate(ARMS):
            pose = dual_arm().forward(arm, state.joint_position[7 * k : 7 * k + 7])
            assert state.ee_pose[k, :3] == pytest.approx(pose[:3], abs=1e-6)
            assert abs(state.ee_pose[k, 3:] @ pose[3:]) == pytest.approx(1.0, abs=1e-9)
