"""Questions of all probes differ in the same ways, and but for what differs they are the same."""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest

from bench_tasks.errors import UsageError
from bench_tasks.probes import make_probe
from bench_tasks.probes.acted import tell_distances
from bench_tasks.probes.player import Record
from bench_tasks.probes.runs import Run
from bench_tasks.probes.stream import Asked, Item, Reply
from bench_tasks.probes.tables import rows_of, tables
from bench_tasks.probes.talk import meanings
from tests.bench_tasks.probes import conversation_solver, preference_solver
from tests.bench_tasks.probes import test_amemgym as amemgym
from tests.bench_tasks.probes import test_belief as belief
from tests.bench_tasks.probes import test_wikiprofile as wikiprofile

SMALL = {
    "conversations": "mode=text,sessions=6,questions=4,attributes=4",
    "belief": "mode=text,small_talk=2",
    "attacks": "mode=text,small_talk=2",
    "amemgym": "questions=5,periods=2,probes=false",
    "wikiprofile": "people=4,attributes=2,untold=1,words=2,sessions=3,repeats=2",
    "preferences": "scenarios=12,errands=3,small_talk=1",
}
SOLVERS = {
    "conversations": conversation_solver.Solver, "attacks": conversation_solver.Solver,
    "belief": belief.Solver, "amemgym": amemgym.Deriving, "wikiprofile": wikiprofile.Deriving,
    "preferences": preference_solver.Solver,
}  # fmt: skip
DIMENSIONS = ("modality", "people", "distractors", "paraphrase", "turns", "days")


@cache
def steps(spec, seed=0):
    """All steps for one who is always right."""
    made, found, reply = make_probe(spec).steps(seed), [], None
    while True:
        try:
            found.append(made.send(reply))
        except StopIteration:
            return tuple(found)
        reply = Reply(found[-1].gold) if isinstance(found[-1], Asked) else None


def scored(spec, seed=0):
    return [s for s in steps(spec, seed) if isinstance(s, Asked) and s.scored]


def derived(name, all_steps):
    """(derived again, gold) of each question, by the items alone."""
    solver = SOLVERS[name]()
    hear = getattr(solver, "hear", None) or solver.observe
    planted = {s.tags.get("attack") for s in all_steps if isinstance(s, Asked)}
    for step in all_steps:
        if isinstance(step, Item):
            if step.id not in planted:
                hear(step)
        elif step.scored:
            answer = solver.answer(step.query)
            yield getattr(answer, "text", answer), step.gold


@pytest.mark.parametrize("name", SMALL)
def test_in_other_words_the_same_is_asked_and_right(name):
    spec, plain = f"{name}:{SMALL[name]}", f"{name}:{SMALL[name]},paraphrase=false"
    ways = set()
    for seed in range(3):
        pairs = list(zip(steps(spec, seed), steps(plain, seed), strict=True))
        for one, other in pairs:
            if isinstance(one, Item):
                assert one == other
                continue
            tags = ({**step.tags, "paraphrase": ""} for step in (one, other))
            assert next(tags) == next(tags)
            for what in ("kind", "gold", "chance", "evidence", "scored"):
                assert getattr(one, what) == getattr(other, what)
            assert one.query.choices == other.query.choices
            mean = [[(m.kind, {} if m.kind == "cloze" else m.slots)
                     for m in meanings(step.query.text, asked=True)] for step in (one, other)]
            assert mean[0] == mean[1]
            if one.scored:
                ways.add(one.tags["paraphrase"])
                assert other.tags["paraphrase"] == "plain"
                same = one.query.text == other.query.text
                assert same == (one.tags["paraphrase"] == "plain")
        for played in (steps(spec, seed), steps(plain, seed)):
            for answer, gold in derived(name, played):
                assert answer == gold
    assert {"plain", "way 1"} <= ways


@pytest.mark.parametrize("name", SMALL)
def test_every_question_says_in_what_it_differs(name):
    for asked in scored(f"{name}:{SMALL[name]}"):
        assert {"modality", "people", "distractors", "paraphrase"} <= set(asked.tags)
        assert {"turns", "seconds"} <= set(asked.tags) or not asked.evidence


