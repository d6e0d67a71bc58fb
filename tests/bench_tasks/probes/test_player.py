"""A probe played with a memory, its file, and its scores."""

from __future__ import annotations

import dataclasses
import itertools
import random
from pathlib import Path

import pytest

from bench_tasks.errors import BenchError, UsageError
from bench_tasks.memory_runs import played, run_path
from bench_tasks.probes import make_probe
from bench_tasks.probes.player import Record, play, storage_bytes
from bench_tasks.probes.runs import Run, RunWriter, read_run
from bench_tasks.probes.scores import (
    best_constant,
    bleu_1,
    costs,
    is_right,
    overlap,
    score,
    split,
)
from bench_tasks.probes.stream import NOT_MENTIONED, Asked, Item, Query, Reply
from bench_tasks.probes.tables import read_runs, rows_of, tables
from policies.memory import make_memory
from tests.bench_tasks.probes.conversation_solver import Solver


class Solving:
    """Knows all."""

    def __init__(self):
        self.solver, self.count = Solver(), 0

    def observe(self, item):
        self.count += 1
        self.solver.hear(item)

    def answer(self, query):
        return Reply(self.solver.answer(query))

    def snapshot(self):
        return b"x" * self.count


class Guessing(Solving):
    """Knows nothing and says something."""

    def observe(self, item):
        self.rng = random.Random(0)

    def answer(self, query):
        return Reply(self.rng.choice(query.choices), 1 / len(query.choices))


class Failing(Solving):
    """Breaks at every question."""

    def answer(self, query):
        raise ZeroDivisionError("no room")


def conversation(seed=0):
    return make_probe("conversations:mode=text").steps(seed)


def ask(gold="tea", *choices, chance=0.25, **tags):
    return Asked(Query("q", 0, "What?", choices), "UPR", gold, chance, (), tags)


def test_every_step_is_played_and_timed():
    ticks = itertools.count()
    memory = Solving()
    records = play(conversation(), memory, clock=lambda: float(next(ticks)))
    assert [r.step for r in records] == list(conversation())
    assert all(r.seconds == 1.0 and not r.error for r in records)
    assert storage_bytes(memory) == memory.count == sum(r.reply is None for r in records)
    cost = costs(records)
    assert cost["questions"] == 54 and cost["seconds_per_question"] == 1.0
    assert cost["seconds_per_session"] * cost["sessions"] == memory.count


def test_what_a_memory_does_before_it_is_asked_is_the_last_items_time():
    clock = [0.0]

    class Late(Solving):
        def observe(self, item):
            super().observe(item)
            clock[0] += 1.0

        def settle(self):
            clock[0] += 100.0

    records = play(conversation(), Late(), clock=lambda: clock[0])
    steps = list(conversation())
    assert [r.step for r in records] == steps
    for record, after in zip(records, [*steps[1:], None], strict=True):
        asked_next = not isinstance(after, Item)
        item = isinstance(record.step, Item)
        assert record.seconds == (101.0 if item and asked_next else float(item))


def test_who_knows_all_is_right_and_who_guesses_at_chance():
    records = [r for seed in range(6) for r in play(conversation(seed), Solving())]
    assert score(records).accuracy == 1.0 and score(records).f1 == 1.0
    records = [r for seed in range(6) for r in play(conversation(seed), Guessing())]
    found = score(records)
    assert found.count == 6 * 54 and found.low < found.chance < found.high
    assert best_constant([r.step for r in records if isinstance(r.step, Asked)])[1] < found.high


def test_what_a_memory_raises_is_on_record_and_never_right():
    records = play(conversation(), Failing())
    asked = [r for r in records if r.reply is not None]
    assert {r.error for r in asked} == {"ZeroDivisionError: no room"}
    found = score(records)
    assert (found.right, found.errors, found.abstained) == (0, 54, 48)
    (row,) = rows_of([Run("p", "failing", 3, tuple(records), 0)])
    first = f"seed 3, question {asked[0].step.query.id}: ZeroDivisionError: no room"
    assert f"p: failing raised something 54 times, first at {first}\n" in tables([row])


class Deaf(Solving):
    """Hears nothing, and answers with what is no reply."""

    def observe(self, item):
        raise OSError("no room")

    def answer(self, query):
        return "tea"


def test_what_is_raised_when_it_only_listens_counts_as_well_and_a_text_is_no_reply():
    steps = [Item("i0", 0, "s", "Ana", "Hello."), Asked(Query("q0", 1, "Who?"), "k", "Ana", 0.0)]
    (row,) = rows_of([Run("p", "deaf", 0, tuple(play((s for s in steps), Deaf())), 0)])
    assert row.errors == 2 and row.total.errors == 1
    assert row.first_error == "seed 0, item i0: OSError: no room"
    (asked,) = (r for r in play((s for s in steps[1:]), Deaf()))
    assert asked.error == "ValueError: an Item, an Asked or a Reply is wanted, got 'tea'"


