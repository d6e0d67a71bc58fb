"""Unitree's topics as ROS 2 sees them: the second way to the robot, with its own `unitree_hg`.

What DDS carries is the same to the byte, so messages come and go serialized and `unitree_hg.py`
reads them; the messages of a sourced unitree_ros2 are needed for the types alone. In ROS 2 the
topics have no rt/ before and the types no _ behind.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.utilities import get_rmw_implementation_identifier

from bench_tasks.errors import UsageError
from bench_tasks.robots.unitree_hg import TOPICS
from hardware.unitree.guard import ros_version

__all__ = ["VERSION", "RosTopics", "ros_names"]

VERSION = ros_version(get_rmw_implementation_identifier())
"""Of the CycloneDDS that this ROS 2 speaks by, or else its middleware."""

PACKAGE = "unitree_hg"
KEPT = 16
HEARD = QoSProfile(depth=KEPT, reliability=ReliabilityPolicy.BEST_EFFORT)
SENT = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)


def ros_names(topic: str) -> tuple[str, str]:
    """A DDS topic's name in ROS 2, and that of its message."""
    return topic.removeprefix("rt"), TOPICS[topic].removesuffix("_")


class RosTopics:
    """As `unitree_dds.Dds`: messages as bytes."""

    def __init__(self, domain: int, out: tuple[str, ...], into: tuple[str, ...]) -> None:
        """Join the ROS domain. UsageError when the robot's messages are not to be found."""
        try:
            messages = importlib.import_module(f"{PACKAGE}.msg")
        except ImportError as error:
            raise UsageError(f"ROS 2 does not know {PACKAGE}, the robot's messages: source "
                             f"unitree_ros2's install/setup.bash ({error})") from None  # fmt: skip
        self._context = Context()
        rclpy.init(context=self._context, domain_id=domain)
        self._node = node = Node(
            f"unitree_bus_{os.getpid()}", context=self._context, start_parameter_services=False,
            use_global_arguments=False, enable_rosout=False,
        )  # fmt: skip
        self._come: dict[str, deque[bytes]] = {topic: deque(maxlen=KEPT) for topic in into}
        self._writers: dict[str, Any] = {}
        for topic in out:
            name, kind = ros_names(topic)
            self._writers[topic] = node.create_publisher(getattr(messages, kind), name, SENT)
        for topic in into:
            name, kind = ros_names(topic)
            node.create_subscription(
                getattr(messages, kind), name, _into(self._come[topic]), HEARD, raw=True
            )
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(node)
        # To look at what has come at each turn of the bus would take longer than the turn.
        self._spinner = threading.Thread(target=self._executor.spin, daemon=True)
        self._spinner.start()

    def write(self, topic: str, data: bytes) -> None:
        """Send one message."""
        self._writers[topic].publish(data)

    def take(self, topic: str) -> list[bytes]:
        """The messages that have come since the last call, oldest first."""
        come = self._come[topic]
        return [come.popleft() for _ in range(len(come))]

    def close(self) -> None:
        """Leave the ROS domain."""
        self._executor.shutdown()
        self._spinner.join()
        rclpy.shutdown(context=self._context)


def _into(come: deque[bytes]) -> Callable[[bytes], None]:
    """A callback that keeps what comes: rclpy looks at signatures, which `append` has not."""
    return lambda data: come.append(data)
