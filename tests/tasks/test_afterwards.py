"""Asked of what was once the arms are done: recorded, judged again, beside what the arms did."""

from __future__ import annotations

import pytest

from bench_tasks.bags.bag import read_bag
from bench_tasks.config import RunConfig
from bench_tasks.errors import BenchError
from bench_tasks.reports.outcome import results_table
from bench_tasks.reports.report import page
from bench_tasks.runner import run
from bench_tasks.verdicts.score_files import load_scores, newest_scores
from bench_tasks.verdicts.scoring import score_recording
from policies.planners.remembering import RememberingPlanner

TASK = "put_back_block"


def scored(world, out, planner: str):
    """The score of one recorded episode, as it was written down, and its recording."""
    run(RunConfig((TASK,), planner=planner, out=str(out), seed=1, cameras=()), world)
    (score,) = load_scores(newest_scores(out))
    assert score.agrees is True
    return score, read_bag(out / TASK / "000001")


def test_it_is_judged_by_the_recording_alone_and_shown_beside_the_arms(world, tmp_path):
    score, recording = scored(world, tmp_path, "remembering")
    (asked,) = score.details["afterwards"].values()
    assert score.success and asked["gold"] == asked["answer"] and asked["chance"] == 0.25
    over = next(event for event in recording.events if event.kind == "over")
    assert score.end_seq == over.seq < recording.states[-1].seq
    assert "1/1 (25%)" in results_table([score])
    assert "<td>1/1</td><td>1/1 (25%)</td>" in page([score], {}, {}, "")
    (answer,) = [event for event in recording.events if event.kind == "answer_after"]
    answer.data["values"]["answer"] = "on the gray mat"
    again = score_recording(recording)
    assert again.success and again.details["afterwards"]["afterwards"]["accuracy"] == 0.0
    assert again.agrees is False, "the live verdict had another answer"


def test_who_has_no_memory_is_asked_nothing_and_it_is_said(world, tmp_path):
    score, recording = scored(world, tmp_path, "expert")
    assert score.success and "afterwards" not in score.details
    assert score.details["not_asked"] == "planner expert has no memory"
    assert not {"over", "question_after"} & {event.kind for event in recording.events}
    for text in (results_table([score]), page([score], {}, {}, "")):
        assert "planner expert has no memory" in text


@pytest.mark.parametrize("raised", [BenchError("gone"), ZeroDivisionError()])
def test_who_fails_then_has_not_answered_and_the_arms_did_what_they_did(
    world, tmp_path, monkeypatch, raised
):
    ask = RememberingPlanner.ask

    def fails(self, question, observation):
        if question.name == "afterwards":
            raise raised
        return ask(self, question, observation)

    monkeypatch.setattr(RememberingPlanner, "ask", fails)
    score, recording = scored(world, tmp_path, "remembering")
    assert score.success and score.cause == ""
    assert score.details["afterwards"]["afterwards"]["answer"] == {}
    assert score.details["afterwards"]["afterwards"]["accuracy"] == 0.0
    assert "planner_error" in {event.kind for event in recording.events}
