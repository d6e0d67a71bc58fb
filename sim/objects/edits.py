"""Edits of object programs: small named operations on what a program has built.

Sizes are shares of the object's own, so that an edited program is as parametric as its parent: it
takes the same lengths. An edit that finds nothing to act on raises `Unfit`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import mujoco
import numpy as np

from bench_tasks.errors import BenchError, UsageError, unknown
from bench_tasks.object_sets import Edit
from bench_tasks.vocabulary import Grasp
from sim.objects.shape import COLORS, Shape

__all__ = ["LENGTH", "OPERATIONS", "Unfit", "apply", "check", "factors", "operations_for",
           "solids"]

_BOX, _CYLINDER, _MESH = (
    mujoco.mjtGeom.mjGEOM_BOX, mujoco.mjtGeom.mjGEOM_CYLINDER, mujoco.mjtGeom.mjGEOM_MESH,
)  # fmt: skip
THIN_M = 0.006
"""What is thinner than this is not carved."""
CLEAR_M = 0.015
"""How far above and below a grasp's TCP the fingers must find what the program built."""
SIDES = 48


class Unfit(BenchError):
    """An edit that has nothing to act on here; the text says why."""


@dataclass
class Draft:
    """What has been built so far."""

    spec: mujoco.MjSpec
    shape: Shape
    grasps: tuple[Grasp, ...]

    @property
    def geoms(self) -> list[mujoco.MjsGeom]:
        """The parts."""
        return list(self.shape.body.geoms)

    def bounds(self) -> np.ndarray:
        """Corners (2, 3) of the bounding box, m."""
        points = np.concatenate([solid for _, solid in solids(self.spec, self.geoms)])
        return np.stack([points.min(axis=0), points.max(axis=0)])

    def main(self) -> mujoco.MjsGeom:
        """The largest standing box or cylinder."""
        found = [g for g in self.geoms if g.type in (_BOX, _CYLINDER) and _upright(g)]
        if not found:
            raise Unfit("no standing box or cylinder")
        return max(found, key=lambda g: float(np.prod(2 * _half(g))))

    def body(self) -> mujoco.MjsGeom:
        """The main part of something solid: it reaches up to the top, or most of the way."""
        main, (low, high) = self.main(), self.bounds()
        if 2 * _half(main)[2] < 0.5 * (high - low)[2]:
            raise Unfit("not solid")
        return main

    def tinted(self, color: str) -> Shape:
        """The same body, for parts of another colour."""
        return replace(self.shape, rgba=[*COLORS[color], 1.0])

    def carve(self, geom: mujoco.MjsGeom, points: np.ndarray) -> None:
        """Make the geom the convex hull of `points` (n, 3), in its own frame."""
        name = f"{self.shape.body.name}_{len(self.spec.meshes)}"
        self.spec.add_mesh(name=name, uservert=np.asarray(points, float).ravel())
        geom.type, geom.meshname = _MESH, name

    def clear_of_grasps(self, low: float, high: float) -> None:
        """Unfit when a hand would close on what lies between these heights."""
        for grasp in self.grasps:
            if low - CLEAR_M < grasp.pose[2] < high + CLEAR_M:
                raise Unfit(f"in the way of the grasp {grasp.name}")

    def wrap(self, main, low: float, high: float, out: float, color: str) -> None:
        """A belt about the main part between two heights, `out` thick."""
        shape, (x, y, z) = self.tinted(color), main.pos
        half = _half(main)
        if low < z - half[2] - 1e-9 or high > z + half[2] + 1e-9:
            raise Unfit("beside the main part")
        middle, up = (low + high) / 2, (high - low) / 2
        if main.type == _CYLINDER:
            # The panels reach into the wall, or they would touch it along lines alone.
            radius, wall = half[0] - 0.001, out + 0.001
            for k in range(16):
                angle = 2 * math.pi * k / 16
                at = radius + wall / 2
                shape.box(
                    [x + at * math.cos(angle), y + at * math.sin(angle), middle],
                    [wall / 2, (radius + wall) * math.tan(math.pi / 16), up], yaw=angle,
                )
            return
        for sign in (1.0, -1.0):
            shape.box(
                [x + sign * (half[0] + out / 2), y, middle], [out / 2, half[1] + out, up]
            )
            shape.box([x, y + sign * (half[1] + out / 2), middle], [half[0], out / 2, up])


def _half(geom) -> np.ndarray:
    """Half sizes (3,) of a box or cylinder in its own frame."""
    size = np.array(geom.size)
    return size if geom.type == _BOX else np.array([size[0], size[0], size[1]])


