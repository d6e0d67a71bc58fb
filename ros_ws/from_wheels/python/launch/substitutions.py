"""Text that is known only when the launch runs."""

from __future__ import annotations

import math
import os
from typing import Any

from launch.context import LaunchContext
from launch.entity import Substitution, text
from launch.errors import LaunchError

__all__ = [
    "EnvironmentVariable",
    "LaunchConfiguration",
    "PathJoinSubstitution",
    "PythonExpression",
    "TextSubstitution",
]


class TextSubstitution(Substitution):
    """Fixed text."""

    def __init__(self, *, text: str) -> None:
        """Take the text."""
        self.text = text

    def perform(self, context: LaunchContext) -> str:
        """Return the text."""
        return self.text

    def describe(self) -> str:
        """Show it in --show-args."""
        return self.text


class LaunchConfiguration(Substitution):
    """The value of a launch argument."""

    def __init__(self, variable_name: Any, *, default: Any = None) -> None:
        """Name it; `default` stands in when it was not set."""
        self.variable_name = variable_name
        self.default = default

    def perform(self, context: LaunchContext) -> str:
        """Return the value; LaunchError when there is none."""
        name = text(self.variable_name, context)
        if name in context.launch_configurations:
            return context.launch_configurations[name]
        if self.default is None:
            known = ", ".join(sorted(context.launch_configurations)) or "none"
            raise LaunchError(f"launch configuration '{name}' is not set; set are: {known}")
        return text(self.default, context)

    def describe(self) -> str:
        """Show it in --show-args."""
        return f"LaunchConfiguration({self.variable_name!r})"


class EnvironmentVariable(Substitution):
    """The value of an environment variable."""

    def __init__(self, name: Any, *, default_value: Any = None) -> None:
        """Name it; without a default a missing variable is an error."""
        self.name = name
        self.default_value = default_value

    def perform(self, context: LaunchContext) -> str:
        """Return the value; LaunchError when there is none."""
        name = text(self.name, context)
        if name in context.environment:
            return context.environment[name]
        if self.default_value is None:
            raise LaunchError(f"environment variable '{name}' is not set")
        return text(self.default_value, context)


class PathJoinSubstitution(Substitution):
    """Path components joined; a component may itself be a list of substitutions."""

    def __init__(self, substitutions: Any) -> None:
        """Take the components."""
        self.substitutions = list(substitutions)

    def perform(self, context: LaunchContext) -> str:
        """Return the path."""
        return os.path.join(*(text(part, context) for part in self.substitutions))


class PythonExpression(Substitution):
    """The value of a Python expression put together from substitutions."""

    def __init__(self, expression: Any, python_modules: Any = ("math",)) -> None:
        """Take the parts of the expression; of modules only math is offered."""
        self.expression = expression
        if list(python_modules) != ["math"]:
            raise LaunchError(f"PythonExpression offers the module math only, not {python_modules}")

    def perform(self, context: LaunchContext) -> str:
        """Evaluate; LaunchError shows the expression when that fails."""
        source = text(self.expression, context)
        try:
            return str(eval(source, {**vars(math), "math": math}))  # noqa: S307
        except Exception as error:
            raise LaunchError(f"cannot evaluate '{source}': {error}") from None
