"""A contact sheet of objects: each alone on the table, in one picture."""

from __future__ import annotations

import cv2
import numpy as np

from bench_tasks.tasks.base import ObjectSpec
from sim import gl

gl.choose()  # before mujoco is imported

import mujoco  # noqa: E402

from sim.objects import build  # noqa: E402

__all__ = ["sheet"]

TILE = (240, 200)
COLUMNS = 4


def sheet(items: list[tuple[str, ObjectSpec]]) -> np.ndarray:
    """A picture (h, w, 3), BGR, of the objects with their labels, four in a row."""
    tiles = [_tile(label, item) for label, item in items]
    blank = np.full((TILE[1], TILE[0], 3), 255, np.uint8)
    tiles += [blank] * (-len(tiles) % COLUMNS)
    rows = [np.hstack(tiles[k : k + COLUMNS]) for k in range(0, len(tiles), COLUMNS)]
    return np.vstack(rows)


def _tile(label: str, item: ObjectSpec) -> np.ndarray:
    spec = mujoco.MjSpec()
    spec.visual.headlight.ambient, spec.visual.headlight.diffuse = [0.4] * 3, [0.4] * 3
    world = spec.worldbody
    world.add_light(pos=[-0.5, -0.5, 1.5], dir=[0.3, 0.3, -1.0], diffuse=[0.5] * 3)
    info = build(spec, item)
    world.add_geom(
        type=mujoco.mjtGeom.mjGEOM_PLANE, pos=[0, 0, -info.half_size_m[2]], size=[2, 2, 0.1],
        rgba=[0.72, 0.62, 0.50, 1.0],
    )
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    camera = mujoco.MjvCamera()
    camera.lookat, camera.distance = [0, 0, 0], 3.2 * float(np.linalg.norm(info.half_size_m)) + 0.02
    camera.azimuth, camera.elevation = 40.0, -32.0
    renderer = mujoco.Renderer(model, TILE[1], TILE[0])
    try:
        renderer.update_scene(data, camera)
        picture = cv2.cvtColor(renderer.render(), cv2.COLOR_RGB2BGR)
    finally:
        renderer.close()
    cv2.putText(
        picture, label, (6, TILE[1] - 8), cv2.FONT_HERSHEY_SIMPLEX, 0.42, (20, 20, 20), 1,
        cv2.LINE_AA,
    )
    return picture
