"""What a person likes can be learned from what he says, in no other way, and acts are counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from bench_tasks.errors import UsageError
from bench_tasks.probes import make_probe
from bench_tasks.probes.phases import acts_of, phases_of
from bench_tasks.probes.player import play
from bench_tasks.probes.preference_state import ASPECTS, PHASES
from bench_tasks.probes.preferences import Options, Preferences
from bench_tasks.probes.scores import score
from bench_tasks.probes.stream import Asked, Item, Reply, step_from_json, step_to_json
from tests.bench_tasks.probes.preference_solver import Solver


class Guessing(Solver):
    """Guesses half of the time, asks else, and never learns: what luck does to what is told."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.rng = np.random.default_rng(seed)

    def answer(self, query):
        if self.rng.random() < 0.5:
            return Reply("", abstained=True)
        return Reply(str(self.rng.choice(query.choices)))


class Silent(Solver):
    """Knows nothing and says so."""

    def answer(self, query):
        return Reply("", abstained=True)


@cache
def played(seed: int, kind=Solver, **options):
    memory = kind(seed) if kind is Guessing else kind()
    return play(Preferences(Options(**options)).steps(seed), memory)


@pytest.mark.parametrize("options", [{}, {"errands": 3, "contexts": 4, "people": 3, "others": 4}])
def test_golds_are_derived_again_whatever_was_guessed_before(options):
    agreed = 0
    for seed in range(3):
        solver = Solver()
        for record in played(seed, Guessing, **options):
            if isinstance(record.step, Item):
                solver.observe(record.step)
            elif record.step.scored:
                assert solver.answer(record.step.query).text == record.step.gold, record.step
                agreed += 1
    assert agreed >= 500


def test_evidence_is_one_statement_that_answers_and_none_where_he_said_otherwise_or_nothing():
    count: Counter = Counter()
    for seed in range(2):
        items: dict[str, Item] = {}
        heard = Solver()
        for record in played(seed, Guessing):
            step = record.step
            if isinstance(step, Item):
                items[step.id] = step
                heard.observe(step)
                continue
            told = heard.answer(step.query)
            assert bool(step.evidence) == (told.text == step.gold), step
            if step.evidence:
                alone = Solver()
                alone.observe(items[step.evidence[0]])
                assert alone.answer(step.query).text == step.gold
                assert step.tags["turns"] == len(items) - list(items).index(step.evidence[0])
            count[step.tags["phase"], bool(step.evidence), told.abstained] += 1
    # Untold in the first phase, told otherwise in the third, known in both tests.
    assert count["1 learn", False, True] > 30 and count["3 relearn", False, False] > 30
    for phase in ("2 test", "4 test"):
        assert [key for key in count if key[0] == phase] == [(phase, True, False)]


SEEDS = range(24)


def test_no_constant_answer_beats_chance():
    """Golds of one person depend on each other: a person counts once."""
    shares = defaultdict(list)
    for seed in SEEDS:
        asked = [r.step for r in played(seed, Silent, scenarios=12)
                 if isinstance(r.step, Asked) and r.step.scored]
        for aspect, values in ASPECTS.items():
            own = [a for a in asked if a.kind == aspect]
            for answer in (*values, 0, -1):
                right = [a.gold == (a.query.choices[answer] if isinstance(answer, int) else answer)
                         for a in own]  # fmt: skip
                shares[aspect, answer].append(np.mean(right) - 1 / len(values))
    for key, found in shares.items():
        assert ttest_1samp(found, 0.0).pvalue > 0.05 / len(shares), (key, np.mean(found))


