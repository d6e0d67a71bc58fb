"""The command `ros2` where no ROS distribution is sourced."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence

__all__ = ["main"]


def parser() -> argparse.ArgumentParser:
    """The command line."""
    from small_ros2 import bag_verbs, launch_verb, service_verbs, topic_verbs

    top = argparse.ArgumentParser(
        prog="ros2",
        description="A small ros2 for machines without a ROS distribution. Where one is sourced,"
        " its own ros2 is used instead.",
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    launch_verb.add_parsers(commands)
    bag_verbs.add_parser(commands)
    topic_verbs.add_parser(commands)
    service_verbs.add_parser(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; a mistake of the user gives one line and status 2.

    SIGINT and SIGTERM end it quietly, with 128 plus the signal's number, where the command has no
    end of its own for them.
    """
    signal.signal(signal.SIGTERM, _end)
    try:
        # Imported here, so that Ctrl-C in the middle of it ends the command as it always does.
        from launch.errors import LaunchError

        args = parser().parse_args(sys.argv[1:] if arguments is None else arguments)
        try:
            return args.run(args)
        except LaunchError as error:
            print(f"ros2 {args.command}: {error}", file=sys.stderr)
            return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 141


def _end(number: int, _: object) -> None:
    """Leave from wherever the command is; what it holds is let go of on the way."""
    raise SystemExit(128 + number)