def test_a_probe_is_sent_the_replies_and_a_memory_that_wants_is_told_the_evidence():
    got, told = [], []

    def steps():
        got.append((yield Item("i", 1, "s", "Ana", "Hm.")))
        got.append((yield Asked(Query("q", 2, "What?"), "K", "x", 0.5, ("i",))))
        got.append((yield Item("j", 3, "s", "Ana", "No.", about="q")))

    memory = Solving()
    memory.answer = lambda query: Reply("x")
    memory.tell = told.append
    play(steps(), memory)
    assert got == [None, Reply("x"), None] and told == [("i",)]


def test_a_run_is_read_as_it_was_written_and_scored_again(tmp_path):
    path = tmp_path / "a" / "x.run.jsonl"
    writer = RunWriter(path, "conversations:mode=text", "solving", 0)
    records = play(conversation(), Solving(), writer.keep)
    writer.close(123)
    run = read_run(path)
    kept = tuple(dataclasses.replace(r, seconds=round(r.seconds, 7)) for r in records)
    assert run == Run("conversations:mode=text", "solving", 0, kept, 123)
    assert split(run.records) == split(records)


def test_a_broken_off_run_and_a_broken_one_are_told_apart(tmp_path):
    path = tmp_path / "x.run.jsonl"
    writer = RunWriter(path, "p", "m", 0)
    writer.keep(Record(Item("i", 1, "s", "Ana", "Hm.")))
    writer.close()
    assert read_run(path).storage_bytes is None
    path.write_text(path.read_text() + '{"asked": 1}\n')
    with pytest.raises(UsageError, match="x.run.jsonl line 3: 'seconds'"):
        read_run(path)
    path.write_text('{"run": {"format_version": 9}}\n')
    with pytest.raises(UsageError, match="line 1: format_version must be 1"):
        read_run(path)


def test_words_in_common():
    found = overlap("The red, RED mug", "a red mug there")
    assert (found.precision, found.recall) == (2 / 3, 1 / 2)
    assert found.f1 == pytest.approx(4 / 7)
    assert overlap("", "x").f1 == overlap("x", "").f1 == 0.0
    # "red" counts once, as often as in the gold; three words against four: e^(1 - 4/3).
    assert bleu_1("red red mug", "a red mug there") == pytest.approx(2 / 3 * 0.7165313105737893)
    assert bleu_1("a red mug there is", "a red mug there") == 4 / 5
    assert bleu_1("", "x") == 0.0


def test_a_choice_must_be_the_gold_to_the_letter_and_free_text_its_words():
    assert is_right(ask("tea", "tea", "milk"), Reply("tea"))
    assert not is_right(ask("tea", "tea", "milk"), Reply("Tea"))
    assert is_right(ask("in the top drawer"), Reply(" In the top drawer."))
    assert not is_right(ask("A -> B"), Reply("B -> A"))
    assert not is_right(ask(""), Reply(""))


def test_abstaining_is_an_answer_where_it_may_be_one_and_else_counted_apart():
    silent = Reply("", abstained=True)
    refused = Reply(NOT_MENTIONED, abstained=True)
    records = [
        Record(ask("tea", "tea", "milk", "rum", "gin"), Reply("tea")),
        Record(ask("tea", "tea", "milk", "rum", "gin"), Reply("milk")),
        Record(ask("tea", "tea", "milk", "rum", "gin"), silent),
        Record(ask(NOT_MENTIONED, "tea", NOT_MENTIONED, chance=0.5), refused),
        Record(ask("tea", "tea", NOT_MENTIONED, chance=0.5), refused),
        Record(ask("tea", chance=0.125), refused),
        Record(ask("tea", chance=0.5, refusal=True), refused),
    ]
    found = score(records)
    assert (found.count, found.right, found.abstained, found.errors) == (7, 2, 2, 0)
    assert found.chance == 2.375 / 7 and found.guessing == pytest.approx((2 + 0.25 + 0.125) / 7)
    assert score([]).count == 0


