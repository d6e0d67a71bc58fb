"""From chunks to what arms and hands are told, and what hands can feel of the world."""

import numpy as np
import pytest

from bench_tasks.robots.fr3 import HOME_RAD, JOINT_LIMITS_RAD
from bench_tasks.vocabulary import ObjectInfo, Scene
from hardware.franka.motion import destination, hand_contacts, next_step, within

HOLD = np.tile(np.append(HOME_RAD, 0.08), 2)
PERIOD_S = 0.02


def ramp(start, end, count=20):
    u = np.arange(1, count + 1) / count
    return start + (end - start) * (10 * u**3 - 15 * u**4 + 6 * u**5)


@pytest.mark.parametrize(
    ("openings", "where"),
    [
        ([0.08], 0.08),
        (ramp(0.08, 0.0), 0.0),
        # On the way to a first width, which is held before the hand closes on something.
        ([*ramp(0.08, 0.057), *[0.057] * 10, *ramp(0.057, 0.0)], 0.057),
        ([0.057, *[0.057] * 10, *ramp(0.057, 0.0)], 0.057),
        ([*ramp(0.0, 0.06), *ramp(0.06, 0.02)], 0.06),
    ],
)
def test_a_hand_is_told_where_a_run_of_openings_first_rests(openings, where):
    assert destination(np.array(openings)) == pytest.approx(where)


def test_steps_of_a_smooth_motion_carry_its_velocity_and_acceleration():
    times = np.arange(0, 50) * PERIOD_S
    track = HOLD + 0.3 * (1 - np.cos(3 * times))[:, None]
    for k in range(1, 48):
        step = next_step(track[k], track[k + 1 :], PERIOD_S)
        np.testing.assert_allclose(step.action[:7], track[k + 1, :7])
        assert step.velocity[0] == pytest.approx(0.9 * np.sin(3 * times[k + 1]), abs=2e-3)
        assert step.acceleration[0] == pytest.approx(2.7 * np.cos(3 * times[k + 1]), abs=2e-2)


def test_with_nothing_due_the_arms_hold():
    step = next_step(HOLD, np.zeros((0, 16)), PERIOD_S)
    np.testing.assert_array_equal(step.action, HOLD)
    assert not step.velocity.any() and not step.acceleration.any()
    assert step.openings == (0.08, 0.08)


def test_what_joints_cannot_do_is_clipped_as_in_the_simulated_cell():
    wild = np.full(16, 9.0)
    np.testing.assert_allclose(within(wild)[:7], JOINT_LIMITS_RAD[:, 1])
    assert within(wild)[7] == 0.08 and within(-wild)[15] == 0.0


SCENE = Scene(
    task="t", task_version=1, seed=0, instruction="",
    objects=(
        ObjectInfo("block", "block", "red", (0.02, 0.02, 0.02)),
        ObjectInfo("box", "box", "blue", (0.1, 0.1, 0.1)),
    ),
    entities=(
        "table", "floor",
        *(f"{a}_{p}" for a in ("left", "right") for p in ("arm", "hand", "finger1", "finger2")),
        "block", "box",
    ),
    joint_names=(), params={}, contacts="hands",
)  # fmt: skip
EE = np.array([[0.4, 0.2, 0.02, 0, 1, 0, 0], [0.5, -0.4, 0.3, 0, 1, 0, 0]])
POSES = np.array([[0.41, 0.2, 0.02, 1, 0, 0, 0], [0.45, 0.2, 0.05, 1, 0, 0, 0]])
CLOSED = HOLD.copy()
CLOSED[[7, 15]] = 0.0


def felt(opening, grasped, command=CLOSED, busy=(False, False)):
    pairs, forces = hand_contacts(
        SCENE, EE, POSES, np.array(opening), command, grasped, 40.0, busy
    )
    return [(SCENE.entities[a], SCENE.entities[b], f) for (a, b), f in zip(pairs, forces,
                                                                          strict=True)]  # fmt: skip


def test_a_hand_feels_what_it_holds_and_nothing_else():
    held = [("left_finger1", "block", 40.0), ("left_finger2", "block", 40.0)]
    assert felt([0.04, 0.08], (True, False)) == held
    # The right one says that it holds something, where nothing is that anybody tracks.
    assert felt([0.04, 0.04], (True, True)) == held


def test_a_hand_that_is_told_to_open_holds_until_it_says_that_it_has_let_go():
    held = [("left_finger1", "block", 40.0), ("left_finger2", "block", 40.0)]
    assert felt([0.04, 0.08], (True, False), HOLD, (True, False)) == held
    assert felt([0.04, 0.08], (True, False), HOLD, (False, True)) == []
    assert felt([0.04, 0.08], (False, False), CLOSED, (True, True)) == []


@pytest.mark.parametrize(
    ("opening", "grasped", "command"),
    [([0.04, 0.08], (False, False), CLOSED), ([0.001, 0.08], (True, False), CLOSED),
     ([0.08, 0.08], (True, False), HOLD)],
)  # fmt: skip
def test_a_hand_that_does_not_press_on_anything_feels_nothing(opening, grasped, command):
    assert felt(opening, grasped, command) == []
