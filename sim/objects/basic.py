"""The first objects: blocks and bars, cans, crockery, things with two handles, covers, marks."""

from __future__ import annotations

import math
from dataclasses import replace

import mujoco

from bench_tasks.vocabulary import Grasp
from sim.objects.shape import DOWN, DOWN_X, Shape, top_grasps, turn_half

POT_DENSITY_KG_M3 = 2100.0
"""Makes a pot of about 1 kg, as one of 2 mm steel would be."""


def _block(shape: Shape, size: float = 0.04) -> tuple[tuple, tuple[Grasp, ...]]:
    half = (size / 2,) * 3
    shape.box([0, 0, 0], half)
    return half, top_grasps(half, min(0.02, size / 2))


def _bar(shape: Shape, length: float = 0.2, width: float = 0.03):
    half = (width / 2, length / 2, width / 2)
    shape.box([0, 0, 0], half)
    grasps = []
    for end, y in (("left_end", length / 2 - 0.025), ("right_end", -length / 2 + 0.025)):
        for name, quat in ((end, DOWN_X), (f"{end}_flipped", tuple(turn_half(DOWN_X)))):
            grasps.append(Grasp(name, (0.0, y, 0.0, *(float(v) for v in quat)), width))
    return half, tuple(grasps)


def _can(shape: Shape, radius: float = 0.028, height: float = 0.10):
    shape.cylinder([0, 0, 0], radius, height / 2)
    half = (radius, radius, height / 2)
    return half, top_grasps(half, 0.025)


def _bottle(shape: Shape, radius: float = 0.03, height: float = 0.18):
    body, neck = 0.65 * height, 0.35 * height
    shape.cylinder([0, 0, -height / 2 + body / 2], radius, body / 2)
    shape.cylinder([0, 0, height / 2 - neck / 2], 0.012, neck / 2)
    # A square cap: round things this thin jam in the fingers' grooves and follow one of them.
    shape.box([0, 0, height / 2 - 0.018], [0.014, 0.014, 0.018])
    half = (radius, radius, height / 2)
    return half, tuple(
        Grasp(g.name, g.pose, 0.028) for g in top_grasps((0.014, 0.014, height / 2), 0.025)
    )


def _mug(shape: Shape, radius: float = 0.035, height: float = 0.09):
    wall = 0.005
    # The handle sticks out 35 mm along x, so the cup stands half of that off the centre.
    cup = -0.0175
    shape.cylinder([cup, 0, -height / 2 + wall / 2], radius, wall / 2)
    shape.ring(radius - wall, wall, -height / 2, height / 2, x=cup)
    for z in (-0.022, 0.022):
        shape.box([cup + radius + 0.014, 0, z], [0.014, 0.005, 0.005])
    shape.box([cup + radius + 0.03, 0, 0], [0.005, 0.005, 0.027])
    half = (radius + 0.0175, radius, height / 2)
    grasp = Grasp("handle", (cup + radius + 0.03, 0.0, 0.01, *DOWN), 0.01)
    return half, (grasp,)


def _bowl(shape: Shape, radius: float = 0.06, height: float = 0.05):
    wall = 0.006
    shape.cylinder([0, 0, -height / 2 + wall / 2], radius, wall / 2)
    shape.ring(radius - wall, wall, -height / 2, height / 2)
    half = (radius, radius, height / 2)
    grasp = Grasp("rim", (0.0, radius - wall / 2, height / 2 - 0.015, *DOWN), wall)
    return half, (grasp,)


def _plate(shape: Shape, radius: float = 0.09, height: float = 0.02):
    wall = 0.006
    shape.cylinder([0, 0, -height / 2 + 0.003], radius - wall, 0.003)
    shape.ring(radius - wall, wall, -height / 2, height / 2, sides=16)
    grasp = Grasp("rim", (0.0, radius - wall / 2, 0.002, *DOWN), wall)
    return (radius, radius, height / 2), (grasp,)


