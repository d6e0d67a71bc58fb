"""Play a memory probe over ROS: what is said and shown on topics, and a memory that is asked."""

import os
import sys
from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, SetEnvironmentVariable, Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from bench_tasks.commands.launch_args import refuse_undeclared, variables
from bench_tasks.commands.memory_args import ARGUMENTS, read
from bench_tasks.errors import BenchError


def nodes(context):
    """Check the arguments, then start the nodes; a mistake ends the launch with status 2."""
    given = {name: LaunchConfiguration(name).perform(context) for name in ARGUMENTS}
    try:
        refuse_undeclared(sys.argv, Path(__file__).name, ARGUMENTS)
        parameters = read(given)
    except BenchError as error:
        sys.stderr.write(f"{Path(__file__).name}: {' '.join(str(error).split())}\n")
        raise SystemExit(2) from None

    def node(name, parameters):
        return Node(
            package="bench_tasks", executable=f"{name}_node", name=name, output="screen",
            parameters=[parameters], on_exit=Shutdown(reason=f"node {name} has ended"),
        )  # fmt: skip

    return [
        *(SetEnvironmentVariable(*item) for item in variables(os.environ).items()),
        node("memory", {name: parameters[name] for name in ("memory", "reader")}),
        *([node("recorder", {})] if parameters["record"] else []),
        node("probe", parameters),
    ]


def generate_launch_description():
    """Declare the arguments; all of them are checked together before the nodes start."""
    arguments = [
        DeclareLaunchArgument(name, default_value=default, description=text)
        for name, (default, text) in ARGUMENTS.items()
    ]
    return LaunchDescription([*arguments, OpaqueFunction(function=nodes)])
