"""Objects as small parametric programs: geoms on a body, and what is known of the result.

Every program takes lengths in metres; the object's frame has z up and its origin at the centre
of the bounding box, so that an object of half height h stands on the table at z = h.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass

import mujoco
import numpy as np

from bench_tasks.errors import unknown
from bench_tasks.tasks.base import ObjectSpec
from bench_tasks.vocabulary import MAX_OPENING_M, Grasp, ObjectInfo

__all__ = ["COLORS", "KINDS", "build"]

COLORS = {
    "red": (0.85, 0.12, 0.10),
    "green": (0.10, 0.65, 0.20),
    "blue": (0.12, 0.25, 0.85),
    "yellow": (0.95, 0.80, 0.10),
    "orange": (0.95, 0.45, 0.05),
    "purple": (0.50, 0.15, 0.65),
    "cyan": (0.10, 0.70, 0.75),
    "pink": (0.95, 0.45, 0.65),
    "white": (0.92, 0.92, 0.90),
    "gray": (0.55, 0.56, 0.58),
    "brown": (0.45, 0.28, 0.15),
    "black": (0.12, 0.12, 0.13),
}

DENSITY_KG_M3 = 400.0
"""Light wood; hollow things get their walls' mass."""

_DOWN = (0.0, 1.0, 0.0, 0.0)
"""Hand pointing down, fingers closing along the object's y."""
_DOWN_X = (0.0, math.sqrt(0.5), math.sqrt(0.5), 0.0)
"""Hand pointing down, fingers closing along the object's x."""


@dataclass
class _Shape:
    body: mujoco.MjsBody
    rgba: list[float]

    def box(self, position, half_size, density: float = DENSITY_KG_M3, yaw: float = 0.0) -> None:
        quat = [math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2)]
        self._geom(mujoco.mjtGeom.mjGEOM_BOX, position, half_size, density, quat)

    def cylinder(self, position, radius: float, half_height: float, quat=(1, 0, 0, 0)) -> None:
        size = [radius, half_height, 0.0]
        self._geom(mujoco.mjtGeom.mjGEOM_CYLINDER, position, size, DENSITY_KG_M3, list(quat))

    def ring(
        self, radius: float, wall: float, z_low: float, z_high: float, sides: int = 12,
        x: float = 0.0,
    ) -> None:
        """A wall standing on a circle of inner radius `radius` about (x, 0), from flat panels."""
        # Only the bottom plate rests on the table: twelve edges there would be 30 contacts.
        z_low += 0.001
        middle = radius + wall / 2
        half_width = (radius + wall) * math.tan(math.pi / sides)
        for k in range(sides):
            angle = 2 * math.pi * k / sides
            at = [x + middle * math.cos(angle), middle * math.sin(angle), (z_low + z_high) / 2]
            self.box(at, [wall / 2, half_width, (z_high - z_low) / 2], yaw=angle)

    def _geom(self, kind, position, size, density: float, quat) -> None:
        self.body.add_geom(
            type=kind, pos=list(position), size=list(size), quat=quat, density=density,
            rgba=self.rgba, friction=[0.9, 0.01, 0.0005], condim=4, group=0,
        )


def _top_grasps(half: tuple[float, float, float], depth: float) -> tuple[Grasp, ...]:
    """Grasps from above across x and across y, TCP `depth` below the top, where they fit."""
    grasps = []
    for name, quat, width in (("across_y", _DOWN, 2 * half[1]), ("across_x", _DOWN_X, 2 * half[0])):
        if width < MAX_OPENING_M - 0.01:
            grasps.append(Grasp(name, (0.0, 0.0, half[2] - depth, *quat), width))
            flipped = tuple(float(v) for v in _turn_half(quat))
            grasps.append(Grasp(f"{name}_flipped", (0.0, 0.0, half[2] - depth, *flipped), width))
    return tuple(grasps)


def _turn_half(quat) -> np.ndarray:
    """The same closing axis with the hand turned by half a turn about its own z."""
    w, x, y, z = quat
    return np.array([-z, y, -x, w])


