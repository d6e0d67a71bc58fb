"""Where launch descriptions come from: Python files with generate_launch_description."""

from __future__ import annotations

import importlib.util
from typing import Any

from launch.context import LaunchContext
from launch.entity import LaunchDescription, text
from launch.errors import LaunchError

__all__ = ["PythonLaunchDescriptionSource", "load"]


def load(path: str) -> LaunchDescription:
    """Load a launch file; LaunchError says what is wrong with it."""
    spec = importlib.util.spec_from_file_location("launch_file", path)
    if spec is None or spec.loader is None:
        raise LaunchError(f"{path}: no Python launch file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        if not hasattr(module, "generate_launch_description"):
            raise LaunchError(f"{path}: has no function generate_launch_description")
        return module.generate_launch_description()
    except LaunchError:
        raise
    except FileNotFoundError as error:
        raise LaunchError(f"cannot read launch file {error.filename or path}") from None
    except Exception as error:
        raise LaunchError(f"{path}: {type(error).__name__}: {error}") from error


class PythonLaunchDescriptionSource:
    """A launch file to include."""

    def __init__(self, launch_file_path: Any) -> None:
        """Take the path, as text or substitutions."""
        self.launch_file_path = launch_file_path

    def get(self, context: LaunchContext) -> LaunchDescription:
        """Load it."""
        return load(text(self.launch_file_path, context, "launch file"))
