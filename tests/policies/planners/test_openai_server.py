"""The openai planner against a real server, in the real simulation: when all is well, and not."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest
from model_server import BROKEN, HTML, ModelServer, completion, error, unused_url

from bench_tasks import tasks
from bench_tasks.bags import bag
from bench_tasks.bags.recording import BagSink
from bench_tasks.config import RunConfig
from bench_tasks.episode import Options, run_episode
from bench_tasks.errors import BenchError, UsageError
from bench_tasks.runner import run
from bench_tasks.vocabulary import Observation, Question
from policies import make_planner

KEY = 'sk-secret/with"quote-0123456789'
FAST = "backoff_s=0.01,timeout_s=0.3,deadline_s=3,retries=2,cameras=none"


def plan(*steps) -> str:
    return json.dumps({
        "visual_state_description": "a pot", "reasoning_and_reflection": "", "language_plan": "",
        "executable_plan": list(steps),
    })  # fmt: skip


def call(skill: str, arm: str, **args) -> dict:
    return {"skill": skill, "arm": arm, "args": args}


def lift_from_prompt(body: dict):
    """What a model that can read would answer: judged from the prompt's text alone."""
    content = body["messages"][-1]["content"]
    text = content if isinstance(content, str) else " ".join(p.get("text", "") for p in content)
    grasps = re.findall(r"\b(left|right)_handle\b", text)
    number = int(re.search(r"call number (\d+)", text)[1])
    if number == 1:
        assert "Task: Lift the pot" in text and {"left", "right"} <= set(grasps)
        return plan([call("grasp", arm, object="the pot", grasp=f"{arm}_handle")
                     for arm in ("left", "right")])  # fmt: skip
    assert "Your last plan was carried out" in text
    if number == 2:
        return plan([call("move_by", arm, offset=[0, 0, 0.16]) for arm in ("left", "right")])
    return plan()


def record(world, skills, planner, path: Path, task: str = "lift_pot", seed: int = 0):
    """One recorded episode: (verdict, events)."""
    sink = BagSink(path)
    verdict, _ = run_episode(tasks.get(task), seed, world, planner, skills, sink, Options())
    sink.writer.close()
    return verdict, bag.read_bag(path).events


def events_of(events, kind: str) -> list[dict]:
    return [event.data for event in events if event.kind == kind]


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def test_lift_pot_from_the_prompt_with_pictures_and_all_of_it_in_the_bag(world, skills, tmp_path):
    with ModelServer(lift_from_prompt) as server:
        planner = make_planner(
            f"openai:model=m,base_url={server.url},help=names,price_in=2,price_out=10"
        )
        verdict, events = record(world, skills, planner, tmp_path / "bag")
        assert verdict.success, verdict.cause
        first, second = server.requests[:2]
        assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert first["model"] == "m" and first["response_format"]["type"] == "json_schema"
    pictures = [p for p in first["messages"][-1]["content"] if p["type"] == "image_url"]
    assert len(pictures) == 2
    sent = base64.b64decode(pictures[0]["image_url"]["url"].partition("base64,")[2])
    recorded = {frame.camera: frame.data for frame in bag.frames(tmp_path / "bag") if not frame.seq}
    assert sent == recorded["head"]
    assert [m["role"] for m in second["messages"]] == ["system", "user", "assistant", "user"]

    plans = events_of(events, "plan")
    told = plans[0]["transcript"]
    assert told["model"] == "m" and told["help"] == "names" and told["prompt_version"] == "v1"
    assert told["tokens"] == {"prompt": 100, "answer": 20}
    assert told["cost_usd"] == pytest.approx(100 * 2e-6 + 20 * 10e-6)
    assert plans[1]["transcript"]["episode"]["tokens"] == 240
    assert told["repairs"] == [] and told["parsed"]["executable_plan"] and plans[0]["raw"]
    images = [p["image"] for m in told["messages"] for p in m["parts"] if "image" in p]
    assert hashlib.sha256(recorded["head"]).hexdigest() in images
    texts = {**told["texts"], **plans[1]["transcript"]["texts"]}
    named = {
        p["text"] for m in plans[1]["transcript"]["messages"] for p in m["parts"] if "text" in p
    }
    assert named <= set(texts), "every text of the prompt can be found again"


