"""`bench_tasks remember`: probes are played with memories, kept, and scored again."""

from __future__ import annotations

import importlib.util
import json
from html import escape

import pytest

from bench_tasks.cli import main
from bench_tasks.probes.player import Record
from bench_tasks.probes.scores import costs, score
from bench_tasks.probes.stream import Asked, Item, Query, Reply
from bench_tasks.probes.tables import Row, read_runs, tables

SMALL = "conversations:mode=text,sessions=4,questions=2"


def ran(capsys, *args):
    status = main(["remember", *map(str, args)])
    out, err = capsys.readouterr()
    return status, out, err


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    folder = tmp_path_factory.mktemp("remember") / "runs"
    args = ["remember", "run", "--probe", SMALL, "--out", str(folder), "--json"]
    for memory in ("none", "full", "oracle"):
        args += ["--memory", memory]
    return folder, main(args)


def test_the_oracle_knows_all_and_none_nothing(played, capsys):
    folder, status = played
    assert status == 0
    status, out, _ = ran(capsys, "score", folder, "--json")
    rows = {row["memory"]: row for row in json.loads(out)["rows"]}
    assert rows["oracle"]["total"]["accuracy"] == rows["full"]["total"]["accuracy"] == 1.0
    none = rows["none"]["total"]
    assert none["count"] == 18 and none["abstained"] == 16 and none["right"] == 1
    assert none["guessing"] == pytest.approx(none["chance"]), "who says nothing is at chance"
    assert {row["seeds"] for row in rows.values()} == {1}
    assert all(row["cost"]["storage_bytes"] > 0 for row in rows.values())
    assert len(rows["full"]["by"]["kind"]) == 9


def test_only_the_records_are_left_and_scores_are_dated(played, capsys):
    folder, _ = played
    ran(capsys, "score", folder)
    files = sorted(path.name for path in folder.rglob("*") if path.is_file())
    runs = [name for name in files if name.endswith(".run.jsonl")]
    scores = [name for name in files if name.startswith("memory-") and name.endswith(".json")]
    assert runs == ["full.run.jsonl", "none.run.jsonl", "oracle.run.jsonl"]
    assert len(scores) >= 2 and len(files) == len(runs) + len(scores)


def test_the_table_shows_what_is_asked_for(played, capsys):
    folder, _ = played
    _, out, _ = ran(capsys, "score", folder, "--by", "kind,turns")
    by_kind = out[out.index(f"{SMALL}: right, by kind") :].splitlines()
    assert by_kind[1].split() == ["kind", "full", "none", "oracle", "chance", "questions"]
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in by_kind[2:11]}
    assert rows["AR"] == "100% (34-100) 50% (9-91) 100% (34-100) 50% 2"
    assert rows["TR"] == "100% (34-100) 0% (0-66) 100% (34-100) 17% 2"
    assert f"{SMALL}: right, by turns" in out
    head, first, *_ = out.splitlines()
    assert head == SMALL and first.split()[:2] == ["memory", "right"]
    assert max(map(len, out.splitlines()[:-1])) <= 100  # The last line names a file.
    second = out.split("\n\n")[1].splitlines()
    assert second[0].split()[-4:] == ["s/session", "ms/question", "storage", "kB"]
    assert [line.split()[0] for line in second[1:]] == ["full", "none", "oracle"]
    status, _, err = ran(capsys, "score", folder, "--by", "weather")
    assert status == 2 and "cannot split by 'weather': choose from days, difficulty" in err


def test_the_page_shows_what_was_right_and_what_the_others_rested_on(played, capsys, tmp_path):
    folder, _ = played
    status, out, _ = ran(capsys, "report", folder, "--out", tmp_path / "page.html")
    assert status == 0 and out == f"written to {tmp_path / 'page.html'}\n"
    text = (tmp_path / "page.html").read_text()
    assert text.startswith("<!doctype html>") and text.endswith("</html>\n")
    assert f"<h2>{SMALL}</h2>" in text and "18/18 <span class=soft>82\u202f% to 100" in text
    assert "CRR: Cross-modal Related Retrieval; KR: Knowledge Resolution" in text
    assert "none: 12 of 17 answers that were not right" in text and "full: " not in text
    (run,) = (r for r in read_runs(folder) if r.memory == "none")
    said = {r.step.id: r.step.text for r in run.records if isinstance(r.step, Item)}
    first = next(r.step for r in run.asked if r.step.kind == "UPR")
    lines = " / ".join(escape(said[one]) for one in first.evidence)
    assert escape(first.query.text) in text and lines.split(" / ")[0] in text


