"""The report's tables of why episodes failed, crossed with tier, mode and model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from html import escape

from bench_tasks.diagnosis import KINDS
from bench_tasks.reports.summary import Group, acting_alone, kind_of, model_of
from bench_tasks.verdicts.episode_score import EpisodeScore

__all__ = ["PUBLISHED", "diagnoses"]

SOURCE = "arXiv 2602.08392"
PUBLISHED: dict[str, tuple[tuple[str, str], ...]] = {
    "perception": (("GPT-5", "54"),),
    "sequencing": (("Gemini-2.5-Pro", "31"),),
    "inter-arm conflict": (("Gemini-2.5-Pro", "24"),),
    "action parameter": (("GPT-5", "23"),),
}
"""Kind -> (model, % of its failures) as published, where the kinds can be compared."""
WHOLE = "Gemini-2.5-Pro 56\u202f% planning in all, sequencing and bimanual conflict among it"


def _share(count: int, total: int) -> str:
    return f"{count} <span class=soft>{100 * count / total:.0f}\u202f%</span>" if count else "-"


def _cross(
    failed: Sequence[EpisodeScore], title: str, name: Callable[[EpisodeScore], str],
    published: bool = False,
) -> str:
    """Failures by kind (rows) and by `name` (columns), with each column's shares."""
    columns = sorted({name(e) for e in failed})
    totals = Counter(name(e) for e in failed)
    cells = Counter((kind_of(e), name(e)) for e in failed)
    kinds = [k for k in (*KINDS, "not diagnosed") if any(cells[k, c] for c in columns)]
    if published:
        kinds = [k for k in (*KINDS, "not diagnosed") if k in kinds or k in PUBLISHED]
    more = "<th>published</th>" if published else ""
    heads = "".join(f"<th class=r>{escape(c)}</th>" for c in columns)
    rows = []
    for kind in kinds:
        said = ", ".join(f"{model} {share}\u202f%" for model, share in PUBLISHED.get(kind, ()))
        row = "".join(f"<td class=r>{_share(cells[kind, c], totals[c])}</td>" for c in columns)
        extra = f"<td>{escape(said) or '-'}</td>" if published else ""
        rows.append(
            f'<tr><td title="{escape(KINDS.get(kind, ""))}">{escape(kind)}</td>{row}{extra}</tr>'
        )
    total = "".join(f"<td class=r>{totals[c]}</td>" for c in columns)
    rows.append(f"<tr><td>failures</td>{total}{'<td></td>' if published else ''}</tr>")
    head = f"<tr><th>{escape(title)}</th>{heads}{more}</tr>"
    return f"<div class=card><table>{head}{''.join(rows)}</table></div>"


def diagnoses(whole: Group) -> str:
    """Why episodes failed: by tier, by mode, by model; "" when none did."""
    failed = [e for e in whole.episodes if not e.success]
    if not failed:
        return ""
    note = (
        "<p class=soft>By rule from each record: the first fault that was never mended, found by "
        "comparing every plan and grip with what the task's expert would have done from that "
        f"state. Shares are of the column's failures. Published shares: {SOURCE}, its own kinds "
        f"and its own sample ({escape(WHOLE)}); they are no target.</p>"
    )
    several = len({e.help for e in failed}) > 1
    alone = acting_alone(whole.episodes)

    def model(episode: EpisodeScore) -> str:
        if alone(episode):
            return episode.policy or "?"
        return episode.planner or "?" if several else model_of(episode)

    return (
        "<h2>Why episodes failed</h2>"
        + _cross(failed, "kind of cause, by model", model, published=True)
        + _cross(failed, "by tier", lambda e: f"tier {e.tier}" if e.tier else e.kind or "unknown")
        + _cross(failed, "by mode", lambda e: e.mode or "unknown")
        + note
    )
