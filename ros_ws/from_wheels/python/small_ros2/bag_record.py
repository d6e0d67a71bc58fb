"""Record topics into a rosbag2 folder with MCAP storage."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import rclpy
import yaml
from launch.errors import LaunchError
from mcap.writer import CompressionType, Writer
from rclpy.signals import SignalHandlerOptions

from small_ros2.graph import OWN, offered_qos, topic_types
from small_ros2.messages import definition_of, message_class

__all__ = ["record"]

LOOK_EVERY_S = 0.2
ENDLESS = {"sec": 9223372036, "nsec": 854775807}


class Recorder:
    """One MCAP file and a subscription for every topic that appears."""

    def __init__(self, folder: Path, wanted: list[str] | None) -> None:
        """Record `wanted`, or all topics when it is None; LaunchError if the folder exists."""
        if folder.exists():
            raise LaunchError(f"output folder '{folder}' already exists")
        try:
            folder.mkdir(parents=True)
            self.path = folder / f"{folder.name}_0.mcap"
            self.stream = self.path.open("wb")
        except OSError as error:
            raise LaunchError(f"cannot write to '{folder}': {error.strerror}") from None
        self.folder, self.wanted = folder, wanted
        self.writer = Writer(self.stream, compression=CompressionType.ZSTD)
        self.writer.start(profile="ros2", library="bench_tasks small ros2")
        self.channels: dict[str, int] = {}
        self.details: dict[str, tuple[str, str]] = {}
        self.counts: dict[str, int] = {}
        self.start_ns, self.end_ns = 0, 0

    def look(self, node: Any) -> None:
        """Subscribe to topics that have appeared."""
        for topic, kind in topic_types(node).items():
            wanted = topic not in OWN if self.wanted is None else topic in self.wanted
            if wanted and topic not in self.channels and node.count_publishers(topic):
                self.subscribe(node, topic, kind)

    def subscribe(self, node: Any, topic: str, kind: str) -> None:
        """Begin to record one topic."""
        qos = offered_qos(node, topic)
        offered = yaml.safe_dump([{
            "history": int(qos.history), "depth": qos.depth,
            "reliability": int(qos.reliability), "durability": int(qos.durability),
            "deadline": dict(ENDLESS), "lifespan": dict(ENDLESS), "liveliness": 1,
            "liveliness_lease_duration": dict(ENDLESS),
            "avoid_ros_namespace_conventions": False,
        }], sort_keys=False)
        schema = self.writer.register_schema(kind, "ros2msg", definition_of(kind).encode())
        self.channels[topic] = self.writer.register_channel(
            topic, "cdr", schema, {"offered_qos_profiles": offered}
        )
        self.details[topic] = (kind, offered)
        self.counts[topic] = 0
        node.create_subscription(
            message_class(kind), topic, lambda data, topic=topic: self.keep(topic, data), qos,
            raw=True,
        )
        print(f"[INFO] [rosbag2_recorder]: Subscribed to topic '{topic}'", flush=True)

    def keep(self, topic: str, data: bytes) -> None:
        """Write one message as it came."""
        now = time.time_ns()
        self.start_ns = self.start_ns or now
        self.end_ns = now
        self.writer.add_message(
            self.channels[topic], log_time=now, publish_time=now, data=data,
            sequence=self.counts[topic],
        )
        self.counts[topic] += 1

    def close(self) -> None:
        """Finish the file and describe it."""
        self.writer.finish()
        self.stream.close()
        total = sum(self.counts.values())
        start = {"nanoseconds_since_epoch": self.start_ns}
        duration = {"nanoseconds": self.end_ns - self.start_ns}
        information = {
            "version": 5,
            "storage_identifier": "mcap",
            "duration": duration,
            "starting_time": start,
            "message_count": total,
            "topics_with_message_count": [
                {
                    "topic_metadata": {
                        "name": topic, "type": kind, "serialization_format": "cdr",
                        "offered_qos_profiles": offered,
                    },
                    "message_count": self.counts[topic],
                }
                for topic, (kind, offered) in self.details.items()
            ],
            "compression_format": "",
            "compression_mode": "",
            "relative_file_paths": [self.path.name],
            "files": [{
                "path": self.path.name, "starting_time": start, "duration": duration,
                "message_count": total,
            }],
        }
        text = yaml.safe_dump({"rosbag2_bagfile_information": information}, sort_keys=False)
        (self.folder / "metadata.yaml").write_text(text, encoding="utf-8")


def record(folder: Path, wanted: list[str] | None) -> int:
    """Record until SIGINT or SIGTERM."""
    if wanted is not None and not wanted:
        raise LaunchError("name the topics to record, or give -a for all")
    stop: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: stop.append(number))
    recorder = Recorder(folder, wanted)
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = rclpy.create_node(
        "rosbag2_recorder", start_parameter_services=False, enable_rosout=False
    )
    due = 0.0
    try:
        while not stop:
            if time.monotonic() >= due:
                recorder.look(node)
                due = time.monotonic() + LOOK_EVERY_S
            rclpy.spin_once(node, timeout_sec=0.05)
    finally:
        recorder.close()
        node.destroy_node()
        rclpy.shutdown()
    print(f"[INFO] [rosbag2_recorder]: {sum(recorder.counts.values())} messages in {folder}")
    return 0
