"""Assembly of the cell with MjSpec: two FR3 with hands, table, cameras, objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mujoco
import numpy as np

from bench_tasks.images import MAX_SIZE
from bench_tasks.robots.fr3 import TCP_OFFSET_M, arm_mjcf, base_position
from bench_tasks.tasks.base import ObjectSpec
from bench_tasks.vocabulary import ARMS, ROBOT_PART, ObjectInfo
from sim.objects import build

__all__ = [
    "CAMERAS", "PHYSICS_STEP_S", "Cell", "add_camera", "build_cell", "camera_axes", "finished",
    "new_spec",
]  # fmt: skip

PHYSICS_STEP_S = 0.002
GRIP_FORCE_N = 60.0
"""Sum over both fingers; the Franka hand holds with 70 N continuously."""

CAMERAS = ("head", "third", "left_wrist", "right_wrist")


@dataclass(frozen=True)
class Cell:
    """A compiled scene. `pretty` has the visual meshes, else the collision meshes are shown.

    `nominal` keeps the model's arrays that scene randomisation changes, as they were compiled.
    """

    model: mujoco.MjModel
    objects: tuple[ObjectInfo, ...]
    entities: tuple[str, ...]
    geom_entity: np.ndarray
    pretty: bool
    nominal: dict[str, np.ndarray]


_VARIED = (
    "light_diffuse", "light_dir", "geom_rgba", "cam_pos", "cam_quat", "geom_friction", "body_pos",
    "body_quat",
)


def camera_axes(position, target) -> list[float]:
    """MjSpec `xyaxes` of a camera at `position` that looks at `target`, image up = world up."""
    forward = np.asarray(target, float) - np.asarray(position, float)
    forward /= np.linalg.norm(forward)
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    return [*right, *np.cross(right, forward)]


def add_camera(body: mujoco.MjsBody, name: str, position, xyaxes, fovy_deg: float) -> None:
    """A camera on a body; `xyaxes` are the picture's x (right) and y (up) in the body's frame."""
    x, y = np.asarray(xyaxes[:3], float), np.asarray(xyaxes[3:], float)
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, np.stack([x, y, np.cross(x, y)], axis=1).ravel())
    body.add_camera(name=name, pos=list(position), quat=list(quat), fovy=fovy_deg)


PAD_M = (0.0085, 0.036, 0.053)
"""A finger's pad in the finger's frame: half its width, and where it begins and ends along z."""


def _close_gaps(robot: mujoco.MjSpec) -> None:
    """Make a finger's pad, whose four corners are boxes apart from each other, one flat face.

    What is round bulges into the gaps, and the corners clamp it by their sides: one finger alone
    then lifts it.
    """
    half_width, low, high = PAD_M
    half_height = (high - low) / 4
    for geom in list(robot.geoms):
        corner = geom.type == mujoco.mjtGeom.mjGEOM_BOX and max(geom.size) < 0.004
        if not (corner and geom.parent.name.endswith("finger")):
            continue
        if geom.pos[0] < 0.0:
            robot.delete(geom)
            continue
        middle = low + (3 if geom.pos[2] > (low + high) / 2 else 1) * half_height
        geom.pos = [0.0, geom.pos[1], middle]
        geom.size = [half_width, geom.size[1], half_height]


def _add_arm(spec: mujoco.MjSpec, arm: str, pretty: bool) -> None:
    robot = mujoco.MjSpec.from_string(arm_mjcf())
    _close_gaps(robot)
    for geom in list(robot.geoms):
        visual = geom.classname.name == "visual"
        if visual and not pretty:
            robot.delete(geom)
        elif visual:
            # Else the mass of the fixed links would depend on what is drawn.
            geom.mass = geom.density = 0.0
        else:
            # Shown instead of the visual meshes: six times cheaper to draw.
            is_finger = geom.parent.name.endswith("finger")
            geom.rgba = [0.25, 0.26, 0.28, 1.0] if is_finger else [0.90, 0.91, 0.92, 1.0]
            if is_finger:
                geom.friction = [1.2, 0.02, 0.001]
                geom.condim = 4
                # Stiff, and decided by the finger alone: at MuJoCo's default, which mixing with the
                # object's would bring back, a round thing sinks 3 mm into each pad.
                geom.solimp = [0.95, 0.99, 0.001, 0.5, 2]
                geom.solref, geom.priority = [0.006, 1.0], 1
    for body in robot.bodies:
        # Franka's controllers compensate gravity; without this the position servo would sag.
        body.gravcomp = 1.0
    hand_actuator = robot.actuator("hand")
    robot.delete(hand_actuator)
    robot.add_actuator(
        name="hand", target="split", trntype=mujoco.mjtTrn.mjTRN_TENDON,
        gaintype=mujoco.mjtGain.mjGAIN_FIXED, biastype=mujoco.mjtBias.mjBIAS_AFFINE,
        gainprm=[3000.0] + [0.0] * 9, biasprm=[0.0, -3000.0, -60.0] + [0.0] * 7,
        forcelimited=True, forcerange=[-GRIP_FORCE_N, GRIP_FORCE_N],
    )
    hand = robot.body("hand")
    hand.add_site(name="tcp", pos=[0, 0, TCP_OFFSET_M], size=[0.004, 0.004, 0.004], group=4)
    # Beside the fingers, looking past them, image up away from the hand.
    add_camera(hand, "wrist", [0.08, 0.0, 0.03], [0, 1, 0, 0.839, 0, 0.545], 75.0)
    frame = spec.worldbody.add_frame(pos=list(base_position(arm)))
    spec.attach(robot, prefix=f"{arm}_", frame=frame)


def new_spec(
    name: str, pretty: bool, extent: tuple[list[float], float], spec: mujoco.MjSpec | None = None
) -> mujoco.MjSpec:
    """A world with options, sky and lights; `extent` is what it is about: centre, size.

    Empty unless a `spec` is given that has something in it.
    """
    spec = spec or mujoco.MjSpec()
    spec.modelname = name
    option = spec.option
    option.timestep = PHYSICS_STEP_S
    option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    option.impratio = 10.0
    # MuJoCo 4.0.0 has a wrong sparse Hessian; the dense one is right everywhere and as fast here.
    option.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    spec.visual.quality.offsamples = 4 if pretty else 0
    spec.visual.quality.shadowsize = 4096
    spec.visual.global_.offwidth, spec.visual.global_.offheight = MAX_SIZE
    # In units of the extent, which is fixed here so that no object changes what is drawn.
    spec.stat.center, spec.stat.extent = extent
    spec.visual.map.znear, spec.visual.map.zfar = 0.01, 20.0
    spec.visual.map.shadowclip = 1.0
    spec.add_texture(
        name="sky", type=mujoco.mjtTexture.mjTEXTURE_SKYBOX, width=64, height=64,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT, rgb1=[0.78, 0.82, 0.86],
        rgb2=[0.55, 0.60, 0.66],
    )
    spec.worldbody.add_light(
        pos=[0.3, 0.0, 2.2], dir=[0.1, 0.0, -1.0], diffuse=[0.6, 0.6, 0.6], castshadow=pretty,
        type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
    )
    spec.visual.headlight.ambient = [0.35, 0.35, 0.35]
    spec.visual.headlight.diffuse = [0.35, 0.35, 0.35]
    spec.visual.headlight.specular = [0.0, 0.0, 0.0]
    return spec


def build_cell(
    objects: tuple[ObjectSpec, ...], pretty: bool = False, scale: float = 1.0
) -> Cell:
    """Compile the cell with these objects (0.3 s, or 1.5 s with the visual meshes).

    `scale` multiplies every length of the objects.
    """
    spec = new_spec("dual_fr3", pretty, ([0.35, 0.0, 0.2], 1.0))
    world = spec.worldbody
    world.add_geom(
        name="table", type=mujoco.mjtGeom.mjGEOM_BOX, pos=[0.45, 0.0, -0.02],
        size=[0.55, 0.85, 0.02], rgba=[0.72, 0.62, 0.50, 1.0], friction=[0.9, 0.01, 0.0005],
        condim=4,
    )
    world.add_geom(
        name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, pos=[0, 0, -0.75], size=[3, 3, 0.1],
        rgba=[0.35, 0.38, 0.42, 1.0],
    )
    for arm in ARMS:
        world.add_geom(
            type=mujoco.mjtGeom.mjGEOM_BOX, pos=[*base_position(arm)[:2], -0.375],
            size=[0.1, 0.1, 0.355], rgba=[0.2, 0.2, 0.22, 1.0], contype=0, conaffinity=0,
        )
    head, third = [-0.05, 0.0, 0.85], [1.55, -0.75, 0.95]
    add_camera(world, "head", head, camera_axes(head, [0.48, 0.0, 0.0]), 62.0)
    add_camera(world, "third", third, camera_axes(third, [0.28, 0.0, 0.24]), 50.0)
    for arm in ARMS:
        _add_arm(spec, arm, pretty)
    infos = tuple(build(spec, item, scale) for item in objects)
    parts = [f"{arm}_{part}" for arm in ARMS for part in ("arm", "hand", "finger1", "finger2")]
    return finished(spec, infos, parts, _part, pretty)


def _part(body: str, _: str) -> str:
    """Which part of an arm a body is."""
    arm, link = body.split("_", 1)
    part = {"hand": "hand", "left_finger": "finger1", "right_finger": "finger2"}
    return f"{arm}_{part.get(link, 'arm')}"


def finished(
    spec: mujoco.MjSpec, objects: tuple[ObjectInfo, ...], parts: list[str],
    part: Callable[[str, str], str], pretty: bool,
) -> Cell:
    """Compile; `parts` name the robot's parties of contacts, `part` that of a body and geom."""
    model = spec.compile()
    # A part of the robot that is tracked like an object touches as the robot.
    things = [o.name for o in objects if o.kind != ROBOT_PART]
    names = ("table", "floor", *parts, *things)
    of = np.zeros(model.ngeom, dtype=np.uint16)
    for geom in range(model.ngeom):
        body, own = model.body(model.geom_bodyid[geom]).name, model.geom(geom).name
        if body in names:
            name = body
        elif body == "world":
            name = "floor" if own == "floor" else "table"
        else:
            name = part(body, own)
        of[geom] = names.index(name)
    nominal = {name: getattr(model, name).copy() for name in _VARIED}
    return Cell(model, objects, names, of, pretty, nominal)
