"""Tables of played probes: what each memory got right, by type of question, and what it cost."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from bench_tasks.errors import UsageError
from bench_tasks.manifest import environment, utc_now
from bench_tasks.probes import report
from bench_tasks.probes.acted import acted_runs
from bench_tasks.probes.bags import probe_bags, read_bag
from bench_tasks.probes.phases import Phase, phases_of
from bench_tasks.probes.player import Record
from bench_tasks.probes.runs import FORMAT_VERSION, SUFFIX, Run, read_run
from bench_tasks.probes.scores import (
    Score,
    best_constant,
    check_splits,
    costs,
    in_order,
    score,
    split,
)
from bench_tasks.probes.stream import Asked

__all__ = [
    "Row", "acts", "aligned", "besides", "read_runs", "rows_of", "save_rows", "spread", "tables",
    "values_of",
]  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One memory at one probe, over all seeds."""

    probe: str
    memory: str
    seeds: int
    unfinished: int
    total: Score
    by: dict[str, dict[str, Score]]
    constant: tuple[str, float]
    """The best answer to give always, and the share it has right."""
    cost: dict[str, float]
    storage_bytes: float
    """Mean over the seeds."""
    more: dict[str, float | None]
    """What this probe alone measures, by name; None where there was nothing to measure."""
    phases: tuple[Phase, ...] = ()
    """Of a probe whose questions are about acts, several to each."""
    errors: int = 0
    """How often the memory raised something, at an item or a question."""
    first_error: str = ""
    """Where, and what, that was first."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "probe": self.probe, "memory": self.memory, "seeds": self.seeds,
            "unfinished": self.unfinished, "total": self.total.to_dict(),
            "by": {name: {value: s.to_dict() for value, s in groups.items()}
                   for name, groups in self.by.items()},
            "best_constant": {"answer": self.constant[0], "accuracy": self.constant[1]},
            "cost": {**self.cost, "storage_bytes": self.storage_bytes},
            "more": self.more, "phases": [phase.to_dict() for phase in self.phases],
            "errors": self.errors, "first_error": self.first_error,
        }  # fmt: skip


def read_runs(folder: Path) -> list[Run]:
    """All runs in a folder and below, files and bags.

    UsageError when there is none, or one is there twice to its end: it would count as two.
    """
    files = [folder] if folder.is_file() else sorted(folder.rglob(f"*{SUFFIX}"))
    bags = probe_bags(folder) if folder.is_dir() else []
    acted = acted_runs(folder) if folder.is_dir() else []
    if not files and not bags and not acted:
        raise UsageError(f"no *{SUFFIX} and no bag of a probe in {folder}")
    found = [(file, read_run(file)) for file in files] + [(bag, read_bag(bag)) for bag in bags]
    ended: dict[tuple[str, str, int], Path] = {}
    for path, run in found:
        one = (run.probe, run.memory, run.seed)
        if run.storage_bytes is not None and path != ended.setdefault(one, path):
            raise UsageError(f"{path} and {ended[one]} are both {run.probe} seed {run.seed} with "
                             f"{run.memory}: score one of them")  # fmt: skip
    return [*(run for _, run in found), *acted]


def rows_of(runs: Iterable[Run]) -> list[Row]:
    """A row for each probe and memory. What was broken off is counted, and not scored."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.probe, run.memory), []).append(run)
    return [_row(probe, memory, group) for (probe, memory), group in groups.items()]


def _row(probe: str, memory: str, runs: list[Run]) -> Row:
    ended = [run for run in runs if run.storage_bytes is not None]
    records = [record for run in ended for record in run.records]
    # Sessions of one name are others in another run.
    cost = [costs(run.records) for run in ended]
    means = {
        name: sum(c[name] for c in cost) / len(cost) if cost else 0.0 for name in costs([])
    }
    stored = sum(run.storage_bytes or 0 for run in ended) / max(len(ended), 1)
    constant = best_constant([r.step for run in ended for r in run.asked])  # type: ignore[misc]
    raised = [(run.seed, record) for run in ended for record in run.records if record.error]
    return Row(probe, memory, len(runs), len(runs) - len(ended), score(records), split(records),
               constant, means, stored, report(probe, ended),
               tuple(phases_of([run.records for run in ended])), len(raised),
               _where(*raised[0]) if raised else "")  # fmt: skip


