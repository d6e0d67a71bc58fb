"""Whether one set of results foretells another: simulation and robot, task by task, agent by agent.

A pair is one task with one planner and policy, on both sides. An episode without a verdict is
neither a success nor a failure here: it is left out of the shares, and counted beside them. One
that a human stopped is a failure, and said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench_tasks.errors import UsageError
from bench_tasks.execution import Execution
from bench_tasks.reports.stats import mmrv, pearson, wilson
from bench_tasks.verdicts import score_files, scoring
from bench_tasks.verdicts.episode_score import EpisodeScore, by_hand

__all__ = ["MIN_PAIRS", "Comparison", "Pair", "Side", "compare", "results_of"]

MIN_PAIRS = 3
"""Any two points lie on a line."""

Key = tuple[str, str, str]


@dataclass(frozen=True)
class Side:
    """The episodes of a pair on one side; `stopped`: those with a verdict that a human stopped."""

    successes: int
    scored: int
    unscored: int
    stopped: int = 0

    @property
    def share(self) -> float:
        """Share of successes among those with a verdict; NaN without one."""
        return self.successes / self.scored if self.scored else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        """95 % Wilson interval of it."""
        return wilson(self.successes, self.scored)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; the share is None without a verdict."""
        share = self.share if self.scored else None
        return {**asdict(self), "share": share, "interval": list(self.interval)}


@dataclass(frozen=True)
class Pair:
    """A task with its agents, as simulated and in reality."""

    task: str
    planner: str
    policy: str
    sim: Side
    real: Side

    @property
    def counts(self) -> bool:
        """Whether both sides have a verdict at all."""
        return self.sim.scored > 0 and self.real.scored > 0


@dataclass(frozen=True)
class Comparison:
    """All pairs, and what they say together. `left_out` tells what has no counterpart.

    `r` is Pearson's correlation of the shares with its 95 % interval, `why_no_r` the reason where
    there is none; `mmrv` the mean maximum rank violation, None with less than two pairs, `by_task`
    the same among the agents of each task that has several.
    """

    pairs: tuple[Pair, ...]
    left_out: tuple[str, ...]
    r: tuple[float, float, float] | None
    why_no_r: str
    mmrv: float | None
    by_task: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        pairs = [
            {"task": p.task, "planner": p.planner, "policy": p.policy, "sim": p.sim.to_dict(),
             "real": p.real.to_dict()}
            for p in self.pairs
        ]  # fmt: skip
        r = self.r and {"r": self.r[0], "interval": list(self.r[1:])}
        return {"pairs": pairs, "left_out": list(self.left_out), "pearson": r,
                "why_no_pearson": self.why_no_r, "mmrv": self.mmrv,
                "mmrv_by_task": self.by_task}  # fmt: skip


def results_of(folder: Path) -> list[EpisodeScore]:
    """A folder's episodes: from its recordings, or where it has none from its newest result file.

    UsageError when it has neither.
    """
    try:
        return scoring.score_folder(folder)
    except UsageError:
        newest = score_files.newest_scores(folder)
        if newest is None:
            raise
        return score_files.load_scores(newest)


def compare(sim: Sequence[EpisodeScore], real: Sequence[EpisodeScore]) -> Comparison:
    """Pair the results; UsageError when no task is on both sides with the same agents.

    Also when the same recording is on both sides, where it would foretell itself.
    """
    known = {_recording(e): e.bag for e in sim}
    for e in real:
        if e.bag and e.wall_s is not None and known.get(_recording(e)):
            raise UsageError(f"the same recording is on both sides: {known[_recording(e)]} and "
                             f"{e.bag}")  # fmt: skip
    sides = [_sides(episodes) for episodes in (sim, real)]
    left_out = [
        f"{_name(key)}: {where} only"
        for mine, other, where in ((0, 1, "simulated"), (1, 0, "real"))
        for key in sorted(sides[mine])
        if key not in sides[other]
    ]
    pairs = tuple(Pair(*key, sides[0][key], sides[1][key]) for key in sorted(sides[0])
                  if key in sides[1])  # fmt: skip
    if not pairs:
        raise UsageError("no task is on both sides with the same planner and policy: "
                         f"{'; '.join(left_out) or 'there are no episodes'}")  # fmt: skip
    for pair in pairs:
        if not pair.counts:
            where = "simulated" if not pair.sim.scored else "real"
            left_out.append(f"{_name((pair.task, pair.planner, pair.policy))}: no {where} episode "
                            "has a verdict")  # fmt: skip
        for side, where in ((pair.sim, "simulated"), (pair.real, "real")):
            if side.stopped:
                left_out.append(
                    f"{_name((pair.task, pair.planner, pair.policy))}: a human stopped the arms in "
                    f"{side.stopped} of {side.scored} {where} episodes, which count as failures"
                )
    left_out += [*_versions(sim, real), *_ways(sim, real)]
    counted = [pair for pair in pairs if pair.counts]
    found, why = _correlation(counted)
    tasks = Counter(pair.task for pair in counted)
    return Comparison(
        pairs, tuple(left_out), found, why, _violation(counted),
        {task: violation for task, many in tasks.items() if many > 1
         and (violation := _violation([p for p in counted if p.task == task])) is not None},
    )  # fmt: skip


