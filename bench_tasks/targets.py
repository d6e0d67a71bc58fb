"""Which object a point in the world belongs to, and where on a surface a held one comes to stand.

This is execution, not perception, and it is privileged: it measures against the true poses. What a
planner perceives ends with the point it names; a point that hits nothing is refused, so that this
can tell apart what was pointed at, and never finds what was not.
"""

from __future__ import annotations

import numpy as np

from bench_tasks.errors import UsageError
from bench_tasks.view import View, invert, rotate, rotation_matrix
from bench_tasks.vocabulary import ObjectInfo, SkillCall

__all__ = ["HIT_M", "object_at", "resolved", "standing_on"]

HIT_M = 0.03
"""How far from an object's box a point may lie that is meant for it."""
CLEAR_M = 0.005
"""By how much it must be nearer to that object than to any other."""


def _distance(view: View, item: ObjectInfo, point: np.ndarray) -> float:
    """From a point to the object's bounding box, m; 0 within it."""
    inverse = invert(view.pose(item.name))
    local = inverse[:3] + rotate(inverse[3:], point)
    return float(np.linalg.norm(np.maximum(np.abs(local) - np.asarray(item.half_size_m), 0.0)))


def object_at(view: View, point: np.ndarray) -> str:
    """Name of the object that can be grasped and that a point (3,), m, lies on.

    UsageError when there is none within 3 cm, or two are equally near. It names none of them: a
    planner may not have been told their names.
    """
    found = sorted(
        (_distance(view, item, point), item.name)
        for item in view.scene.objects
        if item.grasps and not item.fixed
    )
    where = ", ".join(f"{v:.3f}" for v in point)
    if not found or found[0][0] > HIT_M:
        raise UsageError(
            f"no object that can be grasped is within {100 * HIT_M:.0f} cm of the point ({where})"
        )
    if len(found) > 1 and found[1][0] - found[0][0] < CLEAR_M:
        raise UsageError(f"the point ({where}) is as near to one object as to another")
    return found[0][1]


def resolved(view: View, call: SkillCall) -> SkillCall:
    """The same call with the object's name for the point to grasp at; errors as of `object_at`."""
    if call.skill != "grasp" or "point" not in call.args:
        return call
    args = {key: value for key, value in call.args.items() if key != "point"}
    name = object_at(view, np.asarray(call.args["point"], dtype=np.float64))
    return SkillCall(call.skill, call.arm, {"object": name, **args})


def standing_on(view: View, name: str, point: np.ndarray) -> list[float]:
    """Position (3,) at which an object, turned as it is, stands on the surface at a point (3,)."""
    half = view.scene.object(name).half_size_m
    height = float(np.abs(rotation_matrix(view.pose(name)[3:])[2]) @ np.asarray(half))
    return [float(point[0]), float(point[1]), float(point[2]) + height]
