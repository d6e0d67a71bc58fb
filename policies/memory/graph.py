"""Facts as a small graph in the store: who or what, how related, to what, said by whom, from when.

Nodes are persons, things, words, places and events; an edge is a fact, and holds from when it was
said until the same speaker said otherwise, or anybody that it was changed. `this one` is resolved
when it is said. Nothing is overwritten: what held at any time can be asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from bench_tasks.probes.stream import Item
from policies.memory.facts import LASTS, SAID, Fact, Looks, facts_beside, rank
from policies.memory.store import AMONG, Store

__all__ = ["Graph", "shown_with"]

FOREVER_NS = 2**63 - 1
COLUMNS = "relation, subject, value, item, speaker, from_ns, beside, ends"


def shown_with(store: Store, item: Item) -> Item | None:
    """What `this one` means in an item: the last picture that its speaker showed there."""
    if item.picture is not None:
        return item
    before = store.items(
        "AND i.session = ? AND i.speaker = ? AND i.picture IS NOT NULL"
        " AND (i.stamp_ns, i.id) <= (?, ?) ORDER BY i.stamp_ns DESC, i.id DESC LIMIT 1",
        item.session, item.speaker, item.stamp_ns, item.id,
    )  # fmt: skip
    return before[0] if before else None


class Graph:
    """The facts of a store's user."""

    def __init__(self, store: Store, looks: Looks) -> None:
        """`looks` names the colours in a picture."""
        self._store, self._looks = store, looks

    def take(self, new: Iterable[tuple[int, Item]]) -> None:
        """Add what items say, in a transaction. They may come in any order of their stamps."""
        for _, item in new:
            for fact in facts_beside(item, shown_with(self._store, item), self._looks):
                if fact.relation not in LASTS:
                    self._judge(fact)
                self._add(fact)

    def _add(self, fact: Fact) -> None:
        group = (self._store.user, fact.relation, fact.subject)
        until = FOREVER_NS
        with self._store.writing() as db:
            if fact.relation not in LASTS:
                of_it = "user = ? AND relation = ? AND subject = ?"
                until = db.execute(
                    f"SELECT coalesce(min(from_ns), ?) FROM facts WHERE {of_it} AND from_ns > ?"
                    " AND (speaker = ? OR ends)",
                    (FOREVER_NS, *group, fact.stamp_ns, fact.speaker),
                ).fetchone()[0]
                db.execute(
                    f"UPDATE facts SET until_ns = ? WHERE {of_it} AND until_ns > ?"
                    " AND +from_ns <= ? AND (speaker = ? OR ?)",  # +: not by that index
                    (fact.stamp_ns, *group, fact.stamp_ns, fact.stamp_ns, fact.speaker, fact.ends),
                )
            values = (
                *group, fact.value, fact.item, fact.speaker, fact.stamp_ns,
                json.dumps(fact.beside), fact.ends, until, rank(fact),
            )  # fmt: skip
            db.execute(
                f"INSERT INTO facts (user, {COLUMNS}, until_ns, rank)"
                f" VALUES ({','.join('?' * len(values))})", values,
            )  # fmt: skip

    def _judge(self, fact: Fact) -> None:
        """Count whose word a new fact confirms or contradicts, or whether it is confirmed."""
        where = "relation = ? AND subject = ? AND rank > 0"
        group = (fact.relation, fact.subject)
        known = self._where(
            f"{where} AND from_ns <= ?", *group, fact.stamp_ns, order="from_ns DESC LIMIT 1"
        ) or self._where(where, *group, order="from_ns LIMIT 1")  # fmt: skip
        if rank(fact) == SAID:
            pairs = [(fact, one) for one in known]
        else:
            pairs = [] if known else [(one, fact) for one in self.find(*group)]
        for said, true in pairs:
            right = said.value == true.value
            if said.value and said.speaker != true.speaker:
                self._store.rows(
                    "INSERT INTO sources VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
                    " confirmed = confirmed + excluded.confirmed,"
                    " contradicted = contradicted + excluded.contradicted",
                    self._store.user, f"{said.speaker}\n{said.relation}", int(right),
                    int(not right),
                )  # fmt: skip

    def record(self, speaker: str, relation: str | None = None) -> tuple[int, int]:
        """How often what a speaker said of others was confirmed, and contradicted.

        With `relation` of this alone: who passes on gossip may still know where things are.
        """
        key = f"{speaker}\n{relation or ''}"
        of_him = "speaker = ?" if relation is not None else "substr(speaker, 1, length(?)) = ?"
        (counted,) = self._store.rows(
            "SELECT coalesce(sum(confirmed), 0), coalesce(sum(contradicted), 0) FROM sources"
            f" WHERE user = ? AND {of_him}",
            self._store.user, *[key] * of_him.count("?"),
        )  # fmt: skip
        return counted  # type: ignore[return-value]

    def find(self, relation: str, subject: str | None = None, value: str | None = None
             ) -> list[Fact]:
        """As of `Facts`: all that was ever said of it."""
        more = {"subject": subject, "value": value}
        return self._where("relation = ?", relation, more=more)

    def at(self, stamp_ns: int, relation: str, subject: str | None = None) -> list[Fact]:
        """What held at a time: of each speaker who said anything the last that he had said."""
        holds = "relation = ? AND from_ns <= ? AND until_ns > ?"
        return self._where(holds, relation, stamp_ns, stamp_ns, more={"subject": subject})

    def about(self, node: str) -> list[Fact]:
        """The facts that lead to or from a node."""
        # Two questions: together SQLite answers them without the indexes.
        leading = [fact for fact in self._where("value = ?", node) if fact.subject != node]
        return sorted([*self._where("subject = ?", node), *leading], key=lambda f: f.stamp_ns)

    def said_by(self, items: Iterable[Item]) -> list[Fact]:
        """The facts that these items said."""
        return self._where(f"item IN {AMONG}", json.dumps([item.id for item in items]))

    def _where(
        self, where: str, *values: Any, more: dict[str, str | None] | None = None,
        order: str = "from_ns, item, f",
    ) -> list[Fact]:
        for column, wanted in (more or {}).items():
            if wanted is not None:
                where, values = f"{where} AND {column} = ?", (*values, wanted)
        rows = self._store.rows(
            f"SELECT {COLUMNS} FROM facts WHERE user = ? AND {where} ORDER BY {order}",
            self._store.user, *values,
        )  # fmt: skip
        return [Fact(*row[:6], tuple(json.loads(row[6])), bool(row[7])) for row in rows]
