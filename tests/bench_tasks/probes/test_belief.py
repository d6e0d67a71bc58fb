"""Golds are right, no rule that looks past the evidence gains, and no constant answer wins."""

from __future__ import annotations

import sqlite3
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import product

import pytest

from bench_tasks.errors import UsageError
from bench_tasks.probes import make_probe, report
from bench_tasks.probes.belief_scores import Answered, answered, core, fair, points
from bench_tasks.probes.player import Record
from bench_tasks.probes.runs import Run
from bench_tasks.probes.stream import UNKNOWN, Asked, Item, Reply, step_from_json, step_to_json
from bench_tasks.probes.talk import meanings

SEEDS = range(84)  # 504 verdicts
SEEN = "SELECT colour FROM said WHERE kind = 'calls' AND name = :name"
RIGHT = """SELECT sum(CASE WHEN s.value = c.colour THEN 1 ELSE -1 END) FROM said s JOIN said c
           ON c.name = s.name AND c.kind = 'calls' WHERE s.kind = 'looks' AND s.speaker = l.speaker
           AND s.n < :since"""
WORD = f"""SELECT value FROM said l WHERE kind IN ('looks', 'unsure') AND name = :name
           AND ({RIGHT}) > 0 AND n = (SELECT max(n) FROM said o WHERE o.speaker = l.speaker
           AND o.name = l.name AND o.kind IN ('looks', 'unsure'))"""


class Solver:
    """Another way to the truth: SQL over what the items say."""

    def __init__(self) -> None:
        self._db = sqlite3.connect(":memory:")
        self._db.execute("CREATE TABLE said (n, speaker, kind, name, value, colour)")
        self._db.execute("CREATE INDEX of_name ON said (name, kind)")
        self._db.execute("CREATE INDEX of_speaker ON said (speaker, kind)")
        self._n = 0

    def hear(self, item):
        self._n += 1
        colour = item.picture.caption.split()[4] if item.picture else None
        for meaning in meanings(item.text):
            row = (self._n, item.speaker, meaning.kind, meaning.slots.get("name"),
                   meaning.slots.get("value"), colour)
            self._db.execute("INSERT INTO said VALUES (?, ?, ?, ?, ?, ?)", row)

    def answer(self, query):
        name = meanings(query.text, asked=True)[0].slots["name"]
        since = self._db.execute("SELECT min(n) FROM said WHERE name = ?", (name,)).fetchone()[0]
        for sql in (SEEN, WORD):
            row = self._db.execute(sql, {"name": name, "since": since}).fetchone()
            if row and row[0]:
                return row[0]
        return UNKNOWN


@cache
def steps(seed, spec="belief:mode=text,small_talk=0"):
    return list(make_probe(spec).steps(seed))


def test_five_hundred_golds_are_derived_again():
    agreed = Counter()
    for seed in SEEDS:
        solver, gold = Solver(), ""
        for step in steps(seed):
            if isinstance(step, Item):
                solver.hear(step)
                continue
            if step.scored:
                gold = solver.answer(step.query)
            assert step.gold == gold, step
            agreed[step.kind, step.tags["step"]] += 1
    assert agreed["B", "verdict"] == 168 and agreed["R", "reflection"] == 84
    assert sum(n for (_, step), n in agreed.items() if step == "verdict") == 504


def test_evidence_is_what_the_truth_rests_on():
    for seed in range(6):
        items = {s.id: s for s in steps(seed) if isinstance(s, Item)}
        for asked in (s for s in steps(seed) if isinstance(s, Asked)):
            told = [items[one] for one in asked.evidence]
            assert len(told) == (asked.gold != UNKNOWN)
            for one in told:
                (meaning,) = meanings(one.text)
                expected = "looks" if asked.kind == "R" else "calls"
                assert meaning.kind == expected and one.stamp_ns < asked.query.stamp_ns
                assert asked.gold in (meaning.slots.get("value"), *one_colour(one))


def one_colour(item):
    return item.picture.caption.split()[4:5] if item.picture else []


