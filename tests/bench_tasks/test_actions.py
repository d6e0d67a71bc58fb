"""Sixteen numbers: what they mean, that they round-trip, and how wrong ones are refused."""

from __future__ import annotations

import numpy as np
import pytest

from bench_tasks.actions import action_from_state, step_from_action
from bench_tasks.errors import UsageError
from bench_tasks.vocabulary import ARMS, MAX_OPENING_M

LEFT = [0.4, 0.2, 0.1, 0.0, 1.0, 0.0, 0.0]
RIGHT = [0.5, -0.2, 0.3, 0.0, 0.6, 0.8, 0.0]
ACTION = [*LEFT, 1.0, *RIGHT, 0.25]


def test_action_becomes_one_step_for_both_hands():
    step = step_from_action(ACTION)
    assert [call.arm for call in step] == list(ARMS)
    assert all(call.skill == "move_to" and call.checked() for call in step)
    assert step[0].args["pose"] == LEFT and step[1].args["pose"] == pytest.approx(RIGHT)
    assert step[0].args["opening_m"] == MAX_OPENING_M
    assert step[1].args["opening_m"] == pytest.approx(MAX_OPENING_M / 4)


def test_action_from_state_round_trips():
    action = action_from_state(np.array([LEFT, RIGHT]), np.array([0.08, 0.02]))
    assert action == pytest.approx(ACTION)
    # An opening beyond the range (the fingers give a little) still makes a valid action.
    beyond = action_from_state(np.array([LEFT, RIGHT]), np.array([0.0801, -1e-4]))
    assert beyond[[7, 15]] == pytest.approx([1.0, 0.0])
    step_from_action(beyond.tolist())


def changed(index: int, value) -> list:
    return [*ACTION[:index], value, *ACTION[index + 1 :]]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (ACTION[:15], "action must have 16 numbers, got 15"),
        ([*ACTION, 0.0], "action must have 16 numbers, got 17"),
        ("sixteen", "action must"),
        (None, "action must"),
        ([ACTION], "action must have 16 numbers"),
        (changed(2, float("nan")), "action must be finite"),
        (changed(9, float("inf")), "action must be finite"),
        (changed(2, "x"), "action must be .* numbers"),
        (changed(4, 0.5), "left pose: quaternion .* length 0.500, not 1"),
        (changed(12, 1.0), "right pose: quaternion .* length 1.281, not 1"),
        (changed(7, 1.2), r"left gripper must be in \[0, 1\], got 1.2"),
        (changed(15, -0.1), r"right gripper must be in \[0, 1\], got -0.1"),
    ],
)
def test_wrong_actions_are_refused_not_guessed_at(values, message):
    with pytest.raises(UsageError, match=message) as caught:
        step_from_action(values)
    assert "\n" not in str(caught.value)
