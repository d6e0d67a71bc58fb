"""Whether a hand would hit things that stand around: grasps and releases are chosen by it."""

from __future__ import annotations

import coal
import numpy as np

from bench_tasks.view import View, rotation_matrix

__all__ = ["hand_hits", "widest_opening"]

MARGIN_M = 0.003
_HAND = ((0.032, 0.103, 0.046), -0.0815)
"""Half size (m) of the FR3 hand's housing, fingers moving along y; z of its middle in TCP frame."""
_FINGER = ((0.011, 0.0135, 0.026), -0.017)
"""The same of a finger, whose inner face is half the opening away from the TCP."""


def _transform(position: np.ndarray, rotation: np.ndarray) -> coal.Transform3s:
    return coal.Transform3s(rotation, np.asarray(position, dtype=np.float64))


def hand_hits(
    view: View, tcp: np.ndarray, opening_m: float, ignore: tuple[str, ...] = ()
) -> str | None:
    """Name of an object whose bounding box a hand at `tcp` (7,), open so far, touches; or None."""
    rotation = rotation_matrix(tcp[3:])
    (hand, hand_z), (finger, finger_z) = _HAND, _FINGER
    aside = opening_m / 2 + finger[1]
    parts = (
        (hand, (0.0, 0.0, hand_z)), (finger, (0.0, aside, finger_z)),
        (finger, (0.0, -aside, finger_z)),
    )  # fmt: skip
    boxes = [
        (
            coal.Box(*(2 * (v + MARGIN_M) for v in half)),
            _transform(tcp[:3] + rotation @ np.array(at), rotation),
        )
        for half, at in parts
    ]
    for item in view.scene.objects:
        pose = view.pose(item.name)
        # A hand's far corner is 0.18 m from its TCP.
        if item.name in ignore or np.linalg.norm(pose[:3] - tcp[:3]) > 0.18 + np.linalg.norm(
            item.half_size_m
        ):
            continue
        body = coal.Box(*(2 * v for v in item.half_size_m))
        where = _transform(pose[:3], rotation_matrix(pose[3:]))
        for box, at in boxes:
            if coal.collide(box, at, body, where, coal.CollisionRequest(), coal.CollisionResult()):
                return item.name
    return None


def widest_opening(
    view: View, tcp: np.ndarray, least_m: float, most_m: float, ignore: tuple[str, ...]
) -> float:
    """The widest of four openings between `least_m` and `most_m` that hits nothing; else least."""
    for opening in np.linspace(most_m, least_m, 4):
        if hand_hits(view, tcp, float(opening), ignore) is None:
            return float(opening)
    return least_m
