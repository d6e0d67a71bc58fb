"""Each axis of scene randomisation does something, in every task, and nothing to the others."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from bench_tasks import tasks
from bench_tasks.robots import embodiments
from bench_tasks.vocabulary import AXES
from sim import variation
from sim.world import SimWorld

SEEDS = range(8)
IN_THE_MODEL = {
    "light": "light_diffuse", "table_height": "body_pos", "texture": "geom_rgba",
    "camera": "cam_pos", "friction": "geom_friction",
}  # fmt: skip


@pytest.fixture(scope="module")
def world():
    return SimWorld()


@pytest.fixture(scope="module", params=tasks.names(None))
def task(request, world):
    """A task whose cell is compiled."""
    chosen = tasks.get(request.param)
    world.scene = None
    height_m = chosen.table_height_m(np.random.default_rng(0))
    world._load(chosen, chosen.objects(), 1.0, height_m)
    return chosen


def arrays(cell) -> dict[str, np.ndarray]:
    return {name: getattr(cell.model, name).copy() for name in cell.nominal}


@pytest.mark.parametrize("axis", IN_THE_MODEL)
def test_in_the_model(task, world, axis):
    """Other values for each seed, in these arrays alone, and all as before without it."""
    if axis not in embodiments.get(task.embodiment).axes:
        pytest.skip(f"it makes no sense with {task.embodiment}")
    cell = world._cell
    variation.apply(cell, task.name, 0, ())
    before, seen = arrays(cell), set()
    for seed in SEEDS:
        variation.apply(cell, task.name, seed, (axis,))
        now = arrays(cell)
        changed = {name for name in now if not np.array_equal(now[name], before[name])}
        beside = {"camera": {"cam_quat"}, "light": {"light_dir"}}.get(axis, set())
        assert changed == {IN_THE_MODEL[axis]} | beside, seed
        seen.add(now[IN_THE_MODEL[axis]].tobytes())
    assert len(seen) == len(SEEDS)
    variation.apply(cell, task.name, 0, ())
    assert all(np.array_equal(value, before[name]) for name, value in arrays(cell).items())


def test_friction_counts_where_things_touch(task, world):
    """What slides on the table, and what is held, does so with friction of its own."""
    if "friction" not in embodiments.get(task.embodiment).axes:
        pytest.skip(f"it makes no sense with {task.embodiment}")
    cell = world._cell
    loose = [cell.model.body(item.name).id for item in cell.objects if not item.fixed]
    table, finger = cell.model.geom("table").id, cell.model.body("left_left_finger").id
    for seed in SEEDS:
        variation.apply(cell, task.name, seed, ("friction",))
        friction = cell.model.geom_friction[:, 0]
        for body in loose:
            own = friction[cell.model.geom_bodyid == body]
            assert (own >= friction[table]).all(), "MuJoCo takes the greater of the two"
        assert friction[cell.model.geom_bodyid == finger].min() >= 0.9
    variation.apply(cell, task.name, 0, ())


def test_in_the_words_and_the_things(task, world):
    layout = task.layout(
        np.random.default_rng([0, zlib.crc32(task.name.encode())]),
        {item.name: item for item in world._cell.objects},
    )
    told = {variation.instruction(task.name, s, ("paraphrase",), layout) for s in range(20)}
    assert told == {layout.instruction, *layout.paraphrases}
    assert len(told) >= 2
    assert {variation.size_scale(task.name, s, ("size",)) for s in range(50)} == set(
        variation.SIZE_SCALES
    )
    assert len({repr(variation.clutter(task.name, s, ("clutter",))) for s in SEEDS}) > 4
    nothing = tuple(axis for axis in AXES if axis not in ("size", "clutter", "paraphrase"))
    assert variation.instruction(task.name, 1, nothing, layout) == layout.instruction
    assert variation.size_scale(task.name, 1, nothing) == 1.0
    assert variation.clutter(task.name, 1, nothing) == ()


@pytest.mark.parametrize("axis", AXES)
def test_in_the_scene_or_the_picture(world, axis):
    """Through the world's own reset: what is seen, how things lie, or what is said differs."""

    def looks(vary: tuple[str, ...]):
        scene, state = world.reset("place_object_scale", 3, vary)
        picture = world.capture(("head",))[0].data
        slide = world._model.geom_friction.tobytes()
        return scene.instruction, state.object_pose.tobytes(), picture, slide

    words, poses, picture, slide = (a != b for a, b in zip(looks(()), looks((axis,)), strict=True))
    assert words is (axis == "paraphrase")
    if axis not in ("paraphrase", "friction"):
        assert picture
    if axis in ("size", "clutter"):
        assert poses
    assert slide is (axis in ("friction", "clutter"))


@pytest.mark.parametrize("seed", range(3))
def test_clutter_stands_on_the_table_of_every_robot(world, seed):
    for name in ("reach_both_hands", "grab_roller"):
        scene, state = world.reset(name, seed, ("clutter",))
        table = world._cell.model.geom("table")
        things = [o for o in scene.objects if o.name.startswith("clutter_")]
        assert len(things) == 3
        for item in things:
            at = state.object_pose[scene.index(item.name), :2]
            reach = np.hypot(*item.half_size_m[:2])
            assert (np.abs(at - table.pos[:2]) + reach < table.size[:2] + 0.002).all(), item.name
