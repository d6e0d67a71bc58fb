"""A memory that understands when it is told: facts with the time in which they hold."""

from __future__ import annotations

from dataclasses import dataclass

from bench_tasks.probes.stream import Item, Query, Reply
from bench_tasks.probes.talk import counting, meanings
from policies.memory.facts import Fact
from policies.memory.graph import Graph
from policies.memory.rag import RagMemory, RagOptions
from policies.memory.reader import RuleReader, answer_from
from policies.memory.sources import Believed, Sources
from policies.memory.words import asked_in

__all__ = ["StructuredMemory", "StructuredOptions"]


@dataclass(frozen=True)
class StructuredOptions(RagOptions):
    """As for retrieval, which finds what is not understood; by words alone, without a model."""

    by: tuple[str, ...] = ("words",)


class StructuredMemory(RagMemory):
    """Answers from facts that were resolved when they were said; else like retrieval.

    With a reader that is no `RuleReader` the items that the facts rest on are recalled first.
    """

    name = "structured"
    derives = ("facts",)
    Options = StructuredOptions
    options: StructuredOptions

    def _opened(self) -> None:
        super()._opened()
        looks = getattr(self.reader, "looks", lambda picture: ())
        self.graph = Graph(self.store, looks)
        self.believed = Believed(self.graph, Sources(self.graph))

    def _derive(self, name: str, new: list[tuple[int, Item]], made: object) -> None:
        if name == "facts":
            self.graph.take(new)
        else:
            super()._derive(name, new, made)

    def answer(self, query: Query) -> Reply:
        """From the facts, if the question is understood and they are read by rules."""
        self.settle()
        if isinstance(self.reader, RuleReader) and meanings(query.text, asked=True):
            # Where it is told whose word counts, it is not to be learned.
            told = counting(query.text)[1] is not None
            return answer_from(query, self.graph if told else self.believed)
        return super().answer(query)

    def recall(self, query: Query) -> list[Item]:
        """What the answer's facts rest on, then facts about what the question names, then words."""
        self.settle()
        asked = meanings(query.text, asked=True)
        named = [slot for meaning in asked for slot in meaning.slots.values()]
        facts: list[Fact] = [fact for node in named for fact in self.graph.about(node)]
        facts.sort(key=lambda fact: -fact.stamp_ns)
        ids = dict.fromkeys(answer_from(query, self.believed).used)
        ids |= dict.fromkeys(one for fact in facts for one in (fact.item, *fact.beside))
        found = {item.id: item for item in self.store.by_id(list(ids)[: self.options.items])}
        for item in self.store.numbered(self.search(asked_in(query), self.options.items)):
            found.setdefault(item.id, item)
        return list(found.values())[: self.options.items]
