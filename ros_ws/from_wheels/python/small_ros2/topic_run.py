"""What `ros2 topic list|echo|hz|pub` do."""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

import rclpy
import yaml
from launch.errors import LaunchError
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions

from small_ros2.graph import offered_qos, settle, topic_type
from small_ros2.messages import fill, message_class, values_of

__all__ = ["as_plain", "node", "run_echo", "run_hz", "run_list", "run_pub"]

WINDOW = 10_000
LINGER_S = 1.0
"""After the only message, for who is found later than the first listener."""


@contextlib.contextmanager
def node(name: str) -> Iterator[Any]:
    """A node that goes away at the end.

    Signals are ours: rclpy's handler would take the context away from under what is being done.
    """
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    try:
        made = rclpy.create_node(name, start_parameter_services=False, enable_rosout=False)
        yield made
        made.destroy_node()
    finally:
        rclpy.try_shutdown()


def run_list(args: argparse.Namespace) -> int:
    """List the topics."""
    with node("small_ros2_topic_list") as this:
        for name, kind in sorted(settle(this).items()):
            print(f"{name} [{kind}]" if args.show_types else name)
    return 0


def as_plain(value: Any, limit: int | None) -> Any:
    """A message as dictionaries and lists; sequences are cut after `limit` items."""
    if hasattr(value, "get_fields_and_field_types"):
        return {
            field: as_plain(getattr(value, field), limit)
            for field in value.get_fields_and_field_types()
        }
    if isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, (bytes, bytearray)):
        value = list(value)
    if hasattr(value, "__len__"):
        cut = limit is not None and len(value) > limit
        shown = [as_plain(item, limit) for item in (value[:limit] if cut else value)]
        return [*shown, "..."] if cut else shown
    return value.item() if hasattr(value, "item") else value


def run_echo(args: argparse.Namespace) -> int:
    """Print messages as YAML until interrupted."""
    limit = None if args.full_length else 128
    with node("small_ros2_topic_echo") as this:
        kind = args.type or topic_type(this, args.topic)
        seen = 0

        def show(message: Any) -> None:
            nonlocal seen
            if not (args.once and seen):
                print(yaml.safe_dump(as_plain(message, limit), sort_keys=False) + "---", flush=True)
            seen += 1

        this.create_subscription(
            message_class(kind), args.topic, show, offered_qos(this, args.topic)
        )
        while rclpy.ok() and not (args.once and seen):
            rclpy.spin_once(this, timeout_sec=0.2)
    return 0


def run_hz(args: argparse.Namespace) -> int:
    """Print the rate once a second until interrupted."""
    with node("small_ros2_topic_hz") as this:
        kind = message_class(topic_type(this, args.topic))
        times: deque[float] = deque(maxlen=WINDOW)
        this.create_subscription(
            kind, args.topic, lambda _: times.append(time.monotonic()),
            offered_qos(this, args.topic), raw=True,
        )
        due, told = time.monotonic() + 1.0, 0
        while rclpy.ok():
            rclpy.spin_once(this, timeout_sec=0.2)
            if time.monotonic() < due:
                continue
            due += 1.0
            if len(times) < 2 or len(times) == told and len(times) < WINDOW:
                print(f"no new messages on {args.topic}", flush=True)
                continue
            told = len(times)
            stamps = list(times)
            gaps = [b - a for a, b in zip(stamps, stamps[1:], strict=False)]
            mean = statistics.fmean(gaps)
            if mean <= 0:
                raise LaunchError("the clock stands still")
            print(
                f"average rate: {1 / mean:.3f}\n\tmin: {min(gaps):.3f}s max: {max(gaps):.3f}s"
                f" std dev: {statistics.pstdev(gaps):.5f}s window: {len(stamps)}", flush=True,
            )
    return 0


def run_pub(args: argparse.Namespace) -> int:
    """Publish once, as soon as somebody listens, or on and on until interrupted."""
    message = fill(message_class(args.type)(), values_of(args.values))
    # A listener of any kind gets this, and one that is found a moment late as well.
    qos = QoSProfile(
        depth=10, reliability=ReliabilityPolicy.RELIABLE,
        durability=DurabilityPolicy.TRANSIENT_LOCAL,
    )
    with node("small_ros2_topic_pub") as this:
        publisher = this.create_publisher(type(message), args.topic, qos)
        said = time.monotonic() + 1.0
        while args.once and rclpy.ok() and not publisher.get_subscription_count():
            time.sleep(0.01)
            if time.monotonic() >= said:
                print(f"nobody listens to {args.topic} yet ...", flush=True)
                said = float("inf")
        count = 0
        while rclpy.ok() and not (args.once and count):
            count += 1
            publisher.publish(message)
            print(f"publishing #{count}: {message!r}", flush=True)
            time.sleep(LINGER_S if args.once else 1.0 / args.rate)
    return 0
