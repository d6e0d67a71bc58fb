"""What planners that are asked over and over cost: calls, tokens, money, time; from the events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from bench_tasks.verdicts.afterwards import ANSWER_AFTER
from bench_tasks.vocabulary import Event

if TYPE_CHECKING:
    from bench_tasks.verdicts.episode_score import EpisodeScore

__all__ = ["check_usage", "usage_of", "usage_table"]

_SAID = ("plan", "answer", "answer_refused", ANSWER_AFTER, f"{ANSWER_AFTER}_refused")
KEYS = ("calls", "refused", "errors", "latency_s", "counted", "tokens_in", "tokens_out", "cost_usd",
        "priced")  # fmt: skip
"""`counted` calls told their tokens and `priced` ones their cost: sums are over those alone."""


def _number(value: Any) -> float | None:
    """A finite number that is not negative; None for anything else a recording may hold."""
    good = type(value) in (int, float) and 0 <= value < 1e15
    return value if good else None


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def usage_of(events: Iterable[Event]) -> dict[str, float]:
    """Sums of one episode (`KEYS`); {} when its planner is no model.

    A call that failed counts, with the time that its tries and waits took.
    """
    found = dict.fromkeys(KEYS, 0.0)
    for event in events:
        told = _mapping(event.data.get("transcript"))
        if "model" not in told or event.kind not in (*_SAID, "planner_error"):
            continue
        found["calls"] += 1
        found["refused"] += bool(event.data.get("refused"))
        if event.kind == "planner_error":
            found["errors"] += 1
            tries = told.get("attempts")
            for entry in map(_mapping, tries if isinstance(tries, list) else []):
                found["latency_s"] += _number(entry.get("latency_s")) or 0.0
                found["latency_s"] += _number(entry.get("wait_s")) or 0.0
            continue
        found["latency_s"] += (_number(event.data.get("latency_ns")) or 0) / 1e9
        tokens = _mapping(told.get("tokens"))
        counts = [_number(tokens.get(key)) for key in ("prompt", "answer")]
        if None not in counts:
            found["counted"] += 1
            found["tokens_in"] += counts[0] or 0
            found["tokens_out"] += counts[1] or 0
        cost = _number(told.get("cost_usd"))
        if cost is not None:
            found["priced"] += 1
            found["cost_usd"] += cost
    return found if found["calls"] else {}


def check_usage(usage: dict[str, Any]) -> None:
    """TypeError when a result file's usage is not what `usage_of` gives."""
    if usage and (set(usage) != set(KEYS) or any(_number(v) is None for v in usage.values())):
        raise TypeError(f"usage is {usage!r}"[:200])


def usage_table(episodes: Sequence[EpisodeScore]) -> str:
    """Calls, tokens, cost and time by planner, as HTML; "" when no planner was a model."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for episode in episodes:
        if episode.usage:
            groups.setdefault(episode.planner or "?", []).append(episode.usage)
    if not groups:
        return ""
    head = ("<tr><th>planner</th><th class=r>episodes</th><th class=r>calls</th>"
            "<th class=r>refused</th><th class=r>failed</th><th class=r>s per call</th>"
            "<th class=r>tokens in</th><th class=r>out</th><th class=r>US$</th></tr>")  # fmt: skip
    rows = []
    for name, members in sorted(groups.items()):
        sums = {key: sum(member[key] for member in members) for key in KEYS}
        calls = sums["calls"]
        cells = [
            str(len(members)), f"{calls:.0f}", f"{sums['refused']:.0f}", f"{sums['errors']:.0f}",
            f"{sums['latency_s'] / calls:.2f}",
            _of(f"{sums['tokens_in']:,.0f}", sums["counted"], calls),
            _of(f"{sums['tokens_out']:,.0f}", sums["counted"], calls),
            _of(f"{sums['cost_usd']:.4f}", sums["priced"], calls),
        ]  # fmt: skip
        numbers = "".join(f"<td class=r>{cell}</td>" for cell in cells)
        rows.append(f"<tr><td class=long>{escape(name)}</td>{numbers}</tr>")
    note = ("<p class=soft>Refused: answers that could not be read or carried out; failed: calls "
            "without an answer. Tokens and cost as the server counts, of the calls that told "
            "them.</p>")  # fmt: skip
    table = f"<div class=card><table>{head}{''.join(rows)}</table></div>"
    return f"<h2>What the planner cost</h2>{table}{note}"


def _of(text: str, known: float, calls: float) -> str:
    """A sum, with how many of the calls it is over when not all; "-" when none."""
    if not known:
        return "-"
    return text if known == calls else f"{text} <span class=soft>({known:.0f} calls)</span>"
