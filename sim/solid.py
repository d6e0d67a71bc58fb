"""What an object is as one solid: watertight or not, in one piece or not, and its measures."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from bench_tasks.errors import UsageError
from bench_tasks.tasks.base import ObjectSpec
from bench_tasks.vocabulary import ObjectInfo
from sim.objects import build
from sim.objects.edits import solids

__all__ = ["Solid", "solid_of"]

GLUE_M = 0.0002
"""Parts this close to each other are one piece: many touch along a plane or a line alone."""


@dataclass(frozen=True)
class Solid:
    """Measures of the union of all parts, in m, m^2, m^3 and kg.

    `watertight` is whether each part is a closed surface about a volume; `pieces` in how many
    pieces they hang together; `center_m` the height of the centre of mass above the bottom.
    """

    info: ObjectInfo
    watertight: bool
    pieces: int
    parts: int
    volume: float
    area: float
    mass_kg: float
    center_m: float

    def descriptor(self) -> np.ndarray:
        """Numbers (7,) of order 1 by whose distance shapes are told apart; size counts half."""
        half = np.array(self.info.half_size_m)
        return np.array([
            *(0.5 * np.log(half)), self.volume / np.prod(2 * half),
            0.5 * np.log(self.area**1.5 / self.volume), self.center_m / half[2],
            0.2 * np.log(self.parts),
        ])  # fmt: skip


def solid_of(item: ObjectSpec) -> Solid:
    """Build the object and measure it. Unfit when an edit of it does not fit."""
    try:
        from manifold3d import Error, Manifold, OpType
    except ModuleNotFoundError:
        raise UsageError(
            "evolving objects needs manifold3d: pip install -r requirements/base.txt"
        ) from None
    spec = mujoco.MjSpec()
    info = build(spec, item)
    hulls, glued = [], []
    for _, points in solids(spec, spec.geoms):
        hulls.append(Manifold.hull_points(points))
        middle = points.mean(axis=0)
        reach = np.abs(points - middle).max(axis=0)
        glued.append(Manifold.hull_points(middle + (points - middle) * (1 + GLUE_M / reach)))
    whole = Manifold.batch_boolean(hulls, OpType.Add)
    pieces = len(Manifold.batch_boolean(glued, OpType.Add).decompose())
    watertight = whole.status() == Error.NoError and all(
        hull.status() == Error.NoError and hull.volume() > 1e-10 for hull in hulls
    )
    body = spec.compile().body(item.name)
    return Solid(
        info, watertight, pieces, len(hulls), whole.volume(), whole.surface_area(),
        float(body.mass[0]), float(body.ipos[2]) + info.half_size_m[2],
    )
