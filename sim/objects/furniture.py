"""A drawer, and the slot that it is pulled out of."""

from __future__ import annotations

from sim.objects.shape import Shape, top_grasps

__all__ = ["FIXED", "PROGRAMS"]


def _drawer(shape: Shape, size: float = 0.08, height: float = 0.04):
    """A box with a knob on top to pull it by; it is never looked into."""
    knob = 0.035
    half = (size / 2, size / 2, (height + knob) / 2)
    shape.box([0, 0, height / 2 - half[2]], [half[0], half[1], height / 2])
    shape.box([0, 0, half[2] - knob / 2], [0.012, 0.012, knob / 2])
    return half, top_grasps((0.012, 0.012, half[2]), 0.018)[:2]


def _slot(shape: Shape, inside: float = 0.084, depth: float = 0.09, height: float = 0.025):
    """Rails on both sides of a drawer, along x, and a stop behind it; lower than the drawer."""
    wall = 0.006
    half = (depth / 2, inside / 2 + wall, height / 2)
    for sign in (1.0, -1.0):
        shape.box([0, sign * (half[1] - wall / 2), 0], [half[0], wall / 2, half[2]])
    shape.box([half[0] - wall / 2, 0, 0], [wall / 2, inside / 2, half[2]])
    return half, ()


PROGRAMS = {"drawer": _drawer, "slot": _slot}
FIXED = {"slot"}
