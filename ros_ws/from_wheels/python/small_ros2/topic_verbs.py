"""`ros2 topic list|echo|hz|pub`."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from typing import Any

__all__ = ["add_parser"]


def _run(name: str) -> Callable[[argparse.Namespace], int]:
    """The function of `topic_run`, loaded when it is called: loading DDS takes its time."""
    return lambda args: getattr(importlib.import_module("small_ros2.topic_run"), name)(args)


def add_parser(commands: Any) -> None:
    """Add the command."""
    topic = commands.add_parser("topic", help="look at topics, and publish on them")
    verbs = topic.add_subparsers(dest="verb", required=True, metavar="VERB")
    listing = verbs.add_parser("list", help="list topics")
    listing.add_argument("-t", "--show-types", action="store_true")
    listing.set_defaults(run=_run("run_list"))
    echo = verbs.add_parser("echo", help="print messages")
    echo.add_argument("topic")
    echo.add_argument("type", nargs="?", help="message type; without it, that of the publishers")
    echo.add_argument("--once", action="store_true", help="end after one message")
    echo.add_argument("--full-length", "-f", action="store_true", help="do not shorten arrays")
    echo.set_defaults(run=_run("run_echo"))
    hz = verbs.add_parser("hz", help="measure the rate of a topic")
    hz.add_argument("topic")
    hz.set_defaults(run=_run("run_hz"))
    pub = verbs.add_parser("pub", help="publish a message")
    pub.add_argument("topic")
    pub.add_argument("type", help="like std_msgs/msg/Bool")
    pub.add_argument("values", nargs="?", default="", help="of its fields, like '{data: true}'")
    pub.add_argument("--once", "-1", action="store_true", help="once, when somebody listens")
    pub.add_argument("--rate", "-r", type=_rate, default=1.0, help="messages a second, else")
    pub.set_defaults(run=_run("run_pub"))


def _rate(text: str) -> float:
    rate = float(text)
    if not 0.0 < rate <= 1000.0:
        raise ValueError(text)
    return rate
