"""Scene randomisation: what may differ between episodes beyond the layout, axis by axis.

Each axis draws from its own generator, so that switching one on does not change the others.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator

import mujoco
import numpy as np

from bench_tasks.errors import BenchError
from bench_tasks.object_sets import Evolved, ObjectSet
from bench_tasks.tasks.base import Layout, ObjectSpec
from bench_tasks.tasks.families.layouts import upright
from bench_tasks.vocabulary import ARMS
from sim.scene import Cell

__all__ = ["apply", "base_height_m", "clutter", "evolved_choices", "instruction", "place_clutter",
           "size_scale"]

SIZE_SCALES = (0.92, 0.96, 1.0, 1.04, 1.08)
TABLE_HEIGHT_M = 0.05
FRICTION_SCALES = (0.75, 1.25)
CLUTTER_KINDS = ("can", "bottle", "block", "mug", "bowl")
_PREFIX = "clutter_"
CLUTTER_GAP_M = 0.12
CLUTTER_X_M, CLUTTER_Y_M = (0.62, 0.86), (-0.7, 0.7)


def _rng(task: str, seed: int, axis: str) -> np.random.Generator:
    return np.random.default_rng([seed, zlib.crc32(task.encode()), zlib.crc32(axis.encode())])


def size_scale(task: str, seed: int, vary: tuple[str, ...]) -> float:
    """Factor on all lengths of the task's objects (few values, so that models are reused)."""
    if "size" not in vary:
        return 1.0
    return float(_rng(task, seed, "size").choice(SIZE_SCALES))


def clutter(task: str, seed: int, vary: tuple[str, ...]) -> tuple[ObjectSpec, ...]:
    """Things that have nothing to do with the task."""
    if "clutter" not in vary:
        return ()
    rng = _rng(task, seed, "clutter")
    kinds = rng.choice(CLUTTER_KINDS, size=3, replace=False)
    return tuple(
        ObjectSpec(f"{_PREFIX}{k + 1}", str(kind), str(rng.choice(("brown", "black", "cyan"))))
        for k, kind in enumerate(kinds)
    )


def place_clutter(
    task: str, seed: int, cell: Cell, layout: Layout
) -> dict[str, np.ndarray]:
    """Poses of the clutter at the far side of the table, clear of its edge and the task's objects.

    BenchError when there is no room.
    """
    rng = _rng(task, seed, "clutter places")
    taken = [
        (layout.poses[o.name][:2], math.hypot(*o.half_size_m[:2]))
        for o in cell.objects
        if o.name in layout.poses
    ]
    table = cell.model.geom("table")
    middle, half = table.pos[:2], table.size[:2]
    poses: dict[str, np.ndarray] = {}
    for item in cell.objects:
        if not item.name.startswith(_PREFIX):
            continue
        radius = math.hypot(*item.half_size_m[:2])
        for _ in range(500):
            point = np.array([rng.uniform(*CLUTTER_X_M), rng.uniform(*CLUTTER_Y_M)])
            if (np.abs(point - middle) + radius < half).all() and all(
                np.linalg.norm(point - other) > max(CLUTTER_GAP_M, radius + size + 0.03)
                for other, size in taken
            ):
                break
        else:
            raise BenchError(f"no room for clutter in {task} seed {seed}")
        taken.append((point, radius))
        poses[item.name] = upright(
            point[0], point[1], item.half_size_m[2], rng.uniform(-math.pi, math.pi)
        )
    return poses


def instruction(task: str, seed: int, vary: tuple[str, ...], layout: Layout) -> str:
    """The layout's instruction, or another wording of it."""
    if "paraphrase" not in vary:
        return layout.instruction
    wordings = (layout.instruction, *layout.paraphrases)
    return wordings[int(_rng(task, seed, "paraphrase").integers(len(wordings)))]


def evolved_choices(
    task: str, seed: int, items: tuple[ObjectSpec, ...], objects: ObjectSet | None
) -> Iterator[dict[str, Evolved]]:
    """For each kind that the set has, the evolved object that takes its place: first choice first.

    All things of a kind change alike, as sizes do. The last choice is to leave all as they are.
    """
    pools = {
        item.kind: objects.of_kind(item.kind) for item in items if objects is not None
    }
    pools = {kind: pool for kind, pool in pools.items() if pool}
    if pools:
        first = {
            kind: int(_rng(task, seed, f"evolved {kind}").integers(len(pool)))
            for kind, pool in pools.items()
        }
        for k in range(max(len(pool) for pool in pools.values())):
            yield {kind: pool[(first[kind] + k) % len(pool)] for kind, pool in pools.items()}
    yield {}


def base_height_m(task: str, seed: int, vary: tuple[str, ...]) -> float:
    """Height of the arms' bases above the table top (the world frame's z = 0), m."""
    if "table_height" not in vary:
        return 0.0
    return float(_rng(task, seed, "table_height").uniform(-TABLE_HEIGHT_M, TABLE_HEIGHT_M))


def apply(cell: Cell, task: str, seed: int, vary: tuple[str, ...]) -> None:
    """Set light, table colour, camera poses, friction and base height in the compiled model.

    Starts from the model as it was compiled, whatever was applied before.
    """
    model = cell.model
    for name, value in cell.nominal.items():
        getattr(model, name)[:] = value
    if "table_height" in vary:
        for arm in ARMS:
            model.body(f"{arm}_base").pos[2] = base_height_m(task, seed, vary)
    if "light" in vary:
        rng = _rng(task, seed, "light")
        model.light_diffuse[:] *= rng.uniform(0.5, 1.3)
        model.light_dir[:, :2] += rng.uniform(-0.5, 0.5, 2)
        model.light_dir[:] /= np.linalg.norm(model.light_dir, axis=1, keepdims=True)
        model.vis.headlight.ambient[:] = rng.uniform(0.2, 0.45)
    else:
        model.vis.headlight.ambient[:] = 0.35
    if "texture" in vary:
        rng = _rng(task, seed, "texture")
        model.geom("table").rgba[:3] = rng.uniform(0.25, 0.85, 3)
        model.geom("floor").rgba[:3] = rng.uniform(0.2, 0.6, 3)
    if "camera" in vary:
        rng = _rng(task, seed, "camera")
        for camera in ("head", "third"):
            index = model.camera(camera).id
            model.cam_pos[index] += rng.uniform(-0.03, 0.03, 3)
            turn = np.zeros(4)
            mujoco.mju_euler2Quat(turn, np.radians(rng.uniform(-2.0, 2.0, 3)), "xyz")
            tilted = np.zeros(4)
            mujoco.mju_mulQuat(tilted, model.cam_quat[index], turn)
            model.cam_quat[index] = tilted
    if "friction" in vary:
        rng = _rng(task, seed, "friction")
        # Of two geoms the greater friction counts, and a finger's always does: with a slippery
        # table each object's own is what it slides with there, and the fingers vary by themselves.
        low, high = FRICTION_SCALES
        model.geom("table").friction *= low
        for body in (f"{arm}_{side}_finger" for arm in ARMS for side in ("left", "right")):
            model.geom_friction[model.geom_bodyid == model.body(body).id] *= rng.uniform(low, high)
        for item in cell.objects:
            body = model.body(item.name).id
            model.geom_friction[model.geom_bodyid == body] *= rng.uniform(low, high)
