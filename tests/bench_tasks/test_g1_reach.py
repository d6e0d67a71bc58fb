"""The benchmark of the humanoid's reach measures what it says, by its own measures."""

from __future__ import annotations

import json
import sys

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
    world_cm = measured["world_cm"]
    assert world_cm["mean"] == world_cm["p50"] == 3.5 and world_cm["p95"] == 5.75
    assert world_cm["interval"] == [1.0, 6.0], "two hands tell nothing between them"
    assert measured["pelvis_degrees"]["mean"] == 5.0
    assert measured["within"] == {"2.5 cm": 0.5, "5 cm": 0.5, "10 cm": 1.0}
    shares = [measured[name]["share"] for name in ("S7.5", "S5", "C3")]
    assert shares == pytest.approx([2 / 3, 1 / 3, 1 / 3], abs=1e-3), "a fall is no success"
    assert g1_reach.summary(found[2:]) == {"targets": 1, "falls": 1, "out_of_reach": 0}


def test_a_run_that_was_stopped_goes_on_where_it_was(monkeypatch, tmp_path, capsys):
    out, tried = tmp_path / "reach.jsonl", []

    def attempt(world, target, options):
        tried.append((target["height_m"], options.adjust))
        if len(tried) == 5:
            raise KeyboardInterrupt
        hand = [float(len(tried)), 1.0, 1.0, 1.0]
        hands = [hand] * len(target["hands"])
        return {**target, "fell": False, "reason": "", "hold": hands, "last": hands}

    monkeypatch.setattr(g1_reach, "attempt", attempt)
    monkeypatch.setattr(g1_reach, "SimWorld", lambda: None)
    monkeypatch.setattr(
        sys, "argv",
        ["g1_reach.py", "--out", str(out), "--every", "50", "--modes", "replan,both"],
    )  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        g1_reach.main()
    with out.open("a") as file:
        file.write('{"mode": "both", "k"')  # killed in the middle of a line
    g1_reach.main()
    assert len(tried) == 9, "eight in all, one of them tried twice"
    assert len(out.read_text().splitlines()) == 9, "what it is measured on, then each once"
    measured = json.loads(capsys.readouterr().out)
    assert [measured[mode]["all heights"]["targets"] for mode in ("replan", "both")] == [4, 4]
    assert measured["both"]["0.5 m"]["targets"] == 2
    g1_reach.main()
    assert json.loads(capsys.readouterr().out) == measured and len(tried) == 9
    monkeypatch.setattr(g1_reach, "SECONDS", 3.0)
    with pytest.raises(SystemExit):
        g1_reach.main()
    assert "is of other measurements" in capsys.readouterr().err
