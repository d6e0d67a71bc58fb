"""Evaluate a planner and a policy on bimanual tasks: the nodes of one run, then everything ends."""

import os
import sys
from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, SetEnvironmentVariable, Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from bench_tasks.commands import launch_args
from bench_tasks.errors import BenchError

CELLS = {
    "franka": ("franka_world", {
        "standin": "standin_franka", "standin_ros2": "standin_ros2_control",
    }),
    "unitree": ("unitree_world", {"standin": "standin_g1"}),
}  # fmt: skip
"""Real robot -> executables of its world, and of what stands in for it in which cell."""


def nodes(context):
    """Check the arguments, then start the nodes; a mistake ends the launch with status 2."""
    names = (*launch_args.ARGUMENTS, *launch_args.RENAMED)
    given = {name: LaunchConfiguration(name).perform(context) for name in names}
    own = Path(__file__).name
    # Who includes this one says what the user has typed.
    file = LaunchConfiguration("launch_file", default=own).perform(context)
    try:
        launch_args.refuse_undeclared(sys.argv, own, names)
        settings = launch_args.read(given)
    except BenchError as error:
        sys.stderr.write(f"{file}: {' '.join(str(error).split())}\n")
        raise SystemExit(2) from None
    config = settings.config
    clock = {"clock": settings.clock}
    execution = {
        "execution": config.execution, "policy_latency": config.policy_latency,
        "execute": config.execute, "policy_deadline_s": config.policy_deadline_s,
    }  # fmt: skip
    streams = {"streams": settings.streams} if settings.streams else {}
    recorded = 1 if config.record else 0

    def node(name, parameters, remappings=(), executable=""):
        return Node(
            package="bench_tasks", executable=f"{executable or name}_node", name=name,
            output="screen", parameters=[parameters], remappings=list(remappings),
            on_exit=Shutdown(reason=f"node {name} has ended"),
        )  # fmt: skip

    variables = [
        SetEnvironmentVariable(*item) for item in launch_args.variables(os.environ).items()
    ]
    pictures = {**streams, "image_size": config.image_size}
    # With a safety node the world is told what that lets through, and nothing else.
    checked = [("/policy/action_chunk", "/safety/action_chunk")] if settings.safety else []
    # Arms that stay would mislead a policy that goes on from where they are.
    moving = [("/world/state", "/safety/imagined_state")] if settings.dry_run else []
    if settings.robot == "sim":
        seen = {
            "viewer": settings.viewer, "objects": config.objects, "dynamics": config.dynamics,
        }  # fmt: skip
        started = [node("world", {**clock, **pictures, **seen}, checked)]
    else:
        cell = {"cell": settings.cell}
        world, standins = CELLS[settings.robot]
        started = [
            node("world", {**pictures, **cell}, (), world),
            # Who knows how the objects are to lie; the stand-in also puts them there.
            node("layout", {"objects": config.objects}, (),
                 standins.get(settings.cell, "layout")),
        ]  # fmt: skip
    started += [
        node("planner", {"planner": config.planner}),
        # Its chunks go to world (or safety) and recorder.
        node(
            "policy",
            {"policy": config.policy, "listeners": 1 + recorded, **execution, **clock},
            moving,
        ),
    ]
    if settings.safety:
        safety = {
            "confirm": settings.confirm, "dry_run": settings.dry_run, "limits": settings.limits,
            "cell": settings.cell,
        }  # fmt: skip
        # The world, the task node and the recorder listen to what it passes on.
        started.append(node("safety", {**safety, "listeners": 2 + recorded, **clock}))
    if config.record:
        started.append(node("recorder", {}))
    task = {
        "tasks": ",".join(config.tasks), "episodes": config.episodes, "seed": config.seed,
        "planner": config.planner, "policy": config.policy, "record": config.record,
        "latency": config.latency, "vary": ",".join(config.vary), "objects": config.objects,
        "dynamics": config.dynamics, "image_size": config.image_size,
        "robot": settings.robot, "safety": settings.safety,
        "out": str(Path(config.out).absolute()),
        "command": launch_args.summary(given, file), **execution, **clock,
        **streams,
    }  # fmt: skip
    started.append(node("task", task))
    if settings.viewer == "foxglove":
        started.append(
            Node(package="foxglove_bridge", executable="foxglove_bridge", output="screen")
        )
    return [*variables, *started]


def generate_launch_description():
    """Declare the arguments; all of them are checked together before the nodes start."""
    arguments = [
        DeclareLaunchArgument(name, default_value=default, description=text)
        for name, (default, text) in launch_args.ARGUMENTS.items()
    ]
    arguments += [
        DeclareLaunchArgument(old, default_value="", description=f"is called {new} now")
        for old, new in launch_args.RENAMED.items()
    ]
    return LaunchDescription([*arguments, OpaqueFunction(function=nodes)])