def _pot(shape: Shape, radius: float = 0.08, height: float = 0.10):
    """A pot whose two handles stick out along +y and -y, each a radial bar below the rim."""
    wall, reach = 0.006, 0.055
    shape = replace(shape, density=POT_DENSITY_KG_M3)
    shape.cylinder([0, 0, -height / 2 + wall / 2], radius, wall / 2)
    shape.ring(radius - wall, wall, -height / 2, height / 2)
    z = height / 2 - 0.02
    grasps = []
    for side, sign in (("left", 1.0), ("right", -1.0)):
        shape.box([0, sign * (radius + reach / 2), z], [0.011, reach / 2, 0.009])
        for name, quat in (
            (f"{side}_handle", DOWN_X), (f"{side}_handle_flipped", tuple(turn_half(DOWN_X)))
        ):
            pose = (0.0, sign * (radius + 0.036), z, *(float(v) for v in quat))
            grasps.append(Grasp(name, pose, 0.022))
    return (radius, radius + reach, height / 2), tuple(grasps)


def _roller(shape: Shape, length: float = 0.36, radius: float = 0.02):
    """A rolling pin lying along y, with square collars that keep it from rolling away."""
    s = math.sqrt(0.5)
    body = length * 0.55
    shape.cylinder([0, 0, 0], radius, body / 2, (s, s, 0, 0))
    for sign in (1.0, -1.0):
        shape.box([0, sign * (body / 2 - 0.006), 0], [radius, 0.006, radius])
    grasps = []
    for side, sign in (("left", 1.0), ("right", -1.0)):
        y = sign * (body / 2 + (length - body) / 4)
        shape.cylinder([0, y, 0], 0.012, (length - body) / 4, (s, s, 0, 0))
        grasps.append(Grasp(f"{side}_handle", (0.0, y, 0.0, *DOWN_X), 0.024))
    return (radius, length / 2, radius), tuple(grasps)


def _tray(shape: Shape, length: float = 0.36, width: float = 0.22, height: float = 0.04):
    """A tray with a handle at each end of y."""
    wall = 0.008
    half = (width / 2, length / 2, height / 2)
    shape.box([0, 0, -half[2] + wall / 2], [half[0], half[1], wall / 2])
    # Only the floor rests on the table: four more edges there would double the contacts.
    gap = 0.0005
    for sign in (1.0, -1.0):
        shape.box([sign * (half[0] - wall / 2), 0, gap], [wall / 2, half[1], half[2] - gap])
        shape.box([0, sign * (half[1] - wall / 2), gap], [half[0], wall / 2, half[2] - gap])
    grasps = tuple(
        Grasp(f"{side}_rim", (0.0, sign * (half[1] - wall / 2), half[2] - 0.012, *DOWN), wall)
        for side, sign in (("left", 1.0), ("right", -1.0))
    )
    return half, grasps


def _basket(shape: Shape, length: float = 0.26, width: float = 0.14, height: float = 0.08):
    """A deep, short tray; two hands need 23 cm of it to stand beside each other."""
    return _tray(shape, length, width, height)


def _cover(shape: Shape, inside: float = 0.064, height: float = 0.06):
    """An open-bottomed box with a knob on top, to put over a block."""
    wall, knob = 0.004, 0.035
    outer = inside / 2 + wall
    total = height + wall + knob
    low = -total / 2
    for sign in (1.0, -1.0):
        shape.box(
            [sign * (outer - wall / 2), 0, low + height / 2], [wall / 2, outer, height / 2]
        )
        shape.box(
            [0, sign * (outer - wall / 2), low + height / 2], [outer - wall, wall / 2, height / 2]
        )
    shape.box([0, 0, low + height + wall / 2], [outer, outer, wall / 2])
    shape.box([0, 0, low + height + wall + knob / 2], [0.012, 0.012, knob / 2])
    half = (outer, outer, total / 2)
    grasps = top_grasps((0.012, 0.012, total / 2), 0.018)
    return half, grasps


def _pad(shape: Shape, size: float = 0.10):
    """A mark on the table that nothing can collide with."""
    shape.body.add_geom(
        type=mujoco.mjtGeom.mjGEOM_BOX, size=[size / 2, size / 2, 0.0005], rgba=shape.rgba,
        contype=0, conaffinity=0, density=0.0, group=0,
    )
    return (size / 2, size / 2, 0.0005), ()


PROGRAMS = {
    "block": _block, "bar": _bar, "can": _can, "bottle": _bottle, "mug": _mug, "bowl": _bowl,
    "plate": _plate, "pot": _pot, "roller": _roller, "tray": _tray, "basket": _basket,
    "cover": _cover, "pad": _pad,
}  # fmt: skip
FIXED = {"pad"}
