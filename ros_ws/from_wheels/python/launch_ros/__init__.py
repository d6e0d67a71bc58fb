"""The part of launch_ros that this project's launch files use; see the package launch."""

from launch_ros import actions, substitutions

__all__ = ["actions", "substitutions"]