def _block(shape: _Shape, size: float = 0.04) -> tuple[tuple, tuple[Grasp, ...]]:
    half = (size / 2,) * 3
    shape.box([0, 0, 0], half)
    return half, _top_grasps(half, min(0.02, size / 2))


def _bar(shape: _Shape, length: float = 0.2, width: float = 0.03):
    half = (width / 2, length / 2, width / 2)
    shape.box([0, 0, 0], half)
    grasps = []
    for end, y in (("left_end", length / 2 - 0.025), ("right_end", -length / 2 + 0.025)):
        for name, quat in ((end, _DOWN_X), (f"{end}_flipped", tuple(_turn_half(_DOWN_X)))):
            grasps.append(Grasp(name, (0.0, y, 0.0, *(float(v) for v in quat)), width))
    return half, tuple(grasps)


def _can(shape: _Shape, radius: float = 0.028, height: float = 0.10):
    shape.cylinder([0, 0, 0], radius, height / 2)
    half = (radius, radius, height / 2)
    return half, _top_grasps(half, 0.025)


def _bottle(shape: _Shape, radius: float = 0.03, height: float = 0.18):
    body, neck = 0.65 * height, 0.35 * height
    shape.cylinder([0, 0, -height / 2 + body / 2], radius, body / 2)
    shape.cylinder([0, 0, height / 2 - neck / 2], 0.014, neck / 2)
    half = (radius, radius, height / 2)
    return half, tuple(
        Grasp(g.name, g.pose, 0.028) for g in _top_grasps((0.014, 0.014, height / 2), 0.025)
    )


def _mug(shape: _Shape, radius: float = 0.035, height: float = 0.09):
    wall = 0.005
    # The handle sticks out 35 mm along x, so the cup stands half of that off the centre.
    cup = -0.0175
    shape.cylinder([cup, 0, -height / 2 + wall / 2], radius, wall / 2)
    shape.ring(radius - wall, wall, -height / 2, height / 2, x=cup)
    for z in (-0.022, 0.022):
        shape.box([cup + radius + 0.014, 0, z], [0.014, 0.005, 0.005])
    shape.box([cup + radius + 0.03, 0, 0], [0.005, 0.005, 0.027])
    half = (radius + 0.0175, radius, height / 2)
    grasp = Grasp("handle", (cup + radius + 0.03, 0.0, 0.01, *_DOWN), 0.01)
    return half, (grasp,)


def _bowl(shape: _Shape, radius: float = 0.06, height: float = 0.05):
    wall = 0.006
    shape.cylinder([0, 0, -height / 2 + wall / 2], radius, wall / 2)
    shape.ring(radius - wall, wall, -height / 2, height / 2)
    half = (radius, radius, height / 2)
    grasp = Grasp("rim", (0.0, radius - wall / 2, height / 2 - 0.015, *_DOWN), wall)
    return half, (grasp,)


def _plate(shape: _Shape, radius: float = 0.09, height: float = 0.02):
    wall = 0.006
    shape.cylinder([0, 0, -height / 2 + 0.003], radius - wall, 0.003)
    shape.ring(radius - wall, wall, -height / 2, height / 2, sides=16)
    grasp = Grasp("rim", (0.0, radius - wall / 2, 0.002, *_DOWN), wall)
    return (radius, radius, height / 2), (grasp,)


def _pot(shape: _Shape, radius: float = 0.08, height: float = 0.10):
    """A pot whose two handles stick out along +y and -y, each a radial bar below the rim."""
    wall, reach = 0.006, 0.055
    shape.cylinder([0, 0, -height / 2 + wall / 2], radius, wall / 2)
    shape.ring(radius - wall, wall, -height / 2, height / 2)
    z = height / 2 - 0.02
    grasps = []
    for side, sign in (("left", 1.0), ("right", -1.0)):
        shape.box([0, sign * (radius + reach / 2), z], [0.011, reach / 2, 0.009])
        for name, quat in (
            (f"{side}_handle", _DOWN_X), (f"{side}_handle_flipped", tuple(_turn_half(_DOWN_X)))
        ):
            pose = (0.0, sign * (radius + 0.036), z, *(float(v) for v in quat))
            grasps.append(Grasp(name, pose, 0.022))
    return (radius, radius + reach, height / 2), tuple(grasps)


