"""What the cell's cameras and its tracker publish, the newest of each, and how old it is.

Nothing here can compare the clock of who measured with its own. So a message is as old as the time
since it came, and one whose stamp has not moved on says nothing new: who has stopped measuring and
goes on sending is found out. It is a node of its own that listens, on a thread of its own, so that
the world's node can wait for it.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from bench_interfaces.msg import WorldState as WorldStateMsg
from bench_interfaces.srv import LoadEpisode, MoveObjects
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import (
    DurabilityPolicy,
    HistoryPolicy,
    QoSProfile,
    ReliabilityPolicy,
    qos_profile_sensor_data,
)
from sensor_msgs.msg import CameraInfo, CompressedImage, Image
from tf2_msgs.msg import TFMessage

from bench_tasks.bags import cdr
from bench_tasks.errors import BenchError, UsageError
from bench_tasks.view import compose, invert
from hardware.cell import Cell

__all__ = ["Newest", "Seen", "Sensors", "stamp_ns", "twist"]

TWIST_S = 0.06
"""Over how long an object's velocity is measured."""
DEPTH_OF_TREE = 20
ALL_FIXED = QoSProfile(
    history=HistoryPolicy.KEEP_LAST, depth=100,
    reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL,
)  # fmt: skip
"""Each who publishes static frames has one message, and all of them come at once."""
TRACK_NS = 500_000_000
"""What was seen longer ago says nothing of how an object moves now."""
RESTART_NS = 1_000_000_000
"""Two rising stamps in a row that are earlier by so much are of a clock that was set back; one, or
any that is earlier by less, is of a late message."""


def stamp_ns(stamp: Any) -> int:
    """Of a message's header."""
    return stamp.sec * 1_000_000_000 + stamp.nanosec


class Newest:
    """The newest message of one source. One thread may take while another looks."""

    def __init__(self) -> None:
        """None has come."""
        self._latest: tuple[Any, int, float] = None, 0, float("-inf")
        self._before_ns: int | None = None

    def take(self, at_ns: int, value: Any) -> None:
        """Take what was measured at `at_ns`, if it is anything new."""
        was, before_ns, _ = self._latest
        new = was is None or at_ns > before_ns
        if not new and at_ns <= before_ns - RESTART_NS:
            new = self._before_ns is not None and at_ns > self._before_ns
            self._before_ns = at_ns
        if new:
            self._latest, self._before_ns = (value, at_ns, time.monotonic()), None

    def look(self) -> tuple[Any, int, float]:
        """What has come (None: nothing), its stamp, and how long ago in seconds."""
        value, at_ns, heard_s = self._latest
        return value, at_ns, time.monotonic() - heard_s


@dataclass(frozen=True)
class Seen:
    """A pose (7,) in the frame `parent`."""

    parent: str
    pose: np.ndarray


def twist(track: Sequence[tuple[int, np.ndarray]]) -> np.ndarray:
    """Velocity (6,) [m/s, rad/s] from the poses (stamp_ns, (7,)) of the last `TWIST_S`; 0 of one.

    Rotation vector of the change over its time, in the world frame.
    """
    last_ns, last = track[-1]
    first_ns, first = next(((s, p) for s, p in reversed(track) if last_ns - s >= TWIST_S * 1e9),
                           track[0])  # fmt: skip
    dt = (last_ns - first_ns) / 1e9
    if dt <= 0.0:
        return np.zeros(6)
    change = compose(np.concatenate([np.zeros(3), last[3:]]),
                     invert(np.concatenate([np.zeros(3), first[3:]])))[3:]  # fmt: skip
    if change[0] < 0:
        change = -change
    sine = float(np.linalg.norm(change[1:]))
    angle = 2 * np.arctan2(sine, change[0])
    axis = change[1:] / sine if sine > 1e-9 else np.zeros(3)
    return np.concatenate([(last[:3] - first[:3]) / dt, axis * angle / dt])


