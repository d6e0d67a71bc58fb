"""What latency did to the episodes: calls, delays and what was not executed, as a table in HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from bench_tasks.reports.summary import Group

__all__ = ["execution_table"]

_HEAD = ("simulated", "calls", "s charged", "s taken", "late", "stale", "held", "blended")


def execution_table(groups: Sequence[Group]) -> str:
    """A row per group of episodes that were executed alike: means per episode or per call."""
    head = "".join(f"<th class=r>{name}</th>" for name in _HEAD)
    rows = []
    for group in groups:
        sums = {
            key: sum(e.execution[key] for e in group.episodes)
            for key in ("calls", "latency_s", "wall_s", "late", "actions", "dropped", "held",
                        "blended")
        }  # fmt: skip
        cells = [f"{group.sim_s / group.count:.1f} s"]
        if sums["calls"]:
            cells += [
                f"{sums['calls'] / group.count:.1f}", f"{sums['latency_s'] / sums['calls']:.3f}",
                f"{sums['wall_s'] / sums['calls']:.4f}", f"{sums['late']:.0f}",
                _share(sums["dropped"], sums["actions"]),
                *(f"{sums[key] / group.count:.1f}" for key in ("held", "blended")),
            ]  # fmt: skip
        cells += ["-"] * (len(_HEAD) - len(cells))
        numbers = "".join(f"<td class=r>{cell}</td>" for cell in cells)
        rows.append(f"<tr><td class=long>{escape(group.name)}</td>{numbers}</tr>")
    note = ("<p class=soft>Per call: the latency charged in simulated time and the wall time "
            "taken. Late: calls whose answer came too late and was not used. Stale: share of the "
            "answered actions that were dropped, since their time was over. Per episode: simulated "
            "time, calls, control periods without an action, and ones blended of two chunks."
            "</p>")  # fmt: skip
    table = f"<table><tr><th>execution</th>{head}</tr>{''.join(rows)}</table>"
    return f"<div class=card>{table}{note}</div>"


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f}\u202f%" if whole else "-"
