"""Drawing layouts with minimum clearances, and choosing arms: shared by the tasks."""

from __future__ import annotations

import numpy as np

from bench_tasks.errors import BenchError
from bench_tasks.view import View, quat_from_yaw
from bench_tasks.vocabulary import ARMS

__all__ = ["arm_for", "nearest_first", "scatter", "upright"]

_TRIES = 2000


def upright(x_m: float, y_m: float, z_m: float, yaw_rad: float = 0.0) -> np.ndarray:
    """Pose (7,) standing upright at a point, turned about the vertical."""
    return np.concatenate([[x_m, y_m, z_m], quat_from_yaw(yaw_rad)])


def scatter(
    rng: np.random.Generator,
    half_heights_m: dict[str, float],
    x: tuple[float, float],
    y: tuple[float, float],
    gap_m: float,
    keep_out: tuple[tuple[float, float, float, float], ...] = (),
    yaw_rad: float = 0.5,
    apart: tuple[tuple[float, float], ...] = (),
) -> dict[str, np.ndarray]:
    """Draw upright poses on the table, centres at least `gap_m` apart.

    `keep_out` are rectangles (x0, x1, y0, y1) that no centre may fall in; `apart` are further
    points (x, y) to keep `gap_m` from; `yaw_rad` bounds the turn. BenchError when 2000 draws
    find nothing: the region is too crowded for these clearances.
    """
    for _ in range(_TRIES):
        points: list[np.ndarray] = []
        for _name in half_heights_m:
            point = np.array([rng.uniform(*x), rng.uniform(*y)])
            if any(a <= point[0] <= b and c <= point[1] <= d for a, b, c, d in keep_out):
                break
            if any(np.linalg.norm(point - np.asarray(q)) < gap_m for q in [*points, *apart]):
                break
            points.append(point)
        else:
            return {
                name: upright(p[0], p[1], half, rng.uniform(-yaw_rad, yaw_rad))
                for (name, half), p in zip(half_heights_m.items(), points, strict=True)
            }
    raise BenchError(
        f"no layout of {', '.join(half_heights_m)} with {gap_m} m between centres was found "
        f"in {_TRIES} draws"
    )


def nearest_first(pose: np.ndarray) -> tuple[str, ...]:
    """Both arms, the one on the side of `pose` first: to find that the other fails takes long."""
    return ARMS if pose[1] >= 0.0 else ARMS[::-1]


def arm_for(view: View, name: str) -> str:
    """The arm on the object's side of the table."""
    return "left" if view.position(name)[1] >= 0.0 else "right"
