"""Where ROS packages lie."""

from __future__ import annotations

from typing import Any

from launch.context import LaunchContext
from launch.entity import Substitution, text

from small_ros2.packages import prefix_of, share_of

__all__ = ["FindPackagePrefix", "FindPackageShare"]


class FindPackageShare(Substitution):
    """The share directory of a package."""

    def __init__(self, package: Any) -> None:
        """Name the package."""
        self.package = package

    def perform(self, context: LaunchContext) -> str:
        """Return it; LaunchError when there is no such package."""
        return str(share_of(text(self.package, context)))


class FindPackagePrefix(FindPackageShare):
    """The prefix a package is installed in."""

    def perform(self, context: LaunchContext) -> str:
        """Return it; LaunchError when there is no such package."""
        return str(prefix_of(text(self.package, context)))
