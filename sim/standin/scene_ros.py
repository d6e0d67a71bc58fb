"""What stand-ins for cells with real arms share: a scene on a thread, shown as a lab's would be.

Camera topics, tf of the objects, and contacts as from a sense of touch (`/standin/state`).
"""

from __future__ import annotations

import queue
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Overdue
from dataclasses import replace
from typing import Any

import numpy as np
from bench_interfaces.msg import WorldState as WorldStateMsg
from bench_interfaces.srv import MoveObjects
from geometry_msgs.msg import TransformStamped
from rclpy.qos import qos_profile_sensor_data
from rclpy.time import Time
from sensor_msgs.msg import CameraInfo, CompressedImage
from tf2_msgs.msg import TFMessage

from bench_tasks.bags import cdr
from bench_tasks.errors import BenchError
from bench_tasks.images import encode_camera_info, encode_frame
from bench_tasks.ros.node_ros import parameter
from bench_tasks.vocabulary import CONTROL_PERIOD_NS, Scene, WorldState
from sim.cameras import camera_info
from sim.layout_node import LayoutNode

__all__ = ["CAMERAS", "PERIOD_S", "StandIn"]

CAMERAS = ("head", "left_wrist", "right_wrist")
PERIOD_S = CONTROL_PERIOD_NS / 1e9
PICTURE_EVERY = 10
"""Control periods from one picture of a camera to its next: 5 Hz."""
JOB_S = 60.0


class StandIn(LayoutNode):
    """A node `layout` whose scene runs by itself; each says for itself what a period of it is.

    The parameter `black_box` names a file in which is kept what the robot's joints did.
    """

    def __init__(self) -> None:
        """Create the topics; `begin` starts the scene."""
        super().__init__()
        self.black_box = parameter(self, "black_box", "")
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self._tf = self.create_publisher(TFMessage, "/tf", 10)
        self._state = self.create_publisher(
            WorldStateMsg, "/standin/state", qos_profile_sensor_data
        )
        self._pictures = {
            name: (
                self.create_publisher(
                    CompressedImage, f"/cameras/{name}/image_raw/compressed",
                    qos_profile_sensor_data,
                ),
                self.create_publisher(
                    CameraInfo, f"/cameras/{name}/camera_info", qos_profile_sensor_data
                ),
            )
            for name in CAMERAS
        }  # fmt: skip
        self._due_s = float("-inf")
        self._thread = threading.Thread(target=self._run, daemon=True)

    def begin(self) -> None:
        """Let the scene run, once all that a period needs is there."""
        self._thread.start()

    def close(self) -> None:
        """The scene stands still."""
        self._thread.join(timeout=1.0)

    def period(self) -> None:
        """One control period of the scene."""
        raise NotImplementedError

    def comes(self) -> bool:
        """Wait a while for the scene's next period; whether it has come."""
        time.sleep(max(0.0, self._due_s - time.monotonic()))
        self._due_s = max(self._due_s + PERIOD_S, time.monotonic() - PERIOD_S)
        return True

    def lab_ns(self) -> int:
        """The clock of a lab in which the scene is."""
        return self.get_clock().now().nanoseconds

    def leave(self) -> None:
        """The scene is about to do other work than a period: for its time that does not count."""

    def move(self, request: MoveObjects.Request) -> None:
        """The hand that moves objects during an episode."""
        poses = np.asarray(request.poses, dtype=np.float64).reshape(-1, 7)
        self.in_scene(
            lambda: self.world.move_objects(dict(zip(request.names, poses, strict=True)))
        )

    def in_scene(self, work: Callable[[], Any]) -> Any:
        """Do it on the scene's thread, to which its renderer belongs."""
        future: Future[Any] = Future()
        self._jobs.put((work, future))
        try:
            return future.result(JOB_S)
        except Overdue:
            future.cancel()  # it must not be done when nobody expects it any more
            raise BenchError(f"the simulated cell took longer than {JOB_S:g} s") from None

    def _run(self) -> None:
        while not self.stopping.is_set():
            while not self._jobs.empty():
                self.leave()
                work, future = self._jobs.get()
                if not future.set_running_or_notify_cancel():
                    continue
                try:
                    future.set_result(work())
                except Exception as error:  # noqa: BLE001 - raised again for who asked
                    future.set_exception(error)
            try:
                if self.comes():
                    self.period()
            except Exception:  # noqa: BLE001 - a scene that stands still would look like one at rest
                self.get_logger().error(traceback.format_exc())
                self.stop(1)
                return

    def show(self, scene: Scene, state: WorldState) -> None:
        """Publish what a lab's sensors would: contacts, poses, and pictures that are due.

        Their stamps are of a lab's clock, which goes on while the scene's begins anew.
        """
        now_ns = self.lab_ns()
        self._state.publish(cdr.encode_state(replace(state, stamp_ns=now_ns)))
        stamp, message = Time(nanoseconds=now_ns).to_msg(), TFMessage()
        for item, pose in zip(scene.objects, state.object_pose, strict=True):
            one = TransformStamped()
            one.header.stamp, one.header.frame_id = stamp, "world"
            one.child_frame_id = f"object/{item.name}"
            t, r = one.transform.translation, one.transform.rotation
            t.x, t.y, t.z, r.w, r.x, r.y, r.z = (float(v) for v in pose)
            message.transforms.append(one)
        self._tf.publish(message)
        self._take_pictures(state.seq)

    def _take_pictures(self, seq: int) -> None:
        """Of each camera that somebody listens to, in turn."""
        for k, (name, (picture, info)) in enumerate(self._pictures.items()):
            if seq % PICTURE_EVERY != k or not picture.get_subscription_count():
                continue
            (taken,) = self.world.capture((name,))
            frame = replace(taken, stamp_ns=self.lab_ns())
            size = frame.width, frame.height
            matrix = camera_info(self.world.model, name, *size).matrix
            picture.publish(encode_frame(frame))
            info.publish(
                encode_camera_info(name, frame.stamp_ns, *size, tuple(matrix.ravel()))
            )