RULES = {
    "first choice": lambda asked, said: asked.query.choices[0],
    "last choice": lambda asked, said: asked.query.choices[-1],
    "UNKNOWN": lambda asked, said: UNKNOWN,
    "what the reliable one says": lambda asked, said: asked.tags["sides"][0],
    "what the other says": lambda asked, said: asked.tags["sides"][1],
    "the last word": lambda asked, said: said[-1],
    "what is said most": lambda asked, said: Counter(said).most_common(1)[0][0],
}  # fmt: skip

@cache
def cases():
    """Each verdict that is asked for, with what people said of it."""
    found = []
    for seed in SEEDS:
        told: dict[str, list[str]] = {}
        for step in steps(seed):
            if isinstance(step, Item):
                for meaning in meanings(step.text):
                    if meaning.kind == "looks":
                        told.setdefault(meaning.slots["name"], []).append(meaning.slots["value"])
            elif step.scored:
                name = meanings(step.query.text, asked=True)[0].slots["name"]
                found.append((step, told[name]))
    return found


@pytest.mark.parametrize("rule", RULES)
def test_no_rule_that_looks_past_the_evidence_is_better_than_chance(rule):
    assert sum(RULES[rule](asked, said) == asked.gold for asked, said in cases()) == 168


def constant(asked, slot, wager):
    """The case when the answer is always in this slot (reliable's, other's, UNKNOWN)."""
    answer = (*asked.tags["sides"], UNKNOWN)[slot]
    return Answered(asked.kind, asked.gold, tuple(asked.tags["sides"]), answer, wager, answer)


WAGERS = [(a, b, 100 - a - b) for a, b in product(range(0, 101, 20), repeat=2) if a + b <= 100]


def test_always_unknown_wins_core_as_published_among_constants_but_no_constant_wins_the_fair_one():
    asked = [s for seed in range(4) for s in steps(seed) if isinstance(s, Asked) and s.scored]
    found = {
        (slot, wager): [constant(one, slot, wager) for one in asked]
        for slot in range(3) for wager in [*WAGERS, (100 / 3,) * 3, (0, 0, 0)]
    }  # fmt: skip
    published = {key: core(cases) for key, cases in found.items()}
    assert max(published, key=published.__getitem__) == (2, (0, 0, 100))
    assert published[2, (0, 0, 100)] == pytest.approx(0.5)
    just = {key: fair(cases) for key, cases in found.items()}
    assert max(just.values()) == pytest.approx(0.0, abs=1e-12)
    assert just[2, (0, 0, 100)] == pytest.approx(-0.5)
    perfect = [replace(constant(one, (*one.tags["sides"], UNKNOWN).index(one.gold), (0, 0, 0)),
                       wager=tuple(100.0 * (c == one.gold) for c in (*one.tags["sides"], UNKNOWN)))
               for one in asked]  # fmt: skip
    assert core(perfect) == fair(perfect) == pytest.approx(1.0)


def case(kind, gold, verdict, wager, reflection=""):
    return Answered(kind, gold, ("red", "blue"), verdict, wager, reflection)


def test_core_is_the_formulas():
    assert core([case("A", "red", "red", (80, 0, 20))], "A") == pytest.approx(0.5 + 0.4)
    assert core([case("B", "blue", "red", (80, 15, 5))], "B") == pytest.approx(0.5 * 0.15)
    assert core([case("C", UNKNOWN, UNKNOWN, (20, 20, 60))], "C") == pytest.approx(0.6)
    assert core([case("D", UNKNOWN, "red", (90, 0, 10))], "D") == pytest.approx(0.1 - 1)
    assert core([case("D", UNKNOWN, "", (0, 0, 0))], "D") == -1, "no answer is not UNKNOWN"
    assert core([case("A", "red", "red", (80, 0, 20))]) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("red 70, blue 10, UNKNOWN 20", (70, 10, 20)),
        ("I put 100 points: unknown: 55; red = 45.", (45, 0, 55)),
        ("red 90, blue 60, UNKNOWN 50", (45, 30, 25)),
        ("red 40.5", (40.5, 0, 0)),
        ("I would rather not", (0, 0, 0)),
        ("", (0, 0, 0)),
    ],
)
def test_points_are_read(text, found):
    assert points(text, ("red", "blue", UNKNOWN)) == pytest.approx(found)


