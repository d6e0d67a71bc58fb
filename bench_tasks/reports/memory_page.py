"""One self-contained HTML page about memories at probes: what each got right, and what not."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from bench_tasks.manifest import PAGE, replaceable, replacing, utc_now
from bench_tasks.probes.h2hmem_writer import NAMES
from bench_tasks.probes.runs import Run
from bench_tasks.probes.scores import Score, is_right
from bench_tasks.probes.stream import Asked, Item
from bench_tasks.probes.tables import (
    Row,
    acts,
    besides,
    read_runs,
    rows_of,
    spread,
    values_of,
)
from bench_tasks.reports.report_parts import bar, document, percent, table, whisker

__all__ = ["page", "write_memory_page"]

SHOWN = 12
"""Wrong answers of a memory that are shown, of every kind alike."""
CURVES = {
    "turns": "By distance, in turns, to the farthest thing said that the answer rests on",
    "days": "By that distance in simulated days",
}
_STYLE = """
h3{margin:22px 0 6px}summary{cursor:pointer;font-weight:650}
td.heat,th.heat{text-align:right;padding:6px 8px;white-space:nowrap}
.narrow{font-size:13px}.narrow td{white-space:nowrap}
.wrong{margin:14px 0 0;border-top:1px solid var(--line);padding-top:10px}
"""


def write_memory_page(folder: Path, out: Path | None = None) -> Path:
    """Write the page about all runs in a folder, files and bags, and return its path.

    UsageError when there is none; BenchError when the page cannot be written.
    """
    runs = read_runs(folder)
    beside = folder if folder.is_dir() else folder.parent
    target = replaceable(out or beside / "memory.html", PAGE)
    html = page(runs, folder.name)
    with replacing(target) as temporary:
        temporary.write_text(html, encoding="utf-8")
    return target


def page(runs: Sequence[Run], title: str) -> str:
    """All probes, one after the other, from the runs' records alone."""
    rows = rows_of(runs)
    unfinished = sum(row.unfinished for row in rows)
    body = (f"<h1>Memories: {escape(title)}</h1><p class=soft>{len(runs)} runs, scored "
            f"{utc_now()[:16].replace('T', ' ')} UTC</p>")  # fmt: skip
    if unfinished:
        body += f'<p class="warn">{unfinished} runs were broken off and are not scored.</p>'
    for row in (row for row in rows if row.errors):
        told = f"{row.probe}: {row.memory} raised something {row.errors} times, first at "
        body += f'<p class="warn">{escape(told + row.first_error)}.</p>'
    for probe in dict.fromkeys(row.probe for row in rows):
        body += _probe(probe, [r for r in rows if r.probe == probe],
                       [r for r in runs if r.probe == probe])  # fmt: skip
    return document(title, body, _STYLE)


def _probe(name: str, rows: Sequence[Row], runs: Sequence[Run]) -> str:
    parts = [f"<h2>{escape(name)}</h2>"]
    if any(row.total.count for row in rows):
        parts += [_rates(rows), _heat("By kind of question", "kind", rows), _legend(rows)]
        parts += [_heat(text, by, rows) for by, text in CURVES.items()]
    if any(row.more for row in rows):
        lines = _texts(besides(rows))
        parts += ["<h3>What it measures besides</h3>", f"<div class=narrow>{lines}</div>"]
    if any(row.phases for row in rows):
        parts += ["<h3>Acts</h3>", f"<div class=narrow>{_texts(acts(rows))}</div>"]
    parts += [_costs(rows), *(_wrong(row.memory, runs) for row in rows)]
    return "".join(parts)


def _texts(lines: Sequence[Sequence[str]]) -> str:
    return table(lines[0], lines[1:])


def _rates(rows: Sequence[Row]) -> str:
    bars = [
        bar(
            row.memory, total.accuracy,
            whisker(total.low, total.high)
            + f'<i class=chance style="left:{100 * total.chance:.1f}%"></i>',
            f"{total.right}/{total.count} <span class=soft>{percent(total.low)} to "
            f"{percent(total.high)}</span>",
        )
        for row in rows if (total := row.total).count
    ]  # fmt: skip
    constants = [row.constant for row in rows if row.total.count]
    answers = ", ".join(dict.fromkeys(text for text, _ in constants))
    share = spread([100 * share for _, share in constants], "{:.0f}\u202f%")
    return (
        f"<div class=card>{''.join(bars)}</div><p class=soft>Bars: share of right answers; lines: "
        "95\u202f% Wilson interval; the dashed mark: what guessing gets. The best constant answer "
        f"({escape(answers)}) has {share}.</p>"
    )


