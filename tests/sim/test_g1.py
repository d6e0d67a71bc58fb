"""The G1 in the simulation: it stands, works with its arms, falls when pushed, is repeatable."""

from __future__ import annotations

import numpy as np
import pytest

from bench_tasks import tasks
from bench_tasks.bags.cdr import encode_state
from bench_tasks.errors import BenchError, UsageError
from bench_tasks.robots import embodiments, g1
from bench_tasks.robots.balance import Balance
from bench_tasks.tasks.families.humanoid import upright
from bench_tasks.verdicts.monitor import Monitor
from bench_tasks.view import View
from bench_tasks.vocabulary import ActionChunk, Event
from sim.world import SimWorld

TASK = "reach_both_hands"
ROBOT = embodiments.get("g1")


@pytest.fixture(scope="module")
def world():
    return SimWorld(width=64, height=48)


@pytest.fixture
def scene(world):
    return world.reset(TASK, 0)[0]


def hold(world, periods: int, action=None):
    state = world.state
    row = state.command if action is None else action
    return world.step(ActionChunk(state.seq, np.tile(row, (periods, 1))))


def test_what_we_say_of_the_robot_is_what_its_model_and_its_policies_say(world, scene):
    model = world.model
    assert scene.joint_names == g1.JOINT_NAMES
    for k, name in enumerate(g1.JOINT_NAMES):
        assert model.joint(name).range == pytest.approx(g1.LIMITS_RAD[k], abs=1e-9), name
        assert model.dof_armature[model.joint(name).dofadr[0]] == g1.ARMATURE[k]
    for name in ("ppo", "fastsac"):
        kp, kd = Balance(name).gains
        assert kp == pytest.approx(g1.KP, rel=1e-5)
        assert kd == pytest.approx(g1.KD, rel=1e-5)
    with pytest.raises(UsageError, match="fastsac, ppo"):
        Balance("none")


def test_it_stands_for_three_seconds(world, scene):
    start = View(scene, world.state).position("pelvis").copy()
    states = hold(world, 150)
    assert all(upright(View(scene, s)) for s in states)
    moved = View(scene, states[-1]).position("pelvis") - start
    assert np.linalg.norm(moved) < 0.03
    feet = {"left_foot", "right_foot"}
    touching = {scene.entities[i] for i in states[-1].contact_pair.ravel()} - {"floor"}
    assert touching == feet
    weight = states[-1].contact_force.sum()
    assert weight == pytest.approx(33.34 * 9.81, rel=0.1)


def test_arms_and_waist_go_where_they_are_told_and_it_stays_up(world, scene):
    target = ROBOT.home.copy()
    arm = [-0.4, 0.1, 0.0, 0.4, 0.2, 0.2, 0.2]
    target[ROBOT.joint_columns] += np.array([0.3, 0.0, 0.3, *arm, *arm])
    for share in np.linspace(0.02, 1.0, 50):
        hold(world, 2, ROBOT.home + share * (target - ROBOT.home))
    states = hold(world, 50, target)
    assert upright(View(scene, states[-1]))
    assert states[-1].measured == pytest.approx(target, abs=0.03)
    assert states[-1].command == pytest.approx(target)
    assert states[-1].joint_velocity[g1.LEGS :] == pytest.approx(np.zeros(17), abs=0.05)


def test_a_command_is_clipped_to_the_limits(world, scene):
    wild = ROBOT.home + 10.0 * (np.arange(19) == 2)
    assert hold(world, 1, wild)[-1].command[2] == 0.52
    with pytest.raises(BenchError, match=r"\(k, 19\), got \(1, 16\)"):
        world.step(ActionChunk(world.state.seq, np.zeros((1, 16))))


def test_a_fall_is_detected_and_ends_the_episode(world, scene):
    monitor = Monitor(tasks.get(TASK), scene)
    monitor.on_state(world.state)
    monitor.on_event(Event("act", 0, 0, {}))
    row = world.model.joint("pelvis_free").dofadr[0]
    world.data.qvel[row : row + 2] = (-4.0, 3.0)
    while not monitor.finished and world.state.seq < 250:
        for state in hold(world, 10):
            monitor.on_state(state)
    verdict = monitor.verdict()
    assert verdict.cause == "invariant broken: on its feet"
    assert not verdict.success


def test_a_snapshot_goes_on_to_the_same_bits(world, scene):
    hold(world, 7)
    saved = world.save()
    first = [encode_state(s) for s in hold(world, 20, ROBOT.home + 0.01)]
    world.restore(saved)
    assert [encode_state(s) for s in hold(world, 20, ROBOT.home + 0.01)] == first


def test_a_snapshot_is_of_its_cell_and_of_no_other_height(world):
    heights = {}
    for seed in range(8):
        scene, state = world.reset(TASK, seed)
        heights.setdefault(scene.base_height_m, []).append((seed, world.save(), state))
    (first, *others), (other, *_) = list(heights.values())[:2]
    world.reset(TASK, other[0])
    with pytest.raises(BenchError, match=f"snapshot of {TASK} is of a cell with a table or obj"):
        world.restore(first[1])
    again = next(iter(others), first)
    world.reset(TASK, first[0])
    assert encode_state(world.restore(again[1])) == encode_state(again[2])


def test_one_world_serves_both_robots_and_is_the_same_every_time(world, scene):
    before = [encode_state(s) for s in hold(world, 10)]
    pair, state = world.reset("lift_pot", 0)
    assert (pair.embodiment, len(state.command), len(state.joint_position)) == ("fr3_pair", 16, 14)
    world.reset(TASK, 0)
    assert [encode_state(s) for s in hold(world, 10)] == before


def test_randomisation_that_makes_no_sense_here_is_refused(world):
    with pytest.raises(UsageError, match="axis for g1 'table_height'.*clutter, light"):
        world.reset(TASK, 0, ("table_height",))
    scene, state = world.reset(TASK, 1, ("light", "texture", "camera", "clutter"))
    assert upright(View(scene, state))
    assert sum(o.name.startswith("clutter_") for o in scene.objects) == 3


def test_its_cameras_see_the_table(world, scene):
    assert len(world.capture(("head", "third", "left_wrist", "right_wrist"))) == 4
    shown = world.cameras.segmentation(world.data, "head")
    assert (shown == scene.entity("table")).mean() > 0.2