def _upright(geom) -> bool:
    return abs(abs(geom.quat[0]) - 1.0) < 1e-9


def _circle(radius: float, z: float, sides: int, turn: float = 0.0) -> np.ndarray:
    angles = turn + 2 * math.pi * np.arange(sides) / sides
    return np.stack([radius * np.cos(angles), radius * np.sin(angles), np.full(sides, z)], axis=1)


def _corners(half: Iterable[float]) -> np.ndarray:
    return (2.0 * np.array(list(np.ndindex(2, 2, 2))) - 1.0) * np.asarray(half)


def solids(spec: mujoco.MjSpec, geoms) -> list[tuple[mujoco.MjsGeom, np.ndarray]]:
    """Each geom with the corners (n, 3) of its convex hull, in the object's frame."""
    found = []
    for geom in geoms:
        if geom.type == _BOX:
            points = _corners(geom.size)
        elif geom.type == _CYLINDER:
            radius, high = geom.size[:2]
            points = np.concatenate([_circle(radius, z, SIDES) for z in (-high, high)])
        else:
            points = np.array(spec.mesh(geom.meshname).uservert).reshape(-1, 3)
        matrix = np.zeros(9)
        mujoco.mju_quat2Mat(matrix, geom.quat)
        found.append((geom, points @ matrix.reshape(3, 3).T + geom.pos))
    return found


def _widths(draft: Draft, main, factor: Callable[[float], float]) -> None:
    """Multiply the width of the grasps on the main part by what `factor` gives at their height."""
    half = _half(main)

    def changed(grasp: Grasp) -> Grasp:
        across = [2 * half[k] for k in (0, 1)]
        if min(abs(grasp.width_m - a) for a in across) > 0.001:
            return grasp
        return replace(grasp, width_m=grasp.width_m * factor(grasp.pose[2]))

    draft.grasps = tuple(changed(g) for g in draft.grasps)


# -- operations ----------------------------------------------------------------------------------


def _bevel(draft: Draft, share: float) -> None:
    """Cut the edges of standing boxes by a share of their least half size."""
    boxes = [
        g for g in draft.geoms
        if g.type == _BOX and _upright(g) and 2 * min(g.size) >= THIN_M
    ]
    if not boxes:
        raise Unfit("no box to bevel")
    for geom in boxes:
        half = np.array(geom.size)
        cut = half - share * half.min()
        points = [
            np.where(np.arange(3) == k, half, cut) * sign
            for sign in _corners((1, 1, 1)) for k in range(3)
        ]
        draft.carve(geom, np.array(points))


def _facet(draft: Draft, sides: int) -> None:
    """Make standing cylinders prisms, flat where fingers close along x or y."""
    round_ones = [
        g for g in draft.geoms if g.type == _CYLINDER and _upright(g) and 2 * g.size[1] >= THIN_M
    ]
    if not round_ones:
        raise Unfit("no cylinder")
    _widths(draft, max(round_ones, key=lambda g: g.size[1]), lambda _: math.cos(math.pi / sides))
    for geom in round_ones:
        radius, high = geom.size[:2]
        turn = math.pi / sides
        draft.carve(
            geom, np.concatenate([_circle(radius, z, sides, turn) for z in (-high, high)])
        )


def _taper(draft: Draft, share: float) -> None:
    """Make the body narrower at the top by a share, or wider where it is negative."""
    main = draft.body()
    half, z = _half(main), float(main.pos[2])

    def at(height: float) -> float:
        up = (height - z + half[2]) / (2 * half[2])
        return 1.0 - max(0.0, share) * up + min(0.0, share) * (1.0 - up)

    _widths(draft, main, at)
    scale = {-1.0: at(z - half[2]), 1.0: at(z + half[2])}
    if main.type == _CYLINDER:
        rings = [_circle(half[0] * s, sign * half[2], 24) for sign, s in scale.items()]
        points = np.concatenate(rings)
    else:
        points = _corners(half)
        points[:, :2] *= np.where(points[:, 2:] > 0, scale[1.0], scale[-1.0])
    draft.carve(main, points)


def _waist(draft: Draft, share: float, height: float) -> None:
    """Make the middle of a round body narrower by a share, over a share of its height."""
    main = draft.body()
    if main.type != _CYLINDER:
        raise Unfit("not round")
    radius, half, (x, y, z) = float(main.size[0]), float(main.size[1]), np.array(main.pos)
    inner = height * half
    _widths(draft, main, lambda at: 1.0 - share if abs(at - z) < inner else 1.0)
    end = (half - inner) / 2
    main.size, main.pos = [radius, end, 0.0], [x, y, z - half + end]
    draft.shape.cylinder([x, y, z + half - end], radius, end)
    draft.shape.cylinder([x, y, z], radius * (1.0 - share), inner)


