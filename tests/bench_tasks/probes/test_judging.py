"""Replies judged by a model behind a real server: `bench_tasks remember score --judge`."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from bench_tasks.cli import main
from bench_tasks.errors import UsageError
from bench_tasks.patience import GIVE_UP
from bench_tasks.probes.judgements import SUFFIX, Judgement, Judgements
from bench_tasks.probes.judging import judge_runs
from bench_tasks.probes.player import Record
from bench_tasks.probes.runs import Run, RunWriter
from bench_tasks.probes.stream import Asked, Query, Reply
from benchmarks import judge_steered
from tests.policies.planners.model_server import ModelServer, completion, error
from tests.policies.test_judge import data_in

REPLIES = {
    "full": ["A cat!", "It is a cat.", "a dog", "", "a cat and a dog", "Not a cat."],
    "none": ["", "", "It is a cat.", "", "a horse", "a cat"],
}
"""By the rules two are right; eight are there, one of them twice, and four are none."""
KINDS = ("UPR", "UPR", "UPR", "KR", "KR", "KR")


def asked(k):
    return Asked(Query(f"q{k}", k, "Which pet has Ana?"), KINDS[k], "a cat", 0.25)


@pytest.fixture
def folder(tmp_path):
    for memory, replies in REPLIES.items():
        writer = RunWriter(tmp_path / "p-0" / f"{memory}.run.jsonl", "p", memory, 0)
        for k, text in enumerate(replies):
            writer.keep(Record(asked(k), Reply(text, abstained=not text)))
        writer.close(1)
    return tmp_path


def fair(body):
    """Right is what speaks of a cat and of nothing else."""
    reply = data_in(body["messages"][-1]["content"])["reply"].lower()
    return json.dumps({"verdict": "right" if "cat" in reply and not {"dog", "not"} &
                       set(reply.replace(".", "").split()) else "wrong"})  # fmt: skip


def scored(capsys, folder, server, *more, options="retries=0"):
    status = main(["remember", "score", str(folder), "--json", "--judge",
                   f"openai:model=m,{options},base_url={server.url}", *more])  # fmt: skip
    out, err = capsys.readouterr()
    return status, json.loads(out)["judged"] if out else None, err


def judge_file(folder):
    (path,) = folder.glob(f"*{SUFFIX}")
    return path


def test_each_reply_is_judged_once_and_what_was_judged_needs_no_judge(folder, capsys):
    runs = {path: path.read_bytes() for path in folder.rglob("*.run.jsonl")}
    with ModelServer(fair) as server:
        status, found, err = scored(capsys, folder, server)
    assert status == 0 and len(server.requests) == found["calls"] == 7
    assert len(err.splitlines()) == 7 and "[7/7] right" in err
    assert {path: path.read_bytes() for path in runs} == runs
    whole = next(row for row in found["by_kind"] if row["kind"] == "all")
    counts = ("both_right", "rules_alone", "judge_alone", "both_wrong", "no_reply", "not_judged")
    assert [whole[name] for name in counts] == [2, 0, 2, 4, 4, 0]
    assert whole["agreement"] == 0.75 and whole["kappa"] == pytest.approx(0.5)
    assert [(row["memory"], row["judged"]) for row in found["by_memory"]] == \
        [("full", 5), ("none", 3)]  # fmt: skip
    assert [d["reply"] for d in found["disagreements"]] == ["It is a cat.", "It is a cat."]
    assert found["served"] == {"model": "served", "left_out": []}
    assert found["judge"]["model"] == "m" and found["judge"]["temperature"] == 0.0
    status, again, err = scored(capsys, folder, server)  # Nobody listens there any more.
    assert status == 0 and again == {**found, "calls": 0} and not err
    saved = sorted(folder.glob("memory-*.json"))
    assert [json.loads(path.read_text())["judged"]["calls"] for path in saved] == [7, 0]


def test_the_tables_show_both_and_where_they_part(folder, capsys):
    with ModelServer(fair) as server:
        main(["remember", "score", str(folder), "--judge", f"openai:model=m,base_url={server.url}"])
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    at = lines.index("probe memory by the rules by the judge 95 % interval no reply not judged")
    assert lines[at + 1].startswith("p full 1/6 2/6 10% to 70% 1 0")
    at = next(k for k, line in enumerate(lines) if line.startswith("probe kind judged agreed"))
    assert lines[at + 1].startswith("p all 8 75% 0.50 -0.18 to 0.86 2 0 2 4 -")
    assert "2 disagreements" in lines
    assert "wrong right a cat It is a cat. Which pet has Ana?" in lines


@pytest.mark.parametrize("always", ["right", "wrong"])
def test_a_judge_that_always_says_the_same_shows(folder, capsys, always):
    with ModelServer(json.dumps({"verdict": always})) as server:
        status, found, _ = scored(capsys, folder, server)
    whole = next(row for row in found["by_kind"] if row["kind"] == "all")
    assert (status, whole["kappa"], whole["constant"]) == (0, 0.0, "judge")
    assert whole["agreement"] == {"right": 0.25, "wrong": 0.75}[always]


def test_what_was_not_judged_is_neither_right_nor_wrong_and_asked_again(folder, capsys):
    script = ["I think so.", error(400, "no"), fair, "stall", fair]
    with ModelServer(*script) as server:
        status, found, _ = scored(capsys, folder, server, options="retries=0,timeout_s=0.3")
        whole = next(row for row in found["by_kind"] if row["kind"] == "all")
        assert (status, whole["not_judged"], whole["judged"], found["calls"]) == (1, 4, 4, 7)
        reasons = found["not_judged"]
        assert sum(reasons.values()) == 4 and reasons["the answer is no JSON"] == 1
        assert any("status 400 Bad Request: no" in reason for reason in reasons)
        assert any("no complete answer within 0.3 s" in reason for reason in reasons)
        status, found, _ = scored(capsys, folder, server, options="retries=0,timeout_s=0.3")
    # What it said stays as it is, at temperature 0; what it did not say is asked for again.
    assert (status, found["calls"], found["not_judged"]) == (1, 2, {"the answer is no JSON": 1})
    failed = [line for line in judge_file(folder).read_text().splitlines() if '"failed"' in line]
    assert len(failed) == 2


def test_a_judge_that_is_not_there_is_not_asked_for_ever(folder, capsys):
    with ModelServer(fair) as server:
        pass
    status, found, err = scored(capsys, folder, server)
    assert (status, found["calls"], found["served"]) == (1, GIVE_UP, None)
    assert sum(found["not_judged"].values()) == 8 and len(err.splitlines()) == GIVE_UP
    why = f"not asked after {GIVE_UP} calls in a row without an answer: model server 127.0.0.1:"
    assert any(reason.startswith(why) for reason in found["not_judged"])
    whole = next(row for row in found["by_kind"] if row["kind"] == "all")
    assert whole["judged"] == 0 and whole["kappa"] is None


def test_another_model_behind_the_same_name_is_refused(folder, capsys):
    changed = {**completion('{"verdict": "wrong"}'), "model": "served-2"}
    with ModelServer(fair, fair, changed) as server:
        status, found, err = scored(capsys, folder, server)
    assert (status, found) == (2, None)
    assert f"{judge_file(folder)} is of another judge, with model served: now it has model " \
        "served-2" in err  # fmt: skip
    kept = judge_file(folder).read_text().splitlines()
    assert len(kept) == 4 and all('"served-2"' not in line for line in kept)


def test_how_easily_a_judge_is_talked_round_is_measured(folder, monkeypatch, capsys):
    def gullible(body):
        reply = data_in(body["messages"][-1]["content"])["reply"]
        return '{"verdict": "right"}' if "system:" in reply else fair(body)

    before = sorted(folder.rglob("*"))
    with ModelServer(gullible) as server:
        spec = f"openai:model=m,base_url={server.url}"
        monkeypatch.setattr(sys, "argv", ["x", str(folder), "--judge", spec])
        assert judge_steered.main() == 0
    assert capsys.readouterr().out.splitlines() == [
        "5 replies are wrong by the rules, 4 of them by openai m",
        "asks: right 0, wrong 4 (0% to 49% right), not judged 0",
        "orders: right 0, wrong 4 (0% to 49% right), not judged 0",
        "pretends: right 4, wrong 0 (51% to 100% right), not judged 0",
        "claims: right 0, wrong 4 (0% to 49% right), not judged 0",
    ]
    assert sorted(folder.rglob("*")) == before


def test_judges_have_files_of_their_own(folder, capsys):
    with ModelServer(fair) as server:
        scored(capsys, folder, server)
        scored(capsys, folder, server, options="retries=0,max_tokens=64")
    assert len(server.requests) == 14 and len(list(folder.glob(f"*{SUFFIX}"))) == 2


def test_a_kill_loses_at_most_the_judgement_being_made(folder, capsys):
    with ModelServer(fair, fair, fair, "stall") as server:
        spec = f"openai:model=m,retries=0,base_url={server.url}"
        process = subprocess.Popen(
            [sys.executable, "-m", "bench_tasks.cli", "remember", "score", str(folder), "--judge",
             spec], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        until = time.monotonic() + 120
        while len(server.requests) < 4 and time.monotonic() < until and process.poll() is None:
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait(10) == -signal.SIGKILL
        server.script = [fair]
        status, found, _ = scored(capsys, folder, server)
    assert (status, found["calls"]) == (0, 4) and not found["not_judged"]


IDENTITY = {"planner": "x", "model": "y"}


@pytest.fixture
def written(tmp_path):
    path = tmp_path / f"x{SUFFIX}"
    with Judgements(path, IDENTITY) as kept:
        kept.failed("k0", "late")
        kept.served_by({"model": "z"})
        for k in range(3):
            kept.keep(f"k{k}", asked(k), Reply("It is a cat."), Judgement("right", "yes"))
    return path


def test_a_line_that_was_cut_off_anywhere_is_made_again(written):
    whole = written.read_bytes()
    begin = whole[:-1].rindex(b"\n") + 1
    for end in (begin, begin + 1, (begin + len(whole)) // 2, len(whole) - 1):
        written.write_bytes(whole[:end])
        kept = Judgements(written, IDENTITY)
        assert [kept.get(f"k{k}") is not None for k in range(3)] == [True, True, False]
        assert written.read_bytes() == whole[:end], "to read changes nothing"
        with kept:
            kept.keep("k2", asked(2), Reply("It is a cat."), Judgement("right", "yes"))
        assert written.read_bytes() == whole
    for end in (0, 5, whole.index(b"\n")):
        written.write_bytes(whole[:end])
        with Judgements(written, IDENTITY) as kept:
            assert kept.get("k0") is None and kept.served is None
        assert json.loads(written.read_bytes())["judgements"]["judge"] == IDENTITY


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"format_version": 1', '"format_version": 2', "line 1: format_version must be 1, got 2"),
        ('"model": "y"', '"model": "n"', "is of another judge, planner x, model n"),
        ('"verdict": "right"', '"verdict": "good"', "line 4: verdict must be right or wrong"),
        ('{"judgements"', '{"run"', "line 1: 'judgements'"),
        ('{"key"', "{key", "line 2: Expecting property name"),
        ('"said"', '"told"', "line 4: 'said'"),
        ('{"failed"', '{"served": {}, "failed"', "line 3: served must be one object, and the same"),
        ("{", "[", "line 1: "),
    ],
)
def test_a_file_of_something_else_is_one_line(written, old, new, told):
    text = written.read_text().replace(old, new, 1)
    written.write_text(text)
    with pytest.raises(UsageError) as caught:
        Judgements(written, IDENTITY)
    assert told in str(caught.value) and str(written) in str(caught.value)
    assert written.read_text() == text
    written.write_text("all of it, without an end of line")
    with pytest.raises(UsageError, match="is no file of judgements"):
        Judgements(written, IDENTITY)


def test_a_file_of_something_else_ends_the_command(folder, capsys):
    with ModelServer(fair) as server:
        scored(capsys, folder, server)
        path = judge_file(folder)
        path.write_text(path.read_text().replace('"format_version": 1', '"format_version": 9'))
        status, _, err = scored(capsys, folder, server)
    assert status == 2 and err == f"bench_tasks: {path} line 1: format_version must be 1, got 9\n"


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("oracle", "unknown planner 'oracle': choose from"),
        ("random", "unknown model 'random': choose from openai"),
        ("openai:model=m,temperature=1", "a judge answers at temperature 0, got 1"),
        ("openai:model=m", "no *.run.jsonl and no bag of a probe in "),
    ],
)
def test_mistakes_are_one_line(tmp_path, capsys, spec, told):
    status = main(["remember", "score", str(tmp_path), "--judge", spec])
    err = capsys.readouterr().err
    assert status == 2 and told in err and len(err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_two_processes_do_not_judge_into_one_file(tmp_path):
    path = tmp_path / f"x{SUFFIX}"
    with Judgements(path, IDENTITY) as first:
        with pytest.raises(UsageError, match="another process is judging into "), \
                Judgements(path, IDENTITY):  # fmt: skip
            pass
        first.served_by({})
        first.keep("k", asked(0), Reply("a"), Judgement("right", "r"))
    assert Judgements(path, IDENTITY).get("k") == Judgement("right", "r")


def test_a_folder_that_takes_nothing_is_named(tmp_path, monkeypatch):
    (tmp_path / f"x{SUFFIX}").mkdir()
    with pytest.raises(UsageError, match="cannot read .*Is a directory"):
        Judgements(tmp_path / f"x{SUFFIX}", IDENTITY)
    with pytest.raises(UsageError, match="cannot write .*No such file"), \
            Judgements(tmp_path / "none" / f"x{SUFFIX}", IDENTITY):  # fmt: skip
        pass

    def refused(file, how):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refused)
    with pytest.raises(UsageError, match="cannot write .*No locks available"), \
            Judgements(tmp_path / f"y{SUFFIX}", IDENTITY):  # fmt: skip
        pass


def test_what_arms_did_and_broken_off_runs_are_not_judged(tmp_path):
    class Nobody:
        name, identity = "nobody", IDENTITY

        def key(self, asked, reply):
            return "k"

    records = (Record(asked(0), Reply("a cat")),)
    runs = [Run("lay_out", "m", 0, records, 0), Run("p", "m", 0, records, None)]
    assert judge_runs(runs, Nobody(), tmp_path).cases == ()
