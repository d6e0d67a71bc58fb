"""Topics of the running system, and subscriptions that match what publishers offer."""

from __future__ import annotations

import time
from typing import Any

from launch.errors import LaunchError
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from small_ros2.packages import choices

__all__ = ["OWN", "offered_qos", "settle", "topic_type", "topic_types"]

QUIET_S = 1.0
SETTLE_S = 3.0
OWN = ("/parameter_events", "/rosout")


def topic_types(node: Any) -> dict[str, str]:
    """Topic -> type, for topics with one type."""
    return {name: types[0] for name, types in node.get_topic_names_and_types() if len(types) == 1}


def settle(node: Any, seconds: float = SETTLE_S) -> dict[str, str]:
    """Topics once discovery brings nothing new for a second, or nothing at all in `seconds`."""
    found: dict[str, str] = {}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.05)
        now = topic_types(node)
        if now != found:
            found = now
            if set(now) - set(OWN):
                end = time.monotonic() + QUIET_S
    return found


def topic_type(node: Any, topic: str, seconds: float = 5.0) -> str:
    """The type of a topic, waiting for it; LaunchError names the topics there are."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = topic_types(node)
        if topic in found:
            return found[topic]
        time.sleep(0.05)
    raise LaunchError(f"topic '{topic}' not seen in {seconds:.0f} s; there are: "
                      f"{choices(topic_types(node))}")


def offered_qos(node: Any, topic: str, depth: int = 1000) -> QoSProfile:
    """The strongest profile that every present publisher of the topic fulfils."""
    offers = [info.qos_profile for info in node.get_publishers_info_by_topic(topic)]
    reliable = offers and all(q.reliability == ReliabilityPolicy.RELIABLE for q in offers)
    latched = offers and all(q.durability == DurabilityPolicy.TRANSIENT_LOCAL for q in offers)
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=depth,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
    )