def test_a_value_is_no_likelier_where_another_one_was_before_or_in_the_other_context():
    """What was liked before the drift is never liked after it; else nothing tells of anything."""
    before: Counter = Counter()
    for seed in SEEDS:
        home = Options().home(seed)
        likes = lambda: {  # noqa: E731
            (e, a, c): home.persona.likes(e, a, c) for e in home.persona.errands  # noqa: B023
            for a in ASPECTS for c in home.persona.contexts  # noqa: B023
        }  # fmt: skip
        first = likes()
        home.phase(PHASES[0], 12)
        assert likes() == first
        home.phase(PHASES[2], 12)
        for key, value in likes().items():
            changed = key[:2] in home.changed
            assert (value != first[key]) == changed
            if changed and key[1] == "thing":
                before[first[key], value] += 1
    assert len(before) == 6 and max(before.values()) < 2 * min(before.values())


def test_at_most_one_clarification_an_act_and_everything_wrong_is_corrected():
    for kind in (Guessing, Silent, Solver):
        comments, acts = defaultdict(list), acts_of(played(1, kind))
        asked: dict[str, Asked] = {}
        again = set()
        for record in played(1, kind):
            step = record.step
            if isinstance(step, Asked):
                asked[step.query.id] = step
                again.add(step.tags.get("instead_of"))
            elif step.about is not None:
                comments[step.session].append(step.about)
        for act in acts:
            said = comments[f"p{act.phase[0]}-{act.number:02d}"]
            learning = act.phase in ("1 learn", "3 relearn")
            assert sum(about in again for about in said) <= learning
            assert act.told_before == any(about in again for about in said)
            assert act.told_after == any(about not in again for about in said)
            if not learning:
                assert not said
            elif not act.success:
                wrong = {aspect for aspect, right in act.right.items() if not right}
                assert wrong <= {asked[about].kind for about in said if about not in again}


def test_who_knows_nothing_is_at_chance_and_who_listens_knows_all():
    found = score(r for seed in SEEDS for r in played(seed, Silent, scenarios=12))
    assert found.right == 0 and found.guessing == pytest.approx(found.chance)
    phases = phases_of([played(seed, Silent, scenarios=12) for seed in SEEDS])
    assert [p.name for p in phases] == list(PHASES)
    assert all(p.guessing == pytest.approx(p.chance) == pytest.approx(1 / 36) for p in phases)
    assert [p.feedback for p in phases] == [1, 0, 1, 0] and phases[0].acpe[-1] == 1.0
    phases = phases_of([played(seed) for seed in range(6)])
    first, test, again, last = phases
    assert test.success == last.success == 1.0 and test.feedback == 0.0
    assert first.acpe[0] == 1.0 > again.acpe[0] > 0.5 and 0.3 < first.acpe[-1] < 0.7
    assert first.acpe[-1] == pytest.approx(1 - first.success)
    assert first.before > 0.3 and again.before == 0.0 and again.after > 0.3


@pytest.mark.parametrize(
    ("feedback", "told"),
    [("both", (True, True)), ("before", (True, False)), ("after", (False, True)),
     ("none", (False, False))],
)
def test_each_way_of_feedback_can_be_left_out(feedback, told):
    phases = phases_of([played(2, feedback=feedback)])
    assert (phases[0].before > 0, phases[0].after > 0) == told
    # Who is sure of what was true before does not ask: only corrections tell of a change.
    assert (phases[3].success == 1.0) == told[1]


def test_the_same_seed_gives_the_same_steps_and_another_one_another():
    first = [step_to_json(r.step) for r in played(3)]
    again = play(Preferences().steps(3), Solver())
    assert first == [step_to_json(r.step) for r in again]
    assert first != [step_to_json(r.step) for r in played(4)]
    assert [step_to_json(step_from_json(line)) for line in first] == first
    stamps = [r.step.stamp_ns if isinstance(r.step, Item) else r.step.query.stamp_ns
              for r in played(3)]
    assert stamps == sorted(set(stamps))


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("preferences:scenarios=11", "scenarios must be 12 to 200, so that each of 6 errands"),
        ("preferences:feedback=later", "feedback must be both or before or after or none, got"),
        ("preferences:drift=1.5", "drift must be 0 to 1, got 1.5"),
        ("preferences:contexts=1", "contexts must be 2 to 6, got 1"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(spec, told):
    with pytest.raises(UsageError, match=told):
        make_probe(spec)
