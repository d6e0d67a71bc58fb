"""Which looks at a marker in a hand are taken."""

from types import SimpleNamespace

import numpy as np

from hardware import looks as module
from hardware.looks import Looks


def test_looks_are_taken_of_an_arm_at_rest_somewhere_new_with_its_marker_in_sight(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    made, seen = Looks({"arm": "right"}, np.arange(7, 14), 2), np.arange(7.0)

    def offer(q, after_s, age_s=0.0):
        clock[0] += after_s
        return made.offer({"q": q, "seen": seen}, age_s)

    first, second = np.random.default_rng(0).uniform(-0.5, 0.5, (2, 14))
    assert offer(first, 0.0) == offer(first, 0.3) == "the arm moves"
    assert offer(first, 0.3, age_s=0.4) == "the marker is not seen"
    assert offer(first, 0.0) == "" and made.left == 1
    assert offer(first, 1.0) == "the arm has been here"
    other = first.copy()
    other[:7] += 1.0  # the left arm is none of its business
    assert offer(other, 1.0) == "the arm has been here"
    assert offer(second, 0.1) == "the arm moves"
    assert offer(second, 0.6) == "" and made.left == 0
    told = made.to_dict()
    assert told["looks"][1]["q"] == second.tolist() and told["arm"] == "right"
    assert told["looks"][0] == {"q": first.tolist(), "seen": seen.tolist()}
