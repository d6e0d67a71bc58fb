"""Pictures of a cell: colour, depth, segmentation, and the calibration that goes with them."""

from __future__ import annotations

import atexit
import math
import os
import weakref
from dataclasses import dataclass

import cv2
import mujoco
import numpy as np

from bench_tasks.depth import depth_png
from bench_tasks.errors import BenchError, unknown
from bench_tasks.view import compose
from bench_tasks.vocabulary import CameraFrame, Depth
from sim.scene import CAMERAS, Cell

__all__ = ["CameraInfo", "Cameras", "camera_info"]

JPEG_QUALITY = 90
_OPTICAL_FROM_MUJOCO = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
"""Half a turn about x: MuJoCo looks along -z with y up, REP-103 optical frames along +z, y down."""


@dataclass(frozen=True)
class CameraInfo:
    """Pinhole calibration: focal length and principal point in pixels, no distortion."""

    camera: str
    width: int
    height: int
    focal_px: float
    center_px: tuple[float, float]

    @property
    def matrix(self) -> np.ndarray:
        """Intrinsic matrix (3, 3)."""
        cx, cy = self.center_px
        return np.array([[self.focal_px, 0, cx], [0, self.focal_px, cy], [0, 0, 1.0]])


def camera_info(model: mujoco.MjModel, camera: str, width: int, height: int) -> CameraInfo:
    """Calibration of a camera at an image size; UsageError on an unknown camera."""
    if camera not in CAMERAS:
        raise unknown("camera", camera, CAMERAS)
    fovy = math.radians(float(model.camera(camera).fovy[0]))
    focal = height / 2 / math.tan(fovy / 2)
    # Pixel centres are at integers in ROS images, hence the half pixel.
    return CameraInfo(camera, width, height, focal, ((width - 1) / 2, (height - 1) / 2))


class Cameras:
    """Renders one cell off screen. Created when the first picture is asked for (0.3 s)."""

    def __init__(self, cell: Cell, width: int = 320, height: int = 240) -> None:
        """Open a renderer for `cell` at this image size; BenchError when it does not start."""
        self.width, self.height = width, height
        self._cell = cell
        try:
            self._renderer = mujoco.Renderer(cell.model, height, width)
        except Exception as error:  # each GL library has its own kinds
            name = os.environ.get("MUJOCO_GL")
            raise BenchError(
                f"the renderer {name} cannot start ({' '.join(str(error).split())}): "
                "set MUJOCO_GL=egl or MUJOCO_GL=osmesa"
            ) from error
        # Registered after mujoco's own exit hook and so run before it, which ends EGL.
        atexit.register(_close, weakref.ref(self._renderer))
        self._option = mujoco.MjvOption()
        # Group 3 holds the arms' collision meshes, group 2 their visual ones.
        self._option.geomgroup[2], self._option.geomgroup[3] = cell.pretty, not cell.pretty
        self._option.geomgroup[4] = self._option.sitegroup[4] = False

    def _update(self, data: mujoco.MjData, camera: str) -> None:
        if camera not in CAMERAS:
            raise unknown("camera", camera, CAMERAS)
        self._renderer.update_scene(data, camera, self._option)
        flags = self._renderer.scene.flags
        flags[mujoco.mjtRndFlag.mjRND_SHADOW] = self._cell.pretty
        flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = self._cell.pretty

    def color(self, data: mujoco.MjData, camera: str) -> np.ndarray:
        """Colour picture (height, width, 3) uint8, RGB."""
        self._update(data, camera)
        return self._renderer.render()

    def depth(self, data: mujoco.MjData, camera: str) -> np.ndarray:
        """Distance along the optical axis (height, width) float32, m."""
        self._renderer.enable_depth_rendering()
        try:
            self._update(data, camera)
            return self._renderer.render()
        finally:
            self._renderer.disable_depth_rendering()

    def segmentation(self, data: mujoco.MjData, camera: str) -> np.ndarray:
        """Per pixel (height, width) int32 the index into the cell's entities, -1 for nothing."""
        self._renderer.enable_segmentation_rendering()
        try:
            self._update(data, camera)
            pixels = self._renderer.render()
        finally:
            self._renderer.disable_segmentation_rendering()
        geom = np.where(pixels[..., 1] == int(mujoco.mjtObj.mjOBJ_GEOM), pixels[..., 0], -1)
        entity = self._cell.geom_entity.astype(np.int32)[np.clip(geom, 0, None)]
        return np.where(geom >= 0, entity, -1)

    def pose(self, data: mujoco.MjData, camera: str) -> np.ndarray:
        """Pose (7,) of the camera's optical frame in the world."""
        if camera not in CAMERAS:
            raise unknown("camera", camera, CAMERAS)
        index = self._cell.model.camera(camera).id
        quat = np.zeros(4)
        mujoco.mju_mat2Quat(quat, data.cam_xmat[index])
        return compose(np.concatenate([data.cam_xpos[index], quat]), _OPTICAL_FROM_MUJOCO)

    def measured(self, data: mujoco.MjData, camera: str) -> Depth:
        """Depth with the calibration that takes it to the world."""
        info = camera_info(self._cell.model, camera, self.width, self.height)
        return Depth(
            depth_png(self.depth(data, camera)), tuple(info.matrix.ravel().tolist()),
            tuple(self.pose(data, camera).tolist()),
        )  # fmt: skip

    def frame(
        self, data: mujoco.MjData, camera: str, seq: int, stamp_ns: int, depth: bool = False
    ) -> CameraFrame:
        """Colour picture as JPEG, with depth if asked."""
        picture = cv2.cvtColor(self.color(data, camera), cv2.COLOR_RGB2BGR)
        _, encoded = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
        return CameraFrame(
            camera, seq, stamp_ns, self.width, self.height, "jpeg", encoded.tobytes(),
            self.measured(data, camera) if depth else None,
        )

    def close(self) -> None:
        """Free the renderer."""
        self._renderer.close()


def _close(renderer: weakref.ref) -> None:
    if renderer() is not None:
        renderer().close()
