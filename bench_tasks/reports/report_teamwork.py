"""The part of the report about two agents, one for each arm: coordination by kind of partner."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from bench_tasks.reports.summary import Group, by_task
from bench_tasks.verdicts.episode_score import EpisodeScore
from bench_tasks.vocabulary import ARMS

__all__ = ["teamwork"]

_COLUMNS = (
    ("acts", "acted_s"), ("left waits", "left_waits_s"), ("right waits", "right_waits_s"),
    ("both still", "both_still_s"), ("both work", "both_work_s"), ("clash", "clash_s"),
    ("pull", "pull_s"),
)  # fmt: skip


def teamwork(episodes: Sequence[EpisodeScore]) -> str:
    """A table as HTML; nothing when no arm had an agent of its own.

    Policies for both arms that did the same tasks stand beside them.
    """
    tasks = {e.task for e in episodes if e.teamwork.get("partner")}
    groups = by_task([e for e in episodes if e.task in tasks])
    if not groups:
        return ""
    head = "".join(f"<th class=r>{name}</th>" for name, _ in _COLUMNS)
    surprise = "".join(f"<th class=r>{arm} surprised</th>" for arm in ARMS)
    note = (
        "<p class=soft>Means over episodes, in s. An arm waits when it stands still while the "
        "other works. Clash: the arms press on each other. Pull: both hold one thing and are told "
        "to hold it more than 1 cm further apart, or nearer, than it is; the worst is that of any "
        "episode. Surprised: the mean error, over joints and looks, of what the arm's agent "
        "expected its partner's command to be, in rad; in brackets that of expecting that the "
        "partner does not move.</p>"
    )
    return (
        "<h2>Two arms, two agents</h2><div class=card><table><tr><th>task and policy</th>"
        f"<th class=r>success</th>{head}<th class=r>worst pull</th>{surprise}</tr>"
        f"{''.join(_row(group) for group in groups)}</table>{note}</div>"
    )


def _row(group: Group) -> str:
    low, high = (f"{100 * share:.0f}" for share in group.interval)
    told = [e.teamwork for e in group.episodes if e.teamwork]
    cells = [f"{group.successes}/{group.count} <span class=soft>{low} to {high}\u202f%</span>"]
    for _, key in _COLUMNS:
        cells.append(f"{sum(t[key] for t in told) / len(told):.2f}" if told else "-")
    cells.append(f"{1000 * max(t['worst_pull_m'] for t in told):.0f} mm" if told else "-")
    agents = [t["partner"].get("agents", {}) for t in told]
    cells += [_surprise([a[arm] for a in agents if arm in a]) for arm in ARMS]
    return (f"<tr><td class=long>{escape(group.name)}</td>"
            + "".join(f"<td class=r>{cell}</td>" for cell in cells) + "</tr>")  # fmt: skip


def _surprise(agents: Sequence[dict[str, float]]) -> str:
    looks = sum(a["looks"] for a in agents)
    if not looks:
        return "-"
    rad, still = (sum(a[key] * a["looks"] for a in agents) / looks for key in ("rad", "still_rad"))
    return f"{rad:.4f} <span class=soft>({still:.4f})</span>"
