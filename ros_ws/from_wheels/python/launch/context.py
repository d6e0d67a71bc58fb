"""What actions and substitutions are evaluated in."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from launch.service import LaunchService

__all__ = ["LaunchContext"]


class LaunchContext:
    """Launch configurations, the environment of processes to come, and the running service."""

    def __init__(self, service: LaunchService | None = None) -> None:
        """Start from this process's environment and no configurations."""
        self.launch_configurations: dict[str, str] = {}
        self.environment: dict[str, str] = dict(os.environ)
        self.service = service

    def perform_substitution(self, substitution) -> str:
        """The text of one substitution."""
        return substitution.perform(self)

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        """Undo, at the end, what is set inside."""
        saved = dict(self.launch_configurations), dict(self.environment)
        try:
            yield
        finally:
            self.launch_configurations, self.environment = saved