def played(answer, spec="belief:mode=text", seeds=range(2)):
    """Runs in which `answer(asked)` is the reply."""
    runs = []
    for seed in seeds:
        probe, records, reply = make_probe(spec).steps(seed, lambda still: b"picture"), [], None
        while True:
            try:
                step = probe.send(reply)
            except StopIteration:
                break
            reply = Reply(answer(step)) if isinstance(step, Asked) else None
            records.append(Record(step, reply))
        runs.append(Run(spec, "m", seed, tuple(records), 1))
    return runs


def test_scr_and_fcr_count_what_reflection_turns():
    def turns(asked):
        a, b = asked.tags["sides"]
        return {"verdict": a, "wager": f"{a} 100", "reflection": b}[asked.tags["step"]]

    found = report("belief", played(turns))
    # A and R are right at first and turned, the two of B wrong and put right, C and D stay wrong.
    assert found["FCR"] == 1 and found["SCR"] == pytest.approx(0.5)
    assert found["actionable"] == pytest.approx(1 / 3) and found["answered"] == 1
    assert found["always_UNKNOWN"] == pytest.approx(0.5) and found["placebo_D"] is None


def test_who_is_made_sure_by_a_picture_has_a_placebo_gap():
    def fooled(asked):
        text = asked.tags["sides"][0] if asked.tags["mode"] == "image" else UNKNOWN
        return f"{text} 100" if asked.tags["step"] == "wager" else text

    runs = played(fooled, "belief:mode=both", range(4))
    assert report("belief:mode=both", runs)["placebo_D"] == pytest.approx(1 - -1)
    steady = played(lambda a: f"{UNKNOWN} 100" if a.tags["step"] == "wager" else UNKNOWN,
                    "belief:mode=both", range(4))  # fmt: skip
    assert report("belief:mode=both", steady)["placebo_D"] == 0


def test_twins_differ_in_nothing_but_the_pictures():
    kind = make_probe("belief:mode=both")
    seen, told = (list(kind.steps(seed, lambda still: b"picture")) for seed in (4, 5))
    for one, other in zip(seen, told, strict=True):
        if isinstance(one, Item):
            assert (one.text, one.speaker, one.stamp_ns) == (other.text, other.speaker,
                                                             other.stamp_ns)
            if one.picture:
                assert one.picture.data and not other.picture.data
                assert other.picture.caption and not one.picture.caption
        else:
            assert (one.query, one.gold) == (other.query, other.gold)
            assert (one.tags["mode"], other.tags["mode"]) == ("image", "text")


def test_the_reflection_names_the_verdict():
    def answer(asked):
        if asked.tags["step"] == "reflection":
            assert asked.tags["sides"][1] in asked.query.text
        return asked.tags["sides"][1]

    assert len(answered(played(answer)[0].records)) == 6


def test_the_same_seed_is_the_same_and_lies_in_ten_sessions_of_six_months():
    first = [step_to_json(step) for step in steps(3)]
    again = [step_to_json(step) for step in make_probe("belief:mode=text,small_talk=0").steps(3)]
    assert first == again != [step_to_json(step) for step in steps(4)]
    assert [step_to_json(step_from_json(line)) for line in first] == first
    items = [s for s in steps(3) if isinstance(s, Item)]
    assert len({item.session for item in items}) == 10 and len({i.id for i in items}) == len(items)
    stamps = [item.stamp_ns for item in items]
    assert stamps == sorted(stamps)
    assert 150 < (stamps[-1] - stamps[0]) / 86_400e9 < 190


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("belief:mode=sound", "mode must be image, text or both, got 'sound'"),
        ("belief:noise=0", "noise must be 1 to 20, got 0"),
        ("belief:bystanders=9", "bystanders must be 0 to 4, got 9"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(spec, told):
    with pytest.raises(UsageError, match=told):
        make_probe(spec)


def test_pictures_need_a_renderer():
    with pytest.raises(UsageError, match="mode=image needs a renderer"):
        next(make_probe("belief").steps(0))
