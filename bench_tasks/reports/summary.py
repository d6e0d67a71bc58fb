"""Episodes' results taken together: by task, by tier, all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bench_tasks.execution import Execution
from bench_tasks.reports.stats import wilson
from bench_tasks.verdicts.episode_score import EpisodeScore, by_hand

__all__ = [
    "Group", "acting_alone", "by_execution", "by_help", "by_task", "by_tier", "category", "kind_of",
    "together",
]  # fmt: skip


def category(cause: str) -> str:
    """The stable part of a cause, before its particulars."""
    return cause.partition(": ")[0]


def kind_of(episode: EpisodeScore) -> str:
    """The kind of a failure's diagnosis; "not diagnosed" in result files from before there was."""
    return str(episode.diagnosis.get("kind", "not diagnosed"))


HELP = ("none", "names", "poses", "recipe")
"""Levels of help, each with all that the one before tells."""


@dataclass(frozen=True)
class Group:
    """Some episodes. An unscored one counts as a failure, and is counted apart as well.

    `progress` is the mean; `stages` the share of scored episodes that reached each stage;
    `chance`, `accuracy` and `score` are those of the questions asked, None where none was.
    """

    name: str
    episodes: tuple[EpisodeScore, ...]

    @property
    def count(self) -> int:
        """Number of episodes."""
        return len(self.episodes)

    @property
    def successes(self) -> int:
        """Number of successful episodes."""
        return sum(e.success for e in self.episodes)

    @property
    def unscored(self) -> int:
        """Number of episodes without a verdict."""
        return sum(not e.scored for e in self.episodes)

    @property
    def stopped(self) -> int:
        """Number of episodes that a human stopped: failures, but not all of the policy's making."""
        return sum(by_hand(e.cause) for e in self.episodes)

    @property
    def share(self) -> float:
        """Share of successes, 0 without an episode."""
        return self.successes / self.count if self.episodes else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """95 % Wilson interval of the success rate."""
        return wilson(self.successes, self.count)

    @property
    def progress(self) -> float:
        """Mean progress."""
        return _mean([e.progress for e in self.episodes]) or 0.0

    @property
    def causes(self) -> dict[str, int]:
        """Failures by category, the most frequent first."""
        found = Counter(category(e.cause) for e in self.episodes if not e.success)
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    @property
    def kinds(self) -> dict[str, int]:
        """Failures by the kind of their diagnosis, the most frequent first."""
        found = Counter(kind_of(e) for e in self.episodes if not e.success)
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    @property
    def stages(self) -> dict[str, float]:
        """Share of scored episodes in which each stage was reached, in the task's order."""
        scored = [e for e in self.episodes if e.scored]
        names = list(dict.fromkeys(name for e in scored for name in e.stages))
        return {n: _mean([float(e.stages.get(n, False)) for e in scored]) or 0.0 for n in names}

    def _questions(self, key: str) -> float | None:
        asked: list[dict[str, Any]] = [
            q for e in self.episodes for q in e.details.get("questions", {}).values()
        ]
        return _mean([float(q[key]) for q in asked])

    @property
    def chance(self) -> float | None:
        """Expected accuracy of a guesser, over the questions asked."""
        return self._questions("chance")

    @property
    def accuracy(self) -> float | None:
        """Share of right answers, over the questions asked."""
        return self._questions("accuracy")

    @property
    def score(self) -> float | None:
        """Accuracy corrected for chance over all questions: 0 at chance or below, 100 when perfect.

        Corrected once, over the whole: a mean of episodes that are each cut off at 0 would give
        a guesser more than nothing.
        """
        if self.accuracy is None or self.chance is None:
            return None
        return 100 * max(0.0, (self.accuracy - self.chance) / (1.0 - self.chance))

    @property
    def after(self) -> tuple[dict[str, Any], ...]:
        """The questions that were asked once the arms were done, as in `details`."""
        return tuple(
            q for e in self.episodes for q in e.details.get("afterwards", {}).values()
        )  # fmt: skip

    @property
    def answered_after(self) -> str:
        """How many of these were answered rightly, and chance; "" where none was to be asked."""
        if self.after:
            right = sum(q["accuracy"] == 1.0 for q in self.after)
            chance = _mean([float(q["chance"]) for q in self.after])
            return f"{right}/{len(self.after)} ({chance:.0%})"
        return "not asked" if self.not_asked else ""

    @property
    def interval_after(self) -> tuple[float, float]:
        """95 % Wilson interval of the share that was answered rightly."""
        return wilson(sum(q["accuracy"] == 1.0 for q in self.after), len(self.after))

    @property
    def not_asked(self) -> dict[str, int]:
        """Why nothing was asked then, and in how many episodes."""
        return dict(Counter(
            e.details["not_asked"] for e in self.episodes if "not_asked" in e.details
        ))  # fmt: skip

    @property
    def sim_s(self) -> float:
        """Simulated time, s."""
        return sum(e.sim_s for e in self.episodes)

    @property
    def wall_s(self) -> float:
        """Wall time of the episodes that recorded it, s."""
        return sum(e.wall_s or 0.0 for e in self.episodes)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _grouped(
    episodes: Sequence[EpisodeScore], name: Callable[[EpisodeScore], str]
) -> list[Group]:
    found: dict[str, list[EpisodeScore]] = {}
    for episode in episodes:
        found.setdefault(name(episode), []).append(episode)
    return [Group(key, tuple(members)) for key, members in found.items()]


