"""Bowls that nest, and a dustbin."""

from __future__ import annotations

import math

from bench_tasks.vocabulary import Grasp
from sim.objects.shape import Shape

__all__ = ["FIXED", "PROGRAMS"]

_SLOPE_RAD = math.radians(25.0)
_SIDES = 16
_FOOT_SHARE = 0.37
"""Height of a nest bowl's solid foot over its own: by this much nested bowls rise."""


def _turned(yaw: float, lean: float) -> list[float]:
    """Quaternion of a lean about y (outwards along x), then a turn about the vertical."""
    a, b = math.cos(yaw / 2), math.sin(yaw / 2)
    c, s = math.cos(lean / 2), math.sin(lean / 2)
    return [a * c, -b * s, a * s, b * c]


def _nest_bowl(shape: Shape, radius: float = 0.068, height: float = 0.06):
    """A conical bowl. Its foot stands on the foot of the bowl below it when they are nested.

    The foot is high enough for a finger to fit between the rims of nested bowls, and the cone
    wide enough to let the next one in a few millimetres off the axis.
    """
    wall = 0.005 * height / 0.06
    foot = _FOOT_SHARE * height
    sin, cos = math.sin(_SLOPE_RAD), math.cos(_SLOPE_RAD)
    # Only the foot rests on the table.
    slant = (height - 0.001 - wall * sin) / cos
    middle = radius - slant / 2 * sin - wall / 2 * cos
    level = height / 2 - slant / 2 * cos - wall / 2 * sin
    shape.cylinder([0, 0, (foot - height) / 2], middle - slant / 2 * sin, foot / 2)
    half_width = radius * math.tan(math.pi / _SIDES)
    for k in range(_SIDES):
        yaw = 2 * math.pi * k / _SIDES
        shape.panel(
            [middle * math.cos(yaw), middle * math.sin(yaw), level],
            [wall / 2, half_width, slant / 2], _turned(yaw, _SLOPE_RAD),
        )
    # The hand leans outwards along the wall, near the rim, and points ahead on either side.
    along = slant / 2 - 0.008
    out, up = middle + along * sin, level + along * cos
    c, s = math.cos(_SLOPE_RAD / 2), math.sin(_SLOPE_RAD / 2)
    grasps = (
        Grasp("left_rim", (0.0, out, up, s, c, 0.0, 0.0), wall),
        Grasp("right_rim", (0.0, -out, up, -s, c, 0.0, 0.0), wall),
    )
    return (radius, radius, height / 2), grasps


def _dustbin(shape: Shape, size: float = 0.19, height: float = 0.13):
    """A square bin without a lid, its floor heavy enough to keep it standing."""
    wall, floor = 0.005, 0.012
    half = (size / 2, size / 2, height / 2)
    shape.box([0, 0, -half[2] + floor / 2], [half[0], half[1], floor / 2])
    for sign in (1.0, -1.0):
        shape.box([sign * (half[0] - wall / 2), 0, 0], [wall / 2, half[1], half[2]])
        shape.box([0, sign * (half[1] - wall / 2), 0], [half[0] - wall, wall / 2, half[2]])
    return half, ()


PROGRAMS = {"nest_bowl": _nest_bowl, "dustbin": _dustbin}
FIXED: set[str] = set()