def _band(draft: Draft, at: float, height: float, share: float, color: str) -> None:
    """A belt about the main part, its middle at a share of the object's height."""
    main, (low, high) = draft.main(), draft.bounds()
    tall = (high - low)[2]
    middle, up = low[2] + at * tall, height * tall / 2
    draft.clear_of_grasps(middle - up, middle + up)
    draft.wrap(main, middle - up, middle + up, share * float(min(_half(main)[:2])), color)


def _foot(draft: Draft, height: float, share: float, color: str) -> None:
    """A wider plate at the bottom."""
    main, (low, high) = draft.main(), draft.bounds()
    half = _half(main)
    if abs(main.pos[2] - half[2] - low[2]) > 0.001:
        raise Unfit("the main part does not stand on the ground")
    up = height * (high - low)[2] / 2
    draft.clear_of_grasps(low[2], low[2] + 2 * up)
    out = share * float(min(half[:2]))
    shape, at = draft.tinted(color), [main.pos[0], main.pos[1], low[2] + up]
    if main.type == _CYLINDER:
        shape.cylinder(at, half[0] + out, up)
    else:
        shape.box(at, [half[0] + out, half[1] + out, up])


def _cap(draft: Draft, height: float, share: float, color: str) -> None:
    """A knob on the top, a share as wide as the body."""
    main, (low, high) = draft.body(), draft.bounds()
    half = _half(main)
    if abs(main.pos[2] + half[2] - high[2]) > 0.001:
        raise Unfit("something is on top already")
    up = height * (high - low)[2] / 2
    # A little into the body, so that the two are one.
    shape, at = draft.tinted(color), [main.pos[0], main.pos[1], high[2] + up - 0.0005]
    if main.type == _CYLINDER:
        shape.cylinder(at, share * half[0], up)
    else:
        shape.box(at, [share * half[0], share * half[1], up])


def _ribs(draft: Draft, share: float, height: float, color: str) -> None:
    """Four upright bars on a round body, diagonally, where no finger closes."""
    main = draft.body()
    if main.type != _CYLINDER:
        raise Unfit("not round")
    radius, half, (x, y, z) = float(main.size[0]), float(main.size[1]), np.array(main.pos)
    shape, out = draft.tinted(color), share * radius
    for k in range(4):
        angle = math.pi / 4 + k * math.pi / 2
        at = radius + out / 2 - 0.001
        shape.box(
            [x + at * math.cos(angle), y + at * math.sin(angle), z],
            [out / 2 + 0.001, 0.12 * radius, height * half], yaw=angle,
        )


def _handle(draft: Draft, reach: float, height: float, color: str) -> None:
    """A loop at the -x side of the body; hands that close along x no longer fit."""
    main = draft.body()
    half, (x, y, z) = _half(main), np.array(main.pos)
    out, up, bar = reach * half[0], height * half[2], 0.004
    if out < 0.014:
        raise Unfit("a finger would not fit through the handle")
    shape, wall = draft.tinted(color), x - half[0]
    for sign in (1.0, -1.0):
        shape.box([wall - out / 2 + 0.001, y, z + sign * up], [out / 2 + 0.001, bar, bar])
    shape.box([wall - out, y, z], [bar, bar, up + bar])

    def along_x(grasp: Grasp) -> bool:
        w, a, b, c = grasp.pose[3:]
        return abs(2 * (a * b - w * c)) > 0.7

    draft.grasps = tuple(g for g in draft.grasps if not along_x(g))
    if not draft.grasps:
        raise Unfit("no grasp is left")


def _hollow(draft: Draft, wall: float) -> None:
    """Make a round body a cup."""
    main, (_, high) = draft.body(), draft.bounds()
    half, (x, y, z) = _half(main), np.array(main.pos)
    thick = wall * float(half[0])
    if main.type != _CYLINDER or abs(z + half[2] - high[2]) > 0.001:
        raise Unfit("no round open top")
    if thick < 0.003:
        raise Unfit("its wall would be thinner than 3 mm")
    main.size, main.pos = [half[0], thick / 2, 0.0], [x, y, z - half[2] + thick / 2]
    for k in range(12):
        angle, at = 2 * math.pi * k / 12, half[0] - thick / 2
        draft.shape.box(
            [x + at * math.cos(angle), y + at * math.sin(angle), z + 0.0005],
            [thick / 2, half[0] * math.tan(math.pi / 12), half[2] - 0.0005], yaw=angle,
        )


