"""Belief under conflict, after MMA-Bench (arXiv 2602.16493): whom, and what, does a memory believe?

Six cases run through the same ten sessions, each with a pair of people of its own. In calibration
(sessions 1 to 4) both say which colour a thing has, and the robot's camera shows it afterwards: one
of them is always right, the other once. Then both are at odds on a thing that nobody has seen (5 to
7), the camera shows something (8), and they have their last words (9 and 10).

    type  the camera shows                        the reliable one   truth
    A     what the reliable one says              insists            what was seen
    B     what the unreliable one says            insists            what was seen
    C     both colours: it may be either          gives in           UNKNOWN
    D     something else                          never knew         UNKNOWN
    R     something else                          insists            what the reliable one says

R, which is not in the publication, needs the calibration and nothing else. With two cases of type
B each of the three answers (what the reliable one says, what the other says, UNKNOWN) is right in
two of six, so that no rule that looks at less than the evidence gains by it; nor does the last
word, which is right in two of six as well, or what was said most often.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bench_tasks.errors import UsageError
from bench_tasks.options import check_ranges
from bench_tasks.probes.belief_scores import report
from bench_tasks.probes.runs import Run
from bench_tasks.probes.stills import Render, Still, caption_of, stills
from bench_tasks.probes.stream import UNKNOWN, Asked, Item, Picture, Probe, Query
from bench_tasks.probes.talk import put, say, variants
from bench_tasks.probes.words import COLOURS, NAMES, PERSONS, SMALL_TALK

__all__ = ["TYPES", "BeliefProbe", "Options"]

TYPES = ("A", "R", "B", "B", "C", "D")
SESSIONS, CALIBRATION, TRAP = 10, 4, 7
SECOND_NS = 10**9
DAY_NS = 86_400 * SECOND_NS
START_NS = 1_767_258_000 * SECOND_NS
MODES = ("image", "text", "both")


@dataclass(frozen=True)
class Options:
    """How the evidence comes, and what is between it.

    mode: image; text, where captions stand in for pictures; both: even seeds have pictures, and the
    next seed is the same in texts, for the gap between them. noise: how often the unreliable one
    says it in each of the sessions 5 to 7. small_talk: utterances of a session that say nothing,
    some by `bystanders`. paraphrase: questions are put in any of their ways.
    """

    mode: str = "image"
    noise: int = 2
    small_talk: int = 10
    bystanders: int = 0
    paraphrase: bool = True

    def __post_init__(self) -> None:
        """UsageError names the option whose value cannot be."""
        if self.mode not in MODES:
            raise UsageError(f"mode must be {', '.join(MODES[:-1])} or both, got {self.mode!r}")
        most = len(PERSONS) - 2 * len(TYPES)
        check_ranges(self, noise=(1, 20), small_talk=(0, 200), bystanders=(0, most))


@dataclass(frozen=True)
class Said:
    """One utterance; the camera's have no speaker. `key` is by whom evidence is found again."""

    who: str
    text: str
    still: Still | None = None
    key: str = ""