FAILURES = {
    "refuses": (["x"], "connection refused", 3),
    "stalls": (["stall"], "no complete answer within 0.3 s", 3),
    "trickles": (["trickle"], "no complete answer within 0.3 s", 3),
    "breaks off": (["drop"], "the connection broke off", 3),
    "half an answer": (["half"], "the answer broke off after", 3),
    "500": ([error(500, "boom")], "status 500 Internal Server Error: boom", 3),
    "429 for ever": ([error(429, "slow down")], "status 429 Too Many Requests: slow down", 3),
    "429 for an hour": (
        [error(429, "quota", Retry_After="3600")], "no time for another try in 3 s", 1
    ),
    "401 that repeats the key": ([error(401, f"wrong key {KEY}")], "401 Unauthorized: wrong", 1),
    "404": ([error(404, "no such model")], "status 404 Not Found: no such model", 1),
    "HTML": ([HTML], "HTML, not JSON: is base_url right?", 1),
    "HTML error": ([(502, {}, "<html>bad gateway</html>")], "status 502 Bad Gateway: an HTML", 3),
    "redirect": ([(302, {"Location": "/login"}, "")], "status 302, a redirect", 1),
    "broken JSON": ([BROKEN], "broken JSON", 3),
    "other JSON": ([{"hello": KEY}], "no chat completion", 1),
    "a list": ([(200, {}, "[]")], "no chat completion", 1),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILURES)
def test_a_failing_server_ends_the_episode_with_its_reason(name, world, skills, tmp_path):
    script, reason, tries = FAILURES[name]
    with ModelServer(*script) as server:
        url = unused_url() if name == "refuses" else server.url
        planner = make_planner(f"openai:model=m,base_url={url},{FAST}")
        verdict, events = record(world, skills, planner, tmp_path / "bag")
    assert not verdict.success and verdict.cause.startswith("planner error: model server 127.0.0.1")
    assert reason in verdict.cause and "\n" not in verdict.cause
    (failure,) = events_of(events, "planner_error")
    assert len(failure["transcript"]["attempts"]) == tries
    assert failure["transcript"]["messages"], "the prompt is kept though no answer came"
    hidden_in(tmp_path, events)


def hidden_in(folder: Path, events=()) -> None:
    """The key is nowhere in the recorded events nor in any file."""
    text = json.dumps([[e.kind, e.data] for e in events], ensure_ascii=False)
    forms = (KEY, json.dumps(KEY)[1:-1], json.dumps(json.dumps(KEY)[1:-1])[1:-1])
    assert not any(form in text for form in forms) and "sk-secret" not in text
    for file in folder.rglob("*"):
        if file.is_file():
            assert b"sk-secret" not in file.read_bytes(), file


def test_a_server_that_recovers_is_asked_again_after_what_it_says(world, skills, tmp_path):
    script = [error(429, "slow", Retry_After="0"), error(500, "boom"), lift_from_prompt]
    with ModelServer(*script) as server:
        options = f"openai:model=m,base_url={server.url},help=names,{FAST}"
        verdict, events = record(world, skills, make_planner(options), tmp_path / "bag")
    assert verdict.success, verdict.cause
    attempts = events_of(events, "plan")[0]["transcript"]["attempts"]
    assert [a.get("status") for a in attempts] == [429, 500, None]
    assert [a.get("wait_s") for a in attempts] == [0.0, 0.02, None]