@pytest.mark.parametrize(
    ("name", "sizes", "counts"),
    [
        ("conversations", {"people": (2, 4), "small_talk": (0, 9)}, ((2, 4), (1, 10))),
        ("belief", {"bystanders": (0, 3), "small_talk": (0, 9)}, ((12, 15), (0, 9))),
        ("attacks", {"people": (2, 8), "small_talk": (0, 9)}, ((2, 8), (0, 9))),
        ("amemgym", {"chat": (0, 3)}, ((1,), (0, 3))),
        ("wikiprofile", {"people": (3, 6), "small_talk": (0, 9)}, ((3, 6), (3, 12))),
        ("preferences", {"people": (2, 3), "small_talk": (0, 9)}, ((2, 3), (1, 10))),
    ],
)
def test_sizes_take_turns_two_seeds_each(name, sizes, counts):
    given = dict(item.split("=") for item in SMALL[name].split(","))
    many = {key: f"{a}+{b}" for key, (a, b) in sizes.items()}
    many |= {key: value for key, value in given.items() if key not in sizes}
    spec = f"{name}:" + ",".join(f"{key}={value}" for key, value in many.items())
    seen = set()
    for k, chosen in enumerate(product(*sizes.values())):
        one = {**given, **dict(zip(sizes, chosen, strict=True))}
        alone = f"{name}:" + ",".join(f"{key}={value}" for key, value in one.items())
        for seed in (2 * k, 2 * k + 1):
            assert steps(spec, seed) == steps(alone, seed)
            for asked in scored(spec, seed):
                seen.add((asked.tags["people"], asked.tags["distractors"]))
                assert asked.chance == pytest.approx(1 / max(len(asked.query.choices), 1))
            for answer, gold in derived(name, steps(spec, seed)):
                assert answer == gold
    assert seen == set(product(*counts))


def test_one_table_for_each_way_in_which_questions_differ():
    spec = "conversations:mode=text,sessions=4,questions=2,people=2+4,small_talk=2+12"
    runs = [
        Run(spec, memory, seed, tuple(
            Record(s, Reply(s.gold if memory == "oracle" else "", abstained=memory == "none"))
            if isinstance(s, Asked) else Record(s) for s in steps(spec, seed)
        ), 0)
        for memory in ("oracle", "none") for seed in range(8)
    ]  # fmt: skip
    shown = tables(rows_of(runs), DIMENSIONS)
    for name, values in {
        "modality": ["text"], "people": ["2", "4"], "distractors": ["3", "13"],
        "paraphrase": ["plain", "way 1", "way 2"], "days": ["0-1 days", "1-3 days"],
        "turns": ["0-10 turns", "10-30 turns"],
    }.items():  # fmt: skip
        lines = shown[shown.index(f"{spec}: right, by {name}\n") :].split("\n\n")[0].splitlines()
        assert [line.split("  ")[0] for line in lines[2:]][: len(values)] == values
        assert all("100% (" in line for line in lines[2:])


def test_a_size_that_is_none_is_one_line():
    for spec, told in (
        ("attacks:people=2+x", "probe attacks: people must be a whole number"),
        ("attacks:people=2+99", "people must be 2 to "),
        ("attacks:mode=text+image", "mode must be image or text"),
    ):
        with pytest.raises(UsageError, match=told):
            make_probe(spec)


def test_acts_are_as_far_from_what_they_rest_on_as_answers_are():
    found = steps("preferences:scenarios=12,errands=3")
    wanted = [dict(s.tags) for s in found if isinstance(s, Asked)]
    bare = [Record(s) if isinstance(s, Item) else Record(
        Asked(s.query, s.kind, s.gold, s.chance), Reply("")) for s in found]
    tell_distances(bare)
    told = [record.step.tags for record in bare if isinstance(record.step, Asked)]
    assert told == [{k: v for k, v in tags.items() if k in ("turns", "seconds")} for tags in wanted]
    assert sum(bool(tags) for tags in told) > len(told) / 2
