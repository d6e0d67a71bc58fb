"""A model in the place of rules: as a reader, and as the user who is talked to."""

from __future__ import annotations

import json
import re

import pytest

from bench_tasks.cli import main
from bench_tasks.errors import UsageError
from bench_tasks.probes import make_probe
from bench_tasks.probes.runs import read_run
from bench_tasks.probes.stream import NOT_MENTIONED, Asked, Item, Query
from policies import make_model
from policies.memory import make_memory
from policies.memory.model_reader import ModelReader
from tests.policies.planners.model_server import ModelServer, error, unused_url

ITEMS = [Item("j", 86_400 * 10**9, "s", "Ben", "Mine is a dog."),
         Item("i", 1, "s", "Ana", "My pet is a cat.")]  # fmt: skip
CHOICES = ("a dog", "a cat", NOT_MENTIONED)


@pytest.mark.parametrize(
    ("answer", "choices", "text", "abstained"),
    [
        ('{"answer": 2}', CHOICES, "a cat", False),
        ('Sure!\n```json\n{"answer": "a cat"}\n```', CHOICES, "a cat", False),
        ('{"answer": 0}', CHOICES, NOT_MENTIONED, True),
        ('{"answer": 4}', CHOICES, NOT_MENTIONED, True),
        ('{"answer": -1}', CHOICES[:2], "", True),
        ("no idea", CHOICES[:2], "", True),
        ('{"choice": 1}', CHOICES[:2], "", True),
        ('{"answer": " A cat. "}', (), "A cat.", False),
        ("A cat.", (), "A cat.", False),
        ('{"answer": null}', (), NOT_MENTIONED, True),
    ],
)
def test_answers_are_read(answer, choices, text, abstained):
    prompts = []
    reader = ModelReader(lambda prompt: prompts.append(prompt) or answer)
    reply = reader.answer(Query("q", 2 * 86_400 * 10**9, "Which pet?", choices), ITEMS)
    assert (reply.text, reply.abstained) == (text, abstained)
    assert set(reply.used) == (set() if abstained else {"i", "j"})
    lines = prompts[0].splitlines()
    assert lines[1:3] == ["[1970-01-01 00:00] Ana: My pet is a cat.",
                          "[1970-01-02 00:00] Ben: Mine is a dog."]
    assert "It is 1970-01-03 00:00 now. Which pet?" in lines


@pytest.mark.parametrize("name", ["structured", "notes", "full", "rag:by=words"])
def test_memories_hand_it_what_they_recall(name):
    seen = []
    memory = make_memory(name, reader=ModelReader(lambda p: seen.append(p) or '{"answer": 1}'))
    for item in ITEMS:
        memory.observe(item)
    assert memory.answer(Query("q", 10**15, "What is Ana's pet?", ("a cat", "a dog"))).text \
        == "a cat"  # fmt: skip
    assert "Ana: My pet is a cat." in seen[0]


def test_a_planner_that_is_no_model_is_refused():
    with pytest.raises(UsageError, match="unknown model 'expert': choose from .*smollm2"):
        make_model("expert")
    with pytest.raises(UsageError, match="probe conversations has nobody that a model could play"):
        make_probe("conversations:mode=text", complete=str)


def test_models_read_and_play_the_user_from_the_command_line(tmp_path):
    """Over HTTP, the real way; the user leaks once and is refused, the reader knows the answer."""
    probe = make_probe("amemgym:questions=1,periods=1,changes=1")
    leak = next(iter(probe.user(0).schema.values()))[0]
    leaks = iter([f"I love {leak}."])

    def answer(body):
        text = body["messages"][-1]["content"]
        text = text if isinstance(text, str) else text[0]["text"]
        if "You play a person" in text:
            return next(leaks, "What would you do?")
        choices = dict(re.findall(r"^(\d): (.+)$", text, re.MULTILINE))
        said = re.findall(r"[mM]y ([\w ]+) is ([\w' ]+?)(?: now| from today|\.)", text)
        state = dict(said)
        for k, choice in choices.items():
            parts = re.findall(r"(?:with|and) (.+?) as (.+?)(?= and |$)", choice)
            if parts and all(state.get(what) == value for value, what in parts):
                return json.dumps({"answer": int(k)})
        return '{"answer": 0}'

    with ModelServer(answer) as server:
        spec = f"openai:base_url={server.url},model=m,structured=none"
        code = main(["remember", "run", "--probe", "amemgym:questions=1,periods=1,changes=1",
                     "--memory", "full", "--reader", spec, "--user", spec,
                     "--out", str(tmp_path / "out")])  # fmt: skip
    assert code == 0
    (path,) = (tmp_path / "out").rglob("*.run.jsonl")
    run = read_run(path)
    assert run.memory == "full read by openai m talking to openai m"
    asked = [r for r in run.records if isinstance(r.step, Asked)]
    assert all(r.reply.text == r.step.gold for r in asked if r.step.scored)
    refused = [r.step.tags["refused"] for r in asked if "refused" in r.step.tags]
    assert refused == [[f"I love {leak}."]]
    said = [r.step.text for r in run.records if isinstance(r.step, Item)]
    assert "What would you do?" in said and f"I love {leak}." not in said


SMALL = "conversations:mode=text,sessions=2,questions=1"


def remembered(out, url, *more, options="retries=0"):
    return main(["remember", "run", "--probe", SMALL, "--reader",
                 f"openai:base_url={url},model=m,{options}", "--out", str(out), *more])  # fmt: skip


def test_a_server_that_is_not_there_is_not_asked_at_every_question(tmp_path, capsys):
    assert remembered(tmp_path, unused_url(), "--memory", "none", "--memory", "full") == 1
    *_, first, line = capsys.readouterr().err.splitlines()
    assert first.startswith(f"bench_tasks: {SMALL} seed 0 none: PlannerError: model server 127.")
    assert "not asked after 3 calls in a row without an answer: model server 127.0.0.1:" in line
    (path,) = tmp_path.rglob("*.run.jsonl")
    run = read_run(path)
    assert run.storage_bytes is None and len(run.asked) == 3  # Broken off, and not scored.


def test_prompts_that_a_server_refuses_are_wrong_and_the_next_one_is_asked(tmp_path, capsys):
    right = ['{"answer": 1}']
    with ModelServer(*[error(400, "the prompt is too long")] * 5, *right) as server:
        assert remembered(tmp_path, server.url, "--memory", "full") == 1
    (path,) = tmp_path.rglob("*.run.jsonl")
    run = read_run(path)
    assert run.storage_bytes is not None and len(run.asked) == 9
    assert [bool(record.error) for record in run.asked] == [True] * 5 + [False] * 4
