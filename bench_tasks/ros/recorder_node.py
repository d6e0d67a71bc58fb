"""The node `recorder`: what is said on the topics of an episode, into one bag, byte for byte.

The task node starts a recording before the world is set up, and finishes it after the verdict,
saying how many messages there were on each topic, and of what moments there are pictures (a
picture that streams must not stand for one that was asked for); it asks again until all have come.
What has not come when it gives up is named, and the recording is marked as failed.
"""

from __future__ import annotations

import contextlib
import json
import struct
import time
from collections import Counter
from operator import itemgetter
from pathlib import Path
from typing import Any

from bench_interfaces.srv import Record

from bench_tasks.bags.recording import TOPICS, BagWriter
from bench_tasks.errors import BenchError, UsageError
from bench_tasks.images import DEPTH_TYPE, camera_of_topic, image_topic, info_topic
from bench_tasks.ros.node_ros import (
    LATCHED,
    TRACK,
    BenchNode,
    Unwatched,
    answer,
    message_type,
    steady_timer,
    take_all,
    unwatched,
)
from bench_tasks.ros.node_ros import main as run_node

__all__ = ["RecorderNode", "main"]

STATE_TOPIC = "/world/state"
CAST = ("world", "planner", "policy", "safety", "task", "memory", "probe")
"""Whose deaths a recording that is cut off tells of."""
READ_EVERY_S = 0.05
"""How long messages may lie in the middleware, which keeps thousands."""
KEPT_S = 0.5
"""How long what was read may lie in memory, where it is lost if this process is killed."""
_STAMP = struct.Struct("<iI")
_JPEG, _INFO = "sensor_msgs/msg/CompressedImage", "sensor_msgs/msg/CameraInfo"


def stamp_of(topic: str, data: bytes) -> int:
    """Stamp (ns) of a message: all recorded types begin with it, only the state's follows `seq`."""
    try:
        sec, nanosec = _STAMP.unpack_from(data, 12 if topic == STATE_TOPIC else 4)
    except struct.error:
        raise BenchError(f"{topic}: a message of {len(data)} bytes has no stamp") from None
    return sec * 1_000_000_000 + nanosec


