"""What the cell's cameras and its tracker publish, the newest of each, and how old it is.

Listened to by a node of its own on a thread of its own, so that the world's node can wait for it.
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
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import CameraInfo, CompressedImage, Image
from tf2_msgs.msg import TFMessage

from bench_tasks import cdr
from bench_tasks.errors import BenchError, UsageError
from bench_tasks.node_ros import LATCHED, LATEST
from bench_tasks.view import compose, invert
from hardware.franka.cell import Cell

__all__ = ["Seen", "Sensors", "twist"]

TWIST_S = 0.06
"""Over how long an object's velocity is measured."""
DEPTH_OF_TREE, TRACK_LENGTH = 20, 20


@dataclass(frozen=True)
class Seen:
    """A pose (7,) in the frame `parent`, stamped by who measured it, and when it was heard."""

    parent: str
    stamp_ns: int
    heard_s: float
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
        self._frames: dict[str, Seen] = {}
        self._tracks: dict[str, tuple[tuple[int, np.ndarray], ...]] = {}
        self._pictures: dict[str, tuple[float, Any]] = {}
        self._infos: dict[str, CameraInfo] = {}
        self._contacts: tuple[float, bytes] | None = None
        self._node = node = Node(
            "world_sensors", start_parameter_services=False, use_global_arguments=False
        )
        node.create_subscription(TFMessage, "/tf", lambda m: self._on_tf(m, False), 100)
        node.create_subscription(TFMessage, "/tf_static", lambda m: self._on_tf(m, True), LATCHED)
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
        now = time.monotonic()
        for item in message.transforms:
            t, r = item.transform.translation, item.transform.rotation
            pose = np.array([t.x, t.y, t.z, r.w, r.x, r.y, r.z])
            length = float(np.linalg.norm(pose[3:]))
            if not np.isfinite(pose).all() or abs(length - 1.0) > 0.01:
                continue  # that is no pose; the one before grows old
            pose[3:] /= length
            stamp = item.header.stamp
            stamp_ns = stamp.sec * 1_000_000_000 + stamp.nanosec
            self._frames[item.child_frame_id] = Seen(
                item.header.frame_id, stamp_ns, float("inf") if static else now, pose
            )
            track = self._tracks.get(item.child_frame_id, ())
            if not static and (not track or stamp_ns > track[-1][0]):
                # Anew, since it is read on another thread.
                self._tracks[item.child_frame_id] = (*track[-TRACK_LENGTH:], (stamp_ns, pose))

    def pose(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Pose (7,) and twist (6,) of an object in the world; BenchError when it is not seen."""
        objects = self._cell.raw["objects"]
        frame, world = self._cell.frame(name), objects["world_frame"]
        seen = self._frames.get(frame)
        if seen is None:
            raise BenchError(f"{name} is not seen: nobody publishes the tf frame {frame}")
        parent, pose, at = seen.parent, seen.pose, seen.heard_s
        to_parent = np.array([0.0, 0, 0, 1, 0, 0, 0])
        for _ in range(DEPTH_OF_TREE):
            if parent == world:
                break
            above = self._frames.get(parent)
            if above is None:
                raise BenchError(f"{name} is not seen in {world}: the tf frame {parent} hangs free")
            to_parent = compose(above.pose, to_parent)
            parent, at = above.parent, min(at, above.heard_s)
        else:
            raise BenchError(f"{name} is not seen in {world}: the tf above {frame} is a ring")
        age = time.monotonic() - at
        if age > objects["age_s"]:
            raise BenchError(f"{name} is not seen: its pose is {age:.2f} s old, more than "
                             f"{objects['age_s']:g} s")  # fmt: skip
        track = self._tracks.get(frame, ())
        velocity = twist(track) if track else np.zeros(6)
        turn = np.concatenate([np.zeros(3), to_parent[3:]])
        turned = [compose(turn, np.array([*part, 1.0, 0, 0, 0]))[:3] for part in
                  (velocity[:3], velocity[3:])]  # fmt: skip
        return compose(to_parent, pose), np.concatenate(turned)

    # -- pictures and contacts -------------------------------------------------------------------

    def _picture_of(self, camera: str) -> Callable[[Any], None]:
        return lambda message: self._pictures.__setitem__(camera, (time.monotonic(), message))

    def _info_of(self, camera: str) -> Callable[[CameraInfo], None]:
        return lambda message: self._infos.__setitem__(camera, message)

    def picture(self, camera: str) -> tuple[Any, CameraInfo]:
        """The newest picture of a camera and its calibration; BenchError when it is none."""
        if camera not in self._cell.cameras:
            raise UsageError(f"no camera {camera!r} in {self._cell.name}: there are "
                             f"{', '.join(self._cell.cameras) or 'none'}")  # fmt: skip
        at, message = self._pictures.get(camera, (0.0, None))
        topics = self._cell.cameras[camera]
        if message is None or camera not in self._infos:
            lacking = topics["image"] if message is None else topics["info"]
            raise BenchError(f"camera {camera}: nothing has come on {lacking}")
        age, limit = time.monotonic() - at, self._cell.raw["camera_age_s"]
        if age > limit:
            raise BenchError(f"camera {camera}: its picture is {age:.2f} s old, more than "
                             f"{limit:g} s")  # fmt: skip
        return message, self._infos[camera]

    def picture_age_s(self, camera: str) -> float:
        """Seconds since the camera's last picture came; infinite when none has."""
        return time.monotonic() - self._pictures[camera][0] if camera in self._pictures else np.inf

    def _on_contacts(self, data: bytes) -> None:
        self._contacts = time.monotonic(), data

    def contacts(self) -> tuple[np.ndarray, np.ndarray]:
        """Pairs (m, 2) and forces (m,), indices as in the layout's scene; BenchError when old."""
        at, data = self._contacts or (0.0, b"")
        age = time.monotonic() - at
        if not data or age > self._cell.raw["contacts"]["age_s"]:
            raise BenchError(
                f"no contacts on {self._cell.raw['contacts']['topic']}"
                + (f" for {age:.2f} s" if data else "")
            )
        try:
            state = cdr.decode_state(data)
        except ValueError as error:
            raise BenchError(f"contacts: {error}") from None
        return state.contact_pair, state.contact_force

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

    def hear(self, kind: type, topic: str, work: Callable[[Any], Any]) -> None:
        """Have another topic heard on this thread; only its newest message matters."""
        self._node.create_subscription(kind, topic, work, LATEST)

    def close(self) -> None:
        """Hear no more."""
        self._executor.shutdown(timeout_sec=0.0)


