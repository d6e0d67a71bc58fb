"""What asking a model cost, from whatever events a bag may hold."""

from __future__ import annotations

import re

import pytest

from bench_tasks.verdicts.episode_score import EpisodeScore
from bench_tasks.verdicts.usage import KEYS, check_usage, usage_of, usage_table
from bench_tasks.vocabulary import Event


def event(kind: str, **data) -> Event:
    return Event(kind, 0, 0, data)


def told(prompt=None, answer=None, cost=None, **more) -> dict:
    return {"model": "m", "tokens": {"prompt": prompt, "answer": answer}, "cost_usd": cost, **more}


EVENTS = [
    event("begin", planner={}),
    event("plan", refused="", latency_ns=2_000_000_000, transcript=told(100, 20, 0.25)),
    event("plan", refused="no JSON", latency_ns=1_000_000_000, transcript=told(50, 10, 0.25)),
    event("answer", latency_ns=500_000_000, transcript=told()),
    event("planner_error", error="x", transcript=told(
        attempts=[{"latency_s": 0.25, "wait_s": 1.0}, {"latency_s": 0.25}])),
]  # fmt: skip
SUMS = {
    "calls": 4, "refused": 1, "errors": 1, "latency_s": 5.0, "counted": 2, "tokens_in": 150,
    "tokens_out": 30, "cost_usd": 0.5, "priced": 2,
}  # fmt: skip


def score(planner: str, usage: dict) -> EpisodeScore:
    return EpisodeScore("t", 0, False, 0.0, "", "", "", None, 0.0, planner=planner, usage=usage)


def test_sums_of_an_episode():
    assert usage_of(EVENTS) == SUMS and set(SUMS) == set(KEYS)
    expert = [event("plan", refused="", latency_ns=0, transcript={})]
    assert usage_of(expert) == {}, "no model was asked"


@pytest.mark.parametrize(
    "transcript",
    [
        None, [], "x", {}, told("many", -1, float("nan")), told(True, 1e300, "dear"),
        {"model": "m", "tokens": 3, "attempts": "none"}, {"model": "m", "attempts": [3, None]},
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["plan", "planner_error"])
def test_whatever_a_bag_holds_is_no_number_or_nothing(kind, transcript):
    found = usage_of([event(kind, latency_ns="soon", transcript=transcript)])
    check_usage(found)
    assert found.get("tokens_in", 0) == found.get("cost_usd", 0) == found.get("latency_s", 0) == 0


def test_the_table_is_by_planner_and_says_what_it_counts():
    html = usage_table([score("a<b", SUMS), score("a<b", SUMS), score("expert", {})])
    text = " ".join(re.sub("<[^>]+>", " ", html).split())
    assert "a&lt;b 2 8 2 2 1.25 300 (4 calls) 60 (4 calls) 1.0000 (4 calls)" in text
    assert "expert" not in text and usage_table([score("expert", {})]) == ""


def test_a_mangled_result_file_is_refused():
    for wrong in ({"calls": 1}, {**SUMS, "calls": "1"}, {**SUMS, "calls": -1}):
        with pytest.raises(TypeError, match="usage is"):
            check_usage(wrong)
