"""One set of limits for commands: what the supervisor lets through, a cell's drivers follow."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

from bench_tasks.robots.fr3 import HOME_RAD
from bench_tasks.vocabulary import ActionChunk, Scene, WorldState
from hardware.franka.cell import Cell, read_cell
from hardware.franka.limits import MAX_VELOCITY, SPEED_SHARE
from hardware.franka.narrowed import narrowed
from hardware.safety import Supervisor
from hardware.safety.limits import read_limits

LIMITS = read_limits("fr3_pair")
HOME = np.tile(np.append(HOME_RAD, 0.08), 2)
SCENE = Scene("t", 1, 0, "", (), ("table",), LIMITS.joint_names, {}, robot="franka")


def cell(**arms) -> Cell:
    raw = deepcopy(read_cell("cell").raw)
    raw["arms"].update(arms)
    return Cell("mine", raw)


def at_home() -> WorldState:
    joints = np.delete(HOME, [7, 15])
    zeros = np.zeros(14)
    return WorldState(
        0, 0, joints, zeros, zeros, HOME[[7, 15]], np.zeros((2, 7)), HOME, np.zeros((0, 7)),
        np.zeros((0, 6)), np.zeros((0, 2), np.uint16), np.zeros(0),
    )


def supervisor(limits, scene=SCENE) -> Supervisor:
    made = Supervisor(limits, realtime=True, confirmed=True)
    made.begin(scene)
    made.on_state(at_home(), 0.0)
    return made


def turning(speed: float, periods: int = 60) -> ActionChunk:
    """Joint 1 of the left arm, from rest to that speed (rad/s) and back."""
    u = np.arange(1, periods + 1) / periods
    path = np.tile(HOME, (periods, 1))
    path[:, 0] += speed * periods * 0.02 / 1.875 * (10 * u**3 - 15 * u**4 + 6 * u**5)
    return ActionChunk(0, path)


def test_only_of_a_simulated_robot_a_state_may_be_older():
    assert narrowed(LIMITS, cell()).measured == LIMITS.measured
    slow = narrowed(LIMITS, read_cell("standin")).measured
    assert slow == {**LIMITS.measured, "state_age_s": pytest.approx(2.0)}


@pytest.mark.parametrize("speed", [0.2, 0.5, 1.0])
def test_commands_are_no_faster_than_the_drivers_follow(speed):
    limits = narrowed(LIMITS, cell(speed=speed))
    share = limits.commands["share"]
    asked = share * limits.velocity
    assert asked == pytest.approx(np.tile(SPEED_SHARE * speed * MAX_VELOCITY, 2))
    assert share * limits.acceleration == pytest.approx(np.full(14, 8.0))
    assert np.array_equal(limits.fastest, LIMITS.velocity), "measured by the robot's own"
    most = SPEED_SHARE * speed * MAX_VELOCITY[0]
    assert supervisor(limits).on_chunk(turning(0.95 * most), 0.0).interventions == ()
    (told,) = supervisor(limits).on_chunk(turning(1.1 * most), 0.0).interventions
    assert (told.action, told.kind) == ("slowed", "velocity")
    assert told.detail["limit"] == pytest.approx(most)


def test_the_tighter_of_both_counts():
    tight = replace(
        LIMITS, commands={**LIMITS.commands, "jump_rad": 0.1, "share": 0.2},
        velocity=np.full(14, 0.5),
    )  # fmt: skip
    limits = narrowed(tight, cell(speed=1.0, max_jump_rad=0.15))
    assert limits.commands["jump_rad"] == 0.1 and (limits.velocity == 0.5).all()
    assert narrowed(LIMITS, cell(max_jump_rad=0.15)).commands["jump_rad"] == 0.15


def test_a_jump_that_the_cell_would_refuse_is_refused_before():
    chunk = ActionChunk(0, np.tile(HOME, (5, 1)))
    chunk.values[:, 0] += 0.2
    (told,) = supervisor(narrowed(LIMITS, cell())).on_chunk(chunk, 0.0).interventions
    assert told.kind == "jump" and told.detail["limit"] == 0.15


def test_a_real_robot_whose_cell_is_not_known_gets_nothing():
    chunk = turning(0.2)
    decision = supervisor(LIMITS).on_chunk(chunk, 0.0)
    (told,) = decision.interventions
    assert decision.send is None and told.kind == "cell" and "'franka'" in told.reason
    other = replace(SCENE, robot="unitree")
    assert supervisor(narrowed(LIMITS, cell()), other).on_chunk(chunk, 0.0).send is None
    assert supervisor(LIMITS, replace(SCENE, robot="sim")).on_chunk(chunk, 0.0).send is not None
