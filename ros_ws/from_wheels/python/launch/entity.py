"""Descriptions, actions and substitutions: the base classes, and text made of substitutions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

from launch.context import LaunchContext
from launch.errors import LaunchError

__all__ = ["Action", "LaunchDescription", "Substitution", "entities", "text"]


class Substitution:
    """Text that is known only when the launch runs."""

    def perform(self, context: LaunchContext) -> str:
        """Return the text."""
        raise NotImplementedError

    def describe(self) -> str:
        """Show it in --show-args."""
        return type(self).__name__


class Action:
    """Something a launch does, unless its condition says no."""

    def __init__(self, *, condition: Any = None) -> None:
        """Keep the condition."""
        self.condition = condition

    def execute(self, context: LaunchContext) -> list[Any] | None:
        """Do it; return further entities to visit."""
        raise NotImplementedError

    def visit(self, context: LaunchContext) -> None:
        """Execute if the condition holds, then visit what came of it."""
        if self.condition is not None and not self.condition.evaluate(context):
            return
        for entity in self.execute(context) or []:
            entity.visit(context)

    def parts(self) -> list[Any]:
        """Entities inside that can be known before the launch runs."""
        return []


class LaunchDescription:
    """What a launch file returns: entities in the order in which they are visited."""

    def __init__(self, initial_entities: Iterable[Any] | None = None) -> None:
        """Take the entities."""
        self.entities = list(initial_entities or [])

    def add_action(self, action: Action) -> None:
        """Append an action."""
        self.entities.append(action)

    add_entity = add_action

    def visit(self, context: LaunchContext) -> None:
        """Visit all entities."""
        for entity in self.entities:
            entity.visit(context)

    def parts(self) -> list[Any]:
        """The entities."""
        return list(self.entities)


def entities(value: Any) -> list[Any]:
    """A list from one entity, several or none."""
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def text(value: Any, context: LaunchContext, what: str = "value") -> str:
    """The text of a string, path, substitution, or sequence of these joined."""
    if isinstance(value, (str, PurePath)):
        return str(value)
    if isinstance(value, Substitution):
        return value.perform(context)
    if isinstance(value, (list, tuple)):
        return "".join(text(part, context, what) for part in value)
    raise LaunchError(f"{what} must be text or substitutions, got {value!r}")
