"""Calibration, depth, segmentation and colour agree with the world and with each other."""

from __future__ import annotations

import subprocess
import sys

import cv2
import drill
import mujoco
import numpy as np
import pytest

from bench_tasks.errors import BenchError, UsageError
from bench_tasks.tasks.base import ObjectSpec
from bench_tasks.tasks.families.layouts import upright
from bench_tasks.view import compose, invert, rotate, rotation_matrix
from bench_tasks.vocabulary import ARMS
from sim.cameras import Cameras, camera_info
from sim.scene import CAMERAS
from sim.world import SimWorld

WIDTH, HEIGHT = 320, 240
NAMES = {"block": "red", "can": "blue", "bottle": "green", "bar": "yellow"}
UNDER = ((0.307, 0.35), (0.307, -0.35))
"""Below the hands at home."""


@pytest.fixture(scope="module")
def patch():
    with pytest.MonkeyPatch.context() as patch:
        task = drill.Drill(
            "still_life",
            [
                *(ObjectSpec(name, name, color) for name, color in NAMES.items()),
                ObjectSpec("left_block", "block", "cyan"),
                ObjectSpec("right_block", "block", "pink"),
                ObjectSpec("pad", "pad", "purple"),
            ],
            {
                "block": upright(0.4, 0.2, 0.02, 0.3), "can": upright(0.55, 0.05, 0.05),
                "bottle": upright(0.5, -0.2, 0.09), "bar": upright(0.62, 0.3, 0.015, 1.0),
                "left_block": upright(*UNDER[0], 0.02), "right_block": upright(*UNDER[1], 0.02),
                "pad": upright(0.42, -0.05, 0.0005),
            },
        )
        drill.register(patch, task)
        yield patch


@pytest.fixture(scope="module")
def world(patch):
    world = SimWorld(width=WIDTH, height=HEIGHT)
    world.reset("still_life", 0)
    return world


def visible(camera: str) -> list[str]:
    """The objects that the camera must see from home."""
    if camera in ("head", "third"):
        return [*NAMES, "left_block", "right_block", "pad"]
    return [f"{camera.split('_')[0]}_block"]


def project(world, camera: str, point) -> tuple[np.ndarray, float]:
    """Pixel (u, v) and depth (m) of a world point, by pinhole calibration and pose alone."""
    info = camera_info(world.model, camera, WIDTH, HEIGHT)
    pose = world.cameras.pose(world.data, camera)
    x, y, z = rotate(invert(pose)[3:], np.asarray(point) - pose[:3])
    u, v, w = info.matrix @ np.array([x, y, z])
    return np.array([u / w, v / w]), float(z)


@pytest.mark.parametrize("camera", CAMERAS)
def test_a_known_object_is_at_the_pixel_it_projects_to(world, camera):
    cameras = world.cameras
    picture = cameras.segmentation(world.data, camera)
    assert picture.shape == (HEIGHT, WIDTH)
    for name in visible(camera):
        at = world.state.object_pose[world.scene.index(name), :3]
        (u, v), _ = project(world, camera, at)
        found = picture[round(v), round(u)]
        assert found >= 0 and world.scene.entities[found] == name


@pytest.mark.parametrize("camera", CAMERAS)
def test_the_middle_of_what_is_seen_is_the_projected_middle(world, camera):
    """Half a pixel of error in the principal point or 1 % in the focal length would show."""
    picture = world.cameras.segmentation(world.data, camera)
    for name in ("left_block", "right_block", "block"):
        if name not in visible(camera):
            continue
        pose = world.state.object_pose[world.scene.index(name)]
        rows, columns = np.nonzero(picture == world.scene.entities.index(name))
        corners = np.array(
            [
                project(world, camera, compose(pose, np.array([*c, 1, 0, 0, 0]))[:3])[0]
                for c in 0.02 * (np.indices((2, 2, 2)).reshape(3, -1).T * 2.0 - 1)
            ]
        )
        seen = [columns.min(), rows.min(), columns.max(), rows.max()]
        want = [*corners.min(axis=0), *corners.max(axis=0)]
        assert seen == pytest.approx(want, abs=1.5)
        middle = (corners.min(axis=0) + corners.max(axis=0)) / 2
        assert np.array([sum(seen[0::2]), sum(seen[1::2])]) / 2 == pytest.approx(middle, abs=0.7)


