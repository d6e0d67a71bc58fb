"""What counts as a box lifted between two palms, and that the expert does it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench_tasks import runner, tasks
from bench_tasks.config import RunConfig
from bench_tasks.monitor import Monitor
from bench_tasks.vocabulary import Event

NAME = "lift_box_two_hands"
PALMS = (("box", "left_hand", 8.0), ("box", "right_hand", 8.0))


@pytest.fixture(scope="module")
def scene(world):
    return world.reset(NAME, 0)[0]


def judged(
    world, scene, up_m: float, contacts, tilt_rad: float = 0.0, periods: int = 60, apart_m=0.28
):
    """The verdict when the box rises evenly and then stays there, touched by these.

    The hands are `apart_m` from each other, the box in their middle.
    """
    start = world.state
    monitor = Monitor(tasks.get(NAME), scene)
    monitor.on_state(start)
    monitor.on_event(Event("act", 0, 0, {}))
    row = scene.index("box")
    pairs = np.array([[scene.entity(a), scene.entity(b)] for a, b, _ in contacts], np.uint16)
    forces = np.array([force for *_, force in contacts])
    for k in range(1, periods + 41):
        pose = start.object_pose.copy()
        pose[row, 2] += up_m * min(1.0, k / 40)
        pose[row, 3:] = [np.cos(tilt_rad / 2), np.sin(tilt_rad / 2), 0.0, 0.0]
        hands = np.tile(pose[row], (2, 1))
        hands[:, 1] += (apart_m / 2, -apart_m / 2)
        monitor.on_state(replace(
            start, seq=k, stamp_ns=k * 20_000_000, object_pose=pose, ee_pose=hands,
            contact_pair=pairs.reshape(-1, 2), contact_force=forces,
        ))  # fmt: skip
    return monitor.verdict()


def test_held_up_level_between_both_palms_counts(world, scene):
    verdict = judged(world, scene, 0.12, PALMS)
    assert verdict.success, verdict.cause


@pytest.mark.parametrize(
    ("why", "up_m", "contacts", "tilt_rad", "periods"),
    [
        ("not high enough", 0.06, PALMS, 0.0, 60),
        ("thrown up", 0.12, (), 0.0, 60),
        ("on one palm", 0.12, PALMS[:1], 0.0, 60),
        ("tipped", 0.12, PALMS, 0.5, 60),
        ("on the forearms", 0.12, (*PALMS, ("box", "left_arm", 6.0)), 0.0, 60),
        ("leaning on the belly", 0.12, (*PALMS, ("box", "body", 3.0)), 0.0, 60),
        ("standing on something", 0.12, (*PALMS, ("box", "table", 3.0)), 0.0, 60),
        ("touched, not pressed", 0.12, tuple((a, b, 0.2) for a, b, _ in PALMS), 0.0, 60),
        ("for half a second", 0.12, PALMS, 0.0, 25),
    ],
)  # fmt: skip
def test_what_looks_like_it_does_not(world, scene, why, up_m, contacts, tilt_rad, periods):
    assert not judged(world, scene, up_m, contacts, tilt_rad, periods).success, why


def test_palms_below_it_are_not_beside_it(world, scene):
    assert not judged(world, scene, 0.12, PALMS, apart_m=0.1).success


def test_a_wrist_that_touches_it_lightly_does_no_harm(world, scene):
    assert judged(world, scene, 0.12, (*PALMS, ("box", "left_arm", 2.0))).success


@pytest.mark.slow
def test_the_expert_lifts_it_and_the_recording_says_so_too(world, tmp_path):
    config = RunConfig((NAME,), episodes=1, out=str(tmp_path / "out"), cameras=())
    (episode,) = runner.run(config, world).episodes
    assert episode.success and episode.agrees is True, episode.cause
