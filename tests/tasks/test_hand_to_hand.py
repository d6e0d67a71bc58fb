"""What counts as a hoop passed from hand to hand, and that the expert does it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from staging import Played, fails, fails_with, succeeds

from bench_tasks import runner, tasks
from bench_tasks.bags.bag import read_bag
from bench_tasks.config import RunConfig
from bench_tasks.robots.g1 import HOME_RAD, PELVIS
from bench_tasks.robots.g1_kinematics import upper_body
from bench_tasks.view import View, compose, invert
from bench_tasks.vocabulary import ARMS
from benchmarks.safety_false_stops import replayed
from hardware.safety import Supervisor
from hardware.safety.limits import read_limits
from hardware.unitree.clearance import BodyClearance

NAME = "hand_to_hand"
LEFT, RIGHT = ("hoop", "left_hand", 4.0), ("hoop", "right_hand", 4.0)
TABLE = ("hoop", "table", 4.0)
GIVER, BOTH, TAKER = "in the first hand alone before", "in both hands before", (
    "in the second hand alone"
)


@pytest.fixture(scope="module")
def passed(world):
    """A function that plays phases (contacts, periods) with the hoop so far up, hands through it.

    Seed 0 has the left hand begin. `hands` (2, 3) is where both are from the hoop's middle.
    """
    scene, start = world.reset(NAME, 0)
    assert scene.params["giver"] == "left"
    row, half = scene.index("hoop"), scene.object("hoop").half_size_m

    def play(*phases, up_m: float = 0.1, hands=((-0.02, 0.03, 0.1), (-0.02, -0.03, 0.1))):
        played = Played(world, NAME)
        pose = start.object_pose.copy()
        pose[row, 2] += up_m
        pose[row, 3:] = [1.0, 0.0, 0.0, 0.0]
        middle = pose[row, :3] + [0.0, 0.0, half[2] - half[1]]
        ee = np.array([[*(middle + hand), np.sqrt(0.5), 0.0, np.sqrt(0.5), 0.0] for hand in hands])
        for contacts, periods in phases:
            played.add(periods, contacts, object_pose=pose, ee_pose=ee)
        return played

    return play


GIVEN, TOGETHER, TAKEN = ([LEFT], 20), ([LEFT, RIGHT], 20), ([RIGHT], 60)


def test_from_the_first_hand_over_both_to_the_second_counts(passed):
    succeeds(passed(GIVEN, TOGETHER, TAKEN))


def test_taken_by_the_second_hand_at_once_it_is_not_passed(passed):
    fails(passed(TAKEN), GIVER, BOTH)
    fails(passed(TOGETHER, TAKEN), GIVER, BOTH)


def test_passed_by_way_of_the_table_it_is_not_passed_in_the_air(passed):
    fails(passed(GIVEN, ([TABLE], 20), TAKEN), BOTH)
    fails(passed(GIVEN, ([TABLE, LEFT, RIGHT], 20), TAKEN), BOTH)


def test_thrown_from_hand_to_hand_it_is_not_passed(passed):
    fails(passed(GIVEN, ([], 10), TAKEN), BOTH)


@pytest.mark.parametrize("away", [([TABLE], 20), ([TABLE, LEFT], 20), ([], 10)])
def test_put_down_or_let_go_on_the_way_it_must_begin_anew(passed, away):
    fails(passed(GIVEN, TOGETHER, away, TAKEN), GIVER, BOTH)
    fails(passed(GIVEN, away, TOGETHER, TAKEN), GIVER, BOTH)
    succeeds(passed(GIVEN, TOGETHER, away, GIVEN, TOGETHER, TAKEN))


def test_a_swing_or_a_brush_by_the_table_is_not_putting_it_down(passed):
    for away in (([], 4), ([TABLE, RIGHT], 4)):
        succeeds(passed(GIVEN, TOGETHER, away, TAKEN))


def test_the_first_hand_must_let_go(passed):
    fails(passed(GIVEN, ([LEFT, RIGHT], 80)), TAKER)
    fails(passed(GIVEN, TOGETHER, ([LEFT], 80)), TAKER)
    fails(passed(GIVEN, TOGETHER, ([RIGHT, ("hoop", "left_hand", 0.1)], 80)), TAKER)


def test_nothing_else_may_carry_it(passed):
    for part in ("right_arm", "left_arm", "body", "table"):
        fails(passed(GIVEN, TOGETHER, ([RIGHT, ("hoop", part, 2.0)], 80)), TAKER)


def test_a_hand_beside_or_before_the_hoop_is_not_through_it(passed):
    through, phases = (-0.02, 0.03, 0.1), (GIVEN, TOGETHER, TAKEN)
    for taker in ((-0.02, -0.03, 0.2), (-0.14, -0.03, 0.1), (0.08, -0.03, 0.1)):
        fails(passed(*phases, hands=(through, taker)), BOTH, TAKER)
        fails(passed(*phases, hands=(taker, through)), GIVER)


def test_it_must_be_held_high_enough_and_for_a_second(passed):
    fails(passed(GIVEN, TOGETHER, TAKEN, up_m=0.04), "5 cm up")
    fails(passed(GIVEN, TOGETHER, ([RIGHT], 45)), "held too briefly")
    fails(passed(([LEFT], 3), TOGETHER, TAKEN), GIVER)


def test_a_fall_while_passing_is_a_failure(passed):
    played = passed(GIVEN, TOGETHER, ([RIGHT, ("floor", "body", 50.0)], 60))
    assert fails_with(played, "invariant broken") == "invariant broken: on its feet"


@pytest.mark.parametrize("seed", [0, 3, 23])
def test_where_hands_are_sent_they_do_not_touch_each_other(world, seed):
    """At tables of 0.5, 0.74 and 0.88 m; the hoop hangs on the first hand."""
    scene, start = world.reset(NAME, seed)
    task, arms, clearance = tasks.get(NAME), upper_body(), BodyClearance()
    pelvis = start.object_pose[scene.index(PELVIS)]
    up = [call for step in task.expert(View(scene, start, start), 0) for call in step][-2:]
    ee = np.array([next(c.args["pose"] for c in up if c.arm == arm) for arm in ARMS])
    pose, half = start.object_pose.copy(), scene.object("hoop").half_size_m
    pose[scene.index("hoop")] = [0.0, 0, 0, 1, 0, 0, 0]
    giver = ARMS.index(scene.params["giver"])
    pose[scene.index("hoop"), :3] = ee[giver, :3] + (0.02, 0.0, -half[2] + 0.03)
    pair = np.array([[scene.entity("hoop"), scene.entity(f"{ARMS[giver]}_hand")]], np.uint16)
    held = replace(start, object_pose=pose, ee_pose=ee, contact_pair=pair,
                   contact_force=np.array([4.0]))  # fmt: skip
    steps = task.expert(View(scene, held, start), 1)
    assert len(steps) == 8, "the second hand comes, takes it over, and the first one goes"
    before, least = None, {"hands": 0.001, "arms": 0.01, "itself": -1.0, "table": -1.0}
    for step in steps:
        aims = {call.arm: compose(invert(pelvis), np.array(call.args["pose"])) for call in step}
        joints, left = arms.inverse(aims, HOME_RAD if before is None else before)
        assert left < 0.01
        near = clearance.blocked(joints if before is None else before, joints[None], least)
        assert near is None, near
        before = joints


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 10, 5, 3, 23, 2])
def test_the_expert_passes_it_on_and_the_recording_says_so_too(world, tmp_path, seed):
    """Tables of 0.5, 0.5, 0.74, 0.74, 0.88 and 0.88 m, from left and right in turn."""
    config = RunConfig((NAME,), seed=seed, out=str(tmp_path / "out"), cameras=())
    (episode,) = runner.run(config, world).episodes
    assert episode.success and episode.agrees is True, episode.cause
    recorded = read_bag(tmp_path / "out" / NAME / f"{seed:06d}", chunks=True)
    told, _ = replayed(Supervisor(read_limits("g1"), confirmed=True), recorded)
    assert {item.action for item in told} <= {"slowed"}, told
