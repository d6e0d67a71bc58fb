"""Pictures in the requests and responses of services: `images`, and `depths` of some of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bench_interfaces.msg import CalibratedDepth
from sensor_msgs.msg import CompressedImage

from bench_tasks.images import decode_depth, decode_frame, encode_depth, encode_frame
from bench_tasks.ros.node_ros import from_message, to_message
from bench_tasks.vocabulary import CameraFrame

__all__ = ["frames_of", "put_frames"]


def put_frames(message: Any, frames: tuple[CameraFrame, ...]) -> Any:
    """Put pictures, and the depth of those that have it, into a message; returns it."""
    message.images = [to_message(encode_frame(f), CompressedImage) for f in frames]
    message.depths = [
        to_message(encode_depth(f.camera, f.stamp_ns, f.depth), CalibratedDepth)
        for f in frames
        if f.depth is not None
    ]
    return message


def frames_of(message: Any) -> tuple[CameraFrame, ...]:
    """Inverse of `put_frames`."""
    decoded = [decode_depth(from_message(depth)) for depth in message.depths]
    depths = {camera: depth for camera, _, depth in decoded}
    frames = (decode_frame(from_message(image)) for image in message.images)
    return tuple(replace(f, depth=depths.get(f.camera)) for f in frames)
