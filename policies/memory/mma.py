"""Retrieval that weighs what it finds: who said it, how long ago, and whether others agree.

Confidence of an item, after MMA (arXiv 2602.16493):

    C = clip01((ws S + wt T + wc Con) / (ws + wt + wc)),   ws, wt, wc = .45, .40, .15

S is how far the source is trusted, T = 0.5 ^ (age / half-life), Con the agreement of the up to ten
nearest of the other items found, sum(w conf cos) / sum(w) with w = cos, where the cosine of one
that contradicts counts as negative. Two things differ from the published code: without a neighbour
the term is left out (there it is 0, which punishes what only one item says), and what the same
speaker said before, or what was changed since, does not contradict what is said now. An answer is
as sure as what speaks for it exceeds what speaks against it.

S is learned: what was seen, and what people say of themselves, is trusted; of other things a source
is trusted as often as that confirmed him before in things of the kind, unless `sources` says how
far; nothing rests on the word of one who was wrong more often than right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bench_tasks.errors import UsageError
from bench_tasks.probes.stream import Item, Query, Reply, refusal_of
from policies.memory.facts import LASTS, Fact, FactList, rank
from policies.memory.graph import Graph
from policies.memory.rag import RagMemory, RagOptions
from policies.memory.reader import RuleReader, answer_from
from policies.memory.sources import Sources
from policies.memory.wager import bet, is_wager
from policies.memory.words import asked_in

__all__ = ["MmaMemory", "MmaOptions", "confidences"]

WEIGHTS = (0.45, 0.40, 0.15)
NEIGHBOURS = 10
NEAR = 0.5
"""A cosine below this makes no neighbour: small talk neither agrees nor contradicts."""
DAY_NS = 86_400 * 10**9


@dataclass(frozen=True)
class MmaOptions(RagOptions):
    """Besides those of retrieval: when to abstain, how fast memories fade, and whom to trust.

    least: the confidence below which it abstains. half_life_days: of T. sources: trust in
    speakers, Name=0.9+Other=0.2; of those not named it is learned.
    """

    items: int = 32
    least: float = 0.3
    half_life_days: float = 30.0
    sources: tuple[str, ...] = ()


class MmaMemory(RagMemory):
    """Answers with the most trusted of what contradicts, and abstains when that is little."""

    name = "mma"
    derives = ("facts",)
    Options = MmaOptions
    options: MmaOptions

    def _opened(self) -> None:
        super()._opened()
        if self.options.half_life_days <= 0:
            raise UsageError(
                f"memory mma: half_life_days must be more than 0, got {self.options.half_life_days}"
            )
        if not 0 <= self.options.least <= 1:
            raise UsageError(f"memory mma: least must be 0 to 1, got {self.options.least}")
        self.graph = Graph(self.store, getattr(self.reader, "looks", lambda picture: ()))
        self.sources = Sources(self.graph, self.options.sources)

    def _derive(self, name: str, new: list[tuple[int, Item]], made: object) -> None:
        if name == "facts":
            self.graph.take(new)
        else:
            super()._derive(name, new, made)

    def weighed(self, query: Query) -> list[tuple[Item, float]]:
        """The items found, each with its confidence, the best fit first."""
        self.settle()
        with self.store.still():
            numbers = self.search(asked_in(query), self.options.items)
            items = self.store.numbered(numbers)
            facts = self.graph.said_by(items)
        ages = np.array([query.stamp_ns - item.stamp_ns for item in items], float) / DAY_NS
        rows = self.vectors.rows(numbers)
        trust = np.array([self._trust(item, facts) for item in items])
        told = 0.5 ** (ages.clip(min=0) / self.options.half_life_days)
        found = confidences(trust, told, rows @ rows.T, _contradict(items, facts))
        return list(zip(items, found.tolist(), strict=True))

    def _trust(self, item: Item, facts: Sequence[Fact]) -> float:
        mine = [self.sources.trust(fact) for fact in facts if fact.item == item.id]
        return max(mine) if mine else self.sources.of(item.speaker)

    def recall(self, query: Query) -> list[Item]:
        """What is found and trusted enough, by fit and confidence."""
        found = self.weighed(query)
        by_both = sorted(range(len(found)), key=lambda k: (k + 1) / max(found[k][1], 1e-6))
        return [found[k][0] for k in by_both if found[k][1] >= self.options.least]

    def answer(self, query: Query) -> Reply:
        """By the most trusted; abstains below `least`, when the question allows it."""
        if not isinstance(self.reader, RuleReader):
            return super().answer(query)
        if is_wager(query):
            return bet(query, self.answer)
        found = self.weighed(query)
        facts = self.graph.said_by(item for item, _ in found)
        view = _Trusted(found, [fact for fact in facts if self.sources.believed(fact)])
        reply = answer_from(query, view)
        if reply.abstained:
            return reply
        sure = min((view.sure[one] for one in reply.used if one in view.sure), default=0.0)
        if sure < self.options.least and refusal_of(query):
            return Reply(refusal_of(query), 1 - sure, abstained=True)
        return replace(reply, confidence=sure)


def confidences(
    trust: np.ndarray, fresh: np.ndarray, cosines: np.ndarray, contradict: np.ndarray
) -> np.ndarray:
    """C of n items from S, T (n,), and of each pair (n, n) the cosine and whether it is against."""
    ws, wt, wc = WEIGHTS
    alone = (ws * trust + wt * fresh) / (ws + wt)
    found = np.empty(len(trust))
    for k, own in enumerate(alone):
        near = np.argsort(-cosines[k], kind="stable")
        near = [j for j in near if j != k and cosines[k, j] >= NEAR][:NEIGHBOURS]
        if not near:
            found[k] = own
            continue
        weight = cosines[k, near]
        sign = np.where(contradict[k, near], -1.0, 1.0)
        agreement = (weight * alone[near] * sign * cosines[k, near]).sum() / weight.sum()
        found[k] = ((ws + wt) * own + wc * agreement) / (ws + wt + wc)
    return found.clip(0, 1)


def _contradict(items: Sequence[Item], facts: Iterable[Fact]) -> np.ndarray:
    """(n, n): whether two items say different things of the same, by different speakers."""
    at = {item.id: k for k, item in enumerate(items)}
    against = np.zeros((len(items), len(items)), bool)
    groups: dict[tuple[str, str], list[Fact]] = {}
    for fact in facts:
        if fact.relation not in LASTS:
            groups.setdefault((fact.relation, fact.subject), []).append(fact)
    for group in groups.values():
        for one in group:
            for other in group:
                both = one.value and other.value  # Who does not know contradicts nobody.
                if both and one.value != other.value and one.speaker != other.speaker:
                    against[at[one.item], at[other.item]] = True
    return against


class _Trusted:
    """Facts of weighed items: of those that contradict, the most trusted one comes last."""

    def __init__(self, found: Sequence[tuple[Item, float]], facts: Sequence[Fact]) -> None:
        self._confidence = {item.id: sure for item, sure in found}
        self._facts = FactList(facts)
        self.sure: dict[str, float] = {}
        """Item -> confidence in what it says, in view of what was said against it."""

    def find(
        self, relation: str, subject: str | None = None, value: str | None = None
    ) -> list[Fact]:
        """As of `Facts`, but in the order of trust where one value excludes another."""
        found = self._facts.find(relation, subject, value)
        if relation in LASTS or subject is None:
            self.sure |= {fact.item: self._confidence[fact.item] for fact in found}
            return found
        changed = max((k for k, fact in enumerate(found) if fact.ends), default=0)
        last = {fact.speaker: fact for fact in found[changed:]}  # Of each what he said last.
        silent = {fact.speaker for fact in last.values() if not fact.value}
        found = [fact for fact in found if fact.speaker not in silent]
        ranked = sorted((f for f in last.values() if f.value), key=self._order)
        for fact in ranked:
            against = [
                self._confidence[other.item] for other in ranked
                if other.value != fact.value and rank(other) >= rank(fact)
            ]  # fmt: skip
            own = self._confidence[fact.item]
            self.sure[fact.item] = max(own - max(against, default=0.0), 0.0)
        return [fact for fact in found if fact not in ranked] + ranked

    def _order(self, fact: Fact) -> tuple[int, float, int]:
        kind = rank(fact)
        return kind, self._confidence[fact.item], fact.stamp_ns
