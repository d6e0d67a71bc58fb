"""The probe of conversations measures memory: evidence alone is enough, and nothing is not."""

from __future__ import annotations

from collections import Counter

import pytest

from bench_tasks.probes import make_probe
from bench_tasks.probes.player import Record
from bench_tasks.probes.scores import score
from bench_tasks.probes.stream import NOT_MENTIONED, Item, Reply
from policies.memory.eye import colours_in
from policies.memory.reader import RuleReader

READER = RuleReader(colours_in)


def answered(steps, recall):
    """Records of the questions, answered from what `recall(items, asked)` says."""
    items, records = {}, []
    for step in steps:
        if isinstance(step, Item):
            items[step.id] = step
        else:
            records.append(Record(step, READER.answer(step.query, recall(items, step))))
    return records


def evidence(items, asked):
    return [items[one] for one in asked.evidence]


@pytest.mark.parametrize("choices", ["true", "false"])
def test_with_its_evidence_every_question_is_answered_and_rests_on_it(choices):
    for seed in range(6):
        spec = f"conversations:mode=text,people={2 + seed % 3},choices={choices}"
        records = answered(make_probe(spec).steps(seed), evidence)
        assert score(records).accuracy >= 0.98
        for record in records:
            assert set(record.reply.used) <= set(record.step.evidence)


def test_without_memory_it_is_at_chance_by_type():
    records = [r for seed in range(6)
               for r in answered(make_probe("conversations:mode=text").steps(seed), lambda *_: [])]
    found = score(records)
    assert found.guessing == pytest.approx(found.chance)
    right = Counter(r.step.kind for r in records if r.reply.text == r.step.gold)
    assert right == Counter({"AR": 18}), "half of what may be refused, and nothing else"


@pytest.mark.parametrize("blunder", ["speaker", "recency"])
def test_who_mixes_up_speakers_or_forgets_is_found_out(blunder):
    """Confusions that memories are known for cost points where they should."""
    def recall(items, asked):
        kept = list(items.values())
        if blunder == "recency":
            return kept[-32:]
        name = kept[0].speaker
        return [Item(i.id, i.stamp_ns, i.session, name, i.text, i.picture) for i in kept]

    hit = {"speaker": "RET", "recency": "UPR"}[blunder]
    records = [r for seed in range(3)
               for r in answered(make_probe("conversations:mode=text").steps(seed), recall)]
    assert score(r for r in records if r.step.kind == hit).accuracy < 0.7


@pytest.mark.slow
def test_with_real_pictures_and_eyes_too(tmp_path):
    from sim.still_life import Album

    album = Album(tmp_path)
    records = [r for seed in range(3)
               for r in answered(make_probe("conversations").steps(seed, album), evidence)]
    assert score(records).accuracy >= 0.98
    assert {r.step.tags["modality"] for r in records} == {"text", "both"}
    blind = RuleReader(lambda picture: ())
    seen = [r.step for r in records if r.step.tags["modality"] == "both"]
    assert seen and {blind.answer(a.query, []) for a in seen} <= {
        Reply("", 0.5, abstained=True), Reply(NOT_MENTIONED, 0.5, abstained=True)}
