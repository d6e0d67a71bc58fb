"""Objects for two hands: a microphone to pass on, and what one pours from and into."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from bench_tasks.view import compose, quat_from_yaw
from bench_tasks.vocabulary import Grasp
from sim.objects.shape import DOWN_X, Shape, both_ways

_PITCH_RAD = math.radians(20)
AHEAD = (math.cos((math.pi / 2 + _PITCH_RAD) / 2), 0.0, math.sin((math.pi / 2 + _PITCH_RAD) / 2),
         0.0)  # fmt: skip
"""Hand pointing along the object's +x and 20 degrees down, fingers closing along its y."""


def _microphone(shape: Shape, length: float = 0.20, width: float = 0.026, head: float = 0.058):
    """A handle lying along y with a round head at +y, as thick as the handle so that it lies flat.

    `head` is the head's diameter.
    """
    radius, half = head / 2, length / 2
    # The handle reaches a little into the head, whose rim is round.
    low, high = -half, half - 2 * radius + 0.006
    shape.box([0, (low + high) / 2, 0], [width / 2, (high - low) / 2, width / 2])
    shape.cylinder([0, half - radius, 0], radius, width / 2)
    # Flat where fingers close on it: between parallel fingers a disc turns about the vertical.
    shape.box([0, half - radius, 0], [radius + 0.001, 0.011, width / 2])
    grasps = (
        *both_ways("head", (0.0, half - radius, 0.0), DOWN_X, head + 0.002),
        *both_ways("handle", (0.0, low + 0.025, 0.0), DOWN_X, width),
    )
    return (radius + 0.001, half, width / 2), grasps


def _saucepan(shape: Shape, radius: float = 0.07, height: float = 0.05, reach: float = 0.055):
    """A bowl with one handle, a bar of length `reach` that sticks out along +y below the rim."""
    wall, floor = 0.004, 0.010  # what falls into it must not pass through the floor
    middle = -reach / 2
    low = -height / 2
    shape.cylinder([0, middle, low + (floor - 0.0005) / 2], radius, (floor - 0.0005) / 2)
    # Small things come to rest on a box; on a cylinder they tremble.
    half = 0.7 * radius
    light = replace(shape, density=1.0)
    light.box([0, middle, low + 0.75 * floor], [half, half, 0.25 * floor])
    for k in range(12):
        angle = 2 * math.pi * k / 12
        rim = 0.8 * radius
        light.box(
            [rim * math.cos(angle), middle + rim * math.sin(angle), low + 0.75 * floor],
            [radius - wall - rim, rim * math.tan(math.pi / 12), 0.25 * floor], angle,
        )
        inner = radius - wall / 2
        shape.box(
            [inner * math.cos(angle), middle + inner * math.sin(angle), 0.0005],
            [wall / 2, radius * math.tan(math.pi / 12), height / 2 - 0.0005], yaw=angle,
        )
    # MuJoCo's usual contacts yield for 20 ms, in which small things that fall would pass through.
    for geom in shape.body.geoms:
        geom.solref, geom.priority = [0.005, 1.0], 1
    z = height / 2 - 0.012
    shape.box([0, middle + radius + reach / 2, z], [0.011, reach / 2, 0.012])
    grasps = both_ways("handle", (0.0, middle + radius + reach - 0.02, z), DOWN_X, 0.022)
    return (radius, radius + reach / 2, height / 2), grasps


def _beaker(shape: Shape, radius: float = 0.029, height: float = 0.13):
    """A tall cup to be held from the side, as one does to pour."""
    wall = 0.004
    shape.cylinder([0, 0, -height / 2 + wall / 2], radius, wall / 2)
    shape.ring(radius - wall, wall, -height / 2, height / 2)
    grasps = []
    for name, yaw in (("side", 0), ("side_left", 30), ("side_right", -30)):  # on flat panels
        turn = np.concatenate([np.zeros(3), quat_from_yaw(math.radians(yaw))])
        at = compose(turn, np.array([0.0, 0.0, 0.01, *AHEAD]))
        grasps.append(Grasp(name, tuple(float(v) for v in at), 2 * radius))
    return (radius, radius, height / 2), tuple(grasps)


PROGRAMS = {"microphone": _microphone, "saucepan": _saucepan, "beaker": _beaker}
