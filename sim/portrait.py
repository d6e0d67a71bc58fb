"""A picture of what a task is about: a camera's view, cut to where the objects are."""

from __future__ import annotations

import cv2
import numpy as np

from bench_tasks.errors import UsageError
from bench_tasks.view import compose, invert, rotate
from bench_tasks.vocabulary import ARMS, WorldState
from sim.cameras import camera_info
from sim.world import SimWorld

__all__ = ["SIZE", "portrait", "window"]

SIZE = (480, 360)
RENDERED = (960, 720)
"""Larger than what is kept, so that a part of it is still sharp."""
MARGIN_M = 0.04
MIN_SHARE = 0.55
"""The part of the view's width that is always shown: enough to see whose arms they are."""
_CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)


def window(
    world: SimWorld, camera: str, states: tuple[WorldState, ...]
) -> tuple[int, int, int, int]:
    """Columns and rows (left, top, right, bottom) of `RENDERED` that show the objects and hands.

    All objects as they are in each of the states, and the hands that are close to one, with a
    margin, in the picture's own proportions. `camera` must be one that stands still.
    """
    assert world.scene is not None
    points = []
    for state in states:
        for item, pose in zip(world.scene.objects, state.object_pose, strict=True):
            half = np.array([*2 * [max(item.half_size_m[:2]) + MARGIN_M], item.half_size_m[2]])
            points += [pose[:3] + corner * half for corner in _CORNERS]
        for k in range(len(ARMS)):
            tcp = state.ee_pose[k]
            if (np.linalg.norm(state.object_pose[:, :3] - tcp[:3], axis=1) < 0.25).any():
                # From the fingertips up to the flange.
                points += [tcp[:3], compose(tcp, np.array([0, 0, -0.25, 1.0, 0, 0, 0]))[:3]]
    width, height = RENDERED
    info = camera_info(world.model, camera, width, height)
    eye = world.cameras.pose(world.data, camera)
    turn = invert(eye)[3:]
    seen = [info.matrix @ rotate(turn, point - eye[:3]) for point in points]
    pixels = np.array([p[:2] / p[2] for p in seen if p[2] > 0.05])
    low = np.clip(pixels.min(axis=0), 0, RENDERED)
    high = np.clip(pixels.max(axis=0), 0, RENDERED)
    share = min(1.0, max(MIN_SHARE, *((high - low) / RENDERED)))
    size = np.rint(share * np.array(RENDERED)).astype(int)
    corner = np.clip(np.rint((low + high - size) / 2), 0, np.array(RENDERED) - size).astype(int)
    left, top = (int(v) for v in corner)
    return left, top, left + int(size[0]), top + int(size[1])


def portrait(world: SimWorld, camera: str, states: tuple[WorldState, ...]) -> np.ndarray:
    """The world as it is now (SIZE, RGB), cut to where the objects are in any of `states`.

    UsageError when the world does not draw pictures of the size that is cut.
    """
    picture = world.cameras.color(world.data, camera)
    if picture.shape[1::-1] != RENDERED:
        raise UsageError(f"the world must draw pictures of {RENDERED}, got {picture.shape[1::-1]}")
    left, top, right, bottom = window(world, camera, states)
    return cv2.resize(picture[top:bottom, left:right], SIZE, interpolation=cv2.INTER_AREA)
