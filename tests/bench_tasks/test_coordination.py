"""Coordination: measured right on states made by hand, and the same live as from a recording."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from bench_tasks import runner, tasks
from bench_tasks.bags.bag import read_bag
from bench_tasks.config import RunConfig
from bench_tasks.verdicts.coordination import Coordination
from bench_tasks.verdicts.scoring import score_bag
from bench_tasks.view import View, quat_from_yaw
from bench_tasks.vocabulary import CONTROL_PERIOD_NS, Grasp, ObjectInfo, Scene, WorldState

PERIOD_S = CONTROL_PERIOD_NS * 1e-9
ENTITIES = (
    "roller", "table",
    *(f"{arm}_{part}" for arm in ("left", "right") for part in ("finger1", "finger2")),
)
ITEM = ObjectInfo("roller", "roller", "brown", (0.02, 0.18, 0.02), (Grasp("x", (0.0,) * 7, 0.02),))
SCENE = Scene("grab_roller", 1, 0, "", (ITEM,), ENTITIES, (), {})
HELD = np.array([[0, k] for k in range(2, 6)], dtype=np.uint16)


def state(moving=(False, False), gripping=(0.0, 0.0), held=False, tilt=0.0, offset=0.0):
    """One state; `gripping` are the commanded openings."""
    velocity = np.zeros(14)
    velocity[[3, 10]] = np.array(moving) * -0.2
    command = np.zeros(16)
    command[[7, 15]] = gripping
    hands = np.tile([0.4, 0.0, 0.2, 1.0, 0.0, 0.0, 0.0], (2, 1))
    hands[1, 2] += offset
    lean = np.array([np.cos(tilt / 2), np.sin(tilt / 2), 0.0, 0.0])  # about x: one end of y up
    return WorldState(
        0, 0, np.zeros(14), velocity, np.zeros(14), np.full(2, 0.024 if held else 0.0), hands,
        command, np.concatenate([[0.4, 0.0, 0.2], lean])[None], np.zeros((1, 6)),
        HELD if held else HELD[:0], np.full(4 if held else 0, 5.0),
    )


def measured(task: str, *states) -> dict:
    found = Coordination(tasks.get(task), SCENE)
    for given in states:
        found.on_state(View(SCENE, given), CONTROL_PERIOD_NS)
    return found.result()


@pytest.mark.parametrize(("left", "right", "both", "overlap", "best", "of_best"), [
    (10, 10, 10, 1.0, 1.0, 1.0),
    (10, 10, 0, 0.0, 1.0, 0.0),
    (10, 30, 10, 0.5, 0.5, 1.0),
    (30, 10, 5, 0.25, 0.5, 0.5),
    (20, 0, 0, 0.0, 0.0, None),
    (0, 0, 0, None, None, None),
])  # fmt: skip
def test_work_at_once(left, right, both, overlap, best, of_best):
    states = [state((True, True))] * both + [state((True, False))] * (left - both)
    states += [state((False, True))] * (right - both) + [state()] * 7
    found = measured("blocks_ranking_rgb", *states)
    times = (found.pop("left_s"), found.pop("right_s"), found.pop("both_s"))
    assert times == pytest.approx(np.array([left, right, both]) * PERIOD_S)
    assert found == pytest.approx({"overlap": overlap, "best": best, "of_best": of_best})


def test_closing_fingers_is_work():
    openings = [0.08, 0.08, 0.04, 0.0, 0.0]
    found = measured("blocks_ranking_rgb", *(state(gripping=(o, 0.0)) for o in openings))
    assert found["left_s"] == pytest.approx(2 * PERIOD_S)
    assert found["right_s"] == 0.0


def test_worst_tilt_and_offset_count_while_both_hold():
    found = measured(
        "grab_roller", state(tilt=0.9, offset=0.5), state(held=True, tilt=0.1, offset=-0.03),
        state(held=True, tilt=-0.2, offset=0.01), state(tilt=0.8, offset=0.4),
    )
    assert found["held_s"] == pytest.approx(2 * PERIOD_S)
    assert found["worst_tilt_rad"] == pytest.approx(0.2)
    assert found["worst_offset_m"] == pytest.approx(0.03)
    assert "of_best" not in found


def test_a_turn_of_the_roller_about_its_length_is_no_tilt():
    turned = state(held=True)
    pose = np.concatenate([[0.4, 0.0, 0.2], [np.sqrt(0.5), 0.0, np.sqrt(0.5), 0.0]])
    turned = dataclasses.replace(turned, object_pose=pose[None])
    assert measured("grab_roller", turned)["worst_tilt_rad"] == pytest.approx(0.0, abs=1e-6)
    assert measured("lift_pot", turned)["worst_tilt_rad"] == pytest.approx(np.pi / 2)
    level = dataclasses.replace(
        turned, object_pose=np.concatenate([[0.4, 0.0, 0.2], quat_from_yaw(0.7)])[None]
    )
    assert measured("lift_pot", level)["worst_tilt_rad"] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("fingers", [(2,), (2, 3), (2, 3, 4), (4, 5)])
def test_one_hand_or_a_finger_too_few_is_not_held(fingers):
    pairs = np.array([[0, k] for k in fingers], dtype=np.uint16)
    some = dataclasses.replace(
        state(held=True, tilt=0.3), contact_pair=pairs, contact_force=np.full(len(fingers), 5.0)
    )
    found = measured("grab_roller", some)
    assert found["held_s"] == 0.0
    assert found["worst_tilt_rad"] is None
    assert found["worst_offset_m"] is None


@pytest.mark.parametrize("task", ["handover_block", "spatial_sparse", "cover_blocks"])
def test_other_modes_are_not_measured(task):
    assert measured(task, state((True, True))) == {}


def test_time_that_nobody_saw_is_no_work():
    found = Coordination(tasks.get("blocks_ranking_rgb"), SCENE)
    found.on_state(View(SCENE, state((True, True))), 0)
    assert found.result()["both_s"] == 0.0


def test_the_same_live_as_from_the_recording(tmp_path):
    config = RunConfig(("grab_roller",), episodes=1, cameras=(), out=str(tmp_path / "run"))
    bag = Path(runner.run(config).episodes[0].bag)
    live, score = read_bag(bag).verdict, score_bag(bag)
    assert score.success and score.agrees
    assert live.details["coordination"] == score.details["coordination"]
    assert score.details["coordination"]["held_s"] > 0.5
    assert 0.0 < score.details["coordination"]["worst_offset_m"] < 0.02
