"""Edits of object programs do what they say, stay in one piece, and refuse what does not fit."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from bench_tasks.errors import UsageError
from bench_tasks.object_sets import Edit, Evolved, ObjectSet
from bench_tasks.tasks.base import ObjectSpec
from sim.objects import KINDS, build, check_set
from sim.objects.edits import OPERATIONS, Unfit, solids
from sim.solid import solid_of
from sim.world import SimWorld

COLOR = {"color": "red"}
CASES = {
    "bevel": ("block", {"share": 0.2}),
    "facet": ("can", {"sides": 8}),
    "taper": ("can", {"share": 0.15}),
    "waist": ("can", {"share": 0.1, "height": 0.3}),
    "band": ("can", {"at": 0.3, "height": 0.1, "share": 0.1, **COLOR}),
    "foot": ("can", {"height": 0.1, "share": 0.2, **COLOR}),
    "cap": ("can", {"height": 0.1, "share": 0.5, **COLOR}),
    "ribs": ("can", {"share": 0.1, "height": 0.6, **COLOR}),
    "handle": ("can", {"reach": 0.7, "height": 0.4, **COLOR}),
    "hollow": ("can", {"wall": 0.2}),
    "length": ("can", {"name": "radius", "factor": 1.1}),
}
VOLUME = {"bevel": -1, "facet": -1, "taper": -1, "waist": -1, "hollow": -1}
"""Which edits carve; all others add."""


def spec(kind: str, *edits: Edit, **params: float) -> ObjectSpec:
    return ObjectSpec("thing", kind, params=params, evolved=Evolved(kind, edits))


def edited(op: str, **params: float) -> ObjectSpec:
    kind, args = CASES[op]
    return spec(kind, Edit(op, args), **params)


def test_every_operation_has_a_case():
    assert set(CASES) == set(OPERATIONS)


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "pad"])
def test_every_kind_is_one_watertight_solid(kind):
    solid = solid_of(ObjectSpec("thing", kind))
    assert solid.watertight and solid.pieces == 1


@pytest.mark.parametrize("op", CASES)
def test_an_edit_adds_or_carves_and_leaves_one_piece(op):
    plain, solid = solid_of(ObjectSpec("thing", CASES[op][0])), solid_of(edited(op))
    assert solid.watertight and solid.pieces == 1
    assert np.sign(solid.volume / plain.volume - 1.0) == VOLUME.get(op, 1)
    assert abs(solid.volume / plain.volume - 1.0) > 0.005


@pytest.mark.parametrize("op", CASES)
def test_the_box_is_that_of_the_parts_about_the_origin(op):
    model = mujoco.MjSpec()
    info = build(model, edited(op))
    points = np.concatenate([p for _, p in solids(model, model.geoms)])
    # A prism or a ring of panels is declared as the circle it stands for.
    assert points.max(axis=0) == pytest.approx(info.half_size_m, abs=2e-3)
    assert points.min(axis=0) == pytest.approx(-np.array(info.half_size_m), abs=2e-3)


# How deep ribs and bands are let in stays as it is, and so does the bar of a handle.
@pytest.mark.parametrize("op", [op for op in CASES if op not in ("ribs", "handle", "band")])
def test_an_edited_program_scales_like_its_parent(op):
    kind = CASES[op][0]
    large = {"size": 0.06} if kind == "block" else {"radius": 0.028 * 1.5, "height": 0.15}
    assert solid_of(edited(op, **large)).volume == pytest.approx(
        1.5**3 * solid_of(edited(op)).volume, rel=0.02
    )


def test_the_taper_and_the_waist_tell_the_hand():
    plain = {g.name: g for g in build(mujoco.MjSpec(), ObjectSpec("thing", "can")).grasps}
    grasp = build(mujoco.MjSpec(), edited("taper")).grasps[0]
    # 25 mm below the top of 100 mm: three quarters up, where 15 % at the top are 11.25 %.
    assert grasp.width_m == pytest.approx(0.056 * (1 - 0.15 * 0.75))
    assert grasp.pose == pytest.approx(plain[grasp.name].pose)


def test_a_handle_takes_the_grasps_that_it_is_in_the_way_of():
    names = [g.name for g in build(mujoco.MjSpec(), edited("handle")).grasps]
    assert names == ["across_y", "across_y_flipped"]


def test_a_foot_moves_nothing_but_the_box():
    info, plain = (build(mujoco.MjSpec(), o) for o in (edited("foot"), ObjectSpec("a", "can")))
    assert info.half_size_m == pytest.approx([1.2 * 0.028, 1.2 * 0.028, 0.05])
    assert info.grasps == plain.grasps


@pytest.mark.parametrize(
    ("kind", "op", "why"),
    [
        ("can", "bevel", "no box"), ("block", "facet", "no cylinder"),
        ("block", "ribs", "not round"), ("mug", "taper", "not solid"),
        ("bottle", "hollow", "not solid|no round open top"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said(kind, op, why):
    with pytest.raises(Unfit, match=why):
        build(mujoco.MjSpec(), spec(kind, Edit(op, CASES[op][1])))


def test_a_band_where_fingers_close_does_not_fit():
    args = {**CASES["band"][1], "at": 0.75}
    with pytest.raises(Unfit, match="in the way of the grasp across_y"):
        build(mujoco.MjSpec(), spec("can", Edit("band", args)))


@pytest.mark.parametrize(
    ("kind", "edit", "message"),
    [
        ("teapot", Edit("bevel", {"share": 0.2}), "unknown kind of teapot-.*choose from .*block"),
        ("can", Edit("explode"), "unknown edit of a can 'explode': choose from band"),
        ("block", Edit("cap", CASES["cap"][1]), "unknown edit of a block 'cap'"),
        ("can", Edit("taper", {"share": 0.9}), "share must be a number from -0.12 to 0.2, got 0.9"),
        ("can", Edit("taper", {}), "share must be a number .* got None"),
        ("can", Edit("taper", {"share": 0.1, "x": 1}), "unknown argument of taper 'x'"),
        ("can", Edit("facet", {"sides": 9}), "unknown sides of facet 9: choose from 12, 16, 8"),
        ("can", Edit("length", {"name": "size", "factor": 1.1}), "unknown name of length 'size'"),
        ("can", Edit("bevel", {"share": 0.2}), "cannot be built: no box to bevel"),
    ],
)
def test_a_set_that_cannot_be_built_is_refused_at_once(kind, edit, message):
    with pytest.raises(UsageError, match=message):
        SimWorld(objects=ObjectSet((Evolved(kind, (edit,)),)))


def test_the_world_uses_the_set_and_says_so():
    evolved = Evolved("bread", (Edit("length", {"name": "length", "factor": 1.1}),))
    with_set, plain = SimWorld(objects=check_set(ObjectSet((evolved,)))), SimWorld()
    scene, _ = with_set.reset("place_object_scale", 3)
    other, _ = plain.reset("place_object_scale", 3)
    assert scene.evolved == {"bread": evolved.name} and other.evolved == {}
    assert scene.object("bread").kind == "bread"
    assert scene.object("bread").half_size_m[0] == pytest.approx(0.075 / 2 * 1.1)
    assert scene.object("scale") == other.object("scale")
    assert type(scene).from_json(scene.to_json()) == scene


def test_a_task_without_room_takes_the_next_or_none(monkeypatch):
    # A metre wide it overlaps the scale wherever it lies.
    huge = Evolved("bread", (Edit("length", {"name": "width", "factor": 24.0}),))
    fitting = Evolved("bread", (Edit("length", {"name": "width", "factor": 1.1}),))
    monkeypatch.setattr("sim.world.check_set", lambda objects: objects)
    scene, _ = SimWorld(objects=ObjectSet((huge,))).reset("place_object_scale", 3)
    assert scene.evolved == {}
    scene, _ = SimWorld(objects=ObjectSet((huge, fitting))).reset("place_object_scale", 3)
    assert scene.evolved == {"bread": fitting.name}


@pytest.mark.parametrize(("name", "times"), [("length", 60), ("foot", 2)])
def test_an_edit_is_made_once(name, times):
    """Each within its range, sixty of them are a can of two kilometres."""
    kind, args = CASES[name]
    twice = Evolved(kind, (Edit(name, args),) * times)
    said = "length radius" if name == "length" else name
    with pytest.raises(UsageError, match=f"^can-[0-9a-f]*: {said} is edited twice$"):
        check_set(ObjectSet((twice,)))
    both = [Edit("length", {"name": length, "factor": 0.9}) for length in ("radius", "height")]
    check_set(ObjectSet((Evolved("can", tuple(both)),)))
