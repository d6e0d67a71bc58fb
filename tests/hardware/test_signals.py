"""What a robot's node makes of the safety node's heartbeats."""

from __future__ import annotations

from hardware.signals import Signals


def heard(signals: Signals, clock: list[float], *counts: int) -> list[bool]:
    """Whether the robot is watched after each beat, 20 ms apart."""
    found = []
    for count in counts:
        clock[0] += 0.02
        signals.on_beat(count)
        found.append(signals.watching)
    return found


def test_a_heartbeat_has_to_count_on():
    clock = [0.0]
    signals = Signals(lambda: clock[0])
    assert all(heard(signals, clock, 0, 1, 2, 3))
    assert heard(signals, clock, *[3] * 6) == [True] * 5 + [False] and signals.alive
    assert heard(signals, clock, 4) == [True]


def test_two_that_stand_still_are_none_that_counts():
    clock = [0.0]
    signals = Signals(lambda: clock[0])
    assert heard(signals, clock, *[5, 9] * 6)[-3:] == [False] * 3 and signals.alive
    assert all(heard(signals, clock, 10, 9, 11, 9, 12)), "one of them watches"


def test_a_safety_node_that_is_started_anew_counts():
    clock = [0.0]
    signals = Signals(lambda: clock[0])
    heard(signals, clock, *range(1000, 1100))
    clock[0] += 1.0
    assert not signals.watching and all(heard(signals, clock, 0, 1, 2))
