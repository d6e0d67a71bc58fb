"""Facts have the profile that they should: golds are right, and nothing can be guessed."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import numpy as np
import pytest

from bench_tasks.errors import UsageError
from bench_tasks.probes import make_probe, report
from bench_tasks.probes.player import Record
from bench_tasks.probes.runs import Run
from bench_tasks.probes.stream import Asked, Item, Reply, step_from_json, step_to_json
from bench_tasks.probes.talk import meanings
from bench_tasks.probes.wikiprofile_scores import PROFILES, profiles
from bench_tasks.probes.words import WORDS
from tests.bench_tasks.probes.chance import at_chance, chances
from tests.bench_tasks.probes.conversation_solver import OWN, Solver

SEEDS = range(5)


def played(answer, seed=0, spec="wikiprofile"):
    steps, records, reply = make_probe(spec).steps(seed), [], None
    while True:
        try:
            step = steps.send(reply)
        except StopIteration:
            return records
        reply = answer(step) if isinstance(step, Asked) else None
        records.append(Record(step, reply))


def silent(asked):
    return Reply("", abstained=True)


@cache
def steps(seed):
    return tuple(r.step for r in played(silent, seed))


class Deriving(Solver):
    """By SQL over what was said, or what stands in the items word by word."""

    def __init__(self):
        super().__init__()
        self.said = []

    def hear(self, item):
        super().hear(item)
        self.said.append((item.speaker, item.text))

    def answer(self, query):
        (asked,) = meanings(query.text, asked=True)
        slots = asked.slots
        if asked.kind == "cloze":
            told = [re.search(re.escape(slots["start"]) + r" (.+?)\.", text)
                    for who, text in self.said if who == slots["person"]]
            told = [match[1] for match in told if match]
            return told[-1] if told else ""
        if asked.kind == "whose":
            sql = """SELECT DISTINCT speaker FROM said WHERE kind = 'has'
                     AND attribute = :attribute AND value = :value"""
            rows = self._db.execute(sql, slots).fetchall()
            return rows[0][0] if len(rows) == 1 else ""
        if asked.kind == "in_context":
            row = self._db.execute(f"{OWN} ORDER BY n DESC LIMIT 1", slots).fetchone()
            return row[0] if row else ""
        return super().answer(query)


def test_five_hundred_golds_are_derived_again():
    agreed = Counter()
    for seed in SEEDS:
        solver = Deriving()
        for step in steps(seed):
            if isinstance(step, Item):
                solver.hear(step)
            elif step.scored:
                assert solver.answer(step.query) == step.gold, step
                agreed[step.kind] += 1
            elif step.kind != "encoding" and step.tags["status"] == "untold":
                assert solver.answer(step.query) in ("", "Not mentioned"), "nobody said it"
    assert set(agreed) == {"encoding", "direct", "reverse", "inferred"} and sum(
        agreed.values()) > 500 < agreed["direct"]  # fmt: skip


def test_evidence_alone_answers_and_no_part_of_it_can_be_spared():
    items = {s.id: s for s in steps(0) if isinstance(s, Item)}
    for asked in [s for s in steps(0) if isinstance(s, Asked) and s.scored][:200]:
        for spared in (None, *asked.evidence):
            solver = Deriving()
            for one in asked.evidence:
                if one != spared:
                    solver.hear(items[one])
            assert (solver.answer(asked.query) == asked.gold) == (spared is None)


def test_every_fact_is_asked_for_in_every_way_as_often_and_nothing_is_said_after():
    found = Counter()
    asking = False
    for step in steps(1):
        asking = asking or isinstance(step, Asked)
        assert isinstance(step, Asked) == asking
        if asking:
            found[step.tags["status"], step.tags["probe"]] += 1
    told, untold, words = 24 * 3, 8 * 3, 6 * 3
    ways = ("completed", "in context", "direct 0", "direct 2", "reverse 0", "reverse 1")
    assert found == {**{("told", way): told for way in ways},
                     **{("untold", way): untold for way in ways},
                     **{("inferable", way): words for way in
                        ("completed 0", "completed 1", "direct 0", "direct 1")}}  # fmt: skip


def test_what_must_be_inferred_is_never_said():
    for step in steps(2):
        for meaning in meanings(step.text) if isinstance(step, Item) else ():
            assert not (meaning.kind == "lies" and meaning.slots["object"] in WORDS)


def test_no_constant_or_blind_answer_beats_chance():
    """Of each fact one question of a kind, over many histories."""
    spec = "wikiprofile:repeats=1,sessions=2,small_talk=0,rumours=1"
    asked = [r.step for seed in range(40) for r in played(silent, seed, spec)
             if isinstance(r.step, Asked) and r.step.scored]  # fmt: skip
    for kind, ways in (("encoding", ("completed",)), ("direct", ("direct 0",)),
                       ("reverse", ("reverse 0",)), ("inferred", ("direct 0",))):  # fmt: skip
        mine = [a for a in asked if a.kind == kind and a.tags["probe"] in ways]
        assert len(mine) >= 240 and {a.chance for a in mine} == {1 / 8}
        for place in (0, -1):
            right = sum(a.gold == a.query.choices[place] for a in mine)
            assert at_chance(right, chances(mine), 8), (kind, place)
        answers = {choice for a in mine for choice in a.query.choices}
        for text in answers:
            among = [a for a in mine if text in a.query.choices]
            right = sum(a.gold == text for a in among)
            assert at_chance(right, chances(among), 4 * len(answers)), (kind, text)
        half = len(mine) // 2
        favour = Counter(a.gold for a in mine[:half])
        favour.subtract(c for a in mine[:half] for c in a.query.choices if c != a.gold)
        right = sum(max(a.query.choices, key=lambda c: (favour[c], c)) == a.gold
                    for a in mine[half:])  # fmt: skip
        assert at_chance(right, chances(mine[half:]), 4)


def names(answer, status="told", **options):
    spec = "wikiprofile:" + ",".join(f"{key}={value}" for key, value in options.items())
    return {one.name for one in profiles(played(answer, 0, spec.rstrip(":")))
            if one.status == status}  # fmt: skip


def right_at(*kinds):
    """Right at probes of these names or kinds, silent at others."""
    def answer(asked):
        name = asked.tags["probe"]
        kind = "encoding" if asked.kind == "encoding" else name.split()[0]
        return Reply(asked.gold) if {name, kind} & set(kinds) else silent(asked)

    return answer


@pytest.mark.parametrize(
    ("kinds", "profile"),
    [
        ((), 0), (("encoding",), 1), (("encoding", "direct", "reverse"), 2),
        (("completed", "direct", "reverse"), 2), (("in context", "direct", "reverse"), 2),
        (("encoding", "direct"), 3), (("encoding", "reverse"), 3), (("direct", "reverse"), 4),
        (("reverse",), 4), (("encoding", "direct 0", "reverse"), 3),
        (("encoding", "direct 2", "reverse"), 3), (("encoding", "direct", "reverse 1"), 3),
        (("encoding", "direct 2", "reverse 1"), 1),
    ],
)  # fmt: skip
def test_each_profile_is_named(kinds, profile):
    assert names(right_at(*kinds), repeats=1) == {PROFILES[profile]}


@pytest.mark.parametrize(("end", "profile"), [("reverse", 3), ("direct", 1)])
def test_what_follows_takes_the_place_of_a_wrong_answer_from_the_value_to_the_person(end, profile):
    """Not the other way round: a wrong value of a person is not seen to be wrong."""
    def answer(asked):
        if asked.tags["probe"].startswith(end):
            return Reply(next(c for c in sorted(asked.query.choices) if c != asked.gold))
        return Reply(asked.gold)

    assert names(answer, repeats=1) == {PROFILES[profile]}


def test_thinking_must_leave_one_answer():
    """Each value has somebody else said to have it by half of the questions: two remain."""
    def answer(asked):
        if asked.kind == "encoding":
            return Reply(asked.gold)
        if asked.tags["probe"] == "direct 0":
            return Reply(sorted(asked.query.choices)[sorted(asked.query.choices).index(
                asked.gold) // 2 * 2])  # fmt: skip
        return silent(asked)

    assert names(answer, repeats=1) == {PROFILES[1]}


@pytest.mark.parametrize(
    ("repeats", "right", "profile"), [(3, 2, 2), (3, 1, 0), (4, 2, 0), (4, 3, 2), (1, 1, 2)]
)
def test_right_is_what_is_right_in_more_than_half_of_the_repeats(repeats, right, profile):
    def answer(asked):
        return Reply(asked.gold) if asked.tags["repeat"] < right else silent(asked)

    assert names(answer, repeats=repeats) == {PROFILES[profile]}


def test_who_guesses_seems_to_know_little():
    rng = np.random.default_rng(0)
    found = [one for seed in SEEDS for one in profiles(
        played(lambda a: Reply(str(rng.choice(a.query.choices))), seed))]
    share = sum(one.encoded for one in found) / len(found)
    assert share < 0.15 and not any(one.known for one in found)


def test_the_report_has_shares_of_what_was_told_and_of_what_was_not():
    records = tuple(played(right_at("encoding")))
    found = report("wikiprofile", [Run("wikiprofile", "m", 0, records, 0)])
    assert found["encoded but not recalled"] == 1 and found["not encoded"] == 0
    assert sum(found[name] for name in PROFILES[:4]) + found["told, inferred"] == 1
    none = report("wikiprofile", [Run("wikiprofile", "m", 0, tuple(played(silent)), 0)])
    assert none["not encoded"] == none["untold, not encoded"] == 1
    assert none["inferable, inferred"] == 0


def test_the_same_seed_gives_the_same_history_and_steps_are_read_as_written():
    first = [step_to_json(step) for step in steps(3)]
    assert first == [step_to_json(r.step) for r in played(silent, 3)]
    assert [step_to_json(step_from_json(line)) for line in first] == first
    assert first != [step_to_json(step) for step in steps(4)]


@pytest.mark.parametrize(
    ("spec", "told"),
    [("wikiprofile:people=9", "people must be 3 to 8, got 9"),
     ("wikiprofile:untold=8", "untold must be 0 to 7, got 8")],
)  # fmt: skip
def test_options_that_cannot_be_are_told(spec, told):
    with pytest.raises(UsageError, match=told):
        make_probe(spec)
