"""Grows sets of objects: propose an edit, build it, test it, keep what passes and is new.

Knows the simulator and the policies, since what it keeps must be graspable by the expert.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bench_tasks.errors import UsageError, unknown
from bench_tasks.object_sets import Edit, Evolved, ObjectSet
from bench_tasks.tasks.base import ObjectSpec
from bench_tasks.trial import THING, Examiner, families
from bench_tasks.vocabulary import MAX_OPENING_M

__all__ = ["Evolution", "Proposer", "RuleProposer", "contact_sheet", "evolvable", "evolve",
           "find_faults"]

MAX_EDITS = 5
TRIES = 200
"""Proposals for one object of a set before it is given up; most that fail cost no simulation."""
LENGTH_WEIGHT = 2
"""How much likelier than any other edit one of a length is: it fits every kind."""
NOVELTY = 0.15
"""Least distance of shape descriptors from the bare kind and from all of it that are kept."""
UNFIT, NOT_NEW = "edit does not fit", "not new"
COMMON = (UNFIT, NOT_NEW)
"""Reasons that most proposals fail for: counted at the end, not told one by one."""
LONGEST_M, MASS_KG = 0.45, (0.015, 0.6)
THINNEST_GRASP_M = 0.004


class Proposer(Protocol):
    """Where edits come from: the rules below, or a model."""

    def propose(
        self, kind: str, lengths: dict[str, float], pool: tuple[Evolved, ...],
        rng: np.random.Generator,
    ) -> Evolved:
        """Return a new object of `kind`, whose program takes `lengths`, from those kept so far."""
        ...


class RuleProposer:
    """Adds, changes or drops an edit of one parent, or joins the edits of two."""

    def propose(self, kind, lengths, pool, rng) -> Evolved:
        """As `Proposer` says; the pool and the bare kind are equally likely parents."""
        pick = int(rng.integers(len(pool) + 1))
        parents = (kind,) if pick == len(pool) else (pool[pick].name,)
        edits = [] if pick == len(pool) else list(pool[pick].edits)
        way = rng.choice(("add", "change", "drop", "cross"), p=(0.5, 0.25, 0.05, 0.2))
        if way == "cross" and len(pool) > 1:
            a, b = (pool[int(k)] for k in rng.choice(len(pool), size=2, replace=False))
            parents = (a.name, b.name)
            cut, start = (int(rng.integers(len(x.edits) + 1)) for x in (a, b))
            edits = [*a.edits[:cut], *b.edits[start:]]
        elif way == "change" and edits:
            k = int(rng.integers(len(edits)))
            edits[k] = self._edit(kind, edits[k].op, lengths, rng)
        elif way == "drop" and len(edits) > 1:
            del edits[int(rng.integers(len(edits)))]
        else:
            edits.append(self._edit(kind, None, lengths, rng))
            if parents == (kind,):  # one edit alone is often hardly seen
                edits.append(self._edit(kind, None, lengths, rng))
        if not edits:  # nothing was left of either
            edits.append(self._edit(kind, None, lengths, rng))
        # Each edit once, the later one: two feet lie in each other, two changes of a length add up.
        last = {(e.op, e.args.get("name")): k for k, e in enumerate(edits)}
        edits = [e for k, e in enumerate(edits) if last[e.op, e.args.get("name")] == k]
        return Evolved(kind, tuple(edits[:MAX_EDITS]), parents)

    def _edit(self, kind: str, op: str | None, lengths: dict[str, float], rng) -> Edit:
        from sim.objects.edits import LENGTH, OPERATIONS, operations_for

        choices = [*operations_for(kind), *(LENGTH,) * (LENGTH_WEIGHT - 1)]
        op = op or str(rng.choice(choices))
        ranges = dict(OPERATIONS[op][1])
        if op == LENGTH:
            ranges = {"name": tuple(lengths), **ranges}
        args: dict[str, Any] = {}
        for key, valid in ranges.items():
            if isinstance(valid[0], float):
                args[key] = round(float(rng.uniform(*valid)), 3)
            else:
                args[key] = valid[int(rng.integers(len(valid)))]
        return Edit(op, args)


@dataclass
class Evolution:
    """What came out: the set, how many were proposed of each kind, and why others were rejected."""

    objects: ObjectSet
    proposed: Counter = field(default_factory=Counter)
    rejected: dict[str, Counter] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "kept": len(self.objects.objects), "hash": self.objects.hash,
            "proposed": dict(self.proposed),
            "rejected": {kind: dict(why) for kind, why in self.rejected.items()},
        }


def find_faults(item: Evolved) -> tuple[str, Any]:
    """Why the object cannot be (category: particulars), "" where it can; and its `Solid`."""
    from sim.objects.edits import Unfit
    from sim.solid import solid_of

    try:
        solid = solid_of(ObjectSpec(THING, item.kind, evolved=item))
    except Unfit as error:
        return f"{UNFIT}: {error}", None
    if not solid.watertight:
        return "not watertight", solid
    if solid.pieces != 1:
        return f"not in one piece: {solid.pieces}", solid
    if 2 * max(solid.info.half_size_m) > LONGEST_M:
        return f"too large: {2e3 * max(solid.info.half_size_m):.0f} mm", solid
    if not MASS_KG[0] <= solid.mass_kg <= MASS_KG[1]:
        return f"too light or heavy: {solid.mass_kg:.3f} kg", solid
    for grasp in solid.info.grasps:
        if not THINNEST_GRASP_M <= grasp.width_m < MAX_OPENING_M - 0.01:
            return f"no hand opens for it: {grasp.name} {grasp.width_m * 1e3:.0f} mm", solid
    return "", solid


def evolvable() -> dict[str, dict[str, float]]:
    """The kinds that can be evolved, those that a hand may take, with their lengths (m)."""
    import mujoco

    from sim.objects import KINDS, build, is_fixed, lengths_of

    return {
        kind: lengths_of(kind) for kind in KINDS
        if not is_fixed(kind) and build(mujoco.MjSpec(), ObjectSpec(THING, kind)).grasps
    }


class _Line:
    """One kind: what its parent can do, and which of its descendants were kept."""

    def __init__(self, kind: str, lengths: dict[str, float], examiner: Examiner) -> None:
        from sim.solid import solid_of

        self.kind, self.lengths, self._examiner = kind, lengths, examiner
        solid = solid_of(ObjectSpec(THING, kind))
        outcome = examiner.holds(kind, None, families(solid.info))
        self.ways = tuple(way for way, why in outcome.items() if not why)
        if not self.ways:
            raise UsageError(f"{kind} cannot be evolved: the expert cannot hold it ({outcome})")
        self.kept: list[Evolved] = []
        self._seen = [solid.descriptor()]

    def judge(self, item: Evolved) -> str:
        """Why it is not kept (category: particulars); "" when it is kept."""
        if item.name in [other.name for other in self.kept]:
            return f"{NOT_NEW}: the same program"
        fault, solid = find_faults(item)
        if fault:
            return fault
        shape = solid.descriptor()
        if min(np.linalg.norm(shape - other) for other in self._seen) < NOVELTY:
            return f"{NOT_NEW}: much like another"
        fault = self._examiner.stands(self.kind, item)
        if fault:
            return f"not stable: {fault}"
        # It must be held in each way in which its kind is, as far as it has that grasp.
        ways = tuple(way for way in families(solid.info) if way in self.ways)
        fault = next((f for f in self._examiner.holds(self.kind, item, ways).values() if f), "")
        if fault or not ways:
            return f"not graspable: {fault or 'no grasp is left'}"
        self.kept.append(item)
        self._seen.append(shape)
        return ""


def evolve(
    kinds: tuple[str, ...], count: int, seed: int, command: str = "",
    proposer: Proposer | None = None, note: Callable[[str], None] = lambda _: None,
) -> Evolution:
    """Grow a set of `count` objects, the kinds taking turns. The same arguments give the same set.

    UsageError on an unknown kind, or one that the expert cannot hold as it is. A kind of which
    `TRIES` proposals in a row fail is grown no further, so the set can be smaller.
    """
    from policies.skills import SkillPolicy
    from sim.world import SimWorld

    known = evolvable()
    for kind in kinds:
        if kind not in known:
            raise unknown("kind to evolve", kind, known)
    if len(set(kinds)) != len(kinds):
        raise UsageError(f"a kind is named twice: {', '.join(kinds)}")
    proposer, examiner = proposer or RuleProposer(), Examiner(SimWorld(), SkillPolicy(), seed)
    lines = {kind: _Line(kind, known[kind], examiner) for kind in kinds}
    rngs = {kind: np.random.default_rng([seed, zlib.crc32(kind.encode())]) for kind in kinds}
    result = Evolution(ObjectSet((), seed, command), Counter(), {k: Counter() for k in kinds})
    kept: list[Evolved] = []
    alive = list(kinds)
    while alive and len(kept) < count:
        for kind in tuple(alive):
            if len(kept) == count:
                break
            line = lines[kind]
            for _ in range(TRIES):
                item = proposer.propose(kind, line.lengths, tuple(line.kept), rngs[kind])
                result.proposed[kind] += 1
                fault = line.judge(item)
                if not fault:
                    kept.append(item)
                    note(f"{len(kept)} of {count}: {item.name}")
                    break
                reason = fault.split(":")[0]
                result.rejected[kind][reason] += 1
                if reason not in COMMON:
                    note(f"{item.name} rejected: {fault}")
            else:
                alive.remove(kind)
    result.objects = ObjectSet(tuple(kept), seed, command)
    return result


def contact_sheet(objects: ObjectSet, out: Path) -> Path:
    """Picture the objects of a set, each after its kind as it is. BenchError if not writable."""
    import cv2

    from sim.objects import check_set
    from sim.sheet import sheet

    check_set(objects)
    items = []
    for kind in dict.fromkeys(item.kind for item in objects.objects):
        items.append((kind, ObjectSpec(THING, kind, "orange")))
        items += [
            (item.name, ObjectSpec(THING, kind, "orange", evolved=item))
            for item in objects.of_kind(kind)
        ]
    ok, data = cv2.imencode(".png", sheet(items))
    assert ok
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(data.tobytes())
    except OSError as error:
        raise UsageError(f"cannot write {out}: {error.strerror}") from None
    return out
