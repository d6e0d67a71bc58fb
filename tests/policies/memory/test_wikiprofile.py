"""Profiles of facts with real memories: ceiling, floor, and what is lost where."""

from __future__ import annotations

import pytest

from bench_tasks.probes import make_probe, report
from bench_tasks.probes.player import play
from bench_tasks.probes.runs import Run
from bench_tasks.probes.scores import score
from bench_tasks.probes.stream import Item, Query
from bench_tasks.probes.talk import put, variants
from policies.memory import MEMORIES, make_memory
from policies.memory.reader import RuleReader
from tests.policies.memory.test_contract import needs

SMALL = "wikiprofile:people=3,attributes=2,untold=1,words=2,sessions=3,repeats=1"


def played(spec, probe=SMALL):
    memory = make_memory(spec)
    records = tuple(play(make_probe(probe).steps(0), memory))
    memory.close()
    assert not [r.error for r in records if r.error]
    return records, report("wikiprofile", [Run(probe, spec, 0, records, 0)])


@pytest.mark.parametrize("spec", ["oracle", "structured"])
def test_who_recalls_the_evidence_knows_all_that_was_told(spec):
    records, found = played(spec, "wikiprofile:repeats=1")
    assert score(records).accuracy >= 0.98
    assert found["directly recalled"] == found["inferable, inferred"] == 1
    assert found["untold, not encoded"] == 1


def test_without_memory_nothing_is_encoded_and_guesses_are_at_chance():
    records, found = played("none", "wikiprofile:repeats=1")
    assert score(records).guessing == pytest.approx(score(records).chance)
    assert found["not encoded"] == found["untold, not encoded"] == 1


def test_what_is_found_by_its_own_words_alone_is_encoded_but_not_recalled():
    class Verbatim:
        """Recalls what shares the beginning of a sentence with the question, and nothing else."""

        def __init__(self):
            self.items, self.reader = [], RuleReader(lambda picture: ())

        def observe(self, item):
            self.items.append(item)

        def answer(self, query):
            found = [i for i in self.items if " ".join(i.text.split()[:-1])[:14] in query.text]
            return self.reader.answer(query, found)

    records = tuple(play(make_probe(SMALL).steps(0), Verbatim()))
    found = report("wikiprofile", [Run(SMALL, "verbatim", 0, records, 0)])
    assert found["encoded but not recalled"] == 1


@pytest.mark.parametrize("name", sorted(MEMORIES))
def test_every_memory_can_be_asked(name):
    needs(name)
    records, found = played(name)
    assert score(records).count and found["untold, not encoded"] is not None


def test_a_sentence_is_completed_as_its_speaker_said_it():
    reader = RuleReader(lambda picture: ())
    items = [Item("i", 1, "s", "Ana", "By the way, my pet is a cat."),
             Item("j", 2, "s", "Ben", "My pet is a dog.")]
    for way in range(variants("cloze")):
        text = put("cloze", way, person="Ana", start="By the way, my pet is")
        assert reader.answer(Query("q", 3, text, ("a dog", "a cat")), items).text == "a cat"
        assert reader.answer(Query("q", 3, text, ("a dog", "a fish")), items).abstained
        assert reader.answer(Query("q", 3, text.replace("Ana", "Eva"), ("a cat",)), items).abstained
