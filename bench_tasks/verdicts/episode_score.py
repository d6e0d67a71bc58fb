"""One episode's result, as it is kept in a result file."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any

__all__ = ["STOP", "EpisodeScore", "by_hand"]

STOP = "safety stop: "
"""How the cause of an episode begins whose arms had to be stopped."""


def by_hand(cause: str) -> bool:
    """Whether it was a human who stopped them, by the topic or a service of the safety node."""
    return cause.startswith(f"{STOP}/safety/")


def _plain(value: Any) -> Any:
    """The value with None for numbers that are not finite, and no half characters in texts."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_plain(item) for item in value)
    return value


@dataclass(frozen=True)
class EpisodeScore:
    """One episode's result. `bag` is its folder, "" if nothing was recorded.

    `wall_s` is None when the recording does not say. `scored` is False when no verdict could be
    derived. `agrees`: whether the live verdict says the same; None when there is none to compare.
    `diagnosis` of a failure: its kind, evidence and state, as of `diagnosis.Diagnosis`. `help` is
    what the planner was told beyond its pictures, where it says so; `usage` what asking it cost,
    as of `usage.usage_of`; `execution` how the policy's chunks were executed, as of
    `execution.execution_of`; `dreams` how right the pictures were that the policy predicted, as of
    `dreams.dreams_of`; `teamwork` how the two arms got on, as of `teamwork.teamwork_of`;
    `conditions` what else a recording says of how it was made: versions of agents, the world;
    `asked` whether the planner was asked to look, plan or answer, None where that is not known.
    """

    task: str
    seed: int | None
    success: bool
    progress: float
    cause: str
    state_hash: str
    bag: str
    wall_s: float | None
    sim_s: float
    stages: dict[str, bool] = field(default_factory=dict)
    tier: int | None = None
    mode: str = ""
    kind: str = ""
    planner: str = ""
    policy: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    end_seq: int | None = None
    task_version: int | None = None
    scored: bool = True
    agrees: bool | None = None
    notes: tuple[str, ...] = ()
    diagnosis: dict[str, Any] = field(default_factory=dict)
    help: str = ""
    usage: dict[str, Any] = field(default_factory=dict)
    execution: dict[str, Any] = field(default_factory=dict)
    dreams: dict[str, Any] = field(default_factory=dict)
    teamwork: dict[str, Any] = field(default_factory=dict)
    conditions: dict[str, str] = field(default_factory=dict)
    asked: bool | None = None

    def __post_init__(self) -> None:
        """Take nothing that JSON or UTF-8 cannot hold, whatever a recording had in it."""
        for item in dataclasses.fields(self):
            object.__setattr__(self, item.name, _plain(getattr(self, item.name)))

    @property
    def evaluated(self) -> bool:
        """Whether it has a verdict which, if there is a recording, is the live one as well."""
        return self.scored and (self.agrees is True or not self.bag)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return dataclasses.asdict(self)
