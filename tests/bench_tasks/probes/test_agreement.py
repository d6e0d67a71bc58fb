"""Agreement of a judge with the rules, reckoned."""

from __future__ import annotations

import numpy as np
import pytest

from bench_tasks.probes.agreement import Agreement, agreement, by_kind, by_memory
from bench_tasks.probes.judging import Case
from bench_tasks.probes.runs import Run
from bench_tasks.probes.stream import Asked, Query, Reply


def test_kappa_is_what_it_is_by_hand():
    kappa = Agreement(75, 5, 5, 15)
    assert kappa.judged == 100 and kappa.raw == 0.9
    # By chance (80 * 80 + 20 * 20) / 100^2 = 0.68.
    assert kappa.by_chance == pytest.approx(0.68)
    assert kappa.kappa[0] == pytest.approx((0.9 - 0.68) / 0.32)


@pytest.mark.parametrize("right", [0, 100])
@pytest.mark.parametrize("by_rules", [30, 50, 97])
def test_a_judge_that_always_says_the_same_has_kappa_0_whatever_it_agrees(right, by_rules):
    found = (Agreement(by_rules, 0, 100 - by_rules, 0) if right
             else Agreement(0, by_rules, 0, 100 - by_rules))  # fmt: skip
    kappa, low, high = found.kappa
    assert kappa == 0.0 and low < 0.0 < high and found.constant == "judge"
    assert found.raw == (by_rules if right else 100 - by_rules) / 100


def test_where_there_is_nothing_to_compare_there_is_no_kappa():
    assert Agreement(0, 0, 0, 0, 3, 2).kappa is None and Agreement(0, 0, 0, 0).raw is None
    always = Agreement(9, 0, 0, 0)
    assert always.kappa is None and always.constant == "rules and judge" and always.raw == 1.0
    assert Agreement(9, 0, 0, 9).constant == "" and Agreement(9, 0, 0, 9).kappa[1] < 1.0


def test_the_interval_holds_the_true_kappa_as_often_as_it_says():
    """Rules right with 0.4, and a judge that says otherwise in 15 of 100 of either."""
    rng, hits, trials = np.random.default_rng(0), 0, 2000
    shares = [0.4 * 0.85, 0.4 * 0.15, 0.6 * 0.15, 0.6 * 0.85]
    judge = shares[0] + shares[2]
    chance = 0.4 * judge + 0.6 * (1 - judge)
    true = (0.85 - chance) / (1 - chance)
    for counts in rng.multinomial(100, shares, trials):
        _, low, high = Agreement(*map(int, counts)).kappa
        hits += low <= true <= high
    assert 0.93 < hits / trials < 0.98


def test_what_had_no_reply_or_no_verdict_is_in_neither_share():
    run = Run("p", "m", 0, (), 1)

    def case(kind, rules, judged, text="tea", reason=""):
        return Case(run, Asked(Query("q", 0, "?"), kind, "g", 0.5), Reply(text), rules, "k",
                    judged, reason)  # fmt: skip

    cases = [
        case("A", True, True), case("A", True, False), case("B", False, True),
        case("B", False, False), case("B", False, None, " "), case("B", True, None, reason="late"),
    ]  # fmt: skip
    assert agreement(cases) == Agreement(1, 1, 1, 1, 1, 1)
    assert by_memory(cases) == {("p", "m"): Agreement(1, 1, 1, 1, 1, 1)}
    assert by_kind(cases) == {
        ("p", "all"): Agreement(1, 1, 1, 1, 1, 1), ("p", "A"): Agreement(1, 1, 0, 0),
        ("p", "B"): Agreement(0, 0, 1, 1, 1, 1),
    }  # fmt: skip
