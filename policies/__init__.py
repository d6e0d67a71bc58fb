"""Planners and action policies, found by name and imported only when they are asked for.

To add one, write a class that has the methods of `vocabulary.Planner` or `vocabulary.Policy` and
takes no arguments, and enter `name: "module:Class"` here.
"""

from __future__ import annotations

import importlib
from typing import Any

from bench_tasks.errors import unknown
from bench_tasks.vocabulary import Planner, Policy

__all__ = ["PLANNERS", "POLICIES", "make_planner", "make_policy"]

PLANNERS: dict[str, str] = {
    "expert": "policies.planners.expert:ExpertPlanner",
    "random": "policies.planners.random:RandomPlanner",
}
"""Planner name -> where its class is."""

POLICIES: dict[str, str] = {
    "skills": "policies.skills:SkillPolicy",
    "random": "policies.floors:RandomPolicy",
    "hold": "policies.floors:HoldPolicy",
}
"""Policy name -> where its class is."""


def _make(kind: str, name: str, registry: dict[str, str]) -> Any:
    if name not in registry:
        raise unknown(kind, name, registry)
    module, _, attribute = registry[name].partition(":")
    return getattr(importlib.import_module(module), attribute)()


def make_planner(name: str) -> Planner:
    """A fresh planner; UsageError lists the valid names."""
    return _make("planner", name, PLANNERS)


def make_policy(name: str) -> Policy:
    """A fresh policy; UsageError lists the valid names."""
    return _make("policy", name, POLICIES)
