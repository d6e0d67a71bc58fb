"""Writes a rosbag2 folder: an MCAP file, metadata.yaml and manifest.json."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import IO, Any, cast

import yaml
from mcap.writer import CompressionType, Writer

from bench_tasks.bags import cdr
from bench_tasks.bags.interfaces import DEFINITIONS, schema_text
from bench_tasks.errors import BenchError, UsageError
from bench_tasks.manifest import FORMAT_VERSION, utc_now, writable_folder, write_json
from bench_tasks.vocabulary import WorldState

__all__ = ["TOPICS", "BagWriter", "RecordingError"]

TOPICS = {
    "/clock": "rosgraph_msgs/msg/Clock",
    "/world/scene": "bench_interfaces/msg/Scene",
    "/world/state": "bench_interfaces/msg/WorldState",
    "/joint_states": "sensor_msgs/msg/JointState",
    "/policy/action_chunk": "bench_interfaces/msg/ActionChunk",
    "/safety/action_chunk": "bench_interfaces/msg/ActionChunk",
    "/episode/events": "bench_interfaces/msg/EpisodeEvent",
    "/episode/verdict": "bench_interfaces/msg/Verdict",
    "/talk/utterance": "bench_interfaces/msg/Utterance",
}
"""Recorded topics and their types; pictures come on `/<camera>/image_raw/compressed`."""

LATCHED = frozenset({"/world/scene", "/tf_static", "/episode/verdict"})
STATE_TOPIC = "/world/state"

CHUNK_BYTES = 64 * 1024
"""About half a second of states: what a killed recorder loses at most."""

_NEVER = "{sec: 9223372036, nsec: 854775807}"


def _qos(topic: str) -> str:
    """Offered QoS in the form that every rosbag2 reads (metadata version 8: integers)."""
    durability = 1 if topic in LATCHED else 2
    return (
        f"- history: 1\n  depth: {1 if topic in LATCHED else 100}\n  reliability: 1\n"
        f"  durability: {durability}\n  deadline: {_NEVER}\n  lifespan: {_NEVER}\n"
        f"  liveliness: 1\n  liveliness_lease_duration: {_NEVER}\n"
        "  avoid_ros_namespace_conventions: false"
    )


class RecordingError(BenchError):
    """The recording cannot go on (a full disk): no later episode can be recorded either."""


class _File:
    """An unbuffered file that writes all or raises: what is in it survives a SIGKILL."""

    def __init__(self, path: Path) -> None:
        self.file = open(path, "xb", buffering=0)  # noqa: SIM115

    def write(self, data: bytes) -> int:
        view = memoryview(data)
        while view:
            count = self.file.write(view)
            if not count:
                raise OSError(errno.ENOSPC, "No space left on device")
            view = view[count:]
        return len(data)

    def tell(self) -> int:
        return self.file.tell()

    def flush(self) -> None:
        """Nothing is held back."""

    def sync(self) -> None:
        """Wait until the disk has it: what is called complete survives a power failure."""
        os.fsync(self.file.fileno())

    def close(self) -> None:
        self.file.close()


class BagWriter:
    """A rosbag2 folder being written. `close` completes it; without, its chunks can be read."""

    def __init__(self, path: Path, manifest: dict[str, Any] | None = None) -> None:
        """Begin the bag `path`. UsageError when it exists or cannot be made.

        `manifest` is what to keep in manifest.json besides status, counts and hash.
        """
        self.path = path
        if path.exists():
            raise UsageError(f"{path} exists: a recording is never overwritten")
        writable_folder(path)
        self._mcap = path / f"{path.name}_0.mcap"
        self.manifest = {**(manifest or {}), "format_version": FORMAT_VERSION}
        self.manifest |= {"status": "recording", "started": utc_now()}
        self._save()
        self._schemas: dict[str, int] = {}
        self._channels: dict[str, tuple[int, str]] = {}
        self.counts: dict[str, int] = {}
        self._first_ns: int | None = None
        self._log_ns = -1
        self._hash = cdr.StateHash()
        self._seqs: list[int] = []
        self._open = True
        self._file: _File | None = None
        try:
            self._file = _File(self._mcap)
            output = cast("IO[Any]", self._file)
            self._writer = Writer(output, CHUNK_BYTES, CompressionType.ZSTD)
            self._writer.start(profile="ros2", library="bench_tasks")
        except OSError as error:
            raise self._failed(error) from None

    def _save(self) -> None:
        write_json(self.path / "manifest.json", self.manifest)

    def _failed(self, error: OSError) -> RecordingError:
        self._open = False
        if self._file is not None:
            self._file.close()
        return RecordingError(f"cannot write {self._mcap}: {error.strerror}")

    def _channel(self, topic: str, type_name: str) -> int:
        known = self._channels.get(topic)
        if known is not None:
            if known[1] != type_name:
                raise BenchError(f"{topic} carries {known[1]}, not {type_name}")
            return known[0]
        if type_name not in self._schemas:
            text = schema_text(type_name) if type_name in DEFINITIONS else ""
            self._schemas[type_name] = self._writer.register_schema(
                type_name, "ros2msg" if text else "", text.encode()
            )
        channel = self._writer.register_channel(
            topic, "cdr", self._schemas[type_name], {"offered_qos_profiles": _qos(topic)}
        )
        self._channels[topic] = (channel, type_name)
        self.counts[topic] = 0
        return channel

    def write(self, topic: str, type_name: str, data: bytes, stamp_ns: int) -> None:
        """Record one message, its garbage tail cut if the type is known.

        Log times are unique and increasing (equal ones replay in undefined order): the stamp, or
        just behind the message before, when that is later. The publish time is the stamp itself.
        RecordingError when the disk is full, BenchError when the bytes are not of that type.
        """
        try:
            if topic == STATE_TOPIC:
                self.write_state(cdr.decode_state(data))
            else:
                self.put(topic, type_name, cdr.canonical(type_name, data), stamp_ns)
        except ValueError as error:
            raise BenchError(f"{topic}: {error}") from None

    def write_state(self, state: WorldState) -> None:
        """Record one state and take it into the hash; errors as of `write`."""
        data = cdr.encode_state(state)
        self._hash.add_encoded(data)
        self._seqs = [self._seqs[0] if self._seqs else state.seq, state.seq]
        self.put(STATE_TOPIC, TOPICS[STATE_TOPIC], data, state.stamp_ns)

    def put(self, topic: str, type_name: str, data: bytes, stamp_ns: int) -> None:
        """Record bytes that are canonical already; otherwise as `write`."""
        if not self._open:
            raise BenchError(f"{self.path} is no longer being recorded")
        if stamp_ns < 0:
            raise BenchError(f"{topic}: stamp {stamp_ns} ns lies before the episode")
        self._log_ns = max(self._log_ns + 1, stamp_ns)
        if self._first_ns is None:
            self._first_ns = self._log_ns
        try:
            channel = self._channel(topic, type_name)
            self._writer.add_message(channel, self._log_ns, data, stamp_ns, self.counts[topic])
        except OSError as error:
            raise self._failed(error) from None
        self.counts[topic] += 1

    def flush(self) -> None:
        """Put down what was recorded so far: a process that is killed loses what comes after it."""
        if not self._open:
            return
        try:
            self._writer.flush()
        except OSError as error:
            raise self._failed(error) from None

    @property
    def states(self) -> int:
        """States recorded so far."""
        return self.counts.get(STATE_TOPIC, 0)

    @property
    def state_hash(self) -> str:
        """Hash of the state track so far."""
        return self._hash.hexdigest()

    def close(self, status: str = "complete", **more: Any) -> None:
        """Finish the file, write metadata.yaml, and say in the manifest how it went.

        `more` is added to the manifest. A second call does nothing.
        """
        if not self._open:
            return
        self._open = False
        try:
            assert self._file is not None
            self._writer.finish()
            self._file.sync()
            self._file.close()
            self._metadata()
        except OSError as error:
            raise self._failed(error) from None
        self.manifest |= more
        self.manifest |= {
            "status": status, "finished": utc_now(), "state_hash": self.state_hash,
            "message_counts": dict(sorted(self.counts.items())),
            "first_seq": self._seqs[0] if self._seqs else None,
            "last_seq": self._seqs[1] if self._seqs else None,
        }  # fmt: skip
        self._save()

    def _metadata(self) -> None:
        """Write metadata.yaml, version 8: what Humble and all later distributions read."""
        start = self._first_ns or 0
        span = {
            "starting_time": {"nanoseconds_since_epoch": start},
            "duration": {"nanoseconds": max(0, self._log_ns - start)},
            "message_count": sum(self.counts.values()),
        }
        topics = [
            {
                "topic_metadata": {
                    "name": topic, "type": type_name, "serialization_format": "cdr",
                    "offered_qos_profiles": _qos(topic), "type_description_hash": "",
                },
                "message_count": self.counts[topic],
            }
            for topic, (_, type_name) in self._channels.items()
        ]  # fmt: skip
        info = {
            "version": 8, "storage_identifier": "mcap", **span,
            "relative_file_paths": [self._mcap.name], "topics_with_message_count": topics,
            "files": [{"path": self._mcap.name, **span}], "compression_format": "",
            "compression_mode": "", "custom_data": None, "ros_distro": "bench_tasks",
        }  # fmt: skip
        text = yaml.safe_dump({"rosbag2_bagfile_information": info}, sort_keys=False)
        (self.path / "metadata.yaml").write_text(text)

    def __enter__(self) -> BagWriter:
        """The writer itself."""
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Complete the bag, or mark it as interrupted when the block failed."""
        if kind is None:
            self.close()
        else:
            self.close("interrupted", error=str(error))