def test_what_a_server_does_not_know_is_left_out_and_told(world, skills, tmp_path):
    def picky(body):
        for field in ("response_format", "max_tokens"):
            if field in body:
                return error(400, f"Unsupported parameter: '{field}'")
        assert body["max_completion_tokens"] == 2048
        return plan()

    with ModelServer(picky) as server:
        planner = make_planner(f"openai:model=m,base_url={server.url},{FAST}")
        _, events = record(world, skills, planner, tmp_path / "bag")
        told = events_of(events, "plan")[0]["transcript"]["attempts"]
        assert [a.get("left_out") for a in told] == ["response_format", "max_tokens", None]
        count = len(server.requests)
        record(world, skills, planner, tmp_path / "again")
        assert len(server.requests) == count + 1, "it is remembered"


MALFORMED = {
    "nonsense": ("I shall lift the pot.", "no JSON object"),
    "empty": ("", "the answer is empty"),
    "no plan": ('{"plan": []}', "needs executable_plan"),
    "unknown skill": (plan([call("fly", "left")]), "step 1: unknown skill 'fly'"),
    "wrong arm": (plan([call("open", "middle")]), "unknown arm 'middle'"),
    "unknown object": (plan([call("grasp", "left", object="kettle")]), "called 'kettle'"),
    "one arm twice": (plan([call("open", "left"), call("home", "left")]), "both calls are for"),
    "stray field": (plan([{"skill": "open", "arm": "left", "object": "pot"}]), "belongs into args"),
    "surrogate": (plan([call("\ud800", "left")]), "unknown skill"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_plan_is_refused_and_the_model_told_why(name, world, skills, tmp_path):
    answer, reason = MALFORMED[name]
    with ModelServer(answer, plan()) as server:
        planner = make_planner(f"openai:model=m,base_url={server.url},{FAST}")
        verdict, events = record(world, skills, planner, tmp_path / "bag")
        told = server.requests[1]["messages"][-1]["content"]
    assert "Your last answer was refused" in told and reason in told
    first, second = events_of(events, "plan")
    assert reason in first["refused"] and not second["refused"]
    assert verdict.cause.startswith("goal not reached")


def test_a_model_that_never_talks_sense_fails_with_that_reason(world, skills, tmp_path):
    with ModelServer("lorem ipsum") as server:
        planner = make_planner(f"openai:model=m,base_url={server.url},history=single,{FAST}")
        verdict, events = record(world, skills, planner, tmp_path / "bag")
        assert len(server.requests) == tasks.get("lift_pot").max_plans
    assert verdict.cause == "malformed plan: no JSON object in the answer"


def test_broken_json_is_repaired_and_the_repair_recorded(world, skills, tmp_path):
    with ModelServer('```json\n{"executable_plan": [],\n "language_plan": "done",}') as server:
        planner = make_planner(f"openai:model=m,base_url={server.url},{FAST}")
        _, events = record(world, skills, planner, tmp_path / "bag")
    (only,) = events_of(events, "plan")
    assert only["transcript"]["repairs"] and not only["refused"]


def test_an_answer_that_was_cut_off_is_refused(world, skills, tmp_path):
    with ModelServer(completion(plan(), finish_reason="length"), plan()) as server:
        planner = make_planner(f"openai:model=m,base_url={server.url},{FAST}")
        _, events = record(world, skills, planner, tmp_path / "bag")
    assert "cut off after 2048 tokens" in events_of(events, "plan")[0]["refused"]


def test_a_budget_ends_the_episode(world, skills, tmp_path):
    with ModelServer("nonsense") as server:
        spec = f"openai:model=m,base_url={server.url},budget_calls=2,{FAST}"
        verdict, _ = record(world, skills, make_planner(spec), tmp_path / "bag")
    assert verdict.cause == "planner error: budget spent: 2 of 2 calls"


def test_a_question_is_answered_and_scored(world, skills, tmp_path):
    def answer(body):
        properties = body["response_format"]["json_schema"]["schema"]["properties"]["answers"]
        items = list(properties["properties"])
        return json.dumps({"reasoning": "", "answers": {items[0]: "Left", items[1]: "both"}})

    with ModelServer(answer) as server:
        planner = make_planner(f"openai:model=m,base_url={server.url},{FAST}")
        _, events = record(world, skills, planner, tmp_path / "bag", "spatial_sparse")
    (given,) = events_of(events, "answer")
    assert list(given["values"].values()) == ["left"] and len(given["transcript"]["notes"]) == 2


def test_a_nonsense_answer_to_a_question_is_a_malformed_answer(world, skills, tmp_path):
    with ModelServer("left, I think") as server:
        planner = make_planner(f"openai:model=m,base_url={server.url},{FAST}")
        verdict, events = record(world, skills, planner, tmp_path / "bag", "spatial_sparse")
    assert verdict.cause == "malformed answer: no JSON object in the answer"
    assert events_of(events, "answer_refused")[0]["raw"] == "left, I think"


def test_pictures_shown_before_are_remembered_unless_memory_is_off(world, skills, tmp_path):
    for history, count in (("multi", 3), ("single", 1)):
        with ModelServer('{"answers": {"red_block": "middle"}}', plan()) as server:
            options = f"model=m,base_url={server.url},history={history},cameras=head"
            record(world, skills, make_planner(f"openai:{options}"), tmp_path / history,
                   "cover_blocks")  # fmt: skip
            content = server.requests[0]["messages"][-1]["content"]
        assert sum(part["type"] == "image_url" for part in content) == count


def test_what_people_said_is_told_to_the_model_unless_memory_is_off(world):
    scene, state = world.reset("spatial_sparse", 0)
    heard = (("Ana", "My hobby is chess."), ("Ben", "Hm."))
    question = Question("hobby", "What is Ana's hobby?", {"Ana": ("chess", "fencing")})
    for history, told in (("multi", True), ("single", False)):
        with ModelServer('{"answers": {"Ana": "chess"}}') as server:
            options = f"model=m,base_url={server.url},history={history},cameras=none"
            planner = make_planner(f"openai:{options}")
            planner.reset(scene, 0)
            planner.observe(Observation(state, heard=heard))
            planner.ask(question, Observation(state))
            text = json.dumps(server.requests[0]["messages"])
        assert ("Ana says: My hobby is chess." in text) is told
        assert ("Ben says: Hm." in text) is told


def test_the_run_goes_on_and_every_episode_is_accounted_for(world, tmp_path):
    with ModelServer(error(400, "no"), lift_from_prompt) as server:
        spec = f"openai:model=m,base_url={server.url},help=names,{FAST}"
        config = RunConfig(("lift_pot",), spec, episodes=2, cameras=(), out=str(tmp_path / "run"))
        result = run(config, world)
    first, second = result.episodes
    assert result.evaluated and first.scored and second.success, second.cause
    assert first.cause.startswith("planner error: model server") and "400" in first.cause
    hidden_in(tmp_path)


def test_a_run_over_a_server_that_fails_in_every_way_is_a_run(tmp_path, capsys):
    """Each episode has its status and reason, the exit status says that all were evaluated."""
    from bench_tasks.cli import main

    ways = [
        ("stall", "no complete answer within 1 s"), ("half", "the answer broke off after"),
        (error(500, "boom"), "status 500 Internal Server Error: boom"),
        (error(429, "slow down"), "status 429 Too Many Requests: slow down"),
        (HTML, "HTML, not JSON: is base_url right?"), ("drop", "the connection broke off"),
        (BROKEN, "broken JSON"), (lift_from_prompt, ""),
    ]  # fmt: skip
    out = tmp_path / "run"
    with ModelServer(*(way for way, _ in ways)) as server:
        spec = f"openai:model=m,base_url={server.url},{FAST},retries=0,timeout_s=1,help=names"
        assert main([
            "run", "--tasks", "spatial_sparse,lift_pot", "--episodes", "4", "--planner",
            f"{spec},price_in=2",
            "--out", str(out), "--cameras", "", "--json",
        ]) == 0  # fmt: skip
    found = json.loads(capsys.readouterr().out)["episodes"]
    assert [(e["task"], e["seed"]) for e in found] == [
        (task, seed) for task in ("spatial_sparse", "lift_pot") for seed in range(4)
    ]
    for episode, (_, reason) in zip(found, ways, strict=True):
        assert episode["scored"] and episode["agrees"] and episode["success"] == (not reason)
        assert reason in episode["cause"] and "\n" not in episode["cause"]
        if reason:
            where = server.url.removeprefix("http://").removesuffix("/v1")
            assert episode["cause"].startswith(f"planner error: model server {where}: ")
            assert episode["usage"]["calls"] == episode["usage"]["errors"] == 1
    status = json.loads((out / "run.json").read_text())
    assert status["status"] == "complete" and status["evaluated"] == status["agreeing"] == 8
    good = found[-1]["usage"]
    assert (good["calls"], good["tokens_in"], good["tokens_out"]) == (3, 300, 60)
    assert good["cost_usd"] == pytest.approx(600e-6) and good["latency_s"] > 0.0
    assert main(["score", str(out), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)["episodes"]
    assert sorted(again, key=lambda e: (e["task"] != "spatial_sparse", e["seed"])) == found
    assert main(["report", str(out)]) == 0
    page = re.sub("<[^>]+>", " ", (out / "report.html").read_text())
    table = page[page.index("What the planner cost") :]
    assert re.search(r"openai:m:names +8 +10 +0 +7 +\d\.\d\d +300 +\(3 calls\)", table), table[:300]
    hidden_in(tmp_path)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("openai:modle=x", "unknown option of planner openai 'modle': choose from api_key_env,"),
        ("openai:api_key=sk-1", "unknown option of planner openai 'api_key'"),
        ("openai:model", "each option is key=value"),
        ("openai:retries=two", "retries must be a whole number"),
        ("openai:model=m,timeout_s=0", "timeout_s must be above 0"),
        ("openai:help=lots", "unknown level of help 'lots': choose from names, none"),
        ("openai:history=some", "unknown history"),
        ("openai:model=m,structured=x", "unknown structured"),
        ("openai:prompt=v0", "unknown prompt version 'v0': choose from v1"),
        ("openai:model=m,base_url=http://u:sk-1@h/v1", "must hold no credentials"),
        ("openai:model=m,base_url=ftp://h", "must be like http"),
        ("expert:help=none", "takes no options"),
        ("openai:nowhere.yaml", "cannot read nowhere.yaml"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_named_and_no_value_that_could_be_secret_shown(spec, message):
    with pytest.raises(UsageError) as caught:
        make_planner(spec)
    assert message in str(caught.value) and "sk-1" not in str(caught.value)


def test_options_come_from_yaml_too(tmp_path):
    file = tmp_path / "model.yaml"
    file.write_text("format_version: 1\nmodel: m\ncameras: [head]\nretries: 1\n")
    planner = make_planner(f"openai:{file},help=poses")
    assert (planner.options.model, planner.options.cameras, planner.options.help) == (
        "m", ("head",), "poses",
    )  # fmt: skip
    assert planner.metadata.privileged and planner.metadata.name == "openai:m:poses"
    file.write_text("model: m\n")
    with pytest.raises(UsageError, match="format_version: 1"):
        make_planner(f"openai:{file}")


def test_a_key_that_no_header_can_carry_is_not_shown(monkeypatch, world):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret\r\nX: y")
    planner = make_planner(f"openai:model=m,base_url={unused_url()},{FAST}")
    planner.reset(world.reset("lift_pot", 0)[0], 0)
    from bench_tasks.vocabulary import Observation, PlanRequest

    with pytest.raises(BenchError, match="no header can carry") as caught:
        planner.plan(PlanRequest("", Observation(world.state), 0))
    assert "sk-secret" not in str(caught.value)