def _heat(title: str, by: str, rows: Sequence[Row]) -> str:
    """A memory in each line, a value in each column; "" where there is but one value."""
    values = values_of(rows, by)
    if len(values) < 2:
        return ""
    found = [[row.by.get(by, {}).get(value) for value in values] for row in rows]
    asked = [[s for line in found if (s := line[k]) is not None] for k in range(len(values))]
    head = "".join(f"<th class=heat>{escape(v)}</th>" for v in values)
    lines = [f"<tr><th>memory</th>{head}</tr>"]
    for row, scores in zip(rows, found, strict=True):
        lines.append(f"<tr><td class=name>{escape(row.memory)}</td>{''.join(map(_cell, scores))}"
                     "</tr>")  # fmt: skip
    shares = [spread([100 * s.chance for s in one], "{:.0f}\u202f%") for one in asked]
    counts = [spread([s.count for s in one]) for one in asked]
    for name, cells in (("chance", shares), ("questions", counts)):
        told = "".join(f'<td class="heat soft">{cell}</td>' for cell in cells)
        lines.append(f"<tr><td class=soft>{name}</td>{told}</tr>")
    return f"<h3>{title}</h3><div class=card><table>{''.join(lines)}</table></div>"


def _legend(rows: Sequence[Row]) -> str:
    """What letters for kinds of questions stand for."""
    kinds = [kind for kind in values_of(rows, "kind") if kind in NAMES]
    told = "; ".join(f"{kind}: {NAMES[kind][1]}" for kind in kinds)
    return f"<p class=soft>{escape(told)}.</p>" if told else ""


def _cell(one: Score | None) -> str:
    if one is None:
        return "<td class=heat>-</td>"
    tint = f"background:color-mix(in srgb,var(--fill) {60 * one.accuracy:.0f}%,transparent)"
    told = (f"{one.right} of {one.count}, 95\u202f% interval {percent(one.low)} to "
            f"{percent(one.high)}")  # fmt: skip
    return f'<td class=heat style="{tint}" title="{told}">{percent(one.accuracy)}</td>'


def _costs(rows: Sequence[Row]) -> str:
    head = ("memory", "seeds", "abstained", "errors", "s a session", "ms a question", "kB stored")
    lines = [
        (row.memory, str(row.seeds), str(row.total.abstained), str(row.errors),
         f"{row.cost['seconds_per_session']:.3f}", f"{1e3 * row.cost['seconds_per_question']:.1f}",
         f"{row.storage_bytes / 1e3:.0f}")
        for row in rows
    ]  # fmt: skip
    return f"<h3>Cost</h3>{table(head, lines)}"


def _wrong(memory: str, runs: Sequence[Run]) -> str:
    """Some of what a memory did not get right, with what it should have rested on and did."""
    found: dict[str, list[str]] = {}
    for run in (r for r in runs if r.memory == memory and r.storage_bytes is not None):
        items = {r.step.id: r.step for r in run.records if isinstance(r.step, Item)}
        for record in run.asked:
            asked, reply = record.step, record.reply
            assert isinstance(asked, Asked) and reply is not None
            if not asked.scored or is_right(asked, reply):
                continue
            said = record.error or reply.text or "no answer"
            facts = {
                "asked": asked.query.text, "choices": " | ".join(asked.query.choices),
                "right is": asked.gold, "it said": said,
                "rests on": _said(asked.evidence, items) or "what nobody said",
                "it used": _said(reply.used, items) or "nothing",
            }  # fmt: skip
            lines = "".join(f"<dt>{k}</dt><dd>{escape(v)}</dd>" for k, v in facts.items() if v)
            found.setdefault(asked.kind, []).append(
                f"<div class=wrong><b>{escape(asked.kind)}</b> <span class=soft>seed {run.seed}, "
                f"{escape(asked.query.id)}</span><dl>{lines}</dl></div>"
            )
    count = sum(map(len, found.values()))
    if not count:
        return ""
    # In turns, so that each kind has its share of the few that are shown.
    longest = max(map(len, found.values()))
    mixed = [group[k] for k in range(longest) for group in found.values() if k < len(group)]
    return (f"<details class=card><summary>{escape(memory)}: {min(count, SHOWN)} of {count} "
            f"answers that were not right</summary>{''.join(mixed[:SHOWN])}</details>")  # fmt: skip


def _said(ids: Sequence[str], items: dict[str, Item]) -> str:
    shown = []
    for one in (items[k] for k in ids if k in items):
        picture = f" [picture {one.picture.name}]" if one.picture else ""
        shown.append(f"{one.speaker or 'camera'}: {one.text}{picture}")
    return " / ".join(shown)