class RecorderNode(BenchNode):
    """Writes one bag at a time."""

    def __init__(self) -> None:
        """Listen to the fixed topics, and to the cameras' as they appear."""
        super().__init__("recorder")
        self._writer: BagWriter | None = None
        self._error: BenchError | None = None
        self._next_seq, self._flushed_s = 0, 0.0
        self._gaps: list[str] = []
        self._last_seq = -1
        self._expected: dict[str, int] = {}
        self._stamps: dict[str, Counter[int]] = {}
        self._pictures: dict[str, list[int]] = {}
        self._heard: dict[str, tuple[str, Any]] = {}
        self._by_hand = Unwatched()
        for topic, type_name in TOPICS.items():
            self._listen(topic, type_name)
        self.create_service(Record, "/recorder/record", self._record)
        steady_timer(self, READ_EVERY_S, self._read)
        # The world waits for listeners before it sends a first picture.
        steady_timer(self, 0.1, self._listen_to_cameras)

    def _listen(self, topic: str, type_name: str) -> None:
        if topic not in self._heard:
            qos = LATCHED if topic == "/world/scene" else TRACK
            kind = message_type(type_name)
            self._heard[topic] = type_name, unwatched(self, kind, topic, qos, self._by_hand)

    def _listen_to_cameras(self) -> None:
        for topic, types in self.get_topic_names_and_types():
            if topic.count("/") > (3 if topic.endswith("/compressed") else 2):
                continue  # a driver's own, in a namespace: what the world makes of it is recorded
            if camera_of_topic(topic) and _JPEG in types:
                self._listen(topic, _JPEG)
            elif topic.endswith("/camera_info") and _INFO in types:
                self._listen(topic, _INFO)
            elif DEPTH_TYPE in types:
                self._listen(topic, DEPTH_TYPE)

    # -- messages --------------------------------------------------------------------------------

    def _read(self) -> None:
        """Write down what has come, in the order of the stamps, in which it is to be replayed."""
        batch: list[tuple[int, str, str, bytes]] = []
        try:
            for topic, (type_name, subscription) in self._heard.items():
                for data in take_all(subscription):
                    batch.append((stamp_of(topic, data), topic, type_name, data))
            if self._writer is None or self._error is not None:
                return
            for stamp_ns, topic, type_name, data in sorted(batch, key=itemgetter(0)):
                if topic != STATE_TOPIC or self._in_order(int.from_bytes(data[4:12], "little")):
                    self._writer.write(topic, type_name, data, stamp_ns)
                    if topic not in TOPICS:
                        self._stamps.setdefault(topic, Counter())[stamp_ns] += 1
            now_s = time.monotonic()
            if batch and now_s - self._flushed_s > KEPT_S:
                self._writer.flush()
                self._flushed_s = now_s
        except BenchError as error:
            self._error = error
            self.get_logger().error(str(error))

    def _in_order(self, seq: int) -> bool:
        """Note missing states; False for those that an earlier episode left under way."""
        if self._next_seq == 0 and seq != 0:
            return False
        if seq != self._next_seq:
            self._gaps.append(f"{self._next_seq} to {seq - 1}")
            self.get_logger().error(f"state {self._next_seq} to {seq - 1} did not come")
        self._next_seq = seq + 1
        return True

    # -- start and finish ------------------------------------------------------------------------

    def _record(self, request: Record.Request, response: Record.Response) -> Record.Response:
        self._read()
        more: dict[str, Any] = json.loads(request.manifest or "{}")
        if request.start:
            return answer(response, lambda: self._start(Path(request.path), more))
        expected = more.pop("expected", {})
        # Without a scene there was no world, and a probe alone has no states.
        self._last_seq = request.last_seq if "/world/scene" in expected else -1
        self._expected = expected
        self._pictures = more.pop("pictures", {})
        # The messages come on this node's one thread: it must not wait for them here.
        response.waiting = bool(
            self._writer is not None and self._error is None and self._missing()
            and not request.force
        )  # fmt: skip
        if response.waiting:
            return answer(response, lambda: None)
        return answer(response, lambda: self._finish(more, response))

    def _start(self, path: Path, manifest: dict[str, Any]) -> None:
        if self._writer is not None:
            self._writer.close("interrupted", cause="another recording was started")
            self._writer = None
        self._error, self._next_seq, self._gaps = None, 0, []
        self._stamps, self._flushed_s = {}, 0.0
        for node in CAST:
            self.watch.add(node)
        self._writer = BagWriter(path, manifest)

    def _missing(self) -> list[str]:
        """What must have come before the recording is finished and has not."""
        counts = self._writer.counts if self._writer is not None else {}
        found = [
            f"{count - counts.get(topic, 0)} of {count} messages on {topic}"
            for topic, count in self._expected.items()
            if counts.get(topic, 0) < count
        ]
        for camera, stamps in self._pictures.items():
            for topic in (image_topic(camera), info_topic(camera)):
                lost = Counter(stamps) - self._stamps.get(topic, Counter())
                if lost:
                    found.append(f"{lost.total()} of {len(stamps)} messages on {topic}")
        if self._next_seq <= self._last_seq:
            found.append(f"states {self._next_seq} to {self._last_seq}")
        return found

    def _finish(self, more: dict[str, Any], response: Record.Response) -> None:
        missing = self._missing()
        writer, self._writer = self._writer, None
        if writer is None:
            raise UsageError("nothing is being recorded")
        response.states = writer.states
        if self._error is not None:
            with contextlib.suppress(BenchError):
                more.pop("status", None)
                writer.close("failed", **(more | {"cause": str(self._error)}))
            raise self._error
        if self._gaps:
            missing.append(f"states {', '.join(self._gaps)}")
        if missing:
            cause = f"incomplete recording: {'; '.join(missing)} did not come"
            more.pop("status", None)
            writer.close("failed", **(more | {"cause": cause}))
            raise BenchError(cause)
        writer.close(more.pop("status", "complete"), **more)

    def close(self) -> None:
        """Complete a bag that is being recorded: it is readable, and says why it was cut off.

        A launch ends all nodes when one has died: the task node may not get as far as to say so.
        """
        if self._writer is not None:
            self._read()
            died = self.watch.died()
            try:
                if died:
                    self._writer.close("failed", cause=f"lost node: {died}")
                else:
                    self._writer.close("interrupted")
            except BenchError as error:
                self.get_logger().error(str(error))


def main(args: list[str] | None = None) -> None:
    """Entry point of `recorder_node`."""
    run_node(RecorderNode, args)


if __name__ == "__main__":
    main()
