"""The probe of preferences measures memory: who keeps what was told does well, nobody else."""

from __future__ import annotations

import pytest

from bench_tasks.probes import make_probe
from bench_tasks.probes.phases import phases_of
from bench_tasks.probes.player import play
from bench_tasks.probes.scores import score
from policies.memory import MEMORIES, make_memory
from tests.policies.memory.test_contract import needs

SMALL = "preferences:errands=2,scenarios=4"


def played(memory, spec, seed):
    found = make_memory(memory)
    try:
        return play(make_probe(spec).steps(seed), found)
    finally:
        found.close()


@pytest.mark.parametrize("memory", MEMORIES)
def test_every_memory_can_be_asked(memory):
    needs(memory)
    found = score(played(memory, SMALL, 0))
    assert found.count == 32 and found.errors == 0
    if memory in ("oracle", "full", "structured", "notes"):
        assert found.right == 32
    if memory == "none":
        assert found.right == 0 and found.guessing == pytest.approx(found.chance)


def test_what_is_kept_of_corrections_is_what_counts():
    phases = {memory: phases_of([played(memory, "preferences", seed) for seed in range(2)])
              for memory in ("structured", "window", "oracle")}  # fmt: skip
    for memory in ("structured", "oracle"):
        assert [p.right for p in phases[memory][1::2]] == [48, 48], memory
    assert max(p.success for p in phases["window"]) < 0.3
    # Only who is told what is out of date asks in time.
    assert phases["oracle"][2].before > 0 == phases["structured"][2].before
