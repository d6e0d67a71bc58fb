"""What is done when something happens."""

from __future__ import annotations

from typing import Any

from launch.context import LaunchContext
from launch.entity import entities
from launch.events import ProcessExited, ProcessStarted, Shutdown

__all__ = ["OnProcessExit", "OnProcessStart", "OnShutdown"]


class Handler:
    """Entities, or a function (event, context) -> entities, for one kind of event."""

    kind: type = object

    def __init__(self, reaction: Any, target_action: Any = None) -> None:
        """React to events of `target_action`, or of any when it is None."""
        self.reaction = reaction
        self.target_action = target_action

    def matches(self, event: Any) -> bool:
        """Whether this event is meant."""
        if not isinstance(event, self.kind):
            return False
        target = self.target_action
        if target is None:
            return True
        if isinstance(target, (list, tuple)):
            return event.action in target
        return event.action is target

    def handle(self, event: Any, context: LaunchContext) -> list[Any]:
        """Entities to visit."""
        reaction = self.reaction
        return entities(reaction(event, context) if callable(reaction) else reaction)


class OnProcessExit(Handler):
    """When a process ends."""

    kind = ProcessExited

    def __init__(self, *, target_action: Any = None, on_exit: Any) -> None:
        """Take the action whose process is meant and the reaction."""
        super().__init__(on_exit, target_action)


class OnProcessStart(Handler):
    """When a process starts."""

    kind = ProcessStarted

    def __init__(self, *, target_action: Any = None, on_start: Any) -> None:
        """Take the action whose process is meant and the reaction."""
        super().__init__(on_start, target_action)


class OnShutdown(Handler):
    """When the launch begins to end."""

    kind = Shutdown

    def __init__(self, *, on_shutdown: Any) -> None:
        """Take the reaction."""
        super().__init__(on_shutdown)
