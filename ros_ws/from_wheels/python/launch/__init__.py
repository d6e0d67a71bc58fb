"""The part of ROS 2's launch API that this project's launch files use, under its own names.

Installed only where no ROS distribution is sourced; there the distribution's package is used and
this one is not on the path. Behaviour follows the real one, except that a mistake ends in one line.
"""

from launch import actions, conditions, event_handlers, events, substitutions
from launch.context import LaunchContext
from launch.entity import Action, LaunchDescription, Substitution
from launch.errors import LaunchError
from launch.service import LaunchService

__all__ = [
    "Action",
    "LaunchContext",
    "LaunchDescription",
    "LaunchError",
    "LaunchService",
    "Substitution",
    "actions",
    "conditions",
    "event_handlers",
    "events",
    "substitutions",
]