def _where(seed: int, record: Record) -> str:
    step = record.step
    place = f"question {step.query.id}" if isinstance(step, Asked) else f"item {step.id}"
    return f"seed {seed}, {place}: {record.error}"


def save_rows(folder: Path, rows: Sequence[Row], more: dict[str, Any] | None = None) -> Path:
    """Write `memory-<UTC time>.json` into the folder, beside older ones; returns its path.

    `more` is what else is to be in it.
    """
    folder = folder if folder.is_dir() else folder.parent
    path = folder / f"memory-{datetime.now(timezone.utc):%Y%m%dT%H%M%S.%f}Z.json"
    result = {
        "format_version": FORMAT_VERSION, "created": utc_now(), "environment": environment(),
        "rows": [row.to_dict() for row in rows], **(more or {}),
    }  # fmt: skip
    temporary = folder / f".memory-{os.getpid()}.tmp"
    try:
        temporary.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
    return path


_HEAD = (
    "memory", "right", "95 % interval", "chance", "best constant answer", "abstained",
    "with guesses", "F1", "BLEU-1", "errors", "s/session", "ms/question", "storage kB",
)  # fmt: skip
WIDTH = 100
"""Columns of a terminal, which a table is folded into."""
MOST_CONSTANT = 20
"""Signs of the best constant answer that are shown, its share included."""


def tables(rows: Sequence[Row], by: Sequence[str] = ("kind",)) -> str:
    """Each probe's rows, then for each name in `by` and each probe what each memory had right.

    There with Wilson's 95 % interval in percent, and how many were asked. UsageError lists the
    names there are.
    """
    check_splits(by)
    probes = list(dict.fromkeys(row.probe for row in rows))
    parts = [
        f"{probe}\n{_folded([[*_HEAD], *(_cells(row) for row in rows if row.probe == probe)])}"
        for probe in probes
    ]
    for name in by:
        for probe in probes:
            own = [row for row in rows if row.probe == probe]
            lines = _by(own, name)
            if len(lines) > 1:
                parts.append(f"{probe}: right, by {name}\n{_folded(lines)}")
    for probe in dict.fromkeys(row.probe for row in rows if row.more):
        lines = besides([row for row in rows if row.probe == probe])
        parts.append(f"{probe}: what it measures besides\n{_folded(lines)}")
    for probe in dict.fromkeys(row.probe for row in rows if row.phases):
        lines = acts([row for row in rows if row.probe == probe])
        parts.append(f"{probe}: acts\n{_folded(lines, keys=2)}")
    raised = [f"{row.probe}: {row.memory} raised something {row.errors} times, first at "
              f"{row.first_error}\n" for row in rows if row.errors]  # fmt: skip
    if raised:
        parts.append("".join(raised))
    unfinished = sum(row.unfinished for row in rows)
    if unfinished:
        parts.append(f"{unfinished} runs were broken off and are not scored\n")
    return "\n".join(parts)


def _by(rows: Sequence[Row], name: str) -> list[list[str]]:
    """A line for each value with what each memory had right there, and chance."""
    lines = [[name, *(row.memory for row in rows), "chance", "questions"]]
    for value in values_of(rows, name):
        scores = [row.by[name].get(value) for row in rows]
        asked = [s for s in scores if s is not None]
        cells = (
            f"{s.accuracy:.0%} ({100 * s.low:.0f}-{100 * s.high:.0f})" if s else "-" for s in scores
        )
        lines.append([value, *cells, spread([s.chance for s in asked], "{:.0%}"),
                      spread([s.count for s in asked])])  # fmt: skip
    return lines


