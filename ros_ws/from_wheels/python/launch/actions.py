"""What a launch file can ask for; processes are in launch.process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from launch import events
from launch.context import LaunchContext
from launch.entity import Action, entities, text
from launch.errors import LaunchError
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.process import ExecuteProcess
from launch.substitutions import Substitution

__all__ = [
    "DeclareLaunchArgument",
    "EmitEvent",
    "ExecuteProcess",
    "GroupAction",
    "IncludeLaunchDescription",
    "LogInfo",
    "OpaqueFunction",
    "RegisterEventHandler",
    "SetEnvironmentVariable",
    "SetLaunchConfiguration",
    "Shutdown",
    "TimerAction",
]


class DeclareLaunchArgument(Action):
    """An argument of the launch file, given as name:=value."""

    def __init__(
        self, name: str, *, default_value: Any = None, description: str = "",
        choices: Iterable[str] | None = None, **kwargs: Any,
    ) -> None:
        """Without a default the argument must be given; `choices` are the valid values."""
        super().__init__(**kwargs)
        self.name = name
        self.default_value = default_value
        self.description = description
        self.choices = None if choices is None else list(choices)

    def execute(self, context: LaunchContext) -> None:
        """Set the default if no value was given; check the value."""
        values = context.launch_configurations
        if self.name not in values:
            if self.default_value is None:
                raise LaunchError(f"argument {self.name} is required: {self.name}:=VALUE")
            values[self.name] = text(self.default_value, context, self.name)
        if self.choices is not None and values[self.name] not in self.choices:
            raise LaunchError(
                f"{self.name}:={values[self.name]} is not valid; choices: {', '.join(self.choices)}"
            )

    def describe_default(self) -> str:
        """The default as far as it is known before the launch runs."""
        parts = entities(self.default_value)
        return "".join(p.describe() if isinstance(p, Substitution) else str(p) for p in parts)


class SetLaunchConfiguration(Action):
    """Set a launch configuration."""

    def __init__(self, name: Any, value: Any, **kwargs: Any) -> None:
        """Take name and value."""
        super().__init__(**kwargs)
        self.name, self.value = name, value

    def execute(self, context: LaunchContext) -> None:
        """Set it."""
        context.launch_configurations[text(self.name, context)] = text(self.value, context)


class SetEnvironmentVariable(Action):
    """Set a variable for the processes that start from here on."""

    def __init__(self, name: Any, value: Any, **kwargs: Any) -> None:
        """Take name and value."""
        super().__init__(**kwargs)
        self.name, self.value = name, value

    def execute(self, context: LaunchContext) -> None:
        """Set it."""
        context.environment[text(self.name, context)] = text(self.value, context)


class LogInfo(Action):
    """Print a line."""

    def __init__(self, *, msg: Any, **kwargs: Any) -> None:
        """Take the line."""
        super().__init__(**kwargs)
        self.msg = msg

    def execute(self, context: LaunchContext) -> None:
        """Print it."""
        context.service.log("INFO", "launch.user", text(self.msg, context))


class OpaqueFunction(Action):
    """A function (context, *args, **kwargs) that may return further entities."""

    def __init__(
        self, *, function: Callable[..., Any], args: Iterable[Any] | None = None,
        kwargs: dict[str, Any] | None = None, **rest: Any,
    ) -> None:
        """Take the function and its arguments."""
        super().__init__(**rest)
        self.function, self.args, self.kwargs = function, list(args or []), dict(kwargs or {})

    def execute(self, context: LaunchContext) -> list[Any]:
        """Call it."""
        return entities(self.function(context, *self.args, **self.kwargs))


class GroupAction(Action):
    """Actions that share a scope of configurations and environment, and a condition."""

    def __init__(
        self, actions: Iterable[Any], *, scoped: bool = True, forwarding: bool = True,
        launch_configurations: dict[str, Any] | None = None, **kwargs: Any,
    ) -> None:
        """With `scoped` nothing set inside is seen outside; `forwarding` lets values in."""
        super().__init__(**kwargs)
        self.actions = list(actions)
        self.scoped, self.forwarding = scoped, forwarding
        self.configurations = dict(launch_configurations or {})

    def execute(self, context: LaunchContext) -> list[Any] | None:
        """Visit the actions."""
        if not self.scoped:
            return [*(SetLaunchConfiguration(*item) for item in self.configurations.items()),
                    *self.actions]
        with context.scope():
            inner = {k: text(v, context) for k, v in self.configurations.items()}
            outer = context.launch_configurations if self.forwarding else {}
            context.launch_configurations = {**outer, **inner}
            for action in self.actions:
                action.visit(context)
        return None

    def parts(self) -> list[Any]:
        """The actions."""
        return list(self.actions)


class IncludeLaunchDescription(Action):
    """Another launch file, with its arguments."""

    def __init__(
        self, launch_description_source: Any, *, launch_arguments: Any = None, **kwargs: Any
    ) -> None:
        """Take a source (or a path) and (name, value) pairs."""
        super().__init__(**kwargs)
        if not isinstance(launch_description_source, PythonLaunchDescriptionSource):
            launch_description_source = PythonLaunchDescriptionSource(launch_description_source)
        self.source = launch_description_source
        self.launch_arguments = list(launch_arguments or [])

    def execute(self, context: LaunchContext) -> list[Any]:
        """Set the arguments and visit the file's entities; like the real one, without a scope."""
        for name, value in self.launch_arguments:
            context.launch_configurations[text(name, context)] = text(value, context)
        return [self.source.get(context)]

    def parts(self) -> list[Any]:
        """The included description, if its path does not depend on an argument."""
        try:
            description = self.source.get(LaunchContext())
        except LaunchError:
            return []
        given = [name for name, _ in self.launch_arguments]
        return [part for part in description.parts() if getattr(part, "name", None) not in given]


class RegisterEventHandler(Action):
    """From here on, react to an event."""

    def __init__(self, event_handler: Any, **kwargs: Any) -> None:
        """Take the handler."""
        super().__init__(**kwargs)
        self.event_handler = event_handler

    def execute(self, context: LaunchContext) -> None:
        """Register it."""
        context.service.handlers.append(self.event_handler)


class EmitEvent(Action):
    """Make an event happen; launch.events.Shutdown ends the launch."""

    def __init__(self, *, event: Any, **kwargs: Any) -> None:
        """Take the event."""
        super().__init__(**kwargs)
        self.event = event

    def execute(self, context: LaunchContext) -> None:
        """Let it happen."""
        context.service.emit(self.event)


class Shutdown(EmitEvent):
    """End the launch."""

    def __init__(self, *, reason: str = "reason not given", **kwargs: Any) -> None:
        """Take the reason that is printed."""
        super().__init__(event=events.Shutdown(reason=reason), **kwargs)


class TimerAction(Action):
    """Visit entities after `period` seconds, unless the launch ends before."""

    def __init__(self, *, period: Any, actions: Iterable[Any], **kwargs: Any) -> None:
        """Take seconds, as a number or as substitutions, and the entities."""
        super().__init__(**kwargs)
        self.period, self.actions = period, list(actions)

    def execute(self, context: LaunchContext) -> None:
        """Start the timer."""
        period = self.period
        if not isinstance(period, (int, float)):
            period = text(period, context, "period")
        try:
            context.service.after(float(period), self.actions)
        except ValueError:
            raise LaunchError(f"period must be seconds, got '{period}'") from None

    def parts(self) -> list[Any]:
        """The entities."""
        return list(self.actions)
