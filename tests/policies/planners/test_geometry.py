"""Pixels to the world, against the simulator's own depth, segmentation and object poses."""

from __future__ import annotations

import numpy as np
import pytest

from bench_tasks.errors import BenchError
from policies.planners.geometry import depth_at, pixel_of, world_point
from sim.cameras import camera_info


@pytest.mark.parametrize("camera", ["head", "third"])
def test_what_a_pixel_shows_is_where_the_object_is(world, camera):
    scene, _ = world.reset("stack_blocks_two", 3)
    cameras = world.cameras
    depth = cameras.depth(world.data, camera)
    parts = cameras.segmentation(world.data, camera)
    pose = cameras.pose(world.data, camera)
    info = camera_info(world.model, camera, cameras.width, cameras.height)
    seen = 0
    for i, item in enumerate(scene.objects):
        rows, columns = np.nonzero(parts == scene.entities.index(item.name))
        if len(rows) < 12:
            continue
        seen += 1
        points = np.array(
            [
                world_point(x, y, float(depth[y, x]), info.matrix, pose)
                for x, y in zip(columns, rows, strict=True)
            ]
        )
        half = np.linalg.norm(item.half_size_m)
        gaps = np.linalg.norm(points - world.object_poses()[i, :3], axis=1)
        # Every visible pixel lies on the block's surface; one at the rim may see just past it.
        assert np.quantile(gaps, 0.9) < half + 0.004
        assert np.quantile(gaps, 0.1) > min(item.half_size_m) - 0.004
    assert seen, "the camera sees at least one block"
    table = np.argwhere(parts == scene.entities.index("table"))
    y, x = table[len(table) // 2]
    at = world_point(x, y, float(depth[y, x]), info.matrix, pose)
    assert abs(at[2]) < 0.003, "the table's surface is at height 0"


def test_normalised_edges_are_half_a_pixel_outside():
    assert pixel_of(0.5, 0.5, 320, 240) == (159.5, 119.5)
    assert pixel_of(0.0, 1.0, 320, 240) == (-0.5, 239.5)


def test_depth_is_a_median_of_what_is_valid():
    depth = np.full((4, 6), np.inf, dtype=np.float32)
    depth[0, 0], depth[1, 1] = 0.5, 0.7
    assert depth_at(depth, -0.5, -0.5) == pytest.approx(0.6)
    with pytest.raises(BenchError, match="no depth at pixel"):
        depth_at(depth, 5.4, 3.4)
    with pytest.raises(BenchError, match="outside the 6 x 4"):
        depth_at(depth, 6, 0)
    with pytest.raises(BenchError, match="positive"):
        world_point(0, 0, float("nan"), np.eye(3), np.array([0, 0, 0, 1, 0, 0, 0]))
