"""Intervals against published values and against their own definitions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from bench_tasks.reports.stats import mmrv, pearson, wilson


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


def test_pearson_by_hand():
    # Deviations from 1.5: products sum up to 4, squares to 5 and 5. Fisher: atanh 0.8 = ln 3, and
    # with four pairs its standard error is 1: tanh(ln 3 -+ 1.96).
    assert pearson((0, 1, 2, 3), (0, 2, 1, 3)) == pytest.approx((0.8, -0.69696, 0.99560), abs=1e-5)
    # 0.5 / sqrt(0.5 * 78 / 144); three pairs bound nothing.
    assert pearson((0, 0.5, 1), (0, 0.25, 1)) == pytest.approx((0.960769, -1.0, 1.0), abs=1e-6)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("x", [(0, 0.25, 0.5, 1), (0, 0.5, 1), (0.1, 0.2, 0.3, 0.7, 0.9)])
def test_pairs_on_a_line_are_no_certainty(x):
    assert pearson(x, x) == pytest.approx((1.0, -1.0, 1.0), abs=1e-12)
    assert pearson(x, [1 - 0.3 * v for v in x]) == pytest.approx((-1.0, -1.0, 1.0), abs=1e-12)


@pytest.mark.parametrize("x, y", [((0, 1), (0, 1)), ((0, 1, 2), (0, 1)), ((1, 1, 1), (0, 1, 2))])
def test_pearson_is_refused_where_there_is_none(x, y):
    with pytest.raises(ValueError):
        pearson(x, y)


@pytest.mark.parametrize(
    "sim, real, by_hand",
    [
        ((0.2, 0.5, 0.8), (0.1, 0.3, 0.9), 0.0),
        # The second and third are swapped, 0.2 apart in reality; the first is violated by none.
        ((0.2, 0.5, 0.8), (0.1, 0.6, 0.4), (0.0 + 0.2 + 0.2) / 3),
        # All are swapped: the worst for each is 1, 0.5 and 1.
        ((1.0, 0.5, 0.0), (0.0, 0.5, 1.0), (1.0 + 0.5 + 1.0) / 3),
        # A tie in simulation alone: the better one is not ranked above the other.
        ((0.5, 0.5), (0.2, 0.6), (0.0 + 0.4) / 2),
        # A tie in reality alone costs nothing: there is nothing between them.
        ((0.2, 0.6), (0.5, 0.5), 0.0),
        ((0.3,), (0.9,), 0.0),
    ],
)
def test_mmrv_by_hand(sim, real, by_hand):
    assert mmrv(sim, real) == pytest.approx(by_hand)


def test_mmrv_is_refused_without_pairs():
    for sim, real in (((), ()), ((0.1,), (0.1, 0.2))):
        with pytest.raises(ValueError):
            mmrv(sim, real)
