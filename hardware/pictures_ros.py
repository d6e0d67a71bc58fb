"""Pictures of a cell's cameras as the tasks want them: of one size, stamped with the state."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import CameraInfo, CompressedImage

from bench_tasks.errors import BenchError, UsageError, unknown
from bench_tasks.images import (
    encode_camera_info,
    encode_frame,
    image_topic,
    info_topic,
    parse_size,
    picture_size,
)
from bench_tasks.ros.node_ros import PERIODIC
from bench_tasks.streams import parse_streams, periods_between
from bench_tasks.vocabulary import CameraFrame, WorldState
from hardware.cell import Cell
from hardware.sensors_ros import Sensors

__all__ = ["Pictures", "as_jpeg"]

JPEG_QUALITY = 90


class Pictures:
    """Publishes what the cameras see under the names that the tasks know."""

    def __init__(self, node: Node, cell: Cell, sensors: Sensors, streams: str, size: str) -> None:
        """UsageError when `streams` or `size`, as the node's parameters say them, cannot be."""
        self._sensors, self._size = sensors, parse_size(size)
        wanted = parse_streams(streams)
        for camera in wanted:
            if camera not in cell.cameras:
                raise unknown("camera", camera, cell.cameras)
        self._calibrations: dict[str, CameraInfo] = {}
        self._every = {name: periods_between(hz) for name, hz in wanted.items()}
        self._jpeg = {name: node.create_publisher(CompressedImage, image_topic(name), PERIODIC)
                      for name in cell.cameras}  # fmt: skip
        self._info = {name: node.create_publisher(CameraInfo, info_topic(name), PERIODIC)
                      for name in cell.cameras}  # fmt: skip

    @property
    def publishers(self) -> list[Any]:
        """What a recorder listens to."""
        return [*self._jpeg.values(), *self._info.values()]

    def stream(self, state: WorldState) -> None:
        """Publish the pictures whose turn it is; BenchError when there is none."""
        due = tuple(name for name, every in self._every.items() if state.seq % every == 0)
        if due:
            self.publish(self.take(due, False, state))

    def take(
        self, cameras: tuple[str, ...], depth: bool, state: WorldState | None
    ) -> tuple[CameraFrame, ...]:
        """The newest picture of each camera, at the size asked for, stamped with the state."""
        if depth:
            raise UsageError("depth is not taken from a robot's cameras yet")
        if state is None:
            raise BenchError("no episode is loaded")
        frames = []
        for camera in cameras:
            message, info = self._sensors.picture(camera)
            if not (info.width > 0 and info.height > 0):
                raise BenchError(f"camera {camera}: its CameraInfo is of {info.width}x{info.height}"
                                 " pixels: it is not calibrated")  # fmt: skip
            self._calibrations[camera] = info
            data = as_jpeg(message, self._size)
            frames.append(
                CameraFrame(camera, state.seq, state.stamp_ns, *self._size, "jpeg", data)
            )
        return tuple(frames)

    def publish(self, frames: tuple[CameraFrame, ...]) -> None:
        """Publish pictures that were taken here, with their calibration at their size."""
        for frame in frames:
            info = self._calibrations[frame.camera]
            x, y = self._size[0] / info.width, self._size[1] / info.height
            k = np.array(info.k) * np.array([x, x, x, y, y, y, 1, 1, 1])
            self._jpeg[frame.camera].publish(encode_frame(frame))
            self._info[frame.camera].publish(
                encode_camera_info(frame.camera, frame.stamp_ns, *self._size, tuple(k.tolist()))
            )


def as_jpeg(message: Any, size: tuple[int, int]) -> bytes:
    """A camera's message (CompressedImage or Image) as JPEG of a size; BenchError if it is none."""
    if hasattr(message, "format"):
        data = bytes(message.data)
        if "jpeg" in message.format and picture_size(data) == size:
            return data
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
        if pixels is None:
            raise BenchError(f"a picture of format {message.format!r} cannot be decoded")
    else:
        channels = {"rgb8": 3, "bgr8": 3, "mono8": 1}.get(message.encoding)
        if channels is None:
            raise BenchError(f"a picture of encoding {message.encoding!r} is not understood: "
                             "rgb8, bgr8 and mono8 are")  # fmt: skip
        rows = np.frombuffer(bytes(message.data), np.uint8).reshape(message.height, -1)
        pixels = rows[:, : message.width * channels].reshape(message.height, message.width, -1)
        code = {"rgb8": cv2.COLOR_RGB2BGR, "mono8": cv2.COLOR_GRAY2BGR}.get(message.encoding)
        pixels = pixels if code is None else cv2.cvtColor(pixels, code)
    resized = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)
    return cv2.imencode(".jpg", resized, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])[1].tobytes()