class Case:
    """What is true of one case, and who says what of it in which session."""

    def __init__(self, kind: str, last: bool, rng: np.random.Generator, noise: int,
                 people: tuple[str, str], names: list[str]) -> None:
        """`last`: whether the reliable one has the last word. Six `names` for things are used."""
        self.kind, self.last, self.noise, self._rng = kind, last, noise, rng
        self.reliable, self.unreliable = people
        *self._calibration, self.name, self._other = names
        self._slip = int(rng.integers(CALIBRATION))
        self._still = self._shown()
        colours = [colour for colour, _ in self._still.things]
        if kind in ("A", "B"):
            self._seen = colours[0]
            free = [c for c in COLOURS if c not in colours]
            wrong = str(rng.choice(free))
            self.sides = (self._seen, wrong) if kind == "A" else (wrong, self._seen)
        elif kind == "C":
            pair = [str(c) for c in rng.permutation(colours[:2])]
            self.sides = (pair[0], pair[1])
        else:
            free = [str(c) for c in rng.permutation([c for c in COLOURS if c not in colours])]
            # Who never knew says no colour: what the camera shows stands in for it as a choice.
            self.sides = (colours[0] if kind == "D" else free[0], free[1])
        self.gold = {"A": self.sides[0], "R": self.sides[0], "B": self.sides[1]}.get(kind, UNKNOWN)

    def _shown(self) -> Still:
        return stills()[int(self._rng.integers(len(stills())))]

    @property
    def evidence(self) -> tuple[str, ...]:
        """Keys of the utterances that the answer rests on."""
        key = {"A": "seen", "B": "seen", "R": "word"}.get(self.kind)
        return (f"{self.name} {key}",) if key else ()

    def session(self, k: int) -> list[Said]:
        """What is said and seen of it in the k-th session, in order."""
        if k < CALIBRATION:
            return self._calibrate(k)
        if k == TRAP:
            kind = "one_of" if self.kind == "C" else "calls"
            name = self._other if self.kind in ("D", "R") else self.name
            return [Said("", say(kind, self._rng, name=name), self._still, f"{name} seen")]
        ours, theirs = self._reliable(k), self._claim(self.unreliable, self.name, self.sides[1])
        if k == SESSIONS - 1:
            return [theirs, ours] if self.last else [ours, theirs]
        said = [ours, *[theirs] * (self.noise if k < TRAP else 1)]
        return [said[int(j)] for j in self._rng.permutation(len(said))]

    def _calibrate(self, k: int) -> list[Said]:
        name, still = self._calibration[k], self._shown()
        true = still.things[0][0]
        wrong = str(self._rng.choice([c for c in COLOURS if c != true]))
        both = [self._claim(self.reliable, name, true),
                self._claim(self.unreliable, name, true if k == self._slip else wrong)]
        told = [both[int(j)] for j in self._rng.permutation(2)]
        return [*told, Said("", say("calls", self._rng, name=name), still)]

    def _reliable(self, k: int) -> Said:
        knows = self.kind != "D" and not (self.kind == "C" and k > TRAP)
        if not knows:
            return Said(self.reliable, say("unsure", self._rng, name=self.name))
        return self._claim(self.reliable, self.name, self.sides[0], f"{self.name} word")

    def _claim(self, who: str, name: str, value: str, key: str = "") -> Said:
        return Said(who, say("looks", self._rng, name=name, value=value), None, key)


