"""Publish a recording, in its order and at its pace."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from launch.errors import LaunchError
from rclpy.duration import Duration
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from small_ros2.bag_read import messages, summarise
from small_ros2.messages import message_class
from small_ros2.packages import choices
from small_ros2.topic_run import node

__all__ = ["play"]

DEPTH = 1000
ACKNOWLEDGE_S = 2.0


def profile(offered: str) -> QoSProfile:
    """The profile that was recorded, as far as replaying needs it; reliable when unknown."""
    try:
        first = (yaml.safe_load(offered) or [{}])[0]
    except (yaml.YAMLError, KeyError, TypeError):
        first = {}
    latched = str(first.get("durability")) in ("transient_local", "1")
    effort = str(first.get("reliability")) in ("best_effort", "2")
    return QoSProfile(
        depth=DEPTH,
        reliability=ReliabilityPolicy.BEST_EFFORT if effort else ReliabilityPolicy.RELIABLE,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
    )


def play(bag: Path, rate: float, topics: list[str] | None, wait_s: float) -> int:
    """Publish a recording; LaunchError when it, a topic or a type is not there."""
    if not rate > 0:
        raise LaunchError(f"rate must be above 0, got {rate}")
    summary = summarise(bag)
    for topic in topics or []:
        if topic not in summary.types:
            raise LaunchError(f"topic '{topic}' is not in {bag}; it has: {choices(summary.types)}")
    chosen = topics or list(summary.types)
    classes = {topic: message_class(summary.types[topic]) for topic in chosen}
    sent = 0
    with node("rosbag2_player") as this:
        publishers: dict[str, Any] = {
            topic: this.create_publisher(kind, topic, profile(summary.qos[topic]))
            for topic, kind in classes.items()
        }
        wait_for_subscribers(publishers.values(), wait_s)
        begin, first = time.monotonic(), None
        for topic, stamp, data in messages(bag, chosen):
            first = stamp if first is None else first
            delay = begin + (stamp - first) / 1e9 / rate - time.monotonic()
            if delay > 0:
                time.sleep(delay)
            publishers[topic].publish(data)
            sent += 1
        for publisher in publishers.values():
            acknowledged(publisher)
    print(f"[INFO] [rosbag2_player]: {sent} messages played")
    return 0


def wait_for_subscribers(publishers: Iterable[Any], seconds: float) -> None:
    """Give subscribers time to be found, but no longer than it takes when all topics have one."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not all(p.get_subscription_count() for p in publishers):
        time.sleep(0.02)


def acknowledged(publisher: Any) -> None:
    """Wait, within bounds, until reliable readers have everything."""
    publisher.wait_for_all_acked(Duration(seconds=ACKNOWLEDGE_S))
