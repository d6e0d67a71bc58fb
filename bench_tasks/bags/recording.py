"""Records an episode that runs without middleware, into a bag or into a mere hash.

The recorder node feeds `BagWriter` with the bytes it receives; `BagSink` feeds it from the episode
itself. Both give the same bag.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench_tasks.bags import cdr
from bench_tasks.bags.bag_writer import TOPICS, BagWriter, RecordingError
from bench_tasks.images import DEPTH_TYPE, depth_topic, encode_depth, encode_frame, image_topic
from bench_tasks.vocabulary import (
    ActionChunk,
    CameraFrame,
    Event,
    Scene,
    Verdict,
    WorldState,
)

__all__ = ["TOPICS", "BagSink", "BagWriter", "HashSink", "RecordingError"]


class BagSink:
    """An `episode.Sink` that records into a bag; close it by `writer.close`."""

    def __init__(self, path: Path, manifest: dict[str, Any] | None = None) -> None:
        """Begin the bag `path`; errors as of `BagWriter`."""
        self.writer = BagWriter(path, manifest)
        self._scene: Scene | None = None

    def _write(self, topic: str, data: bytes, stamp_ns: int) -> None:
        self.writer.put(topic, TOPICS[topic], data, stamp_ns)

    def scene(self, scene: Scene) -> None:
        """Record the scene."""
        self._scene = scene
        self._write("/world/scene", cdr.encode_scene(scene), 0)

    def state(self, state: WorldState) -> None:
        """Record one state with its clock and joint states."""
        if self._scene is None:
            raise ValueError("the scene comes before the first state")
        stamp = state.stamp_ns
        self._write("/clock", cdr.encode_clock(stamp), stamp)
        self.writer.write_state(state)
        joints = cdr.encode_joint_state(state, self._scene.joint_names)
        self._write("/joint_states", joints, stamp)

    def chunk(self, chunk: ActionChunk, stamp_ns: int) -> None:
        """Record actions that were asked for."""
        period = self._scene.control_period_ns if self._scene else 0
        self._write("/policy/action_chunk", cdr.encode_chunk(chunk, stamp_ns, period), stamp_ns)

    def event(self, event: Event) -> None:
        """Record one event."""
        self._write("/episode/events", cdr.encode_event(event), event.stamp_ns)

    def frames(self, frames: tuple[CameraFrame, ...]) -> None:
        """Record pictures, and their depth where there is any."""
        for frame in frames:
            self.writer.put(
                image_topic(frame.camera), "sensor_msgs/msg/CompressedImage",
                encode_frame(frame), frame.stamp_ns,
            )  # fmt: skip
            if frame.depth is not None:
                data = encode_depth(frame.camera, frame.stamp_ns, frame.depth)
                self.writer.put(depth_topic(frame.camera), DEPTH_TYPE, data, frame.stamp_ns)

    def verdict(self, verdict: Verdict) -> None:
        """Record the live verdict."""
        data = cdr.encode_verdict(verdict)
        self._write("/episode/verdict", data, round(verdict.sim_s * 1e9))

    @property
    def begun(self) -> bool:
        """Whether the episode got as far as a scene."""
        return self._scene is not None

    @property
    def state_hash(self) -> str:
        """Hash of the state track so far."""
        return self.writer.state_hash


class HashSink:
    """An `episode.Sink` that writes nothing: the episode in memory, and its state track's hash."""

    def __init__(self) -> None:
        """Start with no state."""
        self._hash = cdr.StateHash()
        self.scene_seen: Scene | None = None
        self.states: list[WorldState] = []
        self.events: list[Event] = []

    @property
    def begun(self) -> bool:
        """Whether the episode got as far as a scene."""
        return self.scene_seen is not None

    @property
    def state_hash(self) -> str:
        """Hash of the state track so far."""
        return self._hash.hexdigest()

    def scene(self, scene: Scene) -> None:
        """The episode was set up."""
        self.scene_seen = scene

    def state(self, state: WorldState) -> None:
        """Take one state."""
        self._hash.add(state)
        self.states.append(state)

    def chunk(self, chunk: ActionChunk, stamp_ns: int) -> None:
        """Nothing is kept."""

    def event(self, event: Event) -> None:
        """Take one event."""
        self.events.append(event)

    def frames(self, frames: tuple[CameraFrame, ...]) -> None:
        """Nothing is kept."""

    def verdict(self, verdict: Verdict) -> None:
        """Nothing is kept."""
