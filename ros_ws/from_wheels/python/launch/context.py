"""What actions and substitutions are evaluated in."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from launch.service import LaunchService

__all__ = ["LaunchContext"]


class LaunchContext:
    """Launch configurations, the environment of processes to come, and the running service."""

    def __init__(self, service: LaunchService | None = None) -> None:
        """Start with no configurations."""
        self.launch_configurations: dict[str, str] = {}
        self.service = service

    @property
    def environment(self) -> MutableMapping[str, str]:
        """The environment of processes to come: this process's own, as in the real launch.

        So what a launch file's functions set in os.environ reaches the processes too.
        """
        return os.environ

    def perform_substitution(self, substitution) -> str:
        """The text of one substitution."""
        return substitution.perform(self)

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        """Undo, at the end, what is set inside."""
        configurations, environment = dict(self.launch_configurations), dict(os.environ)
        try:
            yield
        finally:
            self.launch_configurations = configurations
            os.environ.clear()
            os.environ.update(environment)
