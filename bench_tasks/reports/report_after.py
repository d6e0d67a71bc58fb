"""What was asked once the arms were done, for the report: beside the success of the arms."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from bench_tasks.reports.report_parts import percent
from bench_tasks.reports.summary import Group

__all__ = ["answers_after"]


def answers_after(groups: Sequence[Group]) -> str:
    """Right answers beside what the arms did, of tasks that ask what was once these are done."""
    rows = []
    for group in groups:
        not_asked = "; ".join(f"{why} ({n})" for why, n in group.not_asked.items())
        if group.after:
            low, high = group.interval_after
            right = (f"<td>{escape(group.answered_after)}</td>"
                     f"<td>{percent(low)} to {percent(high)}</td>")  # fmt: skip
        elif not_asked:
            right = "<td>-</td><td>-</td>"
        else:
            continue
        rows.append(f"<tr><td>{escape(group.name)}</td><td>{group.successes}/{group.count}</td>"
                    f"{right}<td class=long>{escape(not_asked) or '-'}</td></tr>")  # fmt: skip
    if not rows:
        return ""
    head = ("<tr><th>task</th><th>success of the arms</th><th>right (chance)</th>"
            "<th>95\u202f% interval</th><th>not asked</th></tr>")  # fmt: skip
    return ("<h2>Asked afterwards of what was</h2><div class=card>"
            f"<table>{head}{''.join(rows)}</table></div>")  # fmt: skip
