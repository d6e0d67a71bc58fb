"""A stand-in for a cell with two Franka arms: what is under the driver, without a robot.

Two franka-sim servers speak the vendor's protocol, with its limits enforced. The table scene's
arms follow where theirs are, its fingers do what their hands are told, and what it shows is
published as a lab's own drivers would: camera topics, tf of the objects, contacts as from a sense
of touch (`/standin/state`).
"""

from __future__ import annotations

import os
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
from bench_interfaces.msg import WorldState as WorldStateMsg
from bench_interfaces.srv import MoveObjects
from geometry_msgs.msg import TransformStamped
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import CameraInfo, CompressedImage
from tf2_msgs.msg import TFMessage

from bench_tasks import cdr
from bench_tasks.errors import BenchError, UsageError
from bench_tasks.images import encode_camera_info, encode_frame
from bench_tasks.node_ros import main as run_node
from bench_tasks.node_ros import parameter
from bench_tasks.robots import HOME_RAD
from bench_tasks.vocabulary import ARMS, CONTROL_PERIOD_NS, MAX_OPENING_M, ActionChunk
from sim.cameras import camera_info
from sim.franka_server import REPORT, WIDTH
from sim.layout_node import LayoutNode

__all__ = ["StandInNode", "main"]

ADDRESSES = {"left": "127.0.0.11", "right": "127.0.0.12"}
CAMERAS = ("head", "left_wrist", "right_wrist")
PERIOD_S = CONTROL_PERIOD_NS / 1e9
PICTURE_EVERY = 10
"""Control periods from one picture of a camera to its next: 5 Hz."""
HOME_WITHIN_RAD = 0.1
JOB_S = 60.0


class StandInNode(LayoutNode):
    """The scene, and the two servers whose arms it shows."""

    def __init__(self) -> None:
        """Start the servers; UsageError when their environment is not there."""
        super().__init__()
        given = parameter(self, "python", "")
        python = Path(given) if given else Path(sys.prefix) / "franka_sim/bin/python"
        if not python.exists():
            raise UsageError(f"simulated Franka arms have no Python at {python}: "
                             "run make franka-sim")  # fmt: skip
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self._q = np.tile(np.append(HOME_RAD, MAX_OPENING_M), 2)
        self._opening = np.full(2, MAX_OPENING_M)
        self._asked, self._speed = np.full(2, MAX_OPENING_M), np.full(2, 0.1)
        self._servers: list[subprocess.Popen[bytes]] = []
        self._ends: list[socket.socket] = []
        for arm in ARMS:
            self._serve(str(python), ADDRESSES[arm])
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
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _serve(self, python: str, address: str) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
        environment |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": ""}
        with theirs:
            self._servers.append(
                subprocess.Popen(
                    [python, str(Path(__file__).with_name("franka_server.py")), address,
                     str(theirs.fileno())],
                    pass_fds=[theirs.fileno()], env=environment, start_new_session=True,
                )
            )  # fmt: skip
        ours.setblocking(False)
        self._ends.append(ours)

    def close(self) -> None:
        """The servers end with their sockets."""
        self._thread.join(timeout=1.0)
        for end in self._ends:
            end.close()
        for server in self._servers:
            server.terminate()

    # -- the experimenter ------------------------------------------------------------------------

    def lay_out(self, task: str, seed: int, vary: tuple[str, ...]):
        """Put the objects where they belong; the arms must be at home, as the scene's then are."""
        def work() -> Any:
            self._hear()
            away = np.abs(self._q.reshape(2, 8)[:, :7] - HOME_RAD).max()
            if away > HOME_WITHIN_RAD:
                raise BenchError(f"the arms are {away:.2f} rad away from their starting pose")
            found = self.world.reset(task, seed, vary)
            self.world.capture(CAMERAS[:1])  # to open the renderer takes a while
            return found

        return self._in_scene(work)

    def move(self, request: MoveObjects.Request) -> None:
        """The hand that moves objects during an episode."""
        poses = np.asarray(request.poses, dtype=np.float64).reshape(-1, 7)
        self._in_scene(
            lambda: self.world.move_objects(dict(zip(request.names, poses, strict=True)))
        )

    def _in_scene(self, work: Callable[[], Any]) -> Any:
        """Do it on the scene's thread, to which its renderer belongs."""
        future: Future[Any] = Future()
        self._jobs.put((work, future))
        return future.result(JOB_S)

    # -- the scene -------------------------------------------------------------------------------

    def _hear(self) -> None:
        """Where the servers' arms are now, and what their hands were told."""
        for k, end in enumerate(self._ends):
            try:
                while data := end.recv(256):
                    numbers = REPORT.unpack(data)
                    self._q[8 * k : 8 * k + 7] = numbers[:7]
                    self._asked[k], self._speed[k] = numbers[14], numbers[15]
            except BlockingIOError:
                continue
            except OSError:
                pass
            if not self.stopping.is_set():
                self.get_logger().error(f"the simulated {ARMS[k]} arm has ended")
                self.stop(1)
            return

    def _run(self) -> None:
        due = time.monotonic()
        while not self.stopping.is_set():
            while not self._jobs.empty():
                work, future = self._jobs.get()
                try:
                    future.set_result(work())
                except Exception as error:  # noqa: BLE001 - raised again for who asked
                    future.set_exception(error)
            self._step()
            due = max(due + PERIOD_S, time.monotonic() - PERIOD_S)
            time.sleep(max(0.0, due - time.monotonic()))

    def _step(self) -> None:
        """One control period of the scene."""
        self._hear()
        reach = self._speed * PERIOD_S
        self._opening += np.clip(self._asked - self._opening, -reach, reach)
        self._q[[7, 15]] = self._opening
        scene = self.world.scene
        widths = self._opening
        if scene is not None:
            (state,) = self.world.step(ActionChunk(self.world.state.seq, self._q[None]))
            widths = np.clip(state.gripper_opening, 0.0, MAX_OPENING_M)
            self._state.publish(cdr.encode_state(state))
            self._publish_tf(scene.objects, state.object_pose)
            self._take_pictures(state.seq)
        for end, width in zip(self._ends, widths, strict=True):
            try:
                end.send(WIDTH.pack(float(width)))
            except OSError:
                continue

    def _publish_tf(self, objects, poses: np.ndarray) -> None:
        stamp, message = self.get_clock().now().to_msg(), TFMessage()
        for item, pose in zip(objects, poses, strict=True):
            one = TransformStamped()
            one.header.stamp, one.header.frame_id = stamp, "world"
            one.child_frame_id = f"object/{item.name}"
            t, r = one.transform.translation, one.transform.rotation
            t.x, t.y, t.z, r.w, r.x, r.y, r.z = (float(v) for v in pose)
            message.transforms.append(one)
        self._tf.publish(message)

    def _take_pictures(self, seq: int) -> None:
        """Of each camera that somebody listens to, in turn."""
        for k, (name, (picture, info)) in enumerate(self._pictures.items()):
            if seq % PICTURE_EVERY != k or not picture.get_subscription_count():
                continue
            (frame,) = self.world.capture((name,))
            size = frame.width, frame.height
            matrix = camera_info(self.world.model, name, *size).matrix
            picture.publish(encode_frame(frame))
            info.publish(
                encode_camera_info(name, frame.stamp_ns, *size, tuple(matrix.ravel()))
            )


def main(args: list[str] | None = None) -> None:
    """Entry point of `standin_franka_node`."""
    run_node(StandInNode, args)


if __name__ == "__main__":
    main()
