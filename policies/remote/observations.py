"""From our observation to what a policy server is sent, as its embodiment file describes it."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from scipy.spatial.transform import Rotation

from bench_tasks.errors import BenchError
from bench_tasks.robots.fr3 import base_position
from bench_tasks.vocabulary import ARMS, MAX_OPENING_M, CameraFrame, Scene, WorldState
from policies.pictures import rgb
from policies.remote.embodiment import Embodiment, Gripper, Key, Picture

__all__ = ["picture", "put", "quaternion_of", "request", "rotation_numbers"]


def put(target: dict[str, Any], key: Key, value: Any) -> None:
    """Set a value in nested dicts."""
    for name in key[:-1]:
        target = target.setdefault(name, {})
    target[key[-1]] = value


def request(
    embodiment: Embodiment, state: WorldState, frames: list[tuple[CameraFrame, ...]],
    scene: Scene, seed: int,
) -> dict[str, Any]:
    """What is sent for a state. `frames` holds the pictures taken so far, the newest last."""
    message: dict[str, Any] = {}
    for wanted in embodiment.images:
        taken = frames[-wanted.frames :]
        pictures = [picture(wanted, _of(wanted.camera, some)) for some in taken]
        put(message, wanted.key, pictures[0] if len(pictures) == 1 else np.stack(pictures))
    for vector in embodiment.state:
        numbers = [_part(embodiment, state, part, scene) for part in vector.parts]
        put(message, vector.key, np.concatenate(numbers).astype(vector.dtype))
    if embodiment.prompt:
        put(message, embodiment.prompt, scene.instruction)
    if embodiment.seed:
        put(message, embodiment.seed, seed)
    return message


def _of(camera: str, frames: tuple[CameraFrame, ...]) -> CameraFrame:
    for frame in frames:
        if frame.camera == camera:
            return frame
    raise BenchError(f"there is no picture of the camera {camera}")


def picture(wanted: Picture, frame: CameraFrame) -> np.ndarray:
    """The picture (h, w, 3), or (3, h, w), uint8 RGB, at the size that is wanted, if one is."""
    pixels = rgb(frame)
    if wanted.width:
        pixels = _fitted(pixels, wanted)
    if wanted.rotate_180:
        pixels = pixels[::-1, ::-1]
    if wanted.layout == "chw":
        pixels = pixels.transpose(2, 0, 1)
    return np.ascontiguousarray(pixels)


def _fitted(pixels: np.ndarray, wanted: Picture) -> np.ndarray:
    height, width = pixels.shape[:2]
    size = (wanted.width, wanted.height)
    if wanted.fit == "stretch":
        return _resized(pixels, size)
    scales = (wanted.width / width, wanted.height / height)
    if wanted.fit == "pad":
        inner = [min(n, max(1, round(min(scales) * m))) for n, m in zip(size, (width, height),
                                                                        strict=True)]  # fmt: skip
        canvas = np.zeros((wanted.height, wanted.width, 3), np.uint8)
        x, y = ((n - m) // 2 for n, m in zip(size, inner, strict=True))
        canvas[y : y + inner[1], x : x + inner[0]] = _resized(pixels, (inner[0], inner[1]))
        return canvas
    keep = [min(m, round(n / max(scales))) for n, m in zip(size, (width, height), strict=True)]
    x, y = (width - keep[0]) // 2, (height - keep[1]) // 2
    return _resized(pixels[y : y + keep[1], x : x + keep[0]], size)


def _resized(pixels: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    if pixels.shape[1::-1] == size:
        return pixels
    shrinks = size[0] < pixels.shape[1]
    return cv2.resize(pixels, size, interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)


def _part(embodiment: Embodiment, state: WorldState, part: str, scene: Scene) -> np.ndarray:
    arm, _, quantity = part.partition(".")
    k = ARMS.index(arm)
    columns = list(embodiment.joints[arm])
    if quantity == "joints":
        return state.joint_position[7 * k : 7 * k + 7][columns]
    if quantity == "command":
        return state.command[8 * k : 8 * k + 7][columns]
    if quantity == "gripper":
        return _gripper(embodiment.gripper_state, state.gripper_opening[k])
    if quantity == "gripper_command":
        return _gripper(embodiment.gripper_state, state.command[8 * k + 7])
    action, pose = embodiment.action, state.ee_pose[k]
    position = pose[:3]
    if action.frame == "base":
        position = position - base_position(arm) - np.array([0.0, 0.0, scene.base_height_m])
    return np.concatenate([position, rotation_numbers(action.rotation, pose[3:])])


def _gripper(gripper: Gripper, opening_m: float) -> np.ndarray:
    if (gripper.closed, gripper.open) == (0.0, MAX_OPENING_M):
        return np.array([opening_m])  # our own unit: to the bit
    share = np.clip(opening_m / MAX_OPENING_M, 0.0, 1.0)
    return np.array([gripper.closed + share * (gripper.open - gripper.closed)])


def rotation_numbers(kind: str, quaternion: np.ndarray) -> np.ndarray:
    """A unit quaternion (w, x, y, z) in the way of `embodiment.ROTATIONS`."""
    if kind == "quaternion_wxyz":
        return np.asarray(quaternion)
    rotation = Rotation.from_quat(np.roll(quaternion, -1))
    if kind == "quaternion_xyzw":
        return rotation.as_quat()
    return rotation.as_rotvec() if kind == "rotvec" else rotation.as_euler("xyz")


def quaternion_of(kind: str, numbers: np.ndarray) -> np.ndarray:
    """Inverse of `rotation_numbers`; the quaternion is made unit. BenchError when it has none."""
    if kind.startswith("quaternion"):
        norm = float(np.linalg.norm(numbers))
        if abs(norm - 1.0) > 0.05:
            raise BenchError(f"a quaternion has length {norm:.3f}, not 1")
        unit = numbers / norm
        return unit if kind == "quaternion_wxyz" else np.roll(unit, 1)
    rotation = (
        Rotation.from_rotvec(numbers) if kind == "rotvec" else Rotation.from_euler("xyz", numbers)
    )
    return np.roll(rotation.as_quat(), 1)