def test_results_are_split_by_what_questions_differ_in():
    records = [
        Record(ask("a", turns=9, seconds=100, people=2, modality="text"), Reply("a")),
        Record(ask("a", turns=10, seconds=86_400 * 30, people=2, modality="both"), Reply("b")),
        Record(ask("a", turns=2000, seconds=0, people=4), Reply("a")),
        Record(Item("i", 1, "s", "Ana", "Hm.")),
    ]
    found = {name: {value: (s.right, s.count) for value, s in groups.items()}
             for name, groups in split(records).items()}  # fmt: skip
    assert found["turns"] == {"0-10 turns": (1, 1), "10-30 turns": (0, 1), "1000+ turns": (1, 1)}
    assert found["days"] == {"0-1 days": (2, 2), "30-100 days": (0, 1)}
    assert found["people"] == {"2": (1, 2), "4": (1, 1)}
    assert found["modality"] == {"both": (0, 1), "text": (1, 1)}
    assert found["kind"] == {"UPR": (2, 3)} and found["paraphrase"] == {}


def test_the_best_constant_answer_is_found():
    asked = [ask("a", "a", "b"), ask("b", "b", "c"), ask("b", "b", "a")]
    assert best_constant(asked) == ("the first choice", 1.0)
    assert best_constant([ask("a", "b", "a"), ask("a", "a", "b")]) == ("'a'", 1.0)


def test_what_is_not_scored_is_played_and_kept_but_no_question(tmp_path):
    turn = dataclasses.replace(ask("", turn=1), query=Query("t", 0, "?"), scored=False)
    records = [Record(ask("a", "a", "b"), Reply("a")), Record(turn, Reply("Hm?"))]
    assert (score(records).count, score(records).right) == (1, 1)
    assert split(records)["kind"]["UPR"].count == 1
    assert best_constant([ask("a", "a", "b"), turn])[1] == 1.0
    path = tmp_path / "x.run.jsonl"
    writer = RunWriter(path, "p", "m", 0)
    for record in records:
        writer.keep(record)
    writer.close(0)
    assert list(read_run(path).records) == records


class Counting:
    """A probe of somebody's own, as far as it measures."""

    @staticmethod
    def report(runs):
        asked = [record for run in runs for record in run.asked]
        return {"questions": float(len(asked)), "nothing": None}


def test_what_a_probe_alone_measures_is_shown_in_a_table_of_its_own(monkeypatch):
    name = f"{__name__}.Counting:a=1"
    runs = [Run(name, "m", seed, (Record(ask("a", "a", "b"), Reply("a")),), 0)
            for seed in (0, 1)]  # fmt: skip
    rows = rows_of([*runs, Run(name, "m", 2, (), None), Run("not.Here", "m", 0, (), 0)])
    assert [row.more for row in rows] == [{"questions": 2.0, "nothing": None}, {}]
    shown = tables(rows).split(f"{name}: what it measures besides\n")[1]
    assert [line.split() for line in shown.splitlines()[:2]] == [
        ["memory", "questions", "nothing"], ["m", "2", "-"]]  # fmt: skip
    for wrong in ({"a": "b"}, {1: 2.0}, None):
        monkeypatch.setattr(Counting, "report", lambda runs, wrong=wrong: wrong)
        with pytest.raises(UsageError, match="Counting:a=1: a run has not what .* is measured by"):
            rows_of(runs)


def lines_of(tmp_path):
    path = tmp_path / "p-0" / "m.run.jsonl"
    writer = RunWriter(path, "conversations:mode=text", "m", 0)
    memory = Solving()
    memory.answer = lambda query: Reply("tea")
    steps = (step for step in (Item("i", 5, "s", "Ana", "Tea."), ask("tea", "tea", "milk")))
    steps = (dataclasses.replace(s, query=dataclasses.replace(s.query, stamp_ns=6))
             if isinstance(s, Asked) else s for s in steps)  # fmt: skip
    for step in steps:
        reply = memory.answer(step) if isinstance(step, Asked) else None
        writer.keep(Record(step, reply))
    writer.close(7)
    return path, path.read_text().splitlines()


@pytest.mark.parametrize("old, new, says", [
    ('"gold": "tea"', '"gold": 3', "line 3: .*gold must be a text, got 3"),
    ('"gold": "tea"', '"gold": "\\ud800"', "line 3: .*gold must be a text"),
    ('"chance": 0.25', '"chance": NaN', "line 3: .*chance must be a finite number"),
    ('"chance": 0.25', '"chance": 2', "line 3: .*chance must be in"),
    ('"choices": ["tea", "milk"]', '"choices": "tea"', "line 3: .*choices must be a list of texts"),
    ('"tags": {}', '"tags": {"turns": "x"}', "line 3: .*tag turns must be a number"),
    ('"stamp_ns": 5', '"stamp_ns": "5"', "line 2: .*stamp_ns must be a whole number"),
    ('"stamp_ns": 5', f'"stamp_ns": {10**30}', "line 2: .*stamp_ns must be a whole number"),
    ('"session": "s"', '"session": []', "line 2: .*session must be a text"),
    ('"confidence": 1.0', '"confidence": null', "line 3: .*confidence must be a finite number"),
    ('"seed": 0', '"seed": true', "line 1: seed must be of type int"),
    ('"memory": "m"', '"memory": []', "line 1: memory must be of type str"),
    ('"storage_bytes": 7', '"storage_bytes": -7', "line 4: storage_bytes must be 0 or more"),
])  # fmt: skip
def test_a_run_edited_by_hand_is_one_line(tmp_path, old, new, says):
    path, lines = lines_of(tmp_path)
    text = "\n".join(lines)
    assert old in text
    path.write_text(text.replace(old, new) + "\n")
    with pytest.raises(UsageError, match=f"m.run.jsonl.*{says}"):
        read_run(path)


