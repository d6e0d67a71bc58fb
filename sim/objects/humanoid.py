"""Things for a humanoid that has no fingers: to be lifted between palms, pressed, or hooked."""

from __future__ import annotations

import math
from dataclasses import replace

from sim.objects.shape import Shape

__all__ = ["FIXED", "PROGRAMS"]

CARTON_DENSITY_KG_M3 = 50.0
"""Some 0.4 kg in a carton that takes two hands."""


def _carton(shape: Shape, depth: float = 0.16, width: float = 0.18, height: float = 0.30):
    half = (depth / 2, width / 2, height / 2)
    replace(shape, density=CARTON_DENSITY_KG_M3).box([0, 0, 0], half)
    return half, ()


def _button(shape: Shape, size: float = 0.07):
    """A cube, part of the furniture, to be pressed from the side or from above."""
    half = (size / 2, size / 2, size / 2)
    shape.box([0, 0, 0], half)
    return half, ()


def _post(shape: Shape, height: float = 0.05, size: float = 0.028):
    """What a button stands on: an object of its own, since to touch it is not to press."""
    half = (size / 2, size / 2, height / 2)
    shape.box([0, 0, 0], half)
    return half, ()


def _hoop(shape: Shape, radius: float = 0.16, wall: float = 0.012, depth: float = 0.04):
    """A hoop across x that stands on a foot: a hand goes through it and lifts it as by a handle."""
    foot, sides, outer = 0.03, 16, radius + wall
    half = (0.05, outer, outer + foot / 2)
    middle = radius + wall / 2
    for k in range(sides):
        angle = 2 * math.pi * k / sides
        at = [0, middle * math.cos(angle), foot / 2 + middle * math.sin(angle)]
        size = [depth / 2, wall / 2, outer * math.tan(math.pi / sides)]
        shape.panel(at, size, [math.cos(angle / 2), math.sin(angle / 2), 0.0, 0.0])
    # Of felt: what is bare swings for seconds. Its friction counts, not that of what touches it.
    for geom in shape.body.geoms:
        geom.condim, geom.priority, geom.friction = 6, 2, [1.2, 0.02, 0.003]
    # It ends inside the hoop, so that both are one piece.
    shape.box([0, 0, foot / 2 + 0.003 - half[2]], [half[0], 0.07, foot / 2 + 0.003])
    return half, ()


PROGRAMS = {"carton": _carton, "button": _button, "post": _post, "hoop": _hoop}
FIXED = {"button", "post"}
