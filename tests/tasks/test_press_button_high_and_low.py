"""Which presses count, in which order, and that the expert makes them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench_tasks import runner, tasks
from bench_tasks.config import RunConfig
from bench_tasks.monitor import Monitor
from bench_tasks.vocabulary import Event

NAME = "press_button_high_and_low"
LOW, HIGH = ("low_button", "right_hand", 8.0), ("high_button", "left_hand", 8.0)


@pytest.fixture(scope="module")
def scene(world):
    return world.reset(NAME, 0)[0]


def judged(world, scene, *presses):
    """The verdict when these touch for 0.2 s each, one after the other, and nothing in the end."""
    monitor = Monitor(tasks.get(NAME), scene)
    monitor.on_state(world.state)
    monitor.on_event(Event("act", 0, 0, {}))
    seq = 0
    for press in (*presses, None, None, None):
        pairs, forces = np.zeros((0, 2), np.uint16), np.zeros(0)
        if press is not None:
            touches = press if isinstance(press, list) else [press]
            pairs = np.array([[scene.entity(a), scene.entity(b)] for a, b, _ in touches], np.uint16)
            forces = np.array([force for *_, force in touches])
        for _ in range(10):
            seq += 1
            monitor.on_state(replace(
                world.state, seq=seq, stamp_ns=seq * 20_000_000, contact_pair=pairs,
                contact_force=forces,
            ))  # fmt: skip
    return monitor.verdict()


def test_the_low_one_then_the_high_one_counts_with_either_hand(world, scene):
    assert judged(world, scene, LOW, HIGH).success
    assert judged(world, scene, ("low_button", "left_hand", 4.0), HIGH).success


@pytest.mark.parametrize(
    ("why", "presses"),
    [
        ("nothing pressed", ()),
        ("the wrong order", (HIGH, LOW)),
        ("the wrong order, not letting go", (HIGH, [HIGH, LOW])),
        ("the right order, not letting go", (LOW, [LOW, HIGH])),
        ("both at once", ([HIGH, LOW],)),
        ("the low one alone", (LOW,)),
        ("the high one alone", (HIGH,)),
        ("brushed by", (("low_button", "right_hand", 1.0), HIGH)),
        ("pressed by an arm", (("low_button", "right_arm", 8.0), HIGH)),
    ],
)
def test_what_looks_like_it_does_not(world, scene, why, presses):
    assert not judged(world, scene, *presses).success, why


def test_hands_must_come_off(world, scene):
    verdict = judged(world, scene, LOW, *[HIGH] * 40)
    assert verdict.success, "at last they do"
    monitor = Monitor(tasks.get(NAME), scene)
    monitor.on_state(world.state)
    monitor.on_event(Event("act", 0, 0, {}))
    pair = np.array([[scene.entity("high_button"), scene.entity("left_hand")]], np.uint16)
    for seq in range(1, 100):
        monitor.on_state(replace(
            world.state, seq=seq, stamp_ns=seq * 20_000_000, contact_pair=pair,
            contact_force=np.array([5.0]),
        ))  # fmt: skip
    assert not monitor.verdict().success


def test_the_expert_presses_both_and_the_recording_says_so_too(world, tmp_path):
    config = RunConfig((NAME,), seed=1, out=str(tmp_path / "out"), cameras=())
    (episode,) = runner.run(config, world).episodes
    assert episode.success and episode.agrees is True, episode.cause
