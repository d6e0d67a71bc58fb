"""Acts of the task `lay_out`, read from their bags as runs of a probe.

What the arms did stands in the place of an answer. It is measured again from the states of each
recording, by the code that judges it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bench_tasks.bags.bag import read_bag
from bench_tasks.errors import UnscoredError, UsageError
from bench_tasks.manifest import read_json
from bench_tasks.probes.player import Record
from bench_tasks.probes.preference_state import ASPECTS
from bench_tasks.probes.runs import Run
from bench_tasks.probes.stream import Asked, Item, Query, Reply
from bench_tasks.probes.talk import meanings
from bench_tasks.vocabulary import Event

__all__ = ["acted_runs", "tell_distances"]

TASK = "lay_out"
DAY_NS = 86_400 * 10**9
"""From one act to the next, as they are remembered."""


def acted_runs(folder: Path) -> list[Run]:
    """A run for each planner and household whose acts lie in a folder or below.

    An act that cannot be judged, or whose episode failed, was not done. UsageError when an act is
    there twice, which would count another time, or a manifest does not say which it is, or another
    than was recorded.
    """
    found: dict[tuple[str, int], list[Record]] = {}
    acts: dict[tuple[str, int], Path] = {}
    for file in sorted(folder.rglob("manifest.json")):
        head = read_json(file)
        if head.get("task") == TASK:
            act = (head.get("planner"), head.get("seed"))
            if not isinstance(act[0], str) or type(act[1]) is not int or act[1] < 0:
                raise UsageError(f"{file}: planner must be a text and seed a whole number, got "
                                 f"{act[0]!r:.80} and {act[1]!r:.80}")  # fmt: skip
            if act in acts:
                raise UsageError(f"{file.parent} is the same act of {act[0]} as {acts[act]}")
            acts[act] = file.parent
            planner, household, records = _act(file.parent, head)
            found.setdefault((planner, household), []).extend(records)
    for records in found.values():
        tell_distances(records)
    return [
        Run(TASK, planner, household, tuple(records), 0)
        for (planner, household), records in found.items()
    ]


def tell_distances(records: Iterable[Record]) -> None:
    """Tag what was asked with how far back that was said last which is right, if it was said."""
    said: dict[tuple[str, str, str, str], tuple[int, int, str]] = {}
    count = 0
    for step in (record.step for record in records):
        if isinstance(step, Item):
            count += 1
            for told in meanings(step.text):
                if told.kind in ("wants", "wants_when"):
                    at = told.slots
                    key = (step.speaker, at["errand"], at["aspect"], at.get("context", ""))
                    said[key] = (count, step.stamp_ns, at["value"])
            continue
        (asks,) = meanings(step.query.text, asked=True)
        keys = ((asks.slots["person"], asks.slots["errand"], step.kind, context)
                for context in ("", asks.slots["context"]))  # fmt: skip
        n, stamp_ns, value = max((said[key] for key in keys if key in said), default=(0, 0, ""))
        if value == step.gold:
            waited_s = (step.query.stamp_ns - stamp_ns) / 1e9
            step.tags.update(turns=count - n + 1, seconds=round(waited_s))


def _act(path: Path, head: dict[str, Any]) -> tuple[str, int, list[Record]]:
    # Imported here: tasks use the language of probes.
    from bench_tasks import tasks
    from bench_tasks.tasks.families.household import ACTS, day
    from bench_tasks.verdicts.scoring import check_identity, replay

    seed, done, events = int(head["seed"]), dict.fromkeys(ASPECTS, ""), []
    recording = read_bag(path)
    try:
        check_identity(recording)
    except UnscoredError as error:  # It would count for another household or day.
        raise UsageError(f"{path}: {error}") from None
    try:
        verdict = replay(tasks.get(TASK), recording)
        events = recording.events
        done |= {aspect: verdict.details["done"][aspect] for aspect in ASPECTS}
        if not verdict.success and done == day(seed).gold:
            done["place"] = ""  # As it is liked, but not left at rest.
    except UnscoredError:
        pass
    return str(head["planner"]), seed // ACTS, list(_records(seed, done, events))


def _records(seed: int, done: dict[str, str], events: list[Event]) -> Iterator[Record]:
    from bench_tasks.tasks.families.household import OTHERS, PEOPLE, SMALL_TALK, day

    now, stamp_ns = day(seed), seed * DAY_NS
    scenario = now.scenario
    session = f"{scenario.phase}/{scenario.number}"
    clarified = {
        e.data["asks"] for e in events if e.kind == "plan" and e.data.get("asks")
        and not e.data.get("refused")
    }  # fmt: skip
    said = list(_said(session, stamp_ns, clarified, events))
    before = len(now.lines)
    yield from map(Record, said[:before])
    for aspect, values in ASPECTS.items():
        tags = {"phase": scenario.phase, "scenario": scenario.number, "modality": "text",
                "people": PEOPLE, "distractors": SMALL_TALK + OTHERS, "paraphrase": "plain"}
        name = f"{session}/{aspect}"
        if aspect in clarified:
            tags["instead_of"] = f"{name}?"
        query = Query(name, stamp_ns + before, now.asks.replace("{item}", aspect), values)
        asked = Asked(query, aspect, now.gold[aspect], 1 / len(values), (), tags,
                      scored=not scenario.learning)  # fmt: skip
        yield Record(asked, Reply(done[aspect], abstained=not done[aspect]))
    yield from map(Record, said[before:])


def _said(
    session: str, stamp_ns: int, clarified: set[str], events: list[Event]
) -> Iterator[Item]:
    count, clarified = 0, set(clarified)
    for event in (e for e in events if e.kind == "said"):
        for who, words, *about in event.data["lines"]:
            name = about[0] if about else None
            if name and name.rpartition("/")[2] in clarified:
                clarified.discard(name.rpartition("/")[2])
                name = f"{name}?"
            yield Item(f"{session}-{count}", stamp_ns + count, session, who, words, about=name)
            count += 1
