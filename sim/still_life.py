"""Pictures of things on the cell's table, seen close by, as people take them who stand there."""

from __future__ import annotations

import atexit
import hashlib
import os
import weakref
from pathlib import Path

import cv2
import numpy as np

from bench_tasks.errors import BenchError, UsageError
from bench_tasks.probes.stills import Still
from bench_tasks.probes.words import THINGS
from bench_tasks.tasks.base import ObjectSpec
from sim import gl

gl.choose()  # before mujoco is imported

import mujoco  # noqa: E402

from sim.fr3 import FR3Body  # noqa: E402
from sim.objects import COLORS  # noqa: E402
from sim.scene import build_cell  # noqa: E402

__all__ = ["Album", "Painter"]

SIZE = (320, 240)
JPEG_QUALITY = 85
VERSION = 1
"""Of what pictures look like: part of the names of those that are kept."""
SLOTS = 3
SIZES = {"block": {"size": 0.06}, "pot": {"radius": 0.06, "height": 0.08}}
CLEARLY = 1.5
"""So many times as many pixels as any other has the first thing."""
MIN_PIXELS = 150
TRIES = 60


class Painter:
    """Renders a still from one compiled cell, whose things are moved and painted for each."""

    def __init__(self) -> None:
        """Compile the cell (0.5 s); BenchError when no renderer starts."""
        specs = tuple(
            ObjectSpec(f"{kind}{k}", kind, params=SIZES.get(kind, {}))
            for kind in THINGS for k in range(SLOTS)
        )  # fmt: skip
        self._cell = build_cell(specs)
        model = self._cell.model
        self._half = {o.name: o.half_size_m for o in self._cell.objects}
        self._at = {o.name: int(model.joint(f"{o.name}_free").qposadr[0]) for o in
                    self._cell.objects}  # fmt: skip
        self._geoms = {
            o.name: np.flatnonzero(model.geom_bodyid == model.body(o.name).id)
            for o in self._cell.objects
        }
        self._data = mujoco.MjData(model)
        FR3Body(model).place(self._data)
        try:
            self._renderer = mujoco.Renderer(model, SIZE[1], SIZE[0])
            # Registered after mujoco's own exit hook and so run before it, which ends EGL.
            atexit.register(_close, weakref.ref(self._renderer))
        except Exception as error:  # each GL library has its own kinds
            name = os.environ.get("MUJOCO_GL")
            raise BenchError(f"the renderer {name} cannot start: {error}") from error
        self._option = mujoco.MjvOption()
        self._option.geomgroup[2], self._option.geomgroup[3] = False, True
        self._option.geomgroup[4] = self._option.sitegroup[4] = False

    def close(self) -> None:
        """Free the renderer."""
        self._renderer.close()

    def paint(self, still: Still) -> np.ndarray:
        """The picture (240, 320, 3) uint8, RGB.

        Places are drawn until the first thing has clearly the largest part of the picture and each
        other one some. BenchError when that is not found.
        """
        rng = np.random.default_rng([still.number, len(still.things)])
        for attempt in range(TRIES):
            names, camera = self._arrange(still, rng, attempt / TRIES)
            counts = self._pixels(names, camera)
            if min(counts) >= MIN_PIXELS and counts[0] >= CLEARLY * max(counts[1:], default=0):
                self._renderer.update_scene(self._data, camera, self._option)
                return self._renderer.render().copy()
        raise BenchError(f"no view of {still.things} shows the first clearly larger")

    def _arrange(self, still: Still, rng: np.random.Generator, near: float):
        """Put the things somewhere, and a camera, the nearer to the first the higher `near`."""
        data, model = self._data, self._cell.model
        for name, at in self._at.items():  # what is not shown is far below
            data.qpos[at : at + 7] = [0, 0, -5.0, 1, 0, 0, 0]
            model.geom_rgba[self._geoms[name], 3] = 0.0
        camera = mujoco.MjvCamera()
        camera.lookat = [rng.uniform(0.40, 0.55), rng.uniform(-0.25, 0.25), 0.03]
        camera.azimuth, camera.elevation = rng.uniform(-50, 50), rng.uniform(-38, -22)
        camera.distance = rng.uniform(0.32, 0.45) - 0.12 * near
        ahead = np.array([np.cos(np.radians(camera.azimuth)), np.sin(np.radians(camera.azimuth))])
        aside = np.array([-ahead[1], ahead[0]])
        names = []
        for k, (colour, kind) in enumerate(still.things):
            name = f"{kind}{k}"
            depth, side = 0.0, rng.uniform(-0.03, 0.03)
            if k:  # behind the first, one at its left and one at its right
                depth = rng.uniform(0.15, 0.40) + 0.1 * near
                side = (-1) ** k * rng.uniform(0.04, 0.20)
            x, y = camera.lookat[:2] + depth * ahead + side * aside
            yaw = rng.uniform(-np.pi, np.pi)
            data.qpos[self._at[name] : self._at[name] + 7] = [
                x, y, self._half[name][2], np.cos(yaw / 2), 0, 0, np.sin(yaw / 2)
            ]  # fmt: skip
            model.geom_rgba[self._geoms[name]] = [*COLORS[colour], 1.0]
            names.append(name)
        mujoco.mj_kinematics(model, data)  # no contacts: what is not shown lies in a heap
        mujoco.mj_camlight(model, data)
        return names, camera

    def _pixels(self, names: list[str], camera: mujoco.MjvCamera) -> list[int]:
        self._renderer.enable_segmentation_rendering()
        try:
            self._renderer.update_scene(self._data, camera, self._option)
            seen = self._renderer.render()
        finally:
            self._renderer.disable_segmentation_rendering()
        geoms = seen[..., 0][seen[..., 1] == int(mujoco.mjtObj.mjOBJ_GEOM)]
        return [int(np.isin(geoms, self._geoms[name]).sum()) for name in names]


def _close(renderer: weakref.ref) -> None:
    if renderer() is not None:
        renderer().close()


class Album:
    """Stills as JPEG, each rendered once and then kept in a folder by what it shows."""

    def __init__(self, folder: Path) -> None:
        """Nothing is rendered before it is asked for."""
        self._folder = folder
        self._painter: Painter | None = None

    def __call__(self, still: Still) -> bytes:
        """The picture; UsageError when the folder cannot be written."""
        what = hashlib.sha256(repr((VERSION, SIZE, JPEG_QUALITY, still)).encode()).hexdigest()[:20]
        path = self._folder / f"{what}.jpg"
        try:
            if path.exists():
                return path.read_bytes()
            self._painter = self._painter or Painter()
            picture = cv2.cvtColor(self._painter.paint(still), cv2.COLOR_RGB2BGR)
            options = [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY]
            data = cv2.imencode(".jpg", picture, options)[1].tobytes()
            self._folder.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f".{what}-{os.getpid()}.tmp")
            temporary.write_bytes(data)
            os.replace(temporary, path)
        except OSError as error:
            raise UsageError(f"cannot keep pictures in {self._folder}: {error}") from None
        return data