def test_values_are_in_order_and_what_memories_were_asked_may_differ():
    def row(name, **turns):
        by = {"turns": {v: score([Record(Asked(Query(f"q{k}", 0, "?", ("a", "b")), "k", "a", 0.5),
                                         Reply("a")) for k in range(n)])
                        for v, n in turns.items()}}  # fmt: skip
        whole = score([])
        return Row("p", name, 1, 0, whole, by, ("a", 1.0), costs([]), 0.0, {})

    rows = [row("full", **{"30-100 turns": 2, "100-300 turns": 3}),
            row("none", **{"0-10 turns": 1, "30-100 turns": 4})]  # fmt: skip
    shown = tables(rows, ["turns"]).split("p: right, by turns\n")[1]
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert lines == ["turns full none chance questions", "0-10 turns - 100% (21-100) 50% 1",
                     "30-100 turns 100% (34-100) 100% (51-100) 50% 2 to 4",
                     "100-300 turns 100% (44-100) - 50% 3"]  # fmt: skip


def test_tables_of_many_memories_are_folded_and_nothing_of_them_is_lost():
    question = Asked(Query("q", 0, "?", ("a", "b" * 50)), "k", "b" * 50, 0.5)
    found = score([Record(question, Reply("a"))])
    names = [f"memory_{k}:items={10**k}" for k in range(9)]
    rows = [Row("p", name, 1, 0, found, {"kind": {"k": found}}, ("b" * 50, 1.0), costs([]), 0.0,
                {f"a long name of number {n}": float(n) for n in range(6)})
            for name in names]  # fmt: skip
    shown = tables(rows)
    assert max(map(len, shown.splitlines())) <= 100
    by_kind = shown[shown.index("p: right, by kind") : shown.index("p: what it")]
    assert all(by_kind.count(name) == 1 for name in names) and by_kind.count("kind  ") == 3
    besides = shown[shown.index("p: what it measures besides") :]
    assert all(f"a long name of number {n}" in besides for n in range(6))
    assert "100% bbbbbbbbbbbb..." in shown


def test_what_is_about_recordings_says_where_probes_are_scored(played, capsys):
    folder, _ = played
    for command in ("report", "score"):
        assert main([command, str(folder)]) == 2
        assert f"bench_tasks remember report {folder}, or remember score" in capsys.readouterr().err


def test_a_broken_off_run_is_counted_and_not_scored(played, capsys, tmp_path):
    folder, _ = played
    (whole,) = folder.rglob("full.run.jsonl")
    lines = whole.read_text().splitlines()
    (tmp_path / "cut.run.jsonl").write_text("\n".join(lines[:-1]) + "\n")
    status, out, _ = ran(capsys, "score", tmp_path)
    assert status == 1 and "1 runs were broken off and are not scored" in out and "0/0" in out
    assert "nan" not in out and out.splitlines()[2].split()[1:5] == ["0/0", "-", "-", "-"]


def test_everything_is_listed(capsys):
    status, out, _ = ran(capsys, "list")
    assert status == 0 and "memory none\n" in out
    assert "probe conversations:sessions=8,people=3,questions=6,small_talk=10,attr" in out


