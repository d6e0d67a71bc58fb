"""The benchmark of the humanoid's reach measures what it says, by its own measures."""

from __future__ import annotations

import json

import pytest

from benchmarks import g1_reach
from sim.world import SimWorld


def test_a_target_is_measured_to_the_end_with_its_corrections_on(monkeypatch):
    monkeypatch.setattr(g1_reach, "SECONDS", 3.5)
    asked = []

    class Watched(g1_reach.HumanoidPolicy):
        def infer(self, observation):
            chunk = super().infer(observation)
            asked.append(chunk.needs_plan)
            return chunk

    monkeypatch.setattr(g1_reach, "HumanoidPolicy", Watched)
    target = json.loads(g1_reach.TARGETS.read_text())[0]
    found = g1_reach.attempt(SimWorld(), target, g1_reach.MODES["both"])
    assert asked and not any(asked), "it never holds to be done what is measured on"
    assert not found["fell"] and found["reason"] == ""
    (hand,) = found["hold"]
    assert 0.0 < hand[0] < 5.0 and 0.0 < hand[1] < 10.0


def test_means_and_shares_are_of_the_hands_that_were_measured():
    hands = [[1.0, 2.0, 3.0, 4.0], [6.0, 9.0, 5.0, 6.0]]
    found = [
        {"fell": False, "reason": "", "hold": [hand], "last": [hand]} for hand in hands
    ] + [{"fell": True, "reason": ""}]
    measured = g1_reach.summary(found)
    assert (measured["targets"], measured["falls"]) == (3, 1)
    assert measured["world_cm"]["mean"] == 3.5 and measured["pelvis_degrees"]["mean"] == 5.0
    assert measured["within"] == {"2.5 cm": 0.5, "5 cm": 0.5, "10 cm": 1.0}
    shares = [measured[name]["share"] for name in ("S7.5", "S5", "C3")]
    assert shares == pytest.approx([2 / 3, 1 / 3, 1 / 3], abs=1e-3), "a fall is no success"