class Sensors:
    """The newest pictures, poses and contacts."""

    def __init__(self, cell: Cell) -> None:
        """Subscribe to all topics of `cell`; rclpy must have been started."""
        self._cell = cell
        self._frames: dict[str, Newest] = {}
        self._fixed: dict[str, Seen] = {}
        self._tracks: dict[str, list[tuple[int, np.ndarray]]] = {}
        self._pictures = {camera: Newest() for camera in cell.cameras}
        self._infos: dict[str, CameraInfo] = {}
        self._contacts = Newest()
        self._node = node = Node(
            "world_sensors", start_parameter_services=False, use_global_arguments=False
        )
        node.create_subscription(TFMessage, "/tf", lambda m: self._on_tf(m, False), 100)
        node.create_subscription(TFMessage, "/tf_static", lambda m: self._on_tf(m, True), ALL_FIXED)
        for camera, topics in cell.cameras.items():
            kind = CompressedImage if topics["image"].endswith("/compressed") else Image
            node.create_subscription(
                kind, topics["image"], self._picture_of(camera), qos_profile_sensor_data
            )
            node.create_subscription(
                CameraInfo, topics["info"], self._info_of(camera), qos_profile_sensor_data
            )
        if cell.raw["contacts"]["topic"]:
            node.create_subscription(
                WorldStateMsg, cell.raw["contacts"]["topic"], self._on_contacts,
                qos_profile_sensor_data, raw=True,
            )  # fmt: skip
        service = cell.raw["layout"]["service"]
        self._layout = node.create_client(LoadEpisode, service)
        self._mover = node.create_client(MoveObjects, service.rsplit("/", 1)[0] + "/move_objects")
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(node)
        threading.Thread(target=self._spin, daemon=True).start()

    def _spin(self) -> None:
        try:
            self._executor.spin()
        except ExternalShutdownException:
            pass

    # -- poses -----------------------------------------------------------------------------------

    def _on_tf(self, message: TFMessage, static: bool) -> None:
        for item in message.transforms:
            t, r = item.transform.translation, item.transform.rotation
            pose = np.array([t.x, t.y, t.z, r.w, r.x, r.y, r.z])
            length = float(np.linalg.norm(pose[3:]))
            if not np.isfinite(pose).all() or abs(length - 1.0) > 0.01:
                continue  # that is no pose; the one before grows old
            pose[3:] /= length
            seen = Seen(item.header.frame_id, pose)
            if static:
                self._fixed[item.child_frame_id] = seen
            else:
                newest = self._frames.setdefault(item.child_frame_id, Newest())
                newest.take(stamp_ns(item.header.stamp), seen)

    def pose(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Pose (7,) and twist (6,) of an object in the world; BenchError when it is not seen.

        For one thread at a time: the twist is that of the poses which this has returned.
        """
        objects = self._cell.raw["objects"]
        frame, world = self._cell.frame(name), objects["world_frame"]
        pose, at, newest_ns, age_s = np.array([0.0, 0, 0, 1, 0, 0, 0]), frame, None, 0.0
        for _ in range(DEPTH_OF_TREE):
            seen = self._fixed.get(at)
            if at in self._frames:
                seen, seen_ns, seen_s = self._frames[at].look()
                newest_ns, age_s = max(newest_ns or 0, seen_ns), max(age_s, seen_s)
            if seen is None:
                raise BenchError(
                    f"{name} is not seen: nobody publishes the tf frame {frame}" if at == frame
                    else f"{name} is not seen in {world}: the tf frame {at} hangs free"
                )  # fmt: skip
            pose, at = compose(seen.pose, pose), seen.parent
            if at == world:
                break
        else:
            raise BenchError(f"{name} is not seen in {world}: the tf above {frame} is a ring")
        if newest_ns is None:
            raise BenchError(f"{name} is not seen: all of the tf from {frame} to {world} is static")
        if age_s > objects["age_s"]:
            raise BenchError(f"{name} is not seen: its pose is {age_s:.2f} s old, more than "
                             f"{objects['age_s']:g} s")  # fmt: skip
        return pose, twist(self._track(frame, newest_ns, pose))

    def pose_age_s(self, name: str) -> float:
        """Seconds since the object's own pose came last; infinite when none has."""
        newest = self._frames.get(self._cell.frame(name))
        return newest.look()[2] if newest else float("inf")

    def _track(self, frame: str, now_ns: int, pose: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """The poses in the world that were looked at lately, this one included."""
        track = [(at, was) for at, was in self._tracks.get(frame, ())
                 if 0 < now_ns - at < TRACK_NS]  # fmt: skip
        track.append((now_ns, pose))
        self._tracks[frame] = track
        return track

    # -- pictures and contacts -------------------------------------------------------------------

    def _picture_of(self, camera: str) -> Callable[[Any], None]:
        return lambda message: self._pictures[camera].take(stamp_ns(message.header.stamp), message)

    def _info_of(self, camera: str) -> Callable[[CameraInfo], None]:
        return lambda message: self._infos.__setitem__(camera, message)

    def picture(self, camera: str) -> tuple[Any, CameraInfo]:
        """The newest picture of a camera and its calibration; BenchError when it is none."""
        if camera not in self._cell.cameras:
            raise UsageError(f"no camera {camera!r} in {self._cell.name}: there are "
                             f"{', '.join(self._cell.cameras) or 'none'}")  # fmt: skip
        topics = self._cell.cameras[camera]
        found, _, age_s = self._pictures[camera].look()
        if found is None or camera not in self._infos:
            lacking = topics["image"] if found is None else topics["info"]
            raise BenchError(f"camera {camera}: nothing has come on {lacking}")
        limit = self._cell.raw["camera_age_s"]
        if age_s > limit:
            raise BenchError(f"camera {camera}: its picture is {age_s:.2f} s old, more than "
                             f"{limit:g} s")  # fmt: skip
        return found, self._infos[camera]

    def picture_age_s(self, camera: str) -> float:
        """Seconds since the camera's last picture came; infinite when none has."""
        return self._pictures[camera].look()[2]

    def _on_contacts(self, data: bytes) -> None:
        try:
            state = cdr.decode_state(data)
        except ValueError:
            return  # those before grow old
        self._contacts.take(state.stamp_ns, (state.contact_pair, state.contact_force))

    def contacts(self) -> tuple[np.ndarray, np.ndarray]:
        """Pairs (m, 2) and forces (m,), indices as in the layout's scene; BenchError when old."""
        found, _, age_s = self._contacts.look()
        topic = self._cell.raw["contacts"]["topic"]
        if found is None:
            raise BenchError(f"no contacts on {topic}")
        if age_s > self._cell.raw["contacts"]["age_s"]:
            raise BenchError(f"no contacts on {topic} for {age_s:.2f} s")
        return found

    # -- who lays things out ---------------------------------------------------------------------

    def lay_out(self, task: str, seed: int, config: str, wait_s: float) -> Any:
        """What is to lie where for (task, seed): the response of the layout service."""
        request = LoadEpisode.Request(task=task, seed=seed, config=config)
        return self._call(self._layout, request, wait_s)

    def move(self, request: MoveObjects.Request, wait_s: float) -> Any:
        """Have objects put somewhere else."""
        return self._call(self._mover, request, wait_s)

    def _call(self, client: Any, request: Any, wait_s: float) -> Any:
        if not client.service_is_ready() and not client.wait_for_service(min(10.0, wait_s)):
            raise BenchError(f"nobody offers {client.srv_name}, which says where objects must lie")
        done = threading.Event()
        future = client.call_async(request)
        future.add_done_callback(lambda _: done.set())
        if not done.wait(wait_s):
            raise BenchError(f"{client.srv_name} did not answer within {wait_s:g} s")
        response = future.result()
        if not response.ok:
            raise BenchError(f"{client.srv_name}: {json.loads(response.error)['text']}")
        return response

    def offer(self, kind: type, name: str, work: Callable[[Any, Any], Any]) -> None:
        """Offer a service that is answered while the world's own thread waits."""
        self._node.create_service(kind, name, work)

    def hear(self, kind: type, topic: str, work: Callable[[Any], Any], qos: QoSProfile) -> None:
        """Have another topic heard on this thread."""
        self._node.create_subscription(kind, topic, work, qos)

    def close(self) -> None:
        """Hear no more."""
        self._executor.shutdown(timeout_sec=0.0)


