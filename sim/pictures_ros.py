"""The cameras of the world node: standard image topics, rendered only when somebody asks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from bench_interfaces.msg import CalibratedDepth
from sensor_msgs.msg import CameraInfo, CompressedImage, Image

from bench_tasks.images import (
    depth_topic,
    encode_camera_info,
    encode_depth,
    encode_frame,
    encode_image,
    image_topic,
    info_topic,
)
from bench_tasks.ros.node_ros import PERIODIC
from bench_tasks.streams import periods_between
from bench_tasks.vocabulary import CameraFrame, WorldState
from sim.cameras import camera_info
from sim.scene import CAMERAS

if TYPE_CHECKING:
    from bench_tasks.ros.node_ros import BenchNode
    from sim.world import SimWorld

__all__ = ["Pictures"]


class Pictures:
    """Publishes pictures: those asked for by `Capture`, and streams while the world runs.

    The compressed topic and its calibration always carry them, the depth topic when depth was
    asked for; raw pixels are published only while somebody listens.
    """

    def __init__(self, node: BenchNode, world: SimWorld, streams: dict[str, float]) -> None:
        """Create the topics of all cameras; `streams` maps camera -> Hz of simulated time."""
        self._world = world
        self._every = {name: periods_between(hz) for name, hz in streams.items()}
        self._jpeg: dict[str, Any] = {}
        self._info: dict[str, Any] = {}
        self._raw: dict[str, Any] = {}
        self._depth: dict[str, Any] = {}
        for name in CAMERAS:
            self._jpeg[name] = node.create_publisher(CompressedImage, image_topic(name), PERIODIC)
            self._info[name] = node.create_publisher(CameraInfo, info_topic(name), PERIODIC)
            self._depth[name] = node.create_publisher(
                CalibratedDepth, depth_topic(name), PERIODIC
            )
            self._raw[name] = node.create_publisher(Image, f"/{name}/image_raw", PERIODIC)

    @property
    def publishers(self) -> list[Any]:
        """What a recorder listens to."""
        return [*self._jpeg.values(), *self._info.values(), *self._depth.values()]

    def stream(self, state: WorldState) -> None:
        """Take and publish the pictures that are due at this state."""
        due = tuple(name for name, every in self._every.items() if state.seq % every == 0)
        if due:
            self.publish(self._world.capture(due))

    def publish(self, frames: Iterable[CameraFrame]) -> None:
        """Publish pictures with their calibration."""
        for frame in frames:
            name, size = frame.camera, (frame.width, frame.height)
            self._jpeg[name].publish(encode_frame(frame))
            if frame.depth is not None:
                self._depth[name].publish(encode_depth(name, frame.stamp_ns, frame.depth))
            info = camera_info(self._world.model, name, *size)
            self._info[name].publish(
                encode_camera_info(name, frame.stamp_ns, *size, tuple(info.matrix.ravel()))
            )
            if self._raw[name].get_subscription_count() > 0:
                pixels = self._world.cameras.color(self._world.data, name)
                height, width = pixels.shape[:2]
                self._raw[name].publish(
                    encode_image(
                        name, frame.stamp_ns, height, width, "rgb8", 3 * width, pixels.tobytes()
                    )
                )
