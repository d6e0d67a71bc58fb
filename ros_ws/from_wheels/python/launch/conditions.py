"""Conditions on actions."""

from __future__ import annotations

from typing import Any

from launch.context import LaunchContext
from launch.entity import text
from launch.errors import LaunchError

__all__ = ["IfCondition", "UnlessCondition"]

TRUE = ("true", "1")
FALSE = ("false", "0")


class IfCondition:
    """Holds when the expression is true or 1, does not when it is false or 0."""

    wanted = True

    def __init__(self, predicate_expression: Any) -> None:
        """Take text or substitutions."""
        self.predicate_expression = predicate_expression

    def evaluate(self, context: LaunchContext) -> bool:
        """Evaluate; LaunchError for anything that is no truth value."""
        value = text(self.predicate_expression, context, "condition").strip()
        if value.lower() in TRUE:
            return self.wanted
        if value.lower() in FALSE:
            return not self.wanted
        raise LaunchError(f"'{value}' is no truth value; valid: true, false, 1, 0")


class UnlessCondition(IfCondition):
    """Holds when IfCondition does not."""

    wanted = False