def test_what_is_not_installed_is_listed_as_such(capsys, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "torch" else find(name, *a)
    )
    why = "needs torch and transformers: pip install -r requirements/policies.txt"
    assert f"memory rag (not here: memory rag {why})\n" in ran(capsys, "list")[1]
    status, _, err = ran(capsys, "run", "--memory", "mma", "--out", "unused")
    assert status == 2 and err == f"bench_tasks: memory mma {why}\n"


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--probe", "gossip"], "unknown probe 'gossip': choose from "),
        (["--memory", "elephant"], "unknown memory 'elephant': choose from "),
        (["--memory", "full:size=3"], "memory full takes no options, got size"),
        (["--by", "kind,foo"], "cannot split by 'foo': choose from days, difficulty, "),
        (["--pictures", "FILE"], "cannot write to FILE"),
        (["--pictures", "FILE/x", "--probe", "attacks"], "cannot write to FILE/x: Not a directory"),
        (["--reader", "expert"], "unknown model 'expert': choose from "),
        (["--user", "openai:model=m", "--probe", SMALL],
         "probe conversations has nobody that a model could play"),
        (["--seeds", "3", "--probe", "h2hmem:dir=DATA,mode=text"],
         "probe h2hmem:dir=DATA,mode=text: there are 2 dialogues: no seed 2"),
        (["--probe", "conversations:mode=text,sessions=2,questions=50"],
         "2 sessions do not say enough for 50 questions of type"),
        (["--probe", SMALL, "--probe", SMALL.replace(",", ", ")], "would have the same file"),
    ],
)
def test_mistakes_are_one_line_before_anything_is_played(
    capsys, tmp_path, monkeypatch, args, told
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "FILE").touch()
    for k in (1, 2):
        (tmp_path / f"DATA/dialogue{k}/scenes").mkdir(parents=True)
    status, _, err = ran(capsys, "run", "--out", tmp_path / "new", *args)
    assert status == 2 and told in err and len(err.splitlines()) == 1
    assert not list(tmp_path.rglob("*.jsonl"))


def test_what_was_played_is_not_played_over(played, capsys):
    folder, _ = played
    status, _, err = ran(capsys, "run", "--probe", SMALL, "--memory", "full", "--out", folder)
    assert status == 2 and "exists already: choose another folder" in err


def test_what_is_written_in_the_published_layout_is_played_and_its_faults_are_told(
    capsys, tmp_path
):
    data = tmp_path / "data"
    status, out, _ = ran(capsys, "write", "--probe", SMALL, "--seeds", 2, "--out", data)
    assert status == 0 and f"2 conversations written to {data}" in out
    (data / "dialogue2" / "scenes" / "session2" / "questions.json").unlink()
    status, out, err = ran(
        capsys, "run", "--probe", f"h2hmem:dir={data},mode=text", "--memory", "full", "--seeds", 2,
        "--out", tmp_path / "runs", "--json",
    )  # fmt: skip
    assert err.count("bench_tasks: dialogue2/session2: no questions.json") == 1
    (row,) = json.loads(out)["rows"]
    assert status == 0 and row["seeds"] == 2 and row["total"]["accuracy"] == 1.0


def test_nothing_is_written_when_a_part_of_it_is_there(capsys, tmp_path):
    (tmp_path / "set" / "dialogue2").mkdir(parents=True)
    args = ["write", "--probe", SMALL, "--seeds", 2, "--out", tmp_path / "set"]
    status, _, err = ran(capsys, *args)
    assert status == 2 and "dialogue2 exists already: choose another folder" in err
    assert not (tmp_path / "set" / "dialogue1").exists()
    (tmp_path / "file").touch()
    for more in (["--out", tmp_path / "file/x"], ["--pictures", tmp_path / "file/x", "--probe",
                                                  "conversations"]):  # fmt: skip
        status, _, err = ran(capsys, *args, "--out", tmp_path / "new", *more)
        assert status == 2 and "file/x: Not a directory" in err
        assert not list(tmp_path.glob("new/*"))


def test_a_folder_without_runs_is_named(capsys, tmp_path):
    status, _, err = ran(capsys, "score", tmp_path)
    assert status == 2 and f"no *.run.jsonl and no bag of a probe in {tmp_path}" in err


def test_users_are_written_as_published_and_played_from_there_as_well(tmp_path, capsys):
    probe = "amemgym:questions=3,periods=1,changes=2"
    args = ("write", "--probe", probe, "--seeds", "2", "--out", tmp_path / "set")
    assert ran(capsys, *args)[0] == 0
    assert len(json.loads((tmp_path / "set" / "data.json").read_text())) == 2
    status, _, err = ran(capsys, *args)
    assert status != 0 and "data.json exists already: choose another folder" in err
    status, out, _ = ran(capsys, "run", "--probe", f"amemgym:dir={tmp_path / 'set'}", "--seeds",
                         "2", "--memory", "structured", "--out", tmp_path / "runs", "--json")
    (row,) = json.loads(out)["rows"]
    assert status == 0 and row["total"]["right"] == row["total"]["count"] == 2 * 2 * 3
    assert row["more"]["upper bound"] == row["more"]["memory score"] == 1
