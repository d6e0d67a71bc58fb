"""`ros2 bag record|info|play`: rosbag2 folders with MCAP storage."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

__all__ = ["add_parser"]


def add_parser(commands: Any) -> None:
    """Add the command."""
    bag = commands.add_parser("bag", help="record, look at and play recordings")
    verbs = bag.add_subparsers(dest="verb", required=True, metavar="VERB")
    record = verbs.add_parser("record", help="record topics until interrupted")
    record.add_argument("topics", nargs="*", help="topics to record")
    record.add_argument("-a", "--all", action="store_true", help="record every topic")
    record.add_argument("-o", "--output", help="folder to make; default: rosbag2 and the time")
    record.add_argument("-s", "--storage", default="mcap", choices=["mcap"])
    record.set_defaults(run=run_record)
    info = verbs.add_parser("info", help="say what a recording holds")
    info.add_argument("bag", help="folder or .mcap file")
    info.set_defaults(run=run_info)
    play = verbs.add_parser("play", help="publish a recording")
    play.add_argument("bag", help="folder or .mcap file")
    play.add_argument("-r", "--rate", type=float, default=1.0, help="speed; default: 1")
    play.add_argument("--topics", nargs="+", help="only these")
    play.add_argument("--wait", type=float, default=3.0, metavar="SECONDS",
                      help="how long to wait for every topic to have a subscriber; default: 3")
    play.set_defaults(run=run_play)


def run_record(args: argparse.Namespace) -> int:
    """Record."""
    from small_ros2.bag_record import record  # Loading DDS takes longer than `bag info` altogether.

    output = args.output or time.strftime("rosbag2_%Y_%m_%d-%H_%M_%S")
    return record(Path(output), None if args.all else list(args.topics))


def run_info(args: argparse.Namespace) -> int:
    """Print a summary."""
    from small_ros2.bag_read import info

    print(info(Path(args.bag)))
    return 0


def run_play(args: argparse.Namespace) -> int:
    """Play."""
    from small_ros2.bag_play import play

    return play(Path(args.bag), args.rate, args.topics, args.wait)