@pytest.mark.parametrize("camera", CAMERAS)
def test_depth_is_the_distance_along_the_optical_axis_of_a_ray_cast(world, camera):
    info = camera_info(world.model, camera, WIDTH, HEIGHT)
    pose = world.cameras.pose(world.data, camera)
    depth = world.cameras.depth(world.data, camera)
    assert depth.shape == (HEIGHT, WIDTH) and depth.dtype == np.float32
    groups = np.array([1, 1, 0, 1, 0, 0], np.uint8)
    geom = np.zeros(1, np.int32)
    errors = []
    for v in range(6, HEIGHT, 12):
        for u in range(6, WIDTH, 12):
            ray = np.linalg.inv(info.matrix) @ [u, v, 1.0]
            world_ray = rotate(pose[3:], ray)
            hit = mujoco.mj_ray(
                world.model, world.data, pose[:3], world_ray, groups, 1, -1, geom, None
            )
            if hit > 0:  # `ray` has z = 1, so the hit's factor is its depth
                errors.append(abs(depth[v, u] - hit))
    assert len(errors) > 200
    # A pixel on an edge may see past it; everything else agrees.
    assert np.quantile(errors, 0.97) < 0.005 and np.median(errors) < 0.001


@pytest.mark.parametrize("camera", CAMERAS)
def test_depth_at_an_object_is_its_distance(world, camera):
    depth = world.cameras.depth(world.data, camera)
    for name in visible(camera):
        item = world.scene.object(name)
        at = world.state.object_pose[world.scene.index(name), :3]
        (u, v), z = project(world, camera, at)
        nearest = z - np.linalg.norm(item.half_size_m)
        assert nearest - 0.005 < depth[round(v), round(u)] < z + 0.005


def test_optical_frames_look_along_z_with_y_down(world):
    for camera in ("head", "third"):
        pose = world.cameras.pose(world.data, camera)
        x, y, z = rotation_matrix(pose[3:]).T
        assert z[2] < -0.2 and y[2] < -0.2 and abs(x[2]) < 1e-6
    head = rotation_matrix(world.cameras.pose(world.data, "head")[3:])
    assert head[:, 0] == pytest.approx([0, -1, 0], abs=1e-6), "the right arm is on the right"


@pytest.mark.parametrize("arm", ARMS)
def test_wrist_camera_sees_both_fingertips_and_the_object_between_and_below(world, arm):
    picture = world.cameras.segmentation(world.data, f"{arm}_wrist")
    entities = world.scene.entities
    middles = {}
    for name in (f"{arm}_finger1", f"{arm}_finger2", f"{arm}_block"):
        rows, columns = np.nonzero(picture == entities.index(name))
        assert len(rows) > 50, f"{name} must be seen"
        middles[name] = np.array([columns.mean(), rows.mean()])
    low, high = sorted(middles[f"{arm}_finger{k}"][0] for k in (1, 2))
    assert low < WIDTH / 2 < high and high - low > WIDTH / 4
    assert low < middles[f"{arm}_block"][0] < high
    k = ARMS.index(arm)
    (u, v), _ = project(world, f"{arm}_wrist", world.state.ee_pose[k, :3])
    assert 0.3 * WIDTH < u < 0.7 * WIDTH and 0.3 * HEIGHT < v < 0.8 * HEIGHT
    own = np.isin(picture, [entities.index(f"{arm}_hand"), entities.index(f"{arm}_arm")])
    assert own.mean() < 0.25, "the robot itself must not fill the picture"


def test_head_and_third_camera_see_all_of_the_cell(world):
    for camera in ("head", "third"):
        picture = world.cameras.segmentation(world.data, camera)
        seen = {world.scene.entities[i] for i in np.unique(picture) if i >= 0}
        assert {"table", "left_arm", "right_arm", "left_hand", "right_hand"} <= seen


def test_colours_are_those_of_the_objects(world):
    picture = world.cameras.color(world.data, "head")
    assert picture.shape == (HEIGHT, WIDTH, 3) and picture.dtype == np.uint8
    for name, channel in (("block", 0), ("can", 2)):
        (u, v), _ = project(world, "head", world.state.object_pose[world.scene.index(name), :3])
        pixel = picture[round(v), round(u)].astype(int)
        assert pixel[channel] > 1.5 * np.delete(pixel, channel).max()


