"""Things for a humanoid that has no fingers: to be lifted between two palms, or pressed."""

from __future__ import annotations

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


PROGRAMS = {"carton": _carton, "button": _button, "post": _post}
FIXED = {"button", "post"}
