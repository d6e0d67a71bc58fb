"""Metrics of pointing, against values worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_tasks import pointing as p

SQUARE = [(0.2, 0.2), (0.4, 0.2), (0.4, 0.4), (0.2, 0.4)]
curves = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=6)


def test_equal_curves_score_one_and_a_shift_scores_its_distance():
    line = [(0.1, 0.1), (0.5, 0.1), (0.5, 0.5)]
    assert p.trajectory_score(line, line) == pytest.approx(1.0)
    shifted = [(u + 0.3, v) for u, v in line]
    assert p.trajectory_score(shifted, line) == pytest.approx(math.exp(-0.3))
    dense = p.resample(line, 60)
    assert p.trajectory_score(dense, line) > 0.97, "how densely it was drawn hardly matters"


def test_frechet_is_not_the_distance_between_sets():
    there, back = [(0, 0), (1, 0)], [(1, 0), (0, 0)]
    assert p.frechet_distance(there, back) == 1.0
    assert p.frechet_distance([(0, 0), (0.5, 1), (1, 0)], [(0, 0), (1, 0)]) == pytest.approx(
        math.hypot(0.5, 1)
    )


@given(curves, curves)
def test_frechet_is_symmetric_and_bounded(a, b):
    distance = p.frechet_distance(a, b)
    assert distance == pytest.approx(p.frechet_distance(b, a))
    gaps = np.linalg.norm(np.array(a)[:, None] - np.array(b)[None], axis=2)
    assert max(gaps[0, 0], gaps[-1, -1]) - 1e-12 <= distance <= gaps.max() + 1e-12


def test_area_affordance_and_grounding():
    assert p.area_score([(0.3, 0.3), (0.1, 0.3), (0.39, 0.21), (0.5, 0.5)], SQUARE) == 0.5
    assert p.affordance_score([(0.3, 0.3)], [(0.3, 0.5), (0.9, 0.9)]) == pytest.approx(
        math.exp(-0.2)
    )
    box, half = [(0, 0), (0.4, 0.4)], [(0, 0), (0.4, 0.2)]
    assert p.iou(box, half) == pytest.approx(0.5)
    assert p.grounding_score([box, half, None], [box, box, box]) == pytest.approx(1 / 3)


def test_nothing_missing_scores_well():
    assert p.trajectory_score([], [(0, 0)]) == 0.0
    assert p.affordance_score([], [(0, 0)]) == p.area_score([], SQUARE) == 0.0
    assert p.in_frame(0.9, None, 1) == p.in_frame(0.9, 2, 1) == 0.0
    assert p.in_frame(0.9, 1, 1) == 0.9
    assert p.iou([(0, 0), (0, 0)], [(0, 0), (0, 0)]) == 0.0
    for call in (
        lambda: p.grounding_score([], []),
        lambda: p.affordance_score([(0, 0)], []),
        lambda: p.area_score([(0, 0)], SQUARE[:2]),
        lambda: p.trajectory_score([(float("nan"), 0)], [(0, 0)]),
    ):
        with pytest.raises(ValueError):
            call()
