"""ROS nodes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

import yaml
from launch.context import LaunchContext
from launch.entity import Substitution, text
from launch.errors import LaunchError
from launch.process import ExecuteProcess

from small_ros2.packages import executable_of

__all__ = ["Node"]


class Node(ExecuteProcess):
    """Start a node: an executable of a package, with name, parameters and remappings."""

    # Python turns SIGINT into a traceback while a node is still being imported. One that never
    # gets as far as to listen is ended by the SIGTERM that comes next.
    deaf = True

    def __init__(
        self, *, executable: Any, package: Any = None, name: Any = None, namespace: Any = None,
        exec_name: Any = None, parameters: Iterable[Any] | None = None,
        remappings: Iterable[tuple[Any, Any]] | None = None, arguments: Iterable[Any] | None = None,
        ros_arguments: Iterable[Any] | None = None, **kwargs: Any,
    ) -> None:
        """`parameters` holds dictionaries (values may be substitutions) and YAML file paths."""
        super().__init__(cmd=[], name=exec_name, **kwargs)
        self.executable, self.package = executable, package
        self.node_name, self.namespace = name, namespace
        self.parameters = list(parameters or [])
        self.remappings = list(remappings or [])
        self.arguments, self.ros_arguments = list(arguments or []), list(ros_arguments or [])

    def command(self, context: LaunchContext) -> list[str]:
        """The executable, its arguments, and what goes after --ros-args."""
        program = text(self.executable, context, "executable")
        if self.package is not None:
            program = str(executable_of(text(self.package, context, "package"), program))
        words = [text(word, context, "arguments") for word in self.arguments]
        ros: list[str] = []
        if self.node_name is not None:
            ros += ["-r", f"__node:={text(self.node_name, context)}"]
        if self.namespace is not None:
            ros += ["-r", f"__ns:={self.absolute(text(self.namespace, context))}"]
        for given in self.parameters:
            ros += ["--params-file", self.parameter_file(given, context)]
        for old, new in self.remappings:
            ros += ["-r", f"{text(old, context)}:={text(new, context)}"]
        ros += [text(word, context, "ros_arguments") for word in self.ros_arguments]
        return [program, *words, *(["--ros-args", *ros] if ros else [])]

    @staticmethod
    def absolute(namespace: str) -> str:
        """A namespace with its leading slash."""
        return namespace if namespace.startswith("/") else f"/{namespace}"

    def parameter_file(self, given: Any, context: LaunchContext) -> str:
        """Path of a YAML file with these parameters."""
        if not isinstance(given, dict):
            if not isinstance(given, (str, PurePath, Substitution, list, tuple)):
                raise LaunchError(f"parameters must be dictionaries or file paths, got {given!r}")
            return text(given, context, "parameters")
        values = {text(name, context): parameter(value, context) for name, value in given.items()}
        with tempfile.NamedTemporaryFile(
            "w", prefix="launch_params_", suffix=".yaml", delete=False
        ) as file:
            yaml.safe_dump({"/**": {"ros__parameters": values}}, file)
        context.service.temporary.append(file.name)
        return file.name


def parameter(value: Any, context: LaunchContext) -> Any:
    """A parameter's value; what comes of substitutions is read as YAML, as the real one does."""
    if isinstance(value, dict):
        return {text(key, context): parameter(item, context) for key, item in value.items()}
    if isinstance(value, Substitution):
        return yaml.safe_load(text(value, context))
    if isinstance(value, (list, tuple)):
        if value and all(isinstance(item, (str, Substitution)) for item in value) and any(
            isinstance(item, Substitution) for item in value
        ):
            return yaml.safe_load(text(value, context))
        return [parameter(item, context) for item in value]
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, (str, bool, int, float)):
        return value
    raise LaunchError(f"a parameter cannot be {value!r}")
