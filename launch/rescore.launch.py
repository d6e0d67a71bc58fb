"""Score the recordings of a folder again, offline, and write the report page anew."""

import sys
from pathlib import Path

from launch import LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    ExecuteProcess,
    OpaqueFunction,
    RegisterEventHandler,
)
from launch.event_handlers import OnProcessExit
from launch.substitutions import LaunchConfiguration

from bench_tasks.commands.launch_args import refuse_undeclared
from bench_tasks.errors import BenchError


def steps(context):
    """Score, then write the page; the page is written for failed episodes, too."""
    try:
        refuse_undeclared(sys.argv, Path(__file__).name, ("dir",))
    except BenchError as error:
        sys.stderr.write(f"rescore.launch.py: {error}\n")
        raise SystemExit(2) from None
    folder = Path(LaunchConfiguration("dir").perform(context))
    if not folder.is_dir():
        sys.stderr.write(f"rescore.launch.py: there is no folder {folder}\n")
        raise SystemExit(2)
    command = [sys.executable, "-m", "bench_tasks.cli"]
    score = ExecuteProcess(cmd=[*command, "score", str(folder)], name="score", output="screen")
    report = ExecuteProcess(cmd=[*command, "report", str(folder)], name="report", output="screen")

    def after_score(event, _):
        # Status 1 says that some episode has no verdict: that is for the page to show.
        return [report] if event.returncode in (0, 1) else []

    return [
        RegisterEventHandler(OnProcessExit(target_action=score, on_exit=after_score)),
        score,
    ]


def generate_launch_description():
    """One argument: the folder."""
    return LaunchDescription(
        [
            DeclareLaunchArgument("dir", description="a run's output folder, or one above several"),
            OpaqueFunction(function=steps),
        ]
    )
