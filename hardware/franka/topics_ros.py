"""What a driver's process hears on ROS topics: the newest message of each, as bytes.

They are read only when they are looked at, since a controller manager says a thousand things a
second. A thread of its own listens; to look at what has come costs nothing.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from typing import Any

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message

__all__ = ["Topics", "ahead_of_others", "under"]

NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
LEAVE_S = 2.0


def under(namespace: str, name: str) -> str:
    """The full name of a topic or action; one that begins with / has it already."""
    return name if name.startswith("/") else f"{namespace.rstrip('/')}/{name}"


def ahead_of_others() -> None:
    """Where that is allowed, let this process run before all that is not real-time.

    Before it joins ROS. It never waits for a lock that others hold, then: Fast DDS's shared memory
    has such locks, and on a busy machine who holds one may not run for seconds. UDP has none.
    """
    os.environ.setdefault("FASTDDS_BUILTIN_TRANSPORTS", "UDPv4")
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


class Topics:
    """A node and the newest of what it hears."""

    def __init__(self, name: str) -> None:
        """Join the ROS domain of this process's environment."""
        rclpy.init(args=[])
        self.node = Node(
            f"{name}_{os.getpid()}", start_parameter_services=False, use_global_arguments=False,
            enable_rosout=False,
        )  # fmt: skip
        self._newest: dict[str, tuple[bytes, int]] = {}
        self._read: dict[str, tuple[bytes, Any]] = {}
        self._kinds: dict[str, Any] = {}
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self.node)
        self._spinner = threading.Thread(target=self._executor.spin, daemon=True)

    def hear(self, kind: Any, topic: str) -> None:
        """Listen to a topic, whoever publishes it reliably or not."""
        self._kinds[topic] = kind
        self.node.create_subscription(
            kind, topic,
            lambda data: self._newest.__setitem__(topic, (data, time.monotonic_ns())),
            NEWEST, raw=True,
        )  # fmt: skip

    def start(self) -> None:
        """Listen from now on."""
        self._spinner.start()

    def newest(self, topic: str) -> tuple[Any, int] | None:
        """The newest message of a topic and when it came (monotonic ns); None: nothing has come."""
        found = self._newest.get(topic)
        if found is None:
            return None
        data, at_ns = found
        last = self._read.get(topic)
        if last is None or last[0] is not data:
            last = self._read[topic] = data, deserialize_message(data, self._kinds[topic])
        return last[1], at_ns

    def close(self) -> None:
        """Leave the ROS domain."""
        self._executor.shutdown()
        self._spinner.join(LEAVE_S)
        rclpy.try_shutdown()