def test_what_is_copied_into_a_run_does_not_count_twice(tmp_path):
    path, lines = lines_of(tmp_path)
    for again, says in ((1, "item 'i' is there twice"), (2, "question 'q.*' is there twice"),
                        (3, "line 5: the run had ended before")):  # fmt: skip
        path.write_text("\n".join([*lines[: again + 1], *lines[again:]]) + "\n")
        with pytest.raises(UsageError, match=says):
            read_run(path)


def test_wherever_a_run_was_cut_it_was_broken_off(tmp_path):
    path, lines = lines_of(tmp_path)
    whole = path.read_text()
    for size in range(len(whole)):
        path.write_text(whole[:size])
        run = read_run(path)
        assert run.storage_bytes is None
        assert len(run.records) == max(0, whole[:size].count("\n") - 1)
    assert tables(rows_of([run])).endswith("1 runs were broken off and are not scored\n")


def test_of_two_who_write_one_run_one_is_told(tmp_path):
    path, lines = lines_of(tmp_path)
    with pytest.raises(UsageError, match="exists already"):
        RunWriter(path, "other", "m", 0)
    assert path.read_text().splitlines() == lines


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_full_disk_is_one_line(tmp_path, monkeypatch):
    writer = RunWriter(tmp_path / "x.run.jsonl", "p", "m", 0)
    monkeypatch.setattr(writer, "_file", Path("/dev/full").open("w", buffering=1))
    with pytest.raises(BenchError, match="^cannot write .*: No space left on device$"):
        writer.keep(Record(Item("i", 1, "s", "Ana", "Hm.")))
    writer.close()


def test_what_a_memory_replies_that_is_no_reply_is_an_error():
    memory = Solving()
    for wrong in (None, "tea", Reply(None), Reply("tea", float("nan")), Reply("tea", used="ab")):
        memory.answer = lambda query, wrong=wrong: wrong
        (record,) = play((step for step in (ask("tea"),)), memory)
        assert record.error and record.reply == Reply("", 0.0, abstained=True)


TALK = "conversations:mode=text,sessions=2,questions=1,small_talk=1"


def test_two_memories_that_would_have_one_file_and_names_too_long_for_one(tmp_path):
    with pytest.raises(UsageError, match="would have the same file"):
        played([TALK], ["none", "none:"], range(1), tmp_path, tmp_path)
    long = "mma:sources=" + "+".join(f"Ana{k}=0.9" for k in range(40))
    other = long.replace("Ana39", "Ben39")
    first, second = (run_path(tmp_path, TALK, memory, 0) for memory in (long, other))
    assert first != second and len(first.name) < 200
    with pytest.raises(UsageError, match="File name too long"):
        make_probe(f"h2hmem:dir={'a' * 300}")


def test_what_a_killed_run_had_heard_is_not_known_to_the_next(tmp_path):
    played([TALK], ["full"], range(1), tmp_path / "a", tmp_path)
    left = run_path(tmp_path / "b", TALK, "full", 0).with_suffix(".run.sqlite")
    left.parent.mkdir(parents=True)
    memory = make_memory("full", left)
    memory.observe(Item("s01-0000", 1, "s01", "Ana", "Something else."))
    memory.close()
    first, second = (
        [(r.step, r.reply, r.error) for r in played([TALK], ["full"], range(1), out, tmp_path)[0]
         .records] for out in (tmp_path / "c", tmp_path / "b")
    )  # fmt: skip
    assert first == second and not any(error for *_, error in first)


def test_a_run_copied_into_the_folder_does_not_count_as_two(tmp_path):
    path, lines = lines_of(tmp_path)
    other = path.parent / "copy.run.jsonl"
    other.write_text("\n".join(lines[:-1]) + "\n")
    (row,) = rows_of(read_runs(tmp_path))
    assert (row.seeds, row.unfinished, row.total.count) == (2, 1, 1)
    other.write_text(path.read_text())
    with pytest.raises(UsageError, match="m.run.jsonl and .*copy.run.jsonl are both conversations"):
        read_runs(tmp_path)
