"""Planners and action policies, found by name and imported only when they are asked for.

To add one, write a class that has the methods of `protocols.Planner` or `protocols.Policy` and
takes no arguments. It is found as `module.Class` where Python can import it, or by the name under
which `name: "module:Class"` is entered here. One with options has a dataclass `Options` with
defaults and takes an instance of it: `name:key=value,...` then fills it in. A policy that moves
other robots than the FR3 pair names them all as `robots`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from bench_tasks import tasks
from bench_tasks.errors import UsageError, unknown
from bench_tasks.options import build, read_spec
from bench_tasks.protocols import Planner, Policy
from bench_tasks.registry import load, making
from bench_tasks.vocabulary import FR3_PAIR

__all__ = [
    "PLANNERS", "POLICIES", "check_planner", "check_policy", "make_model", "make_model_planner",
    "make_planner", "make_policy",
]  # fmt: skip

PLANNERS: dict[str, str] = {
    "expert": "policies.planners.expert:ExpertPlanner",
    "random": "policies.planners.random:RandomPlanner",
    "openai": "policies.planners.openai_server:OpenAIPlanner",
    "transformers": "policies.planners.transformers_local:TransformersPlanner",
    "smollm2": "policies.planners.smollm2:SmolLM2Planner",
    "replay": "policies.planners.replay:ReplayPlanner",
    "human": "policies.planners.human:HumanPlanner",
    "remembering": "policies.planners.remembering:RememberingPlanner",
    "blind": "policies.planners.blind:BlindPlanner",
}
"""Planner name -> where its class is."""

POLICIES: dict[str, str] = {
    "skills": "policies.by_robot:RobotSkills",
    "humanoid": "policies.humanoid:HumanoidPolicy",
    "random": "policies.floors:RandomPolicy",
    "hold": "policies.floors:HoldPolicy",
    "excite": "policies.excite:ExcitePolicy",
    "wam": "policies.wam.policy:WamPolicy",
    "pair": "policies.pair:PairPolicy",
    "openpi": "policies.remote.openpi:OpenPIPolicy",
    "dreamzero": "policies.remote.dreamzero:DreamZeroPolicy",
    "gr00t": "policies.remote.gr00t:Gr00tPolicy",
}
"""Policy name -> where its class is."""


def _make(role: str, spec: str, registry: dict[str, str]) -> Any:
    """A fresh object from `name` or `name:key=value,...` (see `bench_tasks.options`)."""
    name, options = read_spec(spec, role)
    kind = load(role, name, registry)
    with making(role, name, registry):
        if hasattr(kind, "from_options"):
            return kind.from_options(options)
        if hasattr(kind, "Options"):
            return kind(build(name, kind.Options, options, role))
        if options:
            raise UsageError(f"{role} {name} takes no options, got {', '.join(sorted(options))}")
        return kind()


def make_planner(spec: str) -> Planner:
    """A fresh planner; UsageError lists the valid names or options.

    Models are not loaded, nor servers asked, before the first episode.
    """
    return _make("planner", spec, PLANNERS)


def make_model(spec: str) -> tuple[str, Callable[[str], str]]:
    """The model of a planner: its name, and a function from a prompt to an answer.

    UsageError also when the planner is no model.
    """
    planner = make_model_planner(spec)
    return f"{planner.name} {planner.options.model}", planner.complete


def make_model_planner(spec: str) -> Any:
    """A planner that asks a model, a `ChatPlanner`; UsageError when this is none."""
    planner = make_planner(spec)
    if not hasattr(planner, "complete"):
        models = [name for name in PLANNERS if hasattr(load("planner", name, PLANNERS), "complete")]
        raise unknown("model", spec.partition(":")[0], models)
    return planner


def check_planner(spec: str, jobs: int = 1) -> tuple[str, ...]:
    """The cameras that the planner is shown the pictures of.

    UsageError when `make_planner` would raise one, or so many cannot work side by side.
    """
    planner = make_planner(spec)
    if getattr(planner, "in_order", False) and jobs > 1:
        raise UsageError(
            f"planner {spec} remembers one episode in the next: jobs must be 1, got {jobs}"
        )
    with making("planner", spec.partition(":")[0], PLANNERS):
        return planner.metadata.cameras


def make_policy(spec: str) -> Policy:
    """A fresh policy; UsageError lists the valid names or options. As for `make_planner`."""
    return _make("policy", spec, POLICIES)


def check_policy(spec: str, names: Iterable[str] = ()) -> tuple[str, ...]:
    """The cameras that the policy is shown the pictures of.

    UsageError when `make_policy` would raise one, or it cannot move the robot of a task.
    """
    policy = make_policy(spec)
    robots = getattr(policy, "robots", (FR3_PAIR,))
    for name in names:
        robot = tasks.get(name).embodiment
        if robot not in robots:
            raise UsageError(
                f"policy {spec} moves {' and '.join(robots)} alone, {name} is for {robot}"
            )
    with making("policy", spec.partition(":")[0], POLICIES):
        return policy.metadata.cameras
