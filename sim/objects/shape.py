"""What parametric programs are written with: geoms on a body, and grasps from above."""

from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco
import numpy as np

from bench_tasks.vocabulary import MAX_OPENING_M, Grasp

__all__ = [
    "COLORS", "DENSITY_KG_M3", "DOWN", "DOWN_X", "Shape", "both_ways", "top_grasps", "turn_half",
]

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

DOWN = (0.0, 1.0, 0.0, 0.0)
"""Hand pointing down, fingers closing along the object's y."""
DOWN_X = (0.0, math.sqrt(0.5), math.sqrt(0.5), 0.0)
"""Hand pointing down, fingers closing along the object's x."""


@dataclass
class Shape:
    """The body that a program adds its geoms to, all of one colour and one material."""

    body: mujoco.MjsBody
    rgba: list[float]
    density: float = DENSITY_KG_M3

    def box(self, position, half_size, yaw: float = 0.0) -> None:
        """A box turned by `yaw` (rad) about the vertical."""
        quat = [math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2)]
        self._geom(mujoco.mjtGeom.mjGEOM_BOX, position, half_size, quat)

    def panel(self, position, half_size, quat) -> None:
        """A box turned any way by `quat`."""
        self._geom(mujoco.mjtGeom.mjGEOM_BOX, position, half_size, list(quat))

    def cylinder(self, position, radius: float, half_height: float, quat=(1, 0, 0, 0)) -> None:
        """A cylinder, standing unless `quat` turns it."""
        size = [radius, half_height, 0.0]
        self._geom(mujoco.mjtGeom.mjGEOM_CYLINDER, position, size, list(quat))

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

    def _geom(self, kind, position, size, quat) -> None:
        self.body.add_geom(
            type=kind, pos=list(position), size=list(size), quat=quat, density=self.density,
            rgba=self.rgba, friction=[0.9, 0.01, 0.0005], condim=4, group=0,
        )


def top_grasps(half: tuple[float, float, float], depth: float) -> tuple[Grasp, ...]:
    """Grasps from above across x and across y, TCP `depth` below the top, where they fit."""
    grasps = []
    for name, quat, width in (("across_y", DOWN, 2 * half[1]), ("across_x", DOWN_X, 2 * half[0])):
        if width < MAX_OPENING_M - 0.01:
            grasps.append(Grasp(name, (0.0, 0.0, half[2] - depth, *quat), width))
            flipped = tuple(float(v) for v in turn_half(quat))
            grasps.append(Grasp(f"{name}_flipped", (0.0, 0.0, half[2] - depth, *flipped), width))
    return tuple(grasps)


def turn_half(quat) -> np.ndarray:
    """The same closing axis with the hand turned by half a turn about its own z."""
    w, x, y, z = quat
    return np.array([-z, y, -x, w])


def both_ways(name: str, position, quat, width_m: float) -> tuple[Grasp, Grasp]:
    """The grasp with the TCP at `position` (3,), and the same with the hand turned half round."""
    return tuple(
        Grasp(label, (*(float(v) for v in position), *(float(v) for v in turned)), width_m)
        for label, turned in ((name, quat), (f"{name}_flipped", turn_half(quat)))
    )
