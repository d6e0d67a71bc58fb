"""A comparison of two sides: lines of text, and one self-contained HTML page with a scatter."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from bench_tasks.reports.paired import MIN_PAIRS, Comparison, Pair, Side
from bench_tasks.reports.report_parts import document
from bench_tasks.reports.stats import ON_A_LINE

__all__ = ["page", "text"]

_HEAD = ("task", "planner", "policy", "simulated", "95 % interval", "unscored", "real",
         "95 % interval", "unscored")  # fmt: skip
_SIZE, _LEFT, _TOP = 360, 52, 12
"""Of the scatter's square, and where it begins, in pixels."""
_STYLE = """
svg{display:block;width:100%;max-width:440px;height:auto;margin:0 auto}
svg text{fill:var(--soft);font-size:12px}
svg .frame,svg .even{fill:none;stroke:var(--line)}svg .even{stroke-dasharray:4 4}
svg .reach{stroke:var(--fill);opacity:.45;stroke-width:1.5}
svg .dot{fill:var(--fill);stroke:var(--card)}
.scroll{overflow-x:auto}
"""


def _side(side: Side) -> tuple[str, str, str]:
    """Successes of the episodes with a verdict, the interval of their share, the others."""
    low, high = side.interval
    interval = f"{low:.0%} to {high:.0%}" if side.scored else "-"
    return f"{side.successes}/{side.scored}", interval, str(side.unscored)


def _rows(pairs: Sequence[Pair]) -> list[tuple[str, ...]]:
    return [
        (p.task, p.planner or "?", p.policy or "?", *_side(p.sim), *_side(p.real)) for p in pairs
    ]


def _facts(found: Comparison) -> list[tuple[str, str]]:
    """What the pairs say together: (what, how much)."""
    counted = sum(pair.counts for pair in found.pairs)
    if found.r is None:
        r = f"none: {found.why_no_r}"
    else:
        r = f"{found.r[0]:.2f}, 95 % interval {found.r[1]:.2f} to {found.r[2]:.2f}"
        if counted == MIN_PAIRS:
            r += " (three pairs bound it nowhere)"
        elif abs(found.r[0]) >= ON_A_LINE:
            r += " (all pairs lie on a line, which bounds it nowhere)"
    violation = "none: it needs two pairs" if found.mmrv is None else f"{found.mmrv:.3f}"
    facts = [("pairs", str(counted)), ("Pearson's r", r), ("MMRV", violation)]
    facts += [(f"MMRV of {task}", f"{value:.3f}") for task, value in found.by_task.items()]
    return facts


def text(found: Comparison) -> str:
    """The table, what the pairs say together, and what was left out."""
    rows = [_HEAD, *_rows(found.pairs)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(_HEAD))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    lines += ["", *(f"{what}: {value}" for what, value in _facts(found))]
    if found.left_out:
        lines += ["", *(f"note: {line}" for line in found.left_out)]
    return "\n".join(lines) + "\n"


def page(found: Comparison, sim: str, real: str) -> str:
    """The same as HTML, with a scatter; `sim` and `real` say where the results are from."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in _HEAD)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row in _rows(found.pairs)
    )
    facts = "".join(f"<dt>{escape(a)}</dt><dd>{escape(b)}</dd>" for a, b in _facts(found))
    notes = "".join(f'<p class="warn">{escape(line)}.</p>' for line in found.left_out)
    return document(
        "simulated and real",
        f"<h1>Simulated and real success</h1><p class=soft>simulated: {escape(sim)}; "
        f"real: {escape(real)}</p>{notes}"
        f"<div class=card>{_scatter(found.pairs)}</div><div class=card><dl>{facts}</dl></div>"
        f"<h2>Pairs</h2><div class='card scroll'><table><tr>{head}</tr>{rows}</table></div>"
        "<p class=soft>Shares are of episodes with a verdict; those without one are counted beside "
        "them. Intervals: Wilson; that of Pearson's r takes the shares as exact, so what chance "
        "adds where episodes are few is not in it. MMRV, the mean maximum rank violation, is 0 "
        "where simulation ranks all pairs as reality does and at most 1.</p>",
        _STYLE,
    )


def _scatter(pairs: Sequence[Pair]) -> str:
    """Real share against simulated, with both intervals."""

    def x(share: float) -> str:
        return f"{_LEFT + _SIZE * share:.1f}"

    def y(share: float) -> str:
        return f"{_TOP + _SIZE * (1.0 - share):.1f}"

    parts = [
        f'<rect class=frame x="{x(0)}" y="{y(1)}" width="{_SIZE}" height="{_SIZE}"/>',
        f'<line class=even x1="{x(0)}" y1="{y(0)}" x2="{x(1)}" y2="{y(1)}"/>',
    ]
    for share in (0.0, 0.5, 1.0):
        parts.append(f'<text x="{x(share)}" y="{_TOP + _SIZE + 18}" text-anchor=middle>'
                     f"{share:.0%}</text>")  # fmt: skip
        parts.append(f'<text x="{_LEFT - 6}" y="{y(share)}" dy=4 text-anchor=end>{share:.0%}'
                     "</text>")  # fmt: skip
    parts.append(f'<text x="{x(0.5)}" y="{_TOP + _SIZE + 36}" text-anchor=middle>simulated</text>')
    parts.append(f'<text transform="translate(12 {y(0.5)}) rotate(-90)" text-anchor=middle>real'
                 "</text>")  # fmt: skip
    for pair in (p for p in pairs if p.counts):
        at_x, at_y = x(pair.sim.share), y(pair.real.share)
        (a, b), (c, d) = pair.sim.interval, pair.real.interval
        label = (f"{pair.task} ({pair.planner or '?'}, {pair.policy or '?'}): simulated "
                 f"{pair.sim.successes}/{pair.sim.scored}, real "
                 f"{pair.real.successes}/{pair.real.scored}")  # fmt: skip
        parts.append(
            f'<line class=reach x1="{x(a)}" y1="{at_y}" x2="{x(b)}" y2="{at_y}"/>'
            f'<line class=reach x1="{at_x}" y1="{y(c)}" x2="{at_x}" y2="{y(d)}"/>'
            f'<circle class=dot cx="{at_x}" cy="{at_y}" r="5"><title>{escape(label)}</title>'
            "</circle>"
        )
    size = f"{_LEFT + _SIZE + 20} {_TOP + _SIZE + 44}"
    return (f'<svg viewBox="0 0 {size}" role=img aria-label="real success against simulated">'
            f"{''.join(parts)}</svg>")  # fmt: skip