def test_captured_frames_carry_the_state_and_decode_to_the_picture(world):
    drill.hold(world, 3)
    frames = world.capture(("third", "head"))
    assert [f.camera for f in frames] == ["third", "head"]
    for frame in frames:
        assert (frame.seq, frame.stamp_ns) == (world.state.seq, world.state.stamp_ns)
        assert (frame.width, frame.height, frame.format) == (WIDTH, HEIGHT, "jpeg")
        decoded = cv2.imdecode(np.frombuffer(frame.data, np.uint8), cv2.IMREAD_COLOR)[..., ::-1]
        raw = world.cameras.color(world.data, frame.camera)
        assert np.abs(decoded.astype(int) - raw).mean() < 3.0
    assert world.capture(("head",))[0].data == frames[1].data, "the same state, the same bytes"


def test_pictures_follow_the_world(world):
    world.restart()
    before = world.cameras.color(world.data, "head").copy()
    world.move_objects({"block": upright(0.45, 0.1, 0.0201)})
    at_once = world.cameras.segmentation(world.data, "head")
    (u, v), _ = project(world, "head", [0.45, 0.1, 0.02])
    assert world.scene.entities[at_once[round(v), round(u)]] == "block"
    world.restart()
    assert np.array_equal(world.cameras.color(world.data, "head"), before)


def test_unknown_camera_is_named_and_leaves_the_renderer_as_it_was(world):
    cameras = world.cameras
    before = cameras.color(world.data, "head").copy()
    calls = [cameras.color, cameras.depth, cameras.segmentation, cameras.pose]
    for call in [*calls, lambda _, c: camera_info(world.model, c, 320, 240)]:
        with pytest.raises(UsageError, match="unknown camera 'tail': choose from head"):
            call(world.data, "tail")
    with pytest.raises(UsageError, match="unknown camera 'tail'"):
        world.capture(("head", "tail"))
    assert np.array_equal(cameras.color(world.data, "head"), before)


def test_a_renderer_that_does_not_start_is_an_error_in_one_line(world, monkeypatch):
    def broken(*_):
        raise RuntimeError("no device\nat all")

    monkeypatch.setattr(mujoco, "Renderer", broken)
    with pytest.raises(BenchError, match="cannot start.*no device") as caught:
        Cameras(world._cell)
    assert "\n" not in str(caught.value)


def test_pretty_pictures_show_the_same_world(world, patch):
    pretty = SimWorld(pretty=True, width=WIDTH, height=HEIGHT)
    scene, _ = pretty.reset("still_life", 0)
    world.restart()
    for camera in ("head", "left_wrist"):
        plain = world.cameras.segmentation(world.data, camera)
        fine = pretty.cameras.segmentation(pretty.data, camera)
        assert fine.min() >= -1 and fine.max() < len(scene.entities)
        for name in visible(camera):
            index = scene.entities.index(name)
            both = ((plain == index) & (fine == index)).sum()
            either = ((plain == index) | (fine == index)).sum()
            assert both > 0.85 * either, f"{name} in the {camera} picture"
    picture = pretty.cameras.color(pretty.data, "third").astype(int)
    assert picture.std() > 20 and (picture.min(axis=2) > 250).mean() < 0.05, "not burnt out"
    pretty.cameras.close()


RENDER = """
import sys; sys.path[:0] = [{folder!r}, {root!r}]
import numpy as np
import mujoco  # before sim on purpose: the choice must not depend on who imports it first
from sim import gl
from sim.world import RENDERER, SimWorld
world = SimWorld()
world.reset("stack_blocks_two", 0)
np.save({out!r}, np.stack([world.cameras.color(world.data, c) for c in ("head", "left_wrist")]))
print(RENDERER)
"""


def rendered(tmp_path, name: str, environment: dict) -> np.ndarray:
    import os
    from pathlib import Path

    here = Path(__file__).parent
    out = str(tmp_path / f"{name}.npy")
    code = RENDER.format(folder=str(here), root=str(here.parents[1]), out=out)
    clean = {k: v for k, v in os.environ.items() if k not in ("MUJOCO_GL", "PYOPENGL_PLATFORM")}
    clean.pop("DISPLAY", None)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120,
        env={**clean, **environment},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == name
    assert done.stderr == "", "nothing may be said on the way out"
    return np.load(out).astype(int)


def test_egl_and_osmesa_draw_the_same_and_need_no_display(tmp_path):
    import ctypes.util

    for library in ("EGL", "OSMesa"):
        if ctypes.util.find_library(library) is None:
            pytest.skip(f"lib{library} is not installed")
    egl = rendered(tmp_path, "egl", {})
    osmesa = rendered(tmp_path, "osmesa", {"MUJOCO_GL": "osmesa"})
    assert egl.std() > 20
    difference = np.abs(egl - osmesa).max(axis=-1)
    assert (difference > 8).mean() < 0.005 and difference.mean() < 0.5