def _roller(shape: _Shape, length: float = 0.36, radius: float = 0.02):
    """A rolling pin lying along y."""
    s = math.sqrt(0.5)
    body = length * 0.55
    shape.cylinder([0, 0, 0], radius, body / 2, (s, s, 0, 0))
    grasps = []
    for side, sign in (("left", 1.0), ("right", -1.0)):
        y = sign * (body / 2 + (length - body) / 4)
        shape.cylinder([0, y, 0], 0.012, (length - body) / 4, (s, s, 0, 0))
        grasps.append(Grasp(f"{side}_handle", (0.0, y, 0.0, *_DOWN_X), 0.024))
    return (radius, length / 2, radius), tuple(grasps)


def _tray(shape: _Shape, length: float = 0.36, width: float = 0.22, height: float = 0.04):
    """A tray with a handle at each end of y."""
    wall = 0.008
    half = (width / 2, length / 2, height / 2)
    shape.box([0, 0, -half[2] + wall / 2], [half[0], half[1], wall / 2])
    for sign in (1.0, -1.0):
        shape.box([sign * (half[0] - wall / 2), 0, 0], [wall / 2, half[1], half[2]])
        shape.box([0, sign * (half[1] - wall / 2), 0], [half[0], wall / 2, half[2]])
    grasps = tuple(
        Grasp(f"{side}_rim", (0.0, sign * (half[1] - wall / 2), half[2] - 0.012, *_DOWN), wall)
        for side, sign in (("left", 1.0), ("right", -1.0))
    )
    return half, grasps


def _basket(shape: _Shape, length: float = 0.26, width: float = 0.14, height: float = 0.08):
    """A deep, short tray; two hands need 23 cm of it to stand beside each other."""
    return _tray(shape, length, width, height)


def _cover(shape: _Shape, inside: float = 0.064, height: float = 0.06):
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
    grasps = _top_grasps((0.012, 0.012, total / 2), 0.018)
    return half, grasps


def _pad(shape: _Shape, size: float = 0.10):
    """A mark on the table that nothing can collide with."""
    shape.body.add_geom(
        type=mujoco.mjtGeom.mjGEOM_BOX, size=[size / 2, size / 2, 0.0005], rgba=shape.rgba,
        contype=0, conaffinity=0, density=0.0, group=0,
    )
    return (size / 2, size / 2, 0.0005), ()


KINDS: dict[str, Callable] = {
    "block": _block, "bar": _bar, "can": _can, "bottle": _bottle, "mug": _mug, "bowl": _bowl,
    "plate": _plate, "pot": _pot, "roller": _roller, "tray": _tray, "basket": _basket,
    "cover": _cover, "pad": _pad,
}
_FIXED = {"pad"}


def build(spec: mujoco.MjSpec, item: ObjectSpec, scale: float = 1.0) -> ObjectInfo:
    """Add `item`, its lengths times `scale`, to the world of `spec`; return what is known of it.

    UsageError on an unknown kind or colour.
    """
    if item.kind not in KINDS:
        raise unknown("object kind", item.kind, KINDS)
    if item.color not in COLORS:
        raise unknown("colour", item.color, COLORS)
    body = spec.worldbody.add_body(name=item.name)
    if item.kind not in _FIXED:
        body.add_freejoint(name=f"{item.name}_free")
    shape = _Shape(body, [*COLORS[item.color], 1.0])
    program = KINDS[item.kind]
    lengths = {
        name: scale * item.params.get(name, parameter.default)
        for name, parameter in inspect.signature(program).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }
    half, grasps = program(shape, **lengths)
    return ObjectInfo(
        item.name, item.kind, item.color, tuple(float(v) for v in half), grasps,
        fixed=item.kind in _FIXED,
    )
