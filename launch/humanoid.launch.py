"""Evaluate a planner and a policy on the humanoid's tasks: bimanual.launch.py, for the G1."""

import sys
from pathlib import Path

from launch import LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    IncludeLaunchDescription,
    OpaqueFunction,
    SetLaunchConfiguration,
)
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration

from bench_tasks.commands import launch_args
from bench_tasks.commands.humanoid_args import ROBOTS, humanoid_tasks
from bench_tasks.errors import BenchError

BIMANUAL = Path(__file__).resolve().with_name("bimanual.launch.py")


def checked(context):
    """The tasks, all of them the humanoid's; a mistake ends the launch with status 2."""
    names, robot = (LaunchConfiguration(name).perform(context) for name in ("tasks", "robot"))
    declared = (*launch_args.ARGUMENTS, *launch_args.RENAMED)
    try:
        launch_args.refuse_undeclared(sys.argv, Path(__file__).name, declared)
        return [
            SetLaunchConfiguration("tasks", humanoid_tasks(names, robot)),
            SetLaunchConfiguration("launch_file", Path(__file__).name),
        ]
    except BenchError as error:
        sys.stderr.write(f"humanoid.launch.py: {' '.join(str(error).split())}\n")
        raise SystemExit(2) from None


def generate_launch_description():
    """Two arguments with other defaults; all others are those of bimanual.launch.py."""
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "tasks", default_value="all",
                description="tasks of the humanoid, separated by commas, or all",
            ),
            DeclareLaunchArgument(
                "robot", default_value=ROBOTS[0], description="whose body: " + ", ".join(ROBOTS)
            ),
            OpaqueFunction(function=checked),
            IncludeLaunchDescription(PythonLaunchDescriptionSource(str(BIMANUAL))),
        ]
    )
