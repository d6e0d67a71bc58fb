"""Every kind of object is what it says: it stands, weighs, measures and can be held as declared."""

from __future__ import annotations

import drill
import mujoco
import numpy as np
import pytest

from bench_tasks.errors import UsageError
from bench_tasks.robots.fr3 import HOME_RAD
from bench_tasks.robots.kinematics import dual_arm
from bench_tasks.tasks.base import ObjectSpec
from bench_tasks.tasks.families.layouts import upright
from bench_tasks.view import View, compose
from bench_tasks.vocabulary import ARMS, MAX_OPENING_M
from policies.skills import SkillPolicy
from sim.objects import COLORS, DENSITY_KG_M3, KINDS, build
from sim.world import SimWorld

PAIRS = {
    "pot": ("handle", "handle_flipped"), "roller": ("handle",), "tray": ("rim",),
    "basket": ("rim",),
}


def info_of(kind: str):
    return build(mujoco.MjSpec(), ObjectSpec("thing", kind))


SINGLES = [(k, g.name) for k in KINDS if k not in PAIRS for g in info_of(k).grasps]
FREE = [k for k in KINDS if not info_of(k).fixed]


@pytest.fixture(scope="module")
def cell():
    """One world and policy, with a task per kind of object."""
    patch = pytest.MonkeyPatch()
    drills = {}
    for kind in KINDS:
        pose = upright(0.45, 0.0, info_of(kind).half_size_m[2])
        drills[kind] = drill.Drill(f"drill_{kind}", [ObjectSpec("thing", kind)], {"thing": pose})
    drill.register(patch, *drills.values())
    yield SimWorld(), SkillPolicy(), drills
    patch.undo()


@pytest.mark.parametrize("kind", KINDS)
def test_stands_where_it_is_put(cell, kind):
    world, policy, drills = cell
    task = drills[kind]
    task.poses = {"thing": upright(0.45, 0.0, info_of(kind).half_size_m[2])}
    scene, _ = drill.fresh(world, policy, task.name)
    end = drill.hold(world, 50)[-1]
    view = View(scene, end)
    assert np.linalg.norm(view.position("thing") - task.poses["thing"][:3]) < 0.005
    assert view.tilt("thing") < 0.02 and view.all_at_rest()
    if not scene.object("thing").fixed:
        assert view.supported_by("thing", "table")
        weight = float(world.model.body("thing").mass[0]) * 9.81
        assert view.force("thing", "table") == pytest.approx(weight, rel=0.01)


