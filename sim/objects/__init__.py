"""Objects as small parametric programs: geoms on a body, and what is known of the result.

Every program takes lengths in metres; the object's frame has z up and its origin at the centre
of the bounding box, so that an object of half height h stands on the table at z = h. A module of
this package offers programs as PROGRAMS (kind -> program) and names in FIXED those that are part
of the furniture; to add objects, add a module.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable

import mujoco

from bench_tasks.errors import UsageError, unknown
from bench_tasks.object_sets import ObjectSet
from bench_tasks.tasks.base import ObjectSpec
from bench_tasks.vocabulary import ObjectInfo
from sim.objects import edits
from sim.objects.shape import COLORS, DENSITY_KG_M3, Shape

__all__ = ["COLORS", "DENSITY_KG_M3", "KINDS", "build", "check_set", "is_fixed", "lengths_of"]

_MODULES = [importlib.import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__)]
KINDS: dict[str, Callable] = {
    kind: program
    for module in _MODULES
    for kind, program in getattr(module, "PROGRAMS", {}).items()
}
_FIXED = {kind for module in _MODULES for kind in getattr(module, "FIXED", ())}


def lengths_of(kind: str) -> dict[str, float]:
    """The lengths that the program of a kind takes, with their defaults, m."""
    return {
        name: parameter.default
        for name, parameter in inspect.signature(KINDS[kind]).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }


def is_fixed(kind: str) -> bool:
    """Whether things of this kind are part of the furniture."""
    return kind in _FIXED


def check_set(objects: ObjectSet) -> ObjectSet:
    """Return the set; UsageError names the first object that cannot be built."""
    for item in objects.objects:
        if item.kind not in KINDS:
            raise unknown(f"kind of {item.name}", item.kind, KINDS)
        try:
            edits.check(item.kind, item.edits, lengths_of(item.kind))
            build(mujoco.MjSpec(), ObjectSpec("thing", item.kind, evolved=item))
        except edits.Unfit as error:
            raise UsageError(f"{item.name} cannot be built: {error}") from None
        except UsageError as error:
            raise UsageError(f"{item.name}: {error}") from None
    return objects


def build(spec: mujoco.MjSpec, item: ObjectSpec, scale: float = 1.0) -> ObjectInfo:
    """Add `item`, its lengths times `scale`, to the world of `spec`; return what is known of it.

    UsageError on an unknown kind or colour.
    """
    if item.kind not in KINDS:
        raise unknown("object kind", item.kind, KINDS)
    if item.color not in COLORS:
        raise unknown("colour", item.color, COLORS)
    body = spec.worldbody.add_body(name=item.name)
    if item.kind not in _FIXED:
        body.add_freejoint(name=f"{item.name}_free")
    shape = Shape(body, [*COLORS[item.color], 1.0])
    defaults = lengths_of(item.kind)
    for name in item.params:
        if name not in defaults:
            raise unknown(f"length of a {item.kind}", name, defaults)
    changes = item.evolved.edits if item.evolved else ()
    factors = edits.factors(changes)
    lengths = {
        name: scale * factors.get(name, 1.0) * item.params.get(name, value)
        for name, value in defaults.items()
    }
    half, grasps = KINDS[item.kind](shape, **lengths)
    if changes:
        half, grasps = edits.apply(spec, shape, half, grasps, changes)
    return ObjectInfo(
        item.name, item.kind, item.color, tuple(float(v) for v in half), grasps,
        fixed=item.kind in _FIXED,
    )
