"""Results as lines of text: one per episode while a run goes on, and the table at its end."""

from __future__ import annotations

from collections.abc import Sequence

from bench_tasks.reports.summary import by_task
from bench_tasks.verdicts.episode_score import EpisodeScore

__all__ = ["episode_line", "results_table"]

_HEAD = (
    "task", "success", "95 % interval", "progress", "answers (chance), score",
    "asked afterwards (chance)", "unscored", "why", "causes of failure",
)  # fmt: skip
_AFTER = 5
"""The column that is left out where nothing was to be asked."""


def episode_line(score: EpisodeScore) -> str:
    """What became of one episode."""
    mark = "success" if score.success else f"failure ({score.cause})"
    speed = f", {score.wall_s:.1f} s" if score.wall_s is not None else ""
    lie = "; LIVE AND OFFLINE VERDICT DIFFER" if score.agrees is False else ""
    return f"{score.task} seed {score.seed}: {mark}, {score.sim_s:.1f} s simulated{speed}{lie}"


def results_table(episodes: Sequence[EpisodeScore]) -> str:
    """A table with one row per task, and how many live verdicts the recordings confirm."""
    rows = [_HEAD]
    for group in by_task(episodes):
        low, high = group.interval
        why, causes = (
            ", ".join(f"{name} ({n})" for name, n in found.items())
            for found in (group.kinds, group.causes)
        )
        answers = "-"
        if group.accuracy is not None:
            answers = f"{group.accuracy:.0%} ({group.chance:.0%}), {group.score:.0f}"
        rows.append((
            group.name, f"{group.successes}/{group.count}", f"{low:.0%} to {high:.0%}",
            f"{group.progress:.2f}", answers, group.answered_after or "-", str(group.unscored),
            why or "-", causes or "-",
        ))  # fmt: skip
    if all(row[_AFTER] == "-" for row in rows[1:]):
        rows = [(*row[:_AFTER], *row[_AFTER + 1 :]) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    for group in by_task(episodes):
        lines += [f"{group.name}: asked nothing afterwards in {n} episodes: {why}"
                  for why, n in group.not_asked.items()]  # fmt: skip
        if group.stopped:
            lines.append(f"{group.name}: a human stopped the arms in {group.stopped} of "
                         f"{group.count} episodes, which count as failures")  # fmt: skip
    compared = [e for e in episodes if e.agrees is not None]
    agreeing = sum(bool(e.agrees) for e in compared)
    if compared:
        lines.append(
            f"live and offline verdict agree in {agreeing} of {len(compared)} episodes"
        )
    return "\n".join(lines) + "\n"
