"""Camera pictures and depth as messages, and the names of their topics and frames."""

from __future__ import annotations

import struct

from bench_tasks.bags.cdr_types import decode, encode, join_ns, split_ns
from bench_tasks.errors import UsageError
from bench_tasks.vocabulary import CONTROL_PERIOD_NS, CameraFrame, Depth

__all__ = [
    "DEFAULT_SIZE", "DEPTH_TYPE", "MAX_SIZE", "camera_of_depth", "camera_of_frame",
    "camera_of_topic", "decode_depth", "decode_frame", "depth_topic", "encode_camera_info",
    "encode_depth", "encode_frame", "encode_image", "image_topic", "info_topic", "optical_frame",
    "parse_size", "picture_size",
]  # fmt: skip

_FRAME_SUFFIX = "_optical_frame"
_TOPIC_SUFFIX, _INFO_SUFFIX = "/image_raw/compressed", "/camera_info"
_DEPTH_SUFFIX = "/depth"
DEPTH_TYPE = "bench_interfaces/msg/CalibratedDepth"
DEFAULT_SIZE = "320x240"
MIN_SIZE, MAX_SIZE = (16, 16), (1280, 960)


def parse_size(text: str) -> tuple[int, int]:
    """(width, height) in pixels of `WIDTHxHEIGHT`; UsageError when it is not that, or no size."""
    words = text.split("x")
    if len(words) == 2 and all(word.isascii() and word.isdigit() for word in words):
        size = int(words[0][:9]), int(words[1][:9])
        if all(a <= n <= b for a, n, b in zip(MIN_SIZE, size, MAX_SIZE, strict=True)):
            return size
    (a, b), (c, d) = MIN_SIZE, MAX_SIZE
    raise UsageError(f"image size must be WIDTHxHEIGHT from {a}x{b} to {c}x{d}, got {text!r}")


def image_topic(camera: str) -> str:
    """Topic of the camera's compressed pictures."""
    return f"/{camera}{_TOPIC_SUFFIX}"


def info_topic(camera: str) -> str:
    """Topic of the calibration that goes with each of the camera's pictures."""
    return f"/{camera}{_INFO_SUFFIX}"


def depth_topic(camera: str) -> str:
    """Topic of the camera's depth with its calibration."""
    return f"/{camera}{_DEPTH_SUFFIX}"


def camera_of_depth(topic: str) -> str | None:
    """The camera whose depth the topic carries; None for any other topic."""
    return topic[1 : -len(_DEPTH_SUFFIX)] if topic.endswith(_DEPTH_SUFFIX) else None


def camera_of_topic(topic: str) -> str | None:
    """The camera whose pictures the topic carries; None for any other topic."""
    return topic[1 : -len(_TOPIC_SUFFIX)] if topic.endswith(_TOPIC_SUFFIX) else None


def optical_frame(camera: str) -> str:
    """The tf frame of the camera's pictures (z forward, REP-103)."""
    return camera + _FRAME_SUFFIX


def camera_of_frame(frame_id: str) -> str:
    """Inverse of `optical_frame`."""
    return frame_id.removesuffix(_FRAME_SUFFIX)


def _header(camera: str, stamp_ns: int) -> dict:
    return {"stamp": split_ns(stamp_ns), "frame_id": optical_frame(camera)}


def encode_frame(frame: CameraFrame) -> bytes:
    """sensor_msgs/CompressedImage; its stamp is that of the state it shows."""
    return encode(
        "sensor_msgs/msg/CompressedImage",
        {"header": _header(frame.camera, frame.stamp_ns), "format": frame.format,
         "data": frame.data},
    )  # fmt: skip


def decode_frame(data: bytes, period_ns: int = CONTROL_PERIOD_NS) -> CameraFrame:
    """Inverse of `encode_frame`; the state's number follows from the stamp."""
    raw = decode("sensor_msgs/msg/CompressedImage", data)
    stamp_ns = join_ns(raw["header"]["stamp"])
    picture = bytes(raw["data"])
    width, height = picture_size(picture)
    return CameraFrame(
        camera_of_frame(raw["header"]["frame_id"]), round(stamp_ns / period_ns), stamp_ns,
        width, height, raw["format"].split()[-1] if raw["format"] else "", picture,
    )  # fmt: skip


def picture_size(data: bytes) -> tuple[int, int]:
    """(width, height) of an encoded JPEG or PNG; ValueError when it is neither."""
    if data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) >= 24:
        return struct.unpack_from(">II", data, 16)
    if data[:2] == b"\xff\xd8":
        position = 2
        while position + 9 <= len(data) and data[position] == 0xFF:
            marker, length = data[position + 1], struct.unpack_from(">H", data, position + 2)[0]
            # Start-of-frame markers are C0..CF but for C4, C8 and CC.
            if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
                height, width = struct.unpack_from(">HH", data, position + 5)
                return width, height
            position += 2 + length
    raise ValueError(f"neither a JPEG nor a PNG: {len(data)} bytes beginning {data[:4].hex()}")


def encode_image(
    camera: str, stamp_ns: int, height: int, width: int, encoding: str, step: int, data: bytes
) -> bytes:
    """sensor_msgs/Image of raw pixels, rows `step` bytes apart."""
    return encode(
        "sensor_msgs/msg/Image",
        {"header": _header(camera, stamp_ns), "height": height, "width": width,
         "encoding": encoding, "is_bigendian": 0, "step": step, "data": data},
    )  # fmt: skip


def encode_camera_info(
    camera: str, stamp_ns: int, width: int, height: int, k: tuple[float, ...]
) -> bytes:
    """sensor_msgs/CameraInfo of an undistorted pinhole camera with intrinsics k (9, row-major)."""
    p = (k[0], k[1], k[2], 0.0, k[3], k[4], k[5], 0.0, k[6], k[7], k[8], 0.0)
    roi = {"x_offset": 0, "y_offset": 0, "height": 0, "width": 0, "do_rectify": False}
    return encode(
        "sensor_msgs/msg/CameraInfo",
        {"header": _header(camera, stamp_ns), "height": height, "width": width,
         "distortion_model": "plumb_bob", "d": (0.0,) * 5, "k": k,
         "r": (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0), "p": p,
         "binning_x": 0, "binning_y": 0, "roi": roi},
    )  # fmt: skip


def encode_depth(camera: str, stamp_ns: int, depth: Depth) -> bytes:
    """bench_interfaces/CalibratedDepth; its stamp is that of the state it shows."""
    return encode(
        DEPTH_TYPE,
        {"header": _header(camera, stamp_ns), "k": depth.matrix, "pose": depth.pose,
         "data": depth.png},
    )  # fmt: skip


def decode_depth(data: bytes) -> tuple[str, int, Depth]:
    """Camera, stamp (ns) and depth: inverse of `encode_depth`."""
    raw = decode(DEPTH_TYPE, data)
    depth = Depth(bytes(raw["data"]), tuple(raw["k"].tolist()), tuple(raw["pose"].tolist()))
    return camera_of_frame(raw["header"]["frame_id"]), join_ns(raw["header"]["stamp"]), depth
