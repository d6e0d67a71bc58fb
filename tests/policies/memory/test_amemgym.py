"""On-policy talks with real memories: ceiling, floor, looks that change nothing, faults by name."""

from __future__ import annotations

from collections import Counter

import pytest

from bench_tasks.errors import UsageError
from bench_tasks.probes import make_probe, report
from bench_tasks.probes.injected import Faults, InjectedMemory
from bench_tasks.probes.interaction_scores import outcomes
from bench_tasks.probes.player import play
from bench_tasks.probes.runs import Run
from bench_tasks.probes.scores import score
from bench_tasks.probes.stream import Asked, Item, Query
from bench_tasks.probes.talk import put
from policies.memory import MEMORIES, make_memory
from policies.memory.reader import RuleReader
from tests.policies.memory.test_contract import needs

SMALL = "amemgym:questions=2,periods=1,changes=2"
READER = RuleReader(lambda picture: ())


def talked(spec, probe="amemgym", seed=0):
    memory = make_memory(spec)
    records = play(make_probe(probe).steps(seed), memory)
    memory.close()
    assert not [r.error for r in records if r.error]
    return records


@pytest.mark.parametrize("spec", ["oracle", "structured"])
def test_who_recalls_the_evidence_is_right_and_has_all_of_the_memory_score(spec):
    records = talked(spec)
    assert score(records).accuracy >= 0.98
    found = report("amemgym", [Run("amemgym", spec, 0, tuple(records), 0)])
    assert found["upper bound"] == 1 and found["memory score"] == pytest.approx(1)


def test_without_memory_it_is_at_chance_the_bound_is_not_and_nothing_was_written():
    records = talked("none")
    found = report("amemgym", [Run("amemgym", "none", 0, tuple(records), 0)])
    assert score(records).guessing == pytest.approx(score(records).chance)
    assert found["overall"] == 0 and found["upper bound"] == 1 and found["write"] == 1


def test_a_short_memory_fails_to_read_what_it_wrote():
    found = Counter(one.failure for one in outcomes(talked("window:items=16")))
    assert found["read"] > 50 and found["write"] == found["use"] == 0


@pytest.mark.parametrize("name", sorted(MEMORIES))
def test_looking_into_a_memory_changes_nothing(name):
    """Not by a byte, and not what is answered later: of every kind there is."""
    needs(name)

    class Watched:
        def __init__(self):
            self.memory = make_memory(name)
            self.observe, self.snapshot = self.memory.observe, self.memory.snapshot
            if hasattr(self.memory, "tell"):
                self.tell = self.memory.tell

        def answer(self, query):
            self.memory.settle()
            before, reply = self.memory.snapshot(), self.memory.answer(query)
            assert self.memory.snapshot() == before and self.memory.answer(query) == reply
            return reply

    def replies(probe):
        memory = Watched()
        records = play(make_probe(probe).steps(0), memory)
        assert not [r.error for r in records if r.error]
        memory.memory.close()
        return [(r.step, r.reply) for r in records if not isinstance(r.step, Asked) or
                r.step.kind != "state"], len(records)  # fmt: skip

    (with_looks, many), (without, few) = replies(SMALL), replies(f"{SMALL},probes=false")
    assert many > few
    plain = [(s, r) if isinstance(s, Item) else (s.query.text, s.query.choices, r.text)
             for s, r in with_looks]  # fmt: skip
    assert plain == [(s, r) if isinstance(s, Item) else (s.query.text, s.query.choices, r.text)
                     for s, r in without]  # fmt: skip


def test_faults_that_were_put_in_are_named():
    """All three kinds at once; `benchmarks/memory_faults.py` counts more of them."""
    named: Counter[tuple[str, str]] = Counter()
    shares = {"write": 0.1, "read": 0.1, "use": 0.25}
    for seed in range(3):
        memory = InjectedMemory(make_memory("full"), READER, Faults(**shares, seed=seed))
        found = outcomes(play(make_probe("amemgym:periods=8").steps(seed), memory))
        named.update((memory.cause_of(one.asked), one.failure) for one in found if not one.right)
    assert {cause for cause, _ in named} == set(shares)
    for cause in shares:
        total = sum(n for (to, _), n in named.items() if to == cause)
        assert total >= 5 and named[cause, cause] >= 0.95 * total


def test_faults_are_put_in_as_told():
    with pytest.raises(UsageError, match="read must be a share from 0 to 1, got 2"):
        Faults(read=2)
    memory = InjectedMemory(make_memory("full"), READER, Faults(write=1.0))
    memory.observe(Item("i", 1, "s", "Ana", "My pet is a cat."))
    query = Query("q", 2, put("attribute", 0, person="Ana", attribute="pet"))
    assert memory.recall(query) == []
    memory = InjectedMemory(make_memory("full"), READER, Faults(read=1.0, use=1.0))
    memory.observe(Item("i", 1, "s", "Ana", "My pet is a cat."))
    assert memory.answer(query).text == "a cat", "while its session lasts"
    memory.observe(Item("j", 2, "t", "Ana", "Hello."))
    assert memory.answer(query).abstained
