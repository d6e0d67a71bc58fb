"""The floors and the registry: chance behaves itself, repeats itself and never leaves limits."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import policies
from bench_tasks.errors import UsageError
from bench_tasks.robots import embodiments
from bench_tasks.robots.fr3 import JOINT_LIMITS_RAD
from bench_tasks.vocabulary import (
    MAX_OPENING_M,
    ObjectInfo,
    Observation,
    Plan,
    Scene,
    SkillCall,
    WorldState,
)
from policies.floors import HoldPolicy, RandomPolicy

HOME_RAD = [0.0, -0.78, 0.0, -2.36, 0.0, 1.57, 0.78]
SCENE = Scene(
    "none", 1, 0, "", (ObjectInfo("block", "block", "red", (0.02, 0.02, 0.02)),),
    ("block", "table"), tuple(f"joint{i}" for i in range(14)), {},
)


def state(command: np.ndarray, seq: int = 0) -> WorldState:
    """A state of which only `seq` and `command` matter."""
    zeros = np.zeros
    return WorldState(
        seq, seq * 20_000_000, zeros(14), zeros(14), zeros(14), zeros(2), zeros((2, 7)),
        command, zeros((1, 7)), zeros((1, 6)), zeros((0, 2), np.uint16), zeros(0),
    )


def home() -> np.ndarray:
    return np.array([*HOME_RAD, 0.08, *HOME_RAD, 0.08])


def roll(policy: RandomPolicy, seed: int, chunks: int) -> np.ndarray:
    """The actions (10 * chunks, 16) of one episode in which every command is executed."""
    policy.reset(SCENE, seed)
    command, out = home(), []
    for i in range(chunks):
        chunk = policy.infer(Observation(state(command, 10 * i)))
        assert chunk.seq == 10 * i
        out.append(chunk.values)
        command = chunk.values[-1]
    return np.concatenate(out)


def test_hold_repeats_the_command_and_ignores_plans():
    policy = HoldPolicy()
    policy.reset(SCENE, 0)
    policy.accept(Plan(((SkillCall("home", "left"),),)))
    chunk = policy.infer(Observation(state(home(), 7)))
    assert chunk.seq == 7 and not chunk.needs_plan
    assert len(chunk.values) > 0 and (chunk.values == home()).all()


def test_random_repeats_itself_by_seed_and_after_reset():
    policy = RandomPolicy()
    first = roll(policy, 3, 5)
    assert np.array_equal(first, roll(policy, 3, 5))
    assert np.array_equal(first, roll(RandomPolicy(), 3, 5))
    assert not np.array_equal(first, roll(policy, 4, 5))


def test_random_stays_within_limits_moves_and_is_smooth():
    walk = roll(RandomPolicy(), 1, 600)
    for arm in (walk[:, :8], walk[:, 8:]):
        assert (arm[:, :7] >= JOINT_LIMITS_RAD[:, 0]).all()
        assert (arm[:, :7] <= JOINT_LIMITS_RAD[:, 1]).all()
        assert (np.ptp(arm[:, :7], axis=0) > 0.2).all()
        assert arm[:, 7].min() == 0.0 and arm[:, 7].max() == pytest.approx(MAX_OPENING_M)
    steps = np.diff(np.concatenate([home()[None], walk]), axis=0)
    assert np.abs(steps[:, np.r_[0:7, 8:15]]).max() <= 1.0 * 0.02 + 1e-12
    assert np.abs(steps[:, [7, 15]]).max() <= 0.08 * 0.02 + 1e-12


def test_random_moves_back_from_beyond_a_limit():
    command = home()
    command[3] = 0.0  # the elbow cannot be stretched so far
    policy = RandomPolicy()
    policy.reset(SCENE, 0)
    values = policy.infer(Observation(state(command))).values
    assert (values[:, 3] < -0.1518).all()


@pytest.mark.parametrize(
    ("make", "kind", "names"),
    [
        (policies.make_planner, "planner", policies.PLANNERS),
        (policies.make_policy, "policy", policies.POLICIES),
    ],
)
def test_unknown_name_lists_the_choices(make, kind, names):
    with pytest.raises(UsageError) as caught:
        make("nonesuch")
    message = str(caught.value)
    assert f"unknown {kind} 'nonesuch'" in message and "\n" not in message
    assert all(name in message for name in names)


def test_registry_makes_a_fresh_object_each_time():
    assert policies.make_policy("hold") is not policies.make_policy("hold")
    assert policies.make_policy("hold").metadata.name == "hold"
    assert policies.make_planner("random").metadata.name == "random"


def test_floors_load_nothing_heavy():
    code = (
        "import sys, policies; policies.make_policy('hold'); policies.make_policy('random');"
        "heavy = {'torch', 'transformers', 'pinocchio', 'mujoco', 'rclpy'} & set(sys.modules);"
        "sys.exit(', '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_random_walks_the_humanoid_within_its_own_limits():
    robot, policy = embodiments.get("g1"), RandomPolicy()
    policy.reset(replace(SCENE, embodiment="g1"), 5)
    command, rows = robot.home, []
    for i in range(100):
        rows.append(policy.infer(Observation(state(command, 10 * i))).values)
        command = rows[-1][-1]
    values = np.concatenate(rows)
    assert values.shape == (1000, 19)
    assert (values >= robot.low).all() and (values <= robot.high).all()
    assert (np.ptp(values[:, robot.joint_columns], axis=0) > 0.2).all()
    assert not values[:, robot.opening_columns].any(), "rubber hands open nothing"