def _recording(episode: EpisodeScore) -> tuple[Any, ...]:
    """What no two episodes have alike: the last one is a measured time."""
    return episode.task, episode.seed, episode.state_hash, episode.wall_s


def _sides(episodes: Sequence[EpisodeScore]) -> dict[Key, Side]:
    found: dict[Key, list[EpisodeScore]] = {}
    for one in episodes:
        found.setdefault((one.task, one.planner, one.policy), []).append(one)
    return {
        key: Side(
            sum(e.success for e in members if e.scored), sum(e.scored for e in members),
            sum(not e.scored for e in members), sum(e.scored and by_hand(e.cause) for e in members),
        )
        for key, members in found.items()
    }  # fmt: skip


def _name(key: Key) -> str:
    return f"{key[0] or 'unknown task'} ({key[1] or '?'}, {key[2] or '?'})"


def _versions(sim: Sequence[EpisodeScore], real: Sequence[EpisodeScore]) -> list[str]:
    """Tasks that are not the same on both sides: paired, but said."""
    seen = [{(e.task, e.task_version) for e in side if e.scored} for side in (sim, real)]
    tasks = sorted({task for task, _ in seen[0]} & {task for task, _ in seen[1]})
    versions = {task: [sorted({str(v) for t, v in side if t == task}) for side in seen]
                for task in tasks}  # fmt: skip
    return [f"{task}: version {'/'.join(a)} simulated, {'/'.join(b)} real, paired all the same"
            for task, (a, b) in versions.items() if a != b]  # fmt: skip


def _ways(sim: Sequence[EpisodeScore], real: Sequence[EpisodeScore]) -> list[str]:
    """What was executed in other ways, told more, or made otherwise: paired, but said.

    A condition of which one side says nothing is not compared.
    """
    notes = []
    ways: list[tuple[str, Callable[[EpisodeScore], str]]] = [
        ("executed", _executed), ("told", lambda e: f"help {e.help or 'none'}"),
    ]  # fmt: skip
    names = sorted({name for e in (*sim, *real) for name in e.conditions})
    ways += [(name, lambda e, name=name: e.conditions.get(name, "")) for name in names]
    for what, way in ways:
        seen: list[dict[Key, set[str]]] = [{}, {}]
        for side, episodes in zip(seen, (sim, real), strict=True):
            for e in episodes:
                if e.scored and (said := way(e)):
                    side.setdefault((e.task, e.planner, e.policy), set()).add(said)
        notes += [
            f"{_name(key)}: {what} {' / '.join(sorted(seen[0][key]))} simulated, "
            f"{' / '.join(sorted(seen[1][key]))} real, paired all the same"
            for key in sorted(set(seen[0]) & set(seen[1])) if seen[0][key] != seen[1][key]
        ]  # fmt: skip
    return notes


def _executed(episode: EpisodeScore) -> str:
    how = episode.execution or Execution().to_dict()
    return f"{how['mode']}, latency {how['latency']}, execute {how['execute']}"


def _shares(pairs: Sequence[Pair]) -> tuple[list[float], list[float]]:
    return [p.sim.share for p in pairs], [p.real.share for p in pairs]


def _correlation(pairs: Sequence[Pair]) -> tuple[tuple[float, float, float] | None, str]:
    if len(pairs) < MIN_PAIRS:
        return None, f"it needs {MIN_PAIRS} pairs with verdicts on both sides, there are " + str(
            len(pairs)
        )
    for shares, where in zip(_shares(pairs), ("simulated", "real"), strict=True):
        if len(set(shares)) == 1:
            return None, f"all {where} shares are {shares[0]:.0%}"
    return pearson(*_shares(pairs)), ""


def _violation(pairs: Sequence[Pair]) -> float | None:
    return mmrv(*_shares(pairs)) if len(pairs) > 1 else None
