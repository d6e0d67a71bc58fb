"""Golds are right, nothing can be guessed, and the probe measures memory."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache

import pytest

from bench_tasks.errors import UsageError
from bench_tasks.probes import make_probe
from bench_tasks.probes.conversation_questions import TYPES
from bench_tasks.probes.conversations import Conversations, Options
from bench_tasks.probes.stream import NOT_MENTIONED, Asked, Item, step_from_json, step_to_json
from bench_tasks.probes.talk import meanings
from bench_tasks.probes.words import ATTRIBUTES, SMALL_TALK
from tests.bench_tasks.probes.chance import at_chance
from tests.bench_tasks.probes.conversation_solver import Solver

SEEDS = range(24)


@cache
def steps(seed: int, **options):
    return list(Conversations(Options(**{"mode": "text", **options})).steps(seed))


def many():
    """Conversations of two, three and four people in turn."""
    return [steps(seed, people=2 + seed % 3) for seed in SEEDS]


def questions(**options):
    return [s for seed in SEEDS for s in steps(seed, people=2 + seed % 3, **options)
            if isinstance(s, Asked)]


def test_five_hundred_golds_are_derived_again():
    agreed = Counter()
    for conversation in many():
        solver = Solver()
        for step in conversation:
            if isinstance(step, Item):
                solver.hear(step)
            else:
                assert solver.answer(step.query) == step.gold, step
                agreed[step.kind] += 1
    assert set(agreed) == set(TYPES) and sum(agreed.values()) > 500


DENSE = {"people": 4, "sessions": 24, "attributes": 4, "rumours": 6, "questions": 24}
"""Much is said of little, by everybody."""


def test_golds_are_derived_again_where_much_is_said_of_little():
    solver, said, agreed = Solver(), Counter(), 0
    for step in steps(0, **DENSE):
        if isinstance(step, Item):
            solver.hear(step)
            said.update(m.slots.get("attribute") for m in meanings(step.text))
        else:
            assert solver.answer(step.query) == step.gold, step
            agreed += 1
    del said[None]
    assert agreed == 9 * 24 and len(said) == 4 and min(said.values()) > 30


def test_a_question_comes_again_only_after_another_session():
    before: dict[str, int] = {}
    session, again = "", 0
    for step in steps(0, **DENSE):
        if isinstance(step, Item):
            session = step.session
            continue
        (meaning,) = meanings(step.query.text, asked=True)
        key = f"{step.kind} {meaning.kind} {sorted(meaning.slots.values())} {step.gold}"
        again += key in before
        assert before.get(key) != session
        before[key] = session
    assert 0 < again < 9 * 24 / 4


def test_evidence_alone_answers_and_no_part_of_it_can_be_spared():
    for conversation in many()[:6]:
        items = {step.id: step for step in conversation if isinstance(step, Item)}
        for step in conversation:
            if isinstance(step, Item) or not step.evidence:
                continue
            assert _from(items, step, step.evidence) == step.gold, step
            if step.kind != "CD":  # where one of several contradictions will do
                for spared in step.evidence:
                    rest = [one for one in step.evidence if one != spared]
                    try:
                        assert _from(items, step, rest) != step.gold, (step, spared)
                    except IndexError:
                        pass  # no picture is left


def _from(items, asked, evidence):
    solver = Solver()
    for one in evidence:
        solver.hear(items[one])
    return solver.answer(asked.query)


def test_evidence_comes_before_its_question_and_distances_are_to_it():
    for conversation in many()[:6]:
        heard, stamp = {}, 0
        for step in conversation:
            if isinstance(step, Item):
                assert step.stamp_ns > stamp and step.id not in heard
                stamp, heard[step.id] = step.stamp_ns, len(heard)
                continue
            assert step.query.stamp_ns > stamp
            if step.evidence:
                first = min(step.evidence, key=heard.__getitem__)
                assert step.tags["turns"] == len(heard) - heard[first]
            else:
                assert step.gold == NOT_MENTIONED and "turns" not in step.tags


def test_no_constant_choice_beats_chance():
    """Always the same words, where they are among the choices, or always the same place."""
    asked = by_kind(questions())
    assert {len(found) for found in asked.values()} == {6 * len(SEEDS)}
    for kind, found in asked.items():
        answers = {text for one in found for text in one.query.choices}
        for text in answers:
            among = [a for a in found if text in a.query.choices]
            right = sum(a.gold == text for a in among)
            assert at_chance(right, [a.chance for a in among], len(answers)), (kind, text)
        for place in (0, -1):
            right = sum(a.gold == a.query.choices[place] for a in found)
            assert at_chance(right, [a.chance for a in found], 2), (kind, place)


def test_no_constant_text_beats_chance():
    """Without choices, too: the most frequent gold is not more frequent than its pool allows."""
    for kind, found in by_kind(questions(choices=False)).items():
        golds = Counter(a.gold for a in found)
        text, right = golds.most_common(1)[0]
        chances = [a.chance for a in found]
        assert right <= sum(chances) or at_chance(right, chances, len(golds)), (kind, text)


def by_kind(asked) -> dict[str, list[Asked]]:
    found = defaultdict(list)
    for one in asked:
        found[one.kind].append(one)
    return found


def test_halves_are_even_to_the_question():
    for conversation in many():
        asked = [step for step in conversation if isinstance(step, Asked)]
        golds = Counter((a.kind, a.gold) for a in asked if a.kind in ("CD", "AR"))
        assert golds["CD", "Yes"] == golds["CD", "No"] == golds["AR", NOT_MENTIONED] == 3
        forms = Counter((meanings(a.query.text, asked=True)[0].kind, a.gold == NOT_MENTIONED)
                        for a in asked if a.kind == "AR")  # fmt: skip
        assert forms == Counter({(form, half): 1 for form in ("attribute", "reason",
                                 "place_of_word") for half in (True, False)})  # fmt: skip


def test_a_blind_answerer_is_at_chance():
    """It learns from half of the questions what the golds have in common, and has no memory."""
    asked = questions()
    half = len(asked) // 2
    favour = Counter(a.gold for a in asked[:half])
    favour.subtract(c for a in asked[:half] for c in a.query.choices if c != a.gold)
    rest = asked[half:]
    right = sum(max(a.query.choices, key=lambda c: (favour[c], c)) == a.gold for a in rest)
    assert at_chance(right, [a.chance for a in rest], 1)


def test_the_same_seed_gives_the_same_conversation_and_another_one_another():
    kind = make_probe("conversations:mode=text")
    first = [step_to_json(step) for step in kind.steps(3)]
    assert first == [step_to_json(step) for step in kind.steps(3)]
    assert first != [step_to_json(step) for step in kind.steps(4)]
    assert [step_to_json(step_from_json(line)) for line in first] == first


def test_people_interrupt_each_other_and_this_one_is_whose_picture():
    """Somebody else speaks, or even shows something, between a picture and what is said of it."""
    between = Counter()
    for conversation in many():
        shown, since = {}, {}
        for item in (s for s in conversation if isinstance(s, Item)):
            if item.picture is not None:
                for who in since:
                    since[who].add("shows")
                shown[item.speaker], since[item.speaker] = item.session, set()
            elif any(m.kind in ("calls", "put_this") for m in meanings(item.text)):
                assert shown.pop(item.speaker) == item.session
                between["shows" if "shows" in since.pop(item.speaker) else "plain"] += 1
    assert between["shows"] > 50 and between["plain"] > 50


def test_there_are_updates_and_contradictions():
    kinds = Counter(
        m.kind for talk in many() for s in talk if isinstance(s, Item) for m in meanings(s.text)
    )
    for kind in ("has", "changed", "told", "lies", "put", "put_this", "did", "because", "means",
                 "shows", "calls"):  # fmt: skip
        assert kinds[kind] > 20, kind


def test_small_talk_says_nothing():
    assert not [text for text in SMALL_TALK if [m for m in meanings(text) if m.kind != "shows"]]


def test_free_text_has_no_choices_but_where_letters_are_ordered():
    for asked in questions(choices=False):
        assert bool(asked.query.choices) == (asked.kind == "TR")


def test_pools_are_of_one_size():
    assert {len(set(pool)) for pool in ATTRIBUTES.values()} == {8}


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("conversations:people=5", "people must be 2 to 4, got 5"),
        ("conversations:sessions=1", "sessions must be 2 to 24, got 1"),
        ("conversations:mode=sound", "mode must be image or text, got 'sound'"),
        ("conversations:speakers=2", "unknown option of probe conversations 'speakers': choose "
         "from attributes, choices, mode, paraphrase, people, questions, rumours, sessions, "
         "small_talk"),
        ("talks", "unknown probe 'talks': choose from "),
    ],
)
def test_what_cannot_be_is_told_in_one_line(spec, told):
    with pytest.raises(UsageError, match=told):
        make_probe(spec)


def test_too_many_questions_are_refused():
    kind = make_probe("conversations:mode=text,sessions=2,questions=50")
    with pytest.raises(UsageError, match="do not say enough for 50 questions of type"):
        list(kind.steps(0))


def test_pictures_need_a_renderer():
    with pytest.raises(UsageError, match="choose mode=text without one"):
        next(make_probe("conversations").steps(0))