def bounds(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Corners of the bounding box of all geoms, in the object's frame."""
    spec = mujoco.MjSpec()
    build(spec, ObjectSpec("thing", kind))
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for geom in spec.geoms:
        matrix = np.zeros(9)
        mujoco.mju_quat2Mat(matrix, geom.quat)
        matrix = matrix.reshape(3, 3)
        if geom.type == mujoco.mjtGeom.mjGEOM_BOX:
            reach = np.abs(matrix) @ geom.size
        else:
            assert geom.type == mujoco.mjtGeom.mjGEOM_CYLINDER
            axis = matrix[:, 2]
            reach = geom.size[0] * np.sqrt(np.maximum(0, 1 - axis**2)) + geom.size[1] * abs(axis)
        low, high = np.minimum(low, geom.pos - reach), np.maximum(high, geom.pos + reach)
    return low, high


@pytest.mark.parametrize("kind", KINDS)
def test_half_size_is_the_bounding_box_about_the_origin(kind):
    low, high = bounds(kind)
    half = info_of(kind).half_size_m
    assert high == pytest.approx(half, abs=2e-3)
    assert low == pytest.approx(-np.array(half), abs=2e-3)


@pytest.mark.parametrize("kind", FREE)
def test_mass_and_inertia_make_sense(kind):
    spec = mujoco.MjSpec()
    half = np.array(build(spec, ObjectSpec("thing", kind)).half_size_m)
    body = spec.compile().body("thing")
    mass, inertia = float(body.mass[0]), np.sort(body.inertia)
    assert 0.02 < mass < (1.2 if kind == "pot" else 0.6), "something a hand can carry, a pot two"
    solid = 8 * half.prod() * DENSITY_KG_M3
    assert 0.05 * solid < mass < 1.01 * solid, "no heavier than a solid box, no soap bubble"
    assert 0 < inertia[0] and inertia[2] <= inertia[:2].sum() * 1.001, "the triangle inequality"
    assert inertia[2] < mass * (half @ half), "no point is farther out than a corner"
    assert (np.abs(body.ipos) < half).all()


def test_block_inertia_is_that_of_a_cube():
    spec = mujoco.MjSpec()
    build(spec, ObjectSpec("thing", "block", params={"size": 0.05}))
    body = spec.compile().body("thing")
    mass = DENSITY_KG_M3 * 0.05**3
    assert float(body.mass[0]) == pytest.approx(mass)
    assert body.inertia == pytest.approx(np.full(3, mass * 0.05**2 / 6))


def test_bar_inertia_is_that_of_a_cuboid():
    spec = mujoco.MjSpec()
    build(spec, ObjectSpec("thing", "bar", params={"length": 0.2, "width": 0.03}))
    body = spec.compile().body("thing")
    mass = DENSITY_KG_M3 * 0.2 * 0.03**2
    across, along = mass * (0.2**2 + 0.03**2) / 12, mass * 2 * 0.03**2 / 12
    assert np.sort(body.inertia) == pytest.approx([along, across, across])


@pytest.mark.parametrize("kind", KINDS)
def test_grasps_are_poses_a_hand_can_open_for(kind):
    grasps = info_of(kind).grasps
    assert len({g.name for g in grasps}) == len(grasps)
    for grasp in grasps:
        assert np.linalg.norm(grasp.pose[3:]) == pytest.approx(1.0)
        assert 0 < grasp.width_m < MAX_OPENING_M - 0.01


def places(grasp):
    """Arms and object positions from which the arm reaches the grasp, the nearest turn first."""
    for arm, y in (("left", 0.15), ("right", -0.15)):
        for yaw in (0.0, np.pi / 2, -np.pi / 2, np.pi):
            at = upright(0.45, y, 0.05, yaw)
            if dual_arm().inverse(arm, compose(at, np.array(grasp.pose)), HOME_RAD) is not None:
                yield arm, (0.45, y, yaw)


@pytest.mark.parametrize(("kind", "name"), SINGLES)
def test_one_hand_lifts_and_holds_it(cell, kind, name):
    world, policy, drills = cell
    info = info_of(kind)
    grasp = next(g for g in info.grasps if g.name == name)
    task = drills[kind]
    for arm, (x, y, yaw) in places(grasp):
        task.poses = {"thing": upright(x, y, info.half_size_m[2], yaw)}
        scene, start = drill.fresh(world, policy, task.name)
        detail, _ = drill.run_plan(
            world, policy, drill.grasp(arm, "thing", grasp=name), drill.move_by(arm, 0, 0, 0.1)
        )
        if not detail.get("reason", "").startswith("collision"):  # the arm may be in its own way
            break
    assert detail["status"] == "done", detail
    view, lifted = View(scene, drill.hold(world, 50)[-1]), View(scene, start)
    assert view.grasped("thing", arm) and not view.touching("thing", "table")
    rise = view.position("thing")[2] - lifted.position("thing")[2]
    assert rise == pytest.approx(0.1, abs=0.015), "a plate held at its rim sags a little"
    assert view.tilt("thing") < 0.2 and view.all_at_rest()
    opening = view.state.gripper_opening[ARMS.index(arm)]
    assert opening == pytest.approx(grasp.width_m, abs=0.003), "the declared width is held"


@pytest.mark.parametrize(("kind", "what"), [(k, w) for k, names in PAIRS.items() for w in names])
def test_two_hands_lift_and_hold_it_level(cell, kind, what):
    world, policy, drills = cell
    task = drills[kind]
    task.poses = {"thing": upright(0.45, 0.0, info_of(kind).half_size_m[2])}
    scene, start = drill.fresh(world, policy, task.name)
    detail, _ = drill.run_plan(
        world, policy,
        tuple(drill.grasp(arm, "thing", grasp=f"{arm}_{what}")[0] for arm in ARMS),
        tuple(drill.move_by(arm, 0, 0, 0.1)[0] for arm in ARMS),
    )
    assert detail["status"] == "done", detail
    view = View(scene, drill.hold(world, 50)[-1])
    assert all(view.grasped("thing", arm) for arm in ARMS)
    rise = view.position("thing")[2] - View(scene, start).position("thing")[2]
    assert rise == pytest.approx(0.1, abs=0.01)
    assert view.tilt("thing") < 0.03 and view.all_at_rest()


def test_unknown_kind_and_colour_name_the_choices():
    with pytest.raises(UsageError, match="unknown object kind 'teapot': choose from .*block"):
        build(mujoco.MjSpec(), ObjectSpec("thing", "teapot"))
    with pytest.raises(UsageError, match="unknown colour 'mauve': choose from .*red"):
        build(mujoco.MjSpec(), ObjectSpec("thing", "block", "mauve"))
    assert all(0 <= v <= 1 for rgb in COLORS.values() for v in rgb)