def values_of(rows: Sequence[Row], name: str) -> list[str]:
    """The values of a split that any of the rows has, in order."""
    return sorted({value for row in rows for value in row.by.get(name, {})}, key=in_order)


def spread(numbers: Sequence[float], form: str = "{}") -> str:
    """One number, or least and greatest: where replies matter, memories are asked other things."""
    low, high = form.format(min(numbers)), form.format(max(numbers))
    return low if low == high else f"{low} to {high}"


def besides(rows: Sequence[Row]) -> list[list[str]]:
    """A head, and a line for each memory with what this probe alone measures."""
    names = list(dict.fromkeys(name for row in rows for name in row.more))
    found = [[row.more.get(name) for name in names] for row in rows]
    cells = [["-" if value is None else f"{value:.4g}" for value in values] for values in found]
    return [["memory", *names], *([r.memory, *own] for r, own in zip(rows, cells, strict=True))]


def acts(rows: Sequence[Row]) -> list[list[str]]:
    """A head, and a line for each memory and phase."""
    aspects = dict.fromkeys(a for row in rows for phase in row.phases for a in phase.aspects)
    lines = [["phase", "memory", "right", "95 % interval", "with guesses", "chance", *aspects,
              "feedback", "before", "after", "ACPE at 1/4", "1/2", "end"]]  # fmt: skip
    for name in dict.fromkeys(phase.name for row in rows for phase in row.phases):
        for row, phase in ((r, p) for r in rows for p in r.phases if p.name == name):
            at = [phase.acpe[max(0, round(part * len(phase.acpe)) - 1)] for part in (0.25, 0.5, 1)]
            lines.append([
                name, row.memory, f"{phase.right}/{phase.acts}",
                f"{phase.low:.0%} to {phase.high:.0%}", f"{phase.guessing:.0%}",
                f"{phase.chance:.0%}", *(f"{phase.aspects.get(a, 0):.0%}" for a in aspects),
                f"{phase.feedback:.0%}", f"{phase.before:.0%}", f"{phase.after:.0%}",
                *(f"{value:.2f}" for value in at),
            ])  # fmt: skip
    return lines


def _cells(row: Row) -> list[str]:
    total, (text, share) = row.total, row.constant
    found = [
        f"{total.low:.0%} to {total.high:.0%}", f"{total.chance:.0%}",
        _cut(f"{share:.0%} {text}"),
        str(total.abstained), f"{total.guessing:.0%}", f"{total.f1:.2f}",
        f"{total.bleu_1:.2f}",
    ]  # fmt: skip
    if not total.count:  # Nothing was asked, as where all is in the acts.
        found = ["-"] * len(found)
    return [
        row.memory, f"{total.right}/{total.count}", *found, str(row.errors),
        f"{row.cost['seconds_per_session']:.3f}",
        f"{1e3 * row.cost['seconds_per_question']:.1f}", f"{row.storage_bytes / 1e3:.0f}",
    ]  # fmt: skip


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CONSTANT else f"{text[: MOST_CONSTANT - 3]}..."


def _folded(rows: Sequence[Sequence[str]], keys: int = 1) -> str:
    """As `aligned`, in tables of at most `WIDTH` signs, each with the first `keys` columns."""
    widths = [max(len(row[k]) for row in rows) + 2 for k in range(len(rows[0]))]
    blocks: list[list[int]] = [[]]
    for k in range(keys, len(widths)):
        if blocks[-1] and sum(widths[i] for i in (*range(keys), *blocks[-1], k)) - 2 > WIDTH:
            blocks.append([])
        blocks[-1].append(k)
    return "\n".join(
        aligned([[row[k] for k in (*range(keys), *block)] for row in rows]) for block in blocks
    )


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Lines of cells, each column as wide as its widest."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
    return "\n".join(lines) + "\n"
