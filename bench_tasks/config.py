"""What a run is asked to do, from the command line or a YAML file, checked before it starts."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from reprlib import repr as short
from typing import Any

from bench_tasks import tasks
from bench_tasks.errors import UsageError, unknown
from bench_tasks.execution import Execution, check_latency
from bench_tasks.images import DEFAULT_SIZE, parse_size
from bench_tasks.manifest import FORMAT_VERSION
from bench_tasks.object_sets import ObjectSet, read_set
from bench_tasks.robots import embodiments
from bench_tasks.robots.dynamics import Dynamics, read_dynamics
from bench_tasks.vocabulary import AXES, FR3_PAIR
from bench_tasks.yaml_file import read_yaml

__all__ = ["DEMONSTRATION_SEEDS", "RunConfig", "read_config"]

MAX_EPISODES = 1_000_000
MAX_JOBS = 256
MAX_SEED = 2**63 - 1
"""Seeds travel as 64 bit integers."""
DEMONSTRATION_SEEDS = range(1_000_000, 2_000_000)
"""What `collect` draws from and nothing else: no layout is trained on and evaluated."""


@dataclass(frozen=True)
class RunConfig:
    """One run: `episodes` of each task, with seeds `seed`, `seed` + 1, ...

    `cameras` are pictured at key moments of each episode. `latency` is what a planner's thinking
    costs in simulated time: "free", "measured", or seconds per plan. Without `record` no bag is
    written, only the live result is kept. `vary` names axes of scene randomisation. Processes that
    share the episodes are `jobs`; the results are the same with any number. `objects` is a set of
    evolved objects, by name or file, that take the places of those of their kinds. How a policy's
    chunks are executed is said by `execution`, `policy_latency`, `execute` and `policy_deadline_s`,
    see `execution.Execution`. `image_size` is that of every picture, width x height in pixels.
    `dynamics` is a file of how simulated joints answer to commands (see `dynamics.Dynamics`).
    """

    tasks: tuple[str, ...]
    planner: str = "expert"
    policy: str = "skills"
    episodes: int = 1
    seed: int = 0
    out: str = ""
    cameras: tuple[str, ...] = ("head",)
    latency: str = "free"
    record: bool = True
    vary: tuple[str, ...] = ()
    jobs: int = 1
    objects: str = ""
    image_size: str = DEFAULT_SIZE
    execution: str = "sync"
    policy_latency: str = "free"
    execute: int = 0
    policy_deadline_s: float = 10.0
    dynamics: str = ""

    def checked(self) -> RunConfig:
        """Return self; UsageError names the first wrong value and what is valid."""
        if not self.tasks:
            raise UsageError(f"no task given: choose from {', '.join(tasks.names(None))}")
        for name in self.tasks:
            tasks.get(name)
        for what, names in (
            ("a task", self.tasks), ("a camera", self.cameras), ("an axis", self.vary)
        ):  # fmt: skip
            if len(set(names)) != len(names):
                raise UsageError(f"{what} is named twice: {', '.join(names)}")
        for robot in dict.fromkeys(tasks.get(name).embodiment for name in self.tasks):
            embodiments.get(robot).check_axes(self.vary)
        others = [name for name in self.tasks if tasks.get(name).embodiment != FR3_PAIR]
        if self.dynamics and others:
            raise UsageError(f"dynamics are those of {FR3_PAIR}, which {others[0]} is not for")
        parse_size(self.image_size)
        _ = self.evolved, self.joint_dynamics  # UsageError when one cannot be read
        if self.episodes < 1:
            raise UsageError(f"episodes must be at least 1, got {self.episodes}")
        if self.episodes > MAX_EPISODES:
            raise UsageError(f"episodes must be at most {MAX_EPISODES}")
        if self.seed < 0:
            raise UsageError(f"seed must not be negative, got {self.seed}")
        if self.seed + self.episodes - 1 > MAX_SEED:
            raise UsageError(f"the last seed, seed + episodes - 1, must be at most {MAX_SEED}")
        self.check_seeds()
        if not 1 <= self.jobs <= MAX_JOBS:
            raise UsageError(f"jobs must be from 1 to {MAX_JOBS}, got {self.jobs}")
        check_latency("latency", self.latency)
        self.executing.checked()
        return self

    def check_seeds(self) -> None:
        """UsageError when a seed is one of the demonstrations'."""
        first, last = DEMONSTRATION_SEEDS[0], DEMONSTRATION_SEEDS[-1]
        if self.seeds[0] <= last and self.seeds[-1] >= first:
            raise UsageError(
                f"seeds {first} to {last} are kept for demonstrations (bench_tasks collect), "
                f"got {self.seeds[0]} to {self.seeds[-1]}"
            )

    @property
    def executing(self) -> Execution:
        """How the policy's chunks are executed."""
        return Execution(
            self.execution, self.policy_latency, self.execute, self.policy_deadline_s
        )

    @cached_property
    def evolved(self) -> ObjectSet | None:
        """The set of evolved objects, read once.

        Pickled with the rest: what becomes of the file during a run changes no episode of it.
        """
        return read_set(self.objects) if self.objects else None

    @cached_property
    def joint_dynamics(self) -> Dynamics | None:
        """The dynamics, read once as `evolved` is; None for the simulation's own."""
        return read_dynamics(self.dynamics) if self.dynamics else None

    @property
    def dynamics_hash(self) -> str:
        """Hash of the dynamics; "" for the simulation's own."""
        return self.joint_dynamics.hash if self.joint_dynamics else ""

    @property
    def objects_hash(self) -> str:
        """Hash of the set of evolved objects; "" without one."""
        return self.evolved.hash if self.evolved else ""

    @property
    def seeds(self) -> range:
        """The seeds of each task."""
        return range(self.seed, self.seed + self.episodes)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the manifest."""
        hashes = {"objects_hash": self.objects_hash, "dynamics_hash": self.dynamics_hash}
        return {**dataclasses.asdict(self), **hashes}


def _typed(name: str, value: Any) -> Any:
    """A value of the file as the type that the field has; UsageError when it is of another."""
    everything = {"tasks": tuple(tasks.names()), "vary": AXES, "cameras": None}
    if name in everything:
        if value in ("all", ["all"]) and everything[name] is not None:
            return everything[name]
        if isinstance(value, str):
            value = [word.strip() for word in value.split(",") if word.strip()]
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise UsageError(f"{name} must be a list of names, got {short(value)}")
        return tuple(value)
    if name in ("latency", "policy_latency"):
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise UsageError(f"{name} must be free, measured or seconds, got {short(value)}")
        return str(value)
    if name == "policy_deadline_s" and type(value) is int:
        return float(value)
    kind = {
        "episodes": int, "seed": int, "record": bool, "jobs": int, "execute": int,
        "policy_deadline_s": float,
    }.get(name, str)  # fmt: skip
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise UsageError(f"{name} must be of type {kind.__name__}, got {short(value)}")
    return value


def read_config(path: Path) -> dict[str, Any]:
    """Fields of `RunConfig` from a YAML file with `format_version: 1`.

    UsageError when it cannot be read, is malformed, or has an unknown key or a wrong type.
    """
    try:
        raw = read_yaml(path)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    if not isinstance(raw, dict):
        raise UsageError(f"{path} must hold a mapping, not a {type(raw).__name__}")
    version = raw.pop("format_version", None)
    if version != FORMAT_VERSION:
        raise UsageError(f"{path}: format_version must be {FORMAT_VERSION}, got {short(version)}")
    known = [field.name for field in dataclasses.fields(RunConfig)]
    try:
        for key in raw:
            if key not in known:
                raise unknown("key", key, known)
        return {key: _typed(key, value) for key, value in raw.items()}
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
