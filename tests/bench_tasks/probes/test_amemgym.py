"""On-policy talks: golds are right, nothing is guessed or leaked, and failures are explained."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.stats import binomtest

from bench_tasks.errors import UsageError
from bench_tasks.probes import make_probe, report
from bench_tasks.probes.amemgym import ROBOT, AMemGym, Options
from bench_tasks.probes.evolution import evolve
from bench_tasks.probes.interaction_scores import Outcome, outcomes
from bench_tasks.probes.player import Record
from bench_tasks.probes.runs import Run
from bench_tasks.probes.stream import Asked, Item, Query, Reply, step_from_json, step_to_json
from bench_tasks.probes.talk import meanings, put
from bench_tasks.probes.user_simulator import Simulator, attitude, reveals
from bench_tasks.probes.users import read_users, write_users
from tests.bench_tasks.probes.chance import at_chance, chances
from tests.bench_tasks.probes.conversation_solver import Solver

SEEDS = range(10)


def played(probe: AMemGym, seed: int, answer=lambda asked: Reply("", abstained=True)):
    """Records of the talks of a seed with what `answer` makes of each question."""
    steps, records, reply = probe.steps(seed), [], None
    while True:
        try:
            step = steps.send(reply)
        except StopIteration:
            return records
        reply = answer(step) if isinstance(step, Asked) else None
        records.append(Record(step, reply))


@cache
def silent(seed: int, **options):
    return tuple(r.step for r in played(AMemGym(Options(**options)), seed))


def overall(steps):
    return [s for s in steps if isinstance(s, Asked) and s.scored]


class Deriving(Solver):
    """Finds the answers in what the user said: SQL for the state, the choice by its words."""

    def answer(self, query):
        asked = re.fullmatch(r".+? (\w+)(?: best, by |, going by )(.+)\?", query.text)
        if asked is None or not query.choices:
            return super().answer(query)
        values = [super(Deriving, self).answer(replace(query, text=put(
            "attribute", 0, person=asked[1], attribute=name))) for name in asked[2].split(" and ")]
        found = [c for c in query.choices if re.findall(r"(?:with|and) (.+?) as ", c) == values]
        return found[0] if len(found) == 1 else ""


def test_five_hundred_golds_are_derived_again():
    agreed = Counter()
    for seed in SEEDS:
        solver = Deriving()
        for step in silent(seed):
            if isinstance(step, Item):
                solver.hear(step)
            elif step.tags["role"] in ("overall", "now", "written", "turn"):
                if step.tags["role"] != "turn" or meanings(step.query.text, asked=True):
                    assert solver.answer(step.query) == step.gold, step
                    agreed[step.tags["role"]] += 1
    assert agreed["overall"] == 110 * len(SEEDS) and agreed["now"] > 500 < agreed["written"]


def test_evidence_alone_answers_and_no_part_of_it_can_be_spared():
    for seed in SEEDS[:3]:
        items = {s.id: s for s in silent(seed) if isinstance(s, Item)}
        for asked in overall(silent(seed)):
            assert len(asked.evidence) in (1, 2)  # One session may show both.
            for spared in (None, *asked.evidence):
                solver = Deriving()
                for one in asked.evidence:
                    if one != spared:
                        solver.hear(items[one])
                assert (solver.answer(asked.query) == asked.gold) == (spared is None)


def test_evidence_comes_before_its_question_and_distances_are_to_it():
    for seed in SEEDS[:3]:
        heard, stamp = {}, 0
        for step in silent(seed):
            if isinstance(step, Item):
                assert step.stamp_ns > stamp and step.id not in heard
                heard[step.id], stamp = len(heard), step.stamp_ns
            elif step.scored:
                first = min(step.evidence, key=heard.__getitem__)
                assert step.tags["turns"] == len(heard) - heard[first]
                assert step.query.stamp_ns > stamp and step.tags["seconds"] > 0
                way = ("plain", "way 1").index(step.tags["paraphrase"])
                slots = meanings(step.query.text, asked=True)[0].slots
                assert step.query.text == put("suits", way, **slots)


def test_no_constant_or_blind_answer_beats_chance():
    """One period of each user: what is asked again after the next has much of the same state."""
    probe = AMemGym(Options(periods=0))
    asked = [a for seed in range(60) for a in overall(r.step for r in played(probe, seed))]
    assert len(asked) == 600 and {a.chance for a in asked} == {1 / 9}
    for place in range(9):
        assert at_chance(sum(a.gold == a.query.choices[place] for a in asked), chances(asked), 9)
    words = Counter(word for a in asked for word in set(re.findall(r"\w+", a.gold)))
    for word in (w for w, n in words.items() if n > 20):
        among = [a for a in asked if any(_has(word, c) for c in a.query.choices)]
        best = [[c for c in a.query.choices if _has(word, c)][0] == a.gold for a in among]
        assert at_chance(sum(best), chances(among), len(words)), word
    favour = Counter(a.gold for a in asked[:300])
    favour.subtract(c for a in asked[:300] for c in a.query.choices if c != a.gold)
    right = sum(max(a.query.choices, key=lambda c: (favour[c], c)) == a.gold for a in asked[300:])
    assert at_chance(right, chances(asked[300:]), 1)


def _has(word, text):
    return word in re.findall(r"\w+", text)


def test_after_many_changes_every_combination_is_as_likely():
    """In each of the periods, too, over many users."""
    for period in (5, 10):
        at = []
        for seed in range(200):
            user = evolve(seed, questions=1, changes=2)
            question = user.questions[0]
            gold = question.gold(user.periods[period].state)
            at.append(question.choices.index(gold))
        assert binomtest(Counter(at).most_common(1)[0][1], len(at), 1 / 9).pvalue > 0.05 / 9


def test_state_changes_as_asked_for_and_all_of_it_is_said():
    user = evolve(3, periods=8, changes=5)
    known = {}
    for k, period in enumerate(user.periods):
        before = dict(known)
        for session in period.sessions:
            for name, value in session.exposed.items():
                assert {m.slots["attribute"]: m.slots["value"] for m in meanings(session.query)
                        if m.kind in ("has", "changed")}[name] == value  # fmt: skip
            known |= session.exposed
        assert known == period.state
        assert k == 0 or len([n for n in known if before[n] != known[n]]) == 5


# On policy --------------------------------------------------------------------------------------


def said(records):
    return [(r.step.speaker, r.step.text) for r in records if isinstance(r.step, Item)]


def saying(text):
    return lambda asked: Reply(asked.query.choices[0] if asked.query.choices else text)


def test_what_is_replied_is_observed_and_decides_what_the_user_says_next():
    probe = AMemGym(Options(periods=1))
    quiet, naming = played(probe, 0), played(probe, 0, saying("chess"))
    assert "That I do not know." in [text for who, text in said(quiet) if who == ROBOT]
    robot = [text for who, text in said(naming) if who == ROBOT]
    assert sum("is chess, as far as I know" in text for text in robot) > len(robot) / 2
    user = probe.user(0).name
    talks = [[text for who, text in said(records) if who == user] for records in (quiet, naming)]
    assert len(talks[0]) == len(talks[1]) and talks[0] != talks[1]
    scripted = [session.query for period in probe.user(0).periods for session in period.sessions]
    for talk in talks:  # What is shown of the state is not changed by replies.
        assert [text for text in scripted if any(t.startswith(text) for t in talk)] == scripted


def test_who_asks_is_told_what_is_no_secret_and_nothing_else():
    user = evolve(0)
    simulator = Simulator(user, np.random.default_rng(0))
    asked = simulator.follow_up("q", "q", Reply("What is your shoe size?"))
    assert [m.slots for m in meanings(asked.text)] == [
        {"attribute": "shoe size", "value": user.profile["shoe size"]}]  # fmt: skip
    for name in user.schema:
        told = simulator.follow_up("q", "q", Reply(f"What is your {name}?")).text
        assert not meanings(told) and not reveals(told, user)


def test_attitudes():
    assert attitude(Reply("Which one?")) == "asked"
    assert attitude(Reply("tea")) == "named"
    assert {attitude(r) for r in (Reply(""), Reply("x", abstained=True), Reply("Not mentioned"))} \
        == {"silent"}  # fmt: skip


def test_no_follow_up_reveals_anything_whatever_was_replied():
    """Of every user; replies are right, wrong, silent and questions in turn."""
    count = 0
    for seed in range(6):
        probe = AMemGym(Options(probes=False))
        user, turn = probe.user(seed), iter(range(10**6))

        def answer(asked, user=user, turn=turn):
            kind = next(turn) % 4
            other = list(user.schema.values())[kind][0]
            return (Reply(asked.gold), Reply(f"Is it {other}?"), Reply(other),
                    Reply("", abstained=True))[kind]  # fmt: skip

        records = played(probe, seed, answer)
        scripted = {s.query for p in user.periods for s in p.sessions}
        for before, record in zip(records, records[1:], strict=False):
            if not isinstance(record.step, Item) or record.step.speaker != user.name:
                continue
            text = record.step.text
            if any(text.startswith(query) for query in scripted):
                continue
            assert reveals(text, user, before.step.text) == (), text
            count += 1
    assert count > 300


USER = evolve(1)
NAME, (VALUE, *_) = next(iter(USER.schema.items()))


@pytest.mark.parametrize(
    ("text", "replied", "leaks"),
    [
        (f"It is {VALUE.upper()}, you know.", "", True),
        ("Yes.", f"Is it {VALUE}?", True),
        ("No, that is not so.", f"I think it is {VALUE}.", True),
        ("Yes, let us go on.", "Shall we go on?", False),
        (f"I would not talk about my {NAME}.", "", False),
        ("What else could I try?", f"Is it {VALUE}?", False),
    ],
)
def test_leaks_are_found(text, replied, leaks):
    assert (NAME in reveals(text, USER, replied)) == leaks


def test_published_values_are_found_in_words():
    user = replace(USER, schema={"help": ("moderate_volunteers", "no_help"), "pet": ("a cat",)})
    assert reveals("I have a moderate number of volunteers.", user) == ("help",)
    assert reveals("Moderate volunteers!", user) == ("help",)
    assert reveals("Volunteers came. My cat, too.", user) == ("pet",)
    assert reveals("The category is moderate.", user) == ()


def test_a_model_that_leaks_is_refused_asked_again_and_replaced_on_record():
    prompts = []

    def complete(prompt):
        prompts.append(prompt)
        return f"My {NAME} is {VALUE}." if "must not say" not in prompt else "What now?"

    simulator = Simulator(USER, np.random.default_rng(0), complete)
    told = simulator.follow_up("Hello.", "Hello.", Reply("Good morning."))
    assert (told.text, told.by, told.refused) == ("What now?", "model", (f"My {NAME} is {VALUE}.",))
    assert "Good morning." in prompts[0] and VALUE in prompts[0]
    schema = evolve(2, periods=0).schema
    leak = "Yes, " + "; ".join(value for values in schema.values() for value in values)
    stubborn = AMemGym(Options(periods=0), complete=lambda prompt: leak)
    records = played(stubborn, 2)
    refused = [r.step.tags["refused"] for r in records
               if isinstance(r.step, Asked) and "refused" in r.step.tags]  # fmt: skip
    assert len(refused) == len(stubborn.user(2).periods[0].sessions)
    assert all(len(texts) == 3 and texts[0].startswith("Yes, ") for texts in refused)
    assert not any(text.startswith("Yes, ") for _, text in said(records))


def test_a_model_plays_the_user():
    probe = make_probe("amemgym:periods=0,rounds=3", complete=lambda prompt: "And what then?")
    texts = [text for who, text in said(played(probe, 0, saying("Well."))) if who != ROBOT]
    assert texts.count("And what then?") == 2 * len(probe.user(0).periods[0].sessions)


# What is published ------------------------------------------------------------------------------

PUBLISHED = [{
    "id": "1aed", "start_time": "2020-10-01",
    "user_profile": {"uuid": "1aed", "name": "Maria Bermudez", "formatted_str": "name: Maria ..."},
    "state_schema": {"volunteer_participation_level": ["low", "moderate_volunteers", "high"],
                     "event_scale": ["small", "large_citywide_event"]},
    "periods": [
        {"period_start": None, "period_end": "2020-10-01", "period_summary": None,
         "sessions": [
             {"event": None, "exposed_states": {"event_scale": "small"}, "messages": [],
              "query": "Will a hall do for our little party?",
              "session_time": "2020-09-22 21:28:55"},
             {"event": None, "exposed_states": {"volunteer_participation_level": "low"},
              "query": "Hardly anybody helps. What now?", "session_time": "2020-09-23 19:23:44"}],
         "state": {"volunteer_participation_level": "low", "event_scale": "small"},
         "updates": {"event_scale": {"old": None, "new": "small"}}},
        {"period_start": "2020-10-01", "period_end": "2021-01-01", "sessions": [
            {"event": "grown", "exposed_states": {"event_scale": "large_citywide_event"},
             "query": "The whole city is coming! Where do I put them?",
             "session_time": "2020-11-11 10:00:00"}],
         "state": {"volunteer_participation_level": "low", "event_scale": "large_citywide_event"},
         "updates": {}},
    ],
    "qas": [
        {"query": "What budget should I allocate?",
         "required_info": ["event_scale", "volunteer_participation_level"],
         "answer_choices": [
             {"state": ["small", "low"], "answer": "Spend little.", "type": "experience"},
             {"state": ["large_citywide_event", "low"], "answer": "Pay people."},
             {"state": ["small", "high"], "answer": "Spend nothing."}]},
        {"query": "How often?", "required_info": ["event_scale", "event_scale"],
         "answer_choices": [
             {"state": ["small", "small"], "answer": "Once."},
             {"state": ["small", "small"], "answer": "Only once."},
             {"state": ["large_citywide_event"] * 2, "answer": "Twice."}]},
        {"query": "Whose?", "required_info": ["owner"],
         "answer_choices": [{"state": ["a"], "answer": "A."}, {"state": ["b"], "answer": "B."}]},
        {"query": "Who?", "required_info": ["event_scale"], "answer_choices": [
            {"state": ["small"], "answer": "You."}, {"state": ["medium"], "answer": "Me."}]},
    ],
}]  # fmt: skip


def published(tmp_path, data=PUBLISHED):
    path = tmp_path / "data.json"
    path.write_text(json.dumps(data))
    return AMemGym(Options(dir=str(tmp_path)))


def test_published_users_are_read_said_and_asked_as_they_are(tmp_path):
    probe = published(tmp_path)
    records = played(probe, 0, lambda asked: Reply(asked.gold))
    assert [(who, text) for who, text in said(records) if text in str(PUBLISHED)] == [
        ("Maria", session["query"]) for p in PUBLISHED[0]["periods"] for session in p["sessions"]]
    asked = overall(r.step for r in records)
    assert [(a.query.text, a.gold, a.kind, a.chance) for a in asked] == [
        ("What budget should I allocate?", "Spend little.", "first", 1 / 3),
        ("How often?", "Once.", "first", 1 / 2), ("Who?", "You.", "first", 1 / 2),
        ("What budget should I allocate?", "Pay people.", "changed", 1 / 3),
        ("How often?", "Twice.", "changed", 1 / 2)]  # fmt: skip
    items = {r.step.id: r.step for r in records if isinstance(r.step, Item)}
    assert [items[one].text for one in asked[3].evidence] == [
        "The whole city is coming! Where do I put them?", "Hardly anybody helps. What now?"]
    assert items[asked[0].evidence[0]].stamp_ns // 10**9 == 1600810135 + 15  # 21:29:10, UTC
    given = [r.step.query.text for r in records if getattr(r.step, "kind", "") == "given"]
    assert given[-1] == "How often?\nMy present situation:\nevent scale: large citywide event"
    looks = [r.step for r in records if getattr(r.step, "kind", "") == "state"]
    assert {a.query.text for a in looks} == {
        "What is Maria's event scale?", "What is Maria's volunteer participation level?"}
    assert {line.split(": ")[0] for line in probe.faults} == {str(tmp_path / "data.json")}
    told = [line.split(": ", 2)[2] for line in probe.faults]
    assert told == [
        "question 1: a second choice for small, small, left out",
        "question 2: it needs 'owner', which is no variable, left out",
        "period 1: question 2 has no choice for the state, not asked"]  # fmt: skip


def test_choices_come_in_another_order_each_time(tmp_path):
    """In what is published those that come true stand first."""
    probe = published(tmp_path)
    orders = {overall(r.step for r in played(AMemGym(probe.options), 0))[0].query.choices}
    assert {frozenset(one) for one in orders} == {frozenset(("Spend little.", "Pay people.",
                                                             "Spend nothing."))}  # fmt: skip
    asked = [a for a in overall(silent(0)) if a.tags["question"] == 0]
    assert len({a.query.choices for a in asked}) > 5


def test_generated_users_are_written_and_read_as_published(tmp_path):
    users = [evolve(seed, questions=3, periods=2) for seed in (0, 1)]
    write_users(users, tmp_path / "set" / "data.json")
    for user, again in zip(users, read_users(tmp_path / "set"), strict=True):
        assert again.faults == () and again.questions == user.questions
        assert [p.sessions for p in again.periods] == [p.sessions for p in user.periods]
        assert [p.state for p in again.periods] == [p.state for p in user.periods]
        assert (again.schema, again.profile, again.name) == (user.schema, user.profile, user.name)


def test_what_nobody_says_and_values_that_are_none_are_told(tmp_path):
    data = json.loads(json.dumps(PUBLISHED))
    data[0]["periods"][1]["state"]["event_scale"] = "huge"
    probe = published(tmp_path, data)
    list(played(probe, 0))
    lines = "\n".join(probe.faults)
    assert "period 1: event_scale is 'huge', which is none of its values" in lines
    assert "a session shows event_scale as 'large_citywide_event', at the end it is 'huge'" in lines
    assert "period 1: nobody says that event_scale is 'huge'" in lines


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[]", "holds no users"), ("{", "cannot read"),
        ('[{"id": "x", "periods": [], "qas": []}]', "user 'x' is malformed: KeyError"),
        ('[{"id": "x", "periods": [], "qas": [], "state_schema": {}, "start_time": null}]',
         "it has no periods"),
        ('[{"id": "x", "periods": [{}], "qas": [], "state_schema": {}, "start_time": "May"}]',
         "Invalid isoformat"),
    ],
)  # fmt: skip
def test_what_is_no_data_is_told_in_one_line(tmp_path, text, told):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=told):
        AMemGym(Options(dir=str(path)))
    with pytest.raises(UsageError, match="cannot read"):
        AMemGym(Options(dir=str(tmp_path / "none.json")))


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("amemgym:values=9", "values must be 2 to 4, got 9"),
        ("amemgym:rounds=0", "rounds must be 1 to 20, got 0"),
        ("amemgym:users=3", "unknown option of probe amemgym 'users': choose from changes, chat"),
    ],
)
def test_options_that_cannot_be_are_told(spec, told):
    with pytest.raises(UsageError, match=told):
        make_probe(spec)


def test_too_few_variables_and_users_are_told(tmp_path):
    with pytest.raises(UsageError, match="2 variables are not enough for 2 in a question and 4"):
        next(make_probe("amemgym:questions=1").steps(0))
    with pytest.raises(UsageError, match="there are 1 users: no seed 1"):
        published(tmp_path).steps(1)


# Scores -----------------------------------------------------------------------------------------


def asked(role, period, gold="a", **tags):
    query = Query(f"{role}{period}{tags}", 0, "?", ("a", "b"))
    scored = role == "overall"
    return Asked(query, "k", gold, 0.5, (), {"role": role, "period": period, **tags}, scored)


def question(period, reply, state=("a", "b")):
    tags = {"question": 0, "needs": ["x", "y"], "state": list(state)}
    return Record(asked("overall", period, **tags), Reply(reply))


def look(when, period, name, reply):
    return Record(asked(when, period, variable=name), Reply(reply))


def given(reply, state=("a", "b")):
    tags = {"question": 0, "needs": ["x", "y"], "state": list(state)}
    return Record(asked("given", 0, **tags), Reply(reply))


@pytest.mark.parametrize(
    ("looks", "failure"),
    [
        ([("written", 0, "x", "b"), ("now", 1, "x", "b"), ("now", 1, "y", "a")], "write"),
        ([("written", 0, "x", "a"), ("now", 1, "x", "b"), ("now", 1, "y", "a")], "read"),
        ([("written", 0, "x", "b"), ("now", 1, "x", "a"), ("now", 1, "y", "a")], "use"),
        # What was shown last counts: after the first period it was right, now it is not.
        ([("written", 0, "x", "a"), ("written", 1, "x", "b"), ("written", 2, "x", "a"),
          ("now", 1, "x", "b"), ("now", 1, "y", "a")], "write"),
        # One of each: that it was not written comes first.
        ([("written", 0, "x", "a"), ("written", 0, "y", "b"), ("now", 1, "x", "b"),
          ("now", 1, "y", "b")], "write"),
        ([("now", 1, "x", "b"), ("now", 1, "y", "a")], "write"),
        ([], ""),
    ],
)
def test_failures_are_named(looks, failure):
    found = outcomes([*(look(*one) for one in looks), question(1, "b"), given("a")])
    assert [(one.right, one.bound, one.failure) for one in found] == [(False, True, failure)]


def test_the_memory_score_is_between_chance_and_the_bound_of_each_period():
    records = (
        question(0, "a"), given("a"), question(0, "b"), look("now", 0, "x", "a"),
        look("now", 0, "y", "a"), question(1, "a", ("b", "b")), given("b", ("b", "b")),
    )  # fmt: skip
    assert [one.bound for one in outcomes(records)] == [True, True, False]
    found = report("amemgym:chat=1", [Run("amemgym", "m", 0, records, 0)])
    # Period 0: (1/2 - 1/2) / (1 - 1/2); in period 1 the bound is below chance: left out.
    assert found == {"overall": 2 / 3, "random": 0.5, "upper bound": 2 / 3, "memory score": 0.0,
                     "write": 0.0, "read": 0.0, "use": 1 / 3}  # fmt: skip
    assert report("amemgym", [Run("amemgym", "m", 0, (), 0)]) == {}
    blank = report("amemgym", [Run("amemgym", "m", 0, (question(0, "b"),), 0)])
    assert blank["write"] is None and blank["memory score"] is None


def test_write_read_and_use_are_all_that_failed_to_the_question():
    rng = np.random.default_rng(0)
    for seed in SEEDS[:3]:
        records = played(AMemGym(), seed, lambda a: Reply(
            str(rng.choice(a.query.choices or ("x",))) if rng.random() < 0.7 else a.gold))
        found: list[Outcome] = outcomes(records)
        kinds = Counter(one.failure for one in found)
        assert kinds["write"] + kinds["read"] + kinds["use"] == len(found) - sum(
            one.right for one in found) and min(kinds.values()) > 0  # fmt: skip


def test_without_probes_the_same_is_asked_and_failures_stay_unexplained():
    with_looks, without = silent(0), silent(0, probes=False)
    strip = [(s.query.text, s.query.choices, s.query.stamp_ns) for s in overall(with_looks)]
    assert strip == [(s.query.text, s.query.choices, s.query.stamp_ns) for s in overall(without)]
    assert [s for s in with_looks if isinstance(s, Item)] == [
        s for s in without if isinstance(s, Item)]  # fmt: skip
    assert not [s for s in without if isinstance(s, Asked) and s.kind == "state"]


def test_the_same_seed_gives_the_same_talk_and_steps_are_read_as_written():
    first = [step_to_json(step) for step in silent(4)]
    again = [step_to_json(r.step) for r in played(AMemGym(), 4)]
    assert first == again and first != [step_to_json(s) for s in silent(5)]
    assert [step_to_json(step_from_json(line)) for line in first] == first


@pytest.mark.parametrize("key, wrong", [("user_profile", "Maria"), ("id", "\ud800")])
def test_a_profile_that_is_none_and_text_that_is_none_are_one_line(tmp_path, key, wrong):
    data = json.loads(json.dumps(PUBLISHED))
    data[0][key] = wrong
    with pytest.raises(UsageError, match="is malformed"):
        published(tmp_path, data)


def test_what_is_shown_of_no_variable_is_told_and_left_out(tmp_path):
    data = json.loads(json.dumps(PUBLISHED))
    data[0]["periods"][0]["sessions"][0]["exposed_states"]["mood"] = "good"
    probe = published(tmp_path, data)
    records = played(probe, 0, lambda asked: Reply(asked.gold))
    assert any("period 0: a session shows 'mood', which is no variable" in f for f in probe.faults)
    assert all(r.step.tags.get("variable") != "mood" for r in records if isinstance(r.step, Asked))
