"""Kitchen things: food, a skillet, a scale, a basket with an arched handle, a mug and its rack.

Lengths that are not parameters (walls, bars) stay as they are when the size varies.
"""

from __future__ import annotations

from dataclasses import replace

from sim.objects.shape import COLORS, DOWN, DOWN_X, Shape, both_ways, top_grasps

__all__ = ["FIXED", "PROGRAMS"]

WALL_M = 0.005
BAR_M = 0.016
"""Thickness of what a hand takes a skillet or a basket by."""


def _in(shape: Shape, color: str) -> Shape:
    """The same body, for geoms of another colour."""
    return replace(shape, rgba=[*COLORS[color], 1.0])


def _burger(shape: Shape, radius: float = 0.03, height: float = 0.05):
    """Two halves of a bun and what is between them."""
    bun, filling = 0.36 * height, 0.28 * height
    for sign in (1.0, -1.0):
        shape.cylinder([0, 0, sign * (height - bun) / 2], radius, bun / 2)
    _in(shape, "brown").cylinder([0, 0, 0], radius, filling / 2)
    half = (radius, radius, height / 2)
    return half, top_grasps(half, 0.025)


def _fries(shape: Shape, depth: float = 0.034, width: float = 0.05, height: float = 0.08):
    """A carton, held below its rim, with sticks that look out of it."""
    carton = 0.65 * height
    shape.box([0, 0, (carton - height) / 2], [depth / 2, width / 2, carton / 2])
    sticks = _in(shape, "yellow")
    rim, thick = carton - height / 2, 0.004
    for k, share in enumerate((0.7, 1.0, 0.6, 0.9)):
        tall = share * (height - carton)
        y = (k - 1.5) * width / 5
        sticks.box([(-1) ** k * depth / 5, y, rim + tall / 2], [thick, thick, tall / 2])
    half = (depth / 2, width / 2, height / 2)
    return half, top_grasps(half, height - carton + 0.012)


def _bread(shape: Shape, length: float = 0.075, width: float = 0.042, height: float = 0.04):
    """A short loaf along x, narrower at the top."""
    low, top = 0.7 * height, 0.3 * height
    shape.box([0, 0, (low - height) / 2], [length / 2, width / 2, low / 2])
    _in(shape, "brown").box([0, 0, (height - top) / 2], [length / 2, 0.35 * width, top / 2])
    half = (length / 2, width / 2, height / 2)
    return half, both_ways("across", (0.0, 0.0, 0.6 * low - height / 2), DOWN, width)


def _skillet(shape: Shape, radius: float = 0.075, handle: float = 0.11, height: float = 0.035):
    """A shallow pan whose handle points along +x, high enough for fingers to close on it."""
    pan = -handle / 2
    shape.cylinder([pan, 0, (WALL_M - height) / 2], radius, WALL_M / 2)
    shape.ring(radius - WALL_M, WALL_M, -height / 2, height / 2, x=pan)
    z, end = height / 2 - 0.011, radius + handle / 2
    grip = _in(shape, "brown")
    grip.box([end - handle / 2, 0, z], [handle / 2, BAR_M / 2, 0.011])
    half = (radius + handle / 2, radius, height / 2)
    return half, both_ways("handle", (end - 0.6 * handle, 0.0, z), DOWN, BAR_M)


def _scale(shape: Shape, size: float = 0.14, height: float = 0.03):
    """A kitchen scale, part of the furniture: a base with a plate on it."""
    plate = 0.006
    half = (size / 2, size / 2, height / 2)
    base = 0.43 * size
    shape.box([0, 0, -plate / 2], [base, base, (height - plate) / 2])
    _in(shape, "white").box([0, 0, (height - plate) / 2], [half[0], half[1], plate / 2])
    return half, ()


def _hand_basket(
    shape: Shape, length: float = 0.20, width: float = 0.15, side: float = 0.05,
    height: float = 0.13,
):
    """An open box along x with an arched handle across its middle, from one y side to the other."""
    low, bar = -height / 2, BAR_M / 2
    half = (length / 2, width / 2, height / 2)
    shape.box([0, 0, low + WALL_M / 2], [half[0], half[1], WALL_M / 2])
    for sign in (1.0, -1.0):
        across, along = half[0] - WALL_M / 2, half[1] - WALL_M / 2
        shape.box([sign * across, 0, low + side / 2], [WALL_M / 2, half[1], side / 2])
        shape.box([0, sign * along, low + side / 2], [half[0], WALL_M / 2, side / 2])
        shape.box([0, sign * along, 0], [bar, WALL_M / 2, half[2]])
    top = half[2] - 0.01
    _in(shape, "brown").box([0, 0, top], [bar, half[1], 0.01])
    return half, both_ways("handle", (0.0, 0.0, top), DOWN_X, BAR_M)


def _hook_mug(shape: Shape, radius: float = 0.038, height: float = 0.085):
    """A mug whose handle, sticking out along +x, is wide enough for a peg along y."""
    out, thick = 0.042, 0.008
    cup = -out / 2
    wall = cup + radius
    shape.cylinder([cup, 0, (WALL_M - height) / 2], radius, WALL_M / 2)
    shape.ring(radius - WALL_M, WALL_M, -height / 2, height / 2, x=cup)
    for z in (0.026, -0.026):
        shape.box([wall + out / 2 - 0.002, 0, z], [out / 2 + 0.002, thick / 2, thick / 2])
    shape.box([wall + out - thick / 2, 0, 0], [thick / 2, thick / 2, 0.03])
    half = (radius + out / 2, radius, height / 2)
    rim = (cup - radius + WALL_M / 2, 0.0, height / 2 - 0.015)
    return half, both_ways("rim", rim, DOWN_X, WALL_M)


def _rack(shape: Shape, height: float = 0.22, peg: float = 0.09):
    """A post on a foot, part of the furniture; its peg points along +y, rising to a knob."""
    foot, post, thick, knob = 0.05, 0.009, 0.004, 0.008
    half = (foot, (peg + foot) / 2 + post / 2, height / 2)
    y = half[1] - peg - post
    low = -height / 2
    shape.box([0, y, low + 0.006], [foot, y + half[1], 0.006])
    shape.box([0, y, 0], [post, post, half[2]])
    z = height / 2 - 0.02
    wood = _in(shape, "white")
    wood.box([0, y + post + peg / 2, z], [thick, peg / 2, thick])
    # A sleeve of felt: on bare wood a mug swings for five seconds.
    sleeve = shape.body.geoms[-1]
    sleeve.condim, sleeve.friction = 6, [1.5, 0.01, 0.003]
    wood.box([0, half[1] - 0.003, z + 0.004], [thick, 0.003, knob])
    return half, ()


PROGRAMS = {
    "burger": _burger, "fries": _fries, "bread": _bread, "skillet": _skillet, "scale": _scale,
    "hand_basket": _hand_basket, "hook_mug": _hook_mug, "rack": _rack,
}  # fmt: skip
FIXED = {"scale", "rack"}