def acting_alone(episodes: Sequence[EpisodeScore]) -> Callable[[EpisodeScore], bool]:
    """Whether an episode's policy acts by itself: its planner is never asked for anything."""
    asked: dict[tuple[str, str], set[bool | None]] = {}
    for e in episodes:
        asked.setdefault((e.planner, e.policy), set()).add(e.asked)
    return lambda e: asked[e.planner, e.policy] - {None} == {False}


def _agents(episodes: Sequence[EpisodeScore]) -> Callable[[EpisodeScore], str]:
    """What to add to a group's name: the agents, where the episodes had several."""
    several = len({(e.planner, e.policy) for e in episodes}) > 1
    alone = acting_alone(episodes)

    def name(e: EpisodeScore) -> str:
        policy = e.policy or "?"
        return f" ({policy})" if alone(e) else f" ({e.planner or '?'}, {policy})"

    return name if several else lambda e: ""


def by_task(episodes: Sequence[EpisodeScore]) -> list[Group]:
    """One group per task (and agents, if several), by tier and name; probes last."""
    agents = _agents(episodes)
    ordered = sorted(episodes, key=lambda e: (e.tier or 9, e.task, agents(e), e.seed or 0))
    return _grouped(ordered, lambda e: (e.task or "unknown task") + agents(e))


def by_tier(episodes: Sequence[EpisodeScore]) -> list[Group]:
    """One group per tier (and agents, if several), then the probes."""
    agents = _agents(episodes)
    ordered = sorted(episodes, key=lambda e: (e.tier or 9, agents(e)))
    return _grouped(
        ordered, lambda e: (f"tier {e.tier}" if e.tier else e.kind or "unknown") + agents(e)
    )


def by_help(episodes: Sequence[EpisodeScore]) -> list[Group]:
    """One group per model and level of help, for the planners whose transcripts name one."""
    helped = sorted(
        (e for e in episodes if e.help),
        key=lambda e: (model_of(e), HELP.index(e.help) if e.help in HELP else 9, e.help),
    )
    return _grouped(helped, lambda e: f"{model_of(e)}, help: {e.help}")


def by_execution(episodes: Sequence[EpisodeScore]) -> list[Group]:
    """One group per policy and way of executing its chunks, by latency; [] where all are alike.

    Episodes without a record of it are left out.
    """
    told = [e for e in episodes if e.execution]
    told.sort(key=lambda e: (e.policy, e.execution["mode"], *_latency(e), e.execution["execute"]))
    if len({_way(e) for e in told}) < 2:
        return []
    return _grouped(told, lambda e: f"{e.policy or '?'}: {_way(e)}")


def _way(episode: EpisodeScore) -> str:
    how = episode.execution
    latency = how["latency"] if how["latency"] in ("free", "measured") else f"{how['latency']} s"
    every = f", every {how['execute']} periods" if how["execute"] else ""
    usual = how["deadline_s"] == Execution().deadline_s
    deadline = "" if usual else f", deadline {how['deadline_s']:g} s"
    return f"{how['mode']}, latency {latency}{every}{deadline}"


def _latency(episode: EpisodeScore) -> tuple[float, str]:
    """For sorting: free, then seconds, then measured."""
    text = episode.execution["latency"]
    try:
        return float(text), text
    except ValueError:
        return (0.0 if text == "free" else 1e9), text


def model_of(episode: EpisodeScore) -> str:
    """The planner's name without its level of help."""
    return (episode.planner or "?").removesuffix(f":{episode.help}")


def together(episodes: Sequence[EpisodeScore]) -> Group:
    """All episodes as one group."""
    return Group("all", tuple(episodes))