LENGTH = "length"
Range = tuple[float, float] | tuple[str, ...] | tuple[int, ...]
OPERATIONS: dict[str, tuple[Callable[..., None] | None, dict[str, Range]]] = {
    # Multiplies a length of the kind's program; all others act on what that has built.
    LENGTH: (None, {"factor": (0.85, 1.18)}),
    "bevel": (_bevel, {"share": (0.10, 0.30)}),
    "facet": (_facet, {"sides": (8, 12, 16)}),
    "taper": (_taper, {"share": (-0.12, 0.20)}),
    "waist": (_waist, {"share": (0.06, 0.20), "height": (0.25, 0.5)}),
    "band": (
        _band,
        {"at": (0.1, 0.9), "height": (0.05, 0.15), "share": (0.04, 0.12), "color": tuple(COLORS)},
    ),
    "foot": (
        _foot, {"height": (0.04, 0.12), "share": (0.06, 0.25), "color": tuple(COLORS)},
    ),
    "cap": (_cap, {"height": (0.05, 0.15), "share": (0.3, 0.8), "color": tuple(COLORS)}),
    "ribs": (_ribs, {"share": (0.05, 0.15), "height": (0.4, 0.9), "color": tuple(COLORS)}),
    "handle": (_handle, {"reach": (0.5, 0.9), "height": (0.3, 0.6), "color": tuple(COLORS)}),
    "hollow": (_hollow, {"wall": (0.12, 0.25)}),
}
"""Name -> function and its arguments: the least and greatest number (floats), or what is valid."""


UNSUITED = {"block": ("cap", "handle")}
"""What would take from a kind what tasks ask of it: one block stands on another."""


def operations_for(kind: str) -> tuple[str, ...]:
    """The operations that may be done to objects of a kind."""
    return tuple(op for op in OPERATIONS if op not in UNSUITED.get(kind, ()))


def check(kind: str, edits: Iterable[Edit], lengths: Iterable[str]) -> None:
    """UsageError names the first edit that a kind does not take, or its first wrong argument."""
    seen: set[tuple[str, object]] = set()
    for edit in edits:
        if edit.op not in operations_for(kind):
            raise unknown(f"edit of a {kind}", edit.op, operations_for(kind))
        ranges = dict(OPERATIONS[edit.op][1])
        if edit.op == LENGTH:
            ranges["name"] = tuple(lengths)
        for key in edit.args:
            if key not in ranges:
                raise unknown(f"argument of {edit.op}", key, ranges)
        for key, valid in ranges.items():
            value = edit.args.get(key)
            if not isinstance(valid[0], float):
                if isinstance(value, bool) or value not in valid:
                    raise unknown(f"{key} of {edit.op}", value, valid)
            elif isinstance(value, bool) or not isinstance(value, int | float) or not (
                valid[0] <= value <= valid[1]
            ):
                raise UsageError(
                    f"{edit.op}: {key} must be a number from {valid[0]} to {valid[1]}, "
                    f"got {value!r}"
                )
        once = (edit.op, edit.args.get("name"))
        if once in seen:  # many small changes of one length make a can of a kilometre
            raise UsageError(f"{' '.join(str(word) for word in once if word)} is edited twice")
        seen.add(once)


def factors(edits: Iterable[Edit]) -> dict[str, float]:
    """What the edits multiply the program's lengths by."""
    found: dict[str, float] = {}
    for edit in edits:
        if edit.op == LENGTH:
            name = edit.args["name"]
            found[name] = found.get(name, 1.0) * edit.args["factor"]
    return found


def apply(
    spec: mujoco.MjSpec, shape: Shape, half, grasps: tuple[Grasp, ...], edits: Iterable[Edit]
) -> tuple[tuple[float, ...], tuple[Grasp, ...]]:
    """Edit what a program has built; return the half sizes and grasps that it has now.

    The origin is moved to the middle of the bounding box again. Unfit when an edit does not fit.
    """
    draft = Draft(spec, shape, grasps)
    before = draft.bounds()
    for edit in edits:
        operation = OPERATIONS[edit.op][0]
        if operation is not None:
            operation(draft, **edit.args)
    # Where the program says the box is, moved by as much as the parts' box has moved.
    low, high = draft.bounds() - before + np.array([-np.asarray(half), half])
    shift = -(low + high) / 2
    for geom in draft.geoms:
        geom.pos = np.array(geom.pos) + shift
    moved = tuple(
        replace(g, pose=(*(float(v) for v in np.array(g.pose[:3]) + shift), *g.pose[3:]))
        for g in draft.grasps
    )
    return tuple(float(v) for v in (high - low) / 2), moved
