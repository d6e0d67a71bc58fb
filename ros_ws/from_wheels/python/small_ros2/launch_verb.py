"""`ros2 launch` and `ros2 run`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from launch.actions import DeclareLaunchArgument
from launch.entity import LaunchDescription
from launch.errors import LaunchError
from launch.launch_description_sources import load
from launch.service import LaunchService

from small_ros2.packages import choices, executable_of, launch_file_of

__all__ = ["add_parsers", "declared", "parse_arguments"]


def add_parsers(commands: Any) -> None:
    """Add the two commands."""
    launch = commands.add_parser("launch", help="run a launch file")
    launch.add_argument("package", help="package name, or the path of a launch file")
    launch.add_argument(
        "words", nargs=argparse.REMAINDER, metavar="FILE [name:=value ...]",
        help="launch file in the package, then its arguments; -s or --show-args lists them",
    )
    launch.add_argument("-s", "--show-args", "--show-arguments", action="store_true",
                        help="list the launch file's arguments instead of running it")
    launch.set_defaults(run=run_launch)
    run = commands.add_parser("run", help="run an executable of a package")
    run.add_argument("package")
    run.add_argument("executable")
    run.add_argument("arguments", nargs=argparse.REMAINDER)
    run.set_defaults(run=run_executable)


def run_executable(args: argparse.Namespace) -> int:
    """Become the executable."""
    path = str(executable_of(args.package, args.executable))
    os.execv(path, [path, *args.arguments])
    return 0


def parse_arguments(words: list[str]) -> dict[str, str]:
    """name:=value pairs; LaunchError for anything else."""
    values: dict[str, str] = {}
    for word in words:
        name, separator, value = word.partition(":=")
        if not separator or not name:
            raise LaunchError(f"'{word}' is no launch argument; write name:=value")
        values[name] = value
    return values


def declared(entity: Any) -> dict[str, DeclareLaunchArgument]:
    """The arguments that a description and what it includes declare; the first of a name wins."""
    found: dict[str, DeclareLaunchArgument] = {}
    for part in entity.parts():
        if isinstance(part, DeclareLaunchArgument):
            found.setdefault(part.name, part)
        else:
            for name, argument in declared(part).items():
                found.setdefault(name, argument)
    return found


def show(arguments: dict[str, DeclareLaunchArgument]) -> None:
    """List the arguments."""
    print("Arguments (pass arguments as '<name>:=<value>'):")
    for argument in arguments.values():
        print(f"\n    '{argument.name}':")
        if argument.description:
            print(f"        {argument.description}")
        if argument.choices is not None:
            print(f"        valid choices: {', '.join(argument.choices)}")
        if argument.default_value is None:
            print("        (required)")
        else:
            print(f"        (default: '{argument.describe_default()}')")
    if not arguments:
        print("\n    none")


def check(arguments: dict[str, DeclareLaunchArgument], given: dict[str, str]) -> None:
    """LaunchError for an unknown argument or a value that is no valid choice."""
    for name, value in given.items():
        if name not in arguments:
            raise LaunchError(f"unknown argument '{name}'; known: {choices(arguments)}")
        valid = arguments[name].choices
        if valid is not None and value not in valid:
            raise LaunchError(f"{name}:={value} is not valid; choices: {', '.join(valid)}")


def run_launch(args: argparse.Namespace) -> int:
    """Run a launch file, or show its arguments."""
    words = list(args.words)
    show_only = args.show_args
    for flag in ("-s", "--show-args", "--show-arguments"):
        if flag in words:
            words.remove(flag)
            show_only = True
    asks_help = "-h" in words or "--help" in words
    words = [word for word in words if word not in ("-h", "--help")]
    if os.sep in args.package or args.package.endswith(".py"):
        path = Path(args.package)
        if not path.is_file():
            raise LaunchError(f"launch file '{path}' does not exist")
    else:
        file = words.pop(0) if words else ""
        if not file or ":=" in file:
            file = ""
        path = launch_file_of(args.package, file)
    given = parse_arguments(words)
    description: LaunchDescription = load(str(path))
    arguments = declared(description)
    if asks_help:
        print(f"usage: ros2 launch {args.package} {path.name} [name:=value ...]\n"
              "       --show-args lists the arguments, as here, and runs nothing\n")
    if show_only or asks_help:
        show(arguments)
        return 0
    check(arguments, given)
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    return LaunchService().run(description, given)
