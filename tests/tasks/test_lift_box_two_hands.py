"""What counts as a box lifted between two palms, and that the expert does it."""

from __future__ import annotations

import numpy as np
import pytest
from staging import Played, fails, succeeds

from bench_tasks import runner
from bench_tasks.config import RunConfig

NAME = "lift_box_two_hands"
PALMS = (("box", "left_hand", 8.0), ("box", "right_hand", 8.0))


@pytest.fixture(scope="module")
def lift(world):
    """A function that lets the box rise evenly by `up_m` and then stay there.

    It is tilted and touched by these; the hands are `apart_m` from each other, it in their middle.
    """
    scene, start = world.reset(NAME, 0)
    row = scene.index("box")

    def lifted(up_m: float, contacts=PALMS, tilt_rad=0.0, periods: int = 60, apart_m=0.28):
        played = Played(world, NAME)
        for k in range(1, periods + 41):
            pose = start.object_pose.copy()
            pose[row, 2] += up_m * min(1.0, k / 40)
            pose[row, 3:] = [np.cos(tilt_rad / 2), np.sin(tilt_rad / 2), 0.0, 0.0]
            hands = np.tile(pose[row], (2, 1))
            hands[:, 1] += (apart_m / 2, -apart_m / 2)
            played.add(1, contacts, object_pose=pose, ee_pose=hands)
        return played

    return lifted


def test_held_up_level_between_both_palms_counts(lift):
    played = lift(0.12)
    succeeds(played)
    measured = played.verdict.details["coordination"]
    # From the start to the end of the second in which it is 8 cm up: two thirds of 0.8 s before.
    assert measured["held_s"] == pytest.approx(0.54 + 1.0, abs=0.03)
    assert measured["worst_offset_m"] == pytest.approx(0.0, abs=1e-6)


def test_it_must_be_high_enough_and_level(lift):
    fails(lift(0.06), "8 cm up")
    fails(lift(0.12, tilt_rad=0.5), "level")


def test_thrown_up_or_touched_lightly_it_is_in_no_hands(lift):
    fails(lift(0.12, ()), "between both palms")
    fails(lift(0.12, tuple((a, b, 0.2) for a, b, _ in PALMS)), "between both palms")


def test_one_palm_is_not_enough(lift):
    fails(lift(0.12, PALMS[:1]), "between both palms")


def test_nothing_else_may_carry_it(lift):
    for other, force in (("body", 3.0), ("table", 3.0)):
        played = lift(0.12, (*PALMS, ("box", other, force)))
        fails(played, "carried by nothing else")
    assert played.verdict.details["coordination"]["held_s"] == 0.0, "it stands on the table"


def test_on_the_forearms_it_is_not_between_the_palms(lift):
    fails(lift(0.12, (*PALMS, ("box", "left_arm", 6.0))), "between both palms")
    succeeds(lift(0.12, (*PALMS, ("box", "left_arm", 2.0))))


def test_palms_below_it_are_not_beside_it(lift):
    fails(lift(0.12, apart_m=0.1), "between both palms")


def test_half_a_second_is_too_short(lift):
    fails(lift(0.12, periods=25), "held too briefly")


@pytest.mark.slow
def test_the_expert_lifts_it_and_the_recording_says_so_too(world, tmp_path):
    config = RunConfig((NAME,), episodes=1, out=str(tmp_path / "out"), cameras=())
    (episode,) = runner.run(config, world).episodes
    assert episode.success and episode.agrees is True, episode.cause