class BeliefProbe:
    """Makes the steps of six cases per seed: at the end three questions on each."""

    Options = Options

    def __init__(self, options: Options | None = None) -> None:
        """Verdict, wager and reflection on two cases of type B and one of each other type."""
        self.options = options or Options()

    @property
    def pictured(self) -> bool:
        """Whether `steps` needs a renderer."""
        return self.options.mode != "text"

    def steps(self, seed: int, render: Render | None = None) -> Probe:
        """Ten sessions in six months, then questions. UsageError when nothing draws pictures."""
        if self.pictured and render is None:
            raise UsageError(f"mode={self.options.mode} needs a renderer: choose mode=text without")
        twins = self.options.mode == "both"
        drawn = render if self.pictured and not (twins and seed % 2) else None
        rng = np.random.default_rng([seed // 2 if twins else seed, 4])
        people = [str(name) for name in rng.choice(PERSONS, len(PERSONS), replace=False)]
        cases = self._cases(rng, people)
        at: dict[str, int] = {}
        items: list[Item] = []
        now = START_NS
        for k in range(SESSIONS):
            now = START_NS + k * 18 * DAY_NS + int(rng.integers(5)) * DAY_NS
            for said in self._mixed(rng, [case.session(k) for case in cases], people):
                now += int(rng.integers(3, 40)) * SECOND_NS
                picture = None
                name = f"s{k + 1:02d}-{len(items):04d}"
                if said.still is not None:
                    picture = Picture(f"{name}.jpg", b"", "", caption_of(said.still))
                    if drawn is not None:
                        picture = Picture(f"{name}.jpg", drawn(said.still))
                if said.key:
                    at[said.key] = len(items)
                items.append(Item(name, now, f"s{k + 1:02d}", said.who, said.text, picture))
                yield items[-1]
        asking = _Asking(self.options, rng, items, at, "image" if drawn else "text", now)
        # The right answer is in each place of the choices as often.
        places = rng.permutation([k % 3 for k in range(len(cases))])
        for k, place in zip(rng.permutation(len(cases)), places, strict=True):
            yield from asking.about(cases[int(k)], int(place))

    def _cases(self, rng: np.random.Generator, people: list[str]) -> list[Case]:
        names = [str(name) for name in rng.permutation(NAMES)]
        # Whether the reliable one has the last word: it is to be right in two of six.
        first, second = bool(rng.integers(2)), bool(rng.integers(2))
        last = [first, not first, second, not second, False, False]
        cases = []
        for k, kind in enumerate(TYPES):
            pair = (people[2 * k], people[2 * k + 1])
            own = names[6 * k : 6 * k + 6]
            cases.append(Case(kind, last[k], rng, self.options.noise, pair, own))
        return cases

    def _mixed(self, rng: np.random.Generator, told: list[list[Said]], people: list[str]
               ) -> Iterator[Said]:
        """What is said of all cases, each in its order, with small talk in between."""
        talkers = people[: 2 * len(TYPES) + self.options.bystanders]
        turns = [k for k, said in enumerate(told) for _ in said] + [-1] * self.options.small_talk
        waiting = [iter(said) for said in told]
        for turn in rng.permutation(turns):
            if turn >= 0:
                yield next(waiting[int(turn)])
            else:
                yield Said(str(rng.choice(talkers)), str(rng.choice(SMALL_TALK)))

    @staticmethod
    def report(runs: list[Run]) -> dict[str, float | None]:
        """What it measures besides right and wrong, of runs that came to their end."""
        return report(runs)


class _Asking:
    """Puts the three questions on a case."""

    def __init__(self, options: Options, rng: np.random.Generator, items: list[Item],
                 at: dict[str, int], mode: str, now_ns: int) -> None:
        self._options, self._rng, self._items, self._at = options, rng, items, at
        self._mode, self._now_ns, self._count = mode, now_ns, 0

    def about(self, case: Case, place: int) -> Probe:
        """Verdict, wager, reflection; the right answer is in this place of the choices."""
        choices = [c for c in (*case.sides, UNKNOWN) if c != case.gold]
        choices = [choices[int(k)] for k in self._rng.permutation(2)]
        choices.insert(place, case.gold)
        reply = yield self._ask("verdict", case, "colour_of_name", choices, {"name": case.name})
        first = reply.text if reply is not None else ""
        a, b, c = *case.sides, UNKNOWN
        if choices.index(a) > choices.index(b):
            a, b = b, a
        yield self._ask("wager", case, "wager", [], {"name": case.name, "a": a, "b": b, "c": c})
        said = first if first in choices else "nothing"
        yield self._ask("reflection", case, "again", choices, {"name": case.name, "value": said})

    def _ask(self, step: str, case: Case, form: str, choices: list[str], slots: dict[str, str]
             ) -> Asked:
        self._count += 1
        way = int(self._rng.integers(variants(form))) * self._options.paraphrase
        stamp = self._now_ns + 10 * self._count * SECOND_NS
        query = Query(f"q{self._count:03d}-{step}", stamp, put(form, way, **slots), tuple(choices))
        rests = [self._at[key] for key in case.evidence]
        tags = {
            "step": step, "sides": list(case.sides), "mode": self._mode,
            "modality": "both" if case.kind in ("A", "B") and self._mode == "image" else "text",
            "people": 2 * len(TYPES) + self._options.bystanders,
            "distractors": self._options.small_talk,
            "paraphrase": "plain" if way == 0 else f"way {way}",
        }  # fmt: skip
        for k in rests:
            tags |= {"turns": len(self._items) - k,
                     "seconds": round((stamp - self._items[k].stamp_ns) / SECOND_NS)}
        return Asked(query, case.kind, case.gold, 1 / 3, tuple(self._items[k].id for k in rests),
                     tags, step == "verdict")
