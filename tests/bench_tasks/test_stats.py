"""Intervals against published values and against their own definitions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from bench_tasks.stats import wilson


@pytest.mark.parametrize(
    "k,n,low,high",
    [
        # Newcombe 1998, Statistics in Medicine 17:857, table I (method 3: Wilson).
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (29, 29, 0.8830, 1.0),
    ],
)
def test_wilson_gives_the_published_values(k, n, low, high):
    assert wilson(k, n) == pytest.approx((low, high), abs=5e-5)


COUNTS = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(COUNTS, st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_the_ends_are_the_roots_of_their_definitions(counts, confidence):
    k, n = counts
    z = norm.ppf(0.5 + confidence / 2)
    for end in wilson(k, n, confidence):
        assert (k / n - end) ** 2 == pytest.approx(z * z * end * (1 - end) / n, abs=1e-12)
    low, high = wilson(k, n, confidence)
    assert low <= k / n <= high


@given(COUNTS)
def test_successes_and_failures_mirror_each_other(counts):
    k, n = counts
    low, high = wilson(k, n)
    other_low, other_high = wilson(n - k, n)
    assert (low, high) == pytest.approx((1 - other_high, 1 - other_low), abs=1e-12)


def test_no_trial_says_nothing():
    assert wilson(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize("args", [(3, 2), (-1, 2), (0, -1), (1, 2, 1.0), (1, 2, 0.0)])
def test_impossible_counts_are_refused(args):
    with pytest.raises(ValueError):
        wilson(*args)
