"""Scores of what a model shows in an image, in normalised coordinates (u right, v down, 0 to 1).

The definitions are those of RynnBrain's benchmark (arXiv 2602.14979). An answer that is missing or
in the wrong frame scores 0, always: `in_frame` decides, the other functions never see it.
"""

from __future__ import annotations

import numpy as np

__all__ = [
    "affordance_score", "area_score", "frechet_distance", "grounding_score", "in_frame", "iou",
    "resample", "trajectory_score",
]  # fmt: skip

RESAMPLED = 15
"""Points along both curves when trajectories are compared."""
IOU_BAR = 0.5


def _points(values: object) -> np.ndarray:
    """(n, 2) float64; ValueError when the shape is another or a number is not finite."""
    points = np.asarray(values, dtype=np.float64)
    if points.size == 0:
        return points.reshape(0, 2)
    if points.ndim != 2 or points.shape[1] != 2 or not np.isfinite(points).all():
        raise ValueError(f"points must be finite and (n, 2), got shape {points.shape}")
    return points


def in_frame(score: float, frame: int | None, wanted: int | None) -> float:
    """`score` when the answer names the wanted frame, else 0."""
    return score if frame == wanted else 0.0


def resample(curve: object, count: int = RESAMPLED) -> np.ndarray:
    """`count` points (count, 2) at equal distances along a curve (n, 2), n >= 1."""
    points = _points(curve)
    if len(points) == 0:
        raise ValueError("a curve needs at least one point")
    lengths = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    at = np.linspace(0.0, lengths[-1], count)
    return np.stack([np.interp(at, lengths, points[:, k]) for k in range(2)], axis=1)


def frechet_distance(a: object, b: object) -> float:
    """Discrete Frechet distance of two curves (n, 2) and (m, 2) (Eiter and Mannila, 1994)."""
    first, second = _points(a), _points(b)
    if not len(first) or not len(second):
        raise ValueError("a curve needs at least one point")
    gaps = np.linalg.norm(first[:, None] - second[None], axis=2)
    reach = np.full(gaps.shape, np.inf)
    for i in range(len(first)):
        for j in range(len(second)):
            if i == j == 0:
                before = 0.0
            else:
                before = min(
                    reach[i - 1, j] if i else np.inf, reach[i, j - 1] if j else np.inf,
                    reach[i - 1, j - 1] if i and j else np.inf,
                )  # fmt: skip
            reach[i, j] = max(before, gaps[i, j])
    return float(reach[-1, -1])


def trajectory_score(predicted: object, truth: object) -> float:
    """exp(-discrete Frechet distance) of both curves resampled to 15 points; 0 for no answer."""
    if not len(_points(predicted)):
        return 0.0
    return float(np.exp(-frechet_distance(resample(predicted), resample(truth))))


def affordance_score(predicted: object, truth: object) -> float:
    """exp(-mean distance from each predicted point to the nearest true one); 0 for no answer."""
    first, second = _points(predicted), _points(truth)
    if not len(second):
        raise ValueError("there is no true point to compare with")
    if not len(first):
        return 0.0
    gaps = np.linalg.norm(first[:, None] - second[None], axis=2)
    return float(np.exp(-gaps.min(axis=1).mean()))


def area_score(predicted: object, polygon: object) -> float:
    """Share of the predicted points inside a polygon (n, 2), n >= 3; 0 for no answer."""
    points, corners = _points(predicted), _points(polygon)
    if len(corners) < 3:
        raise ValueError(f"a polygon needs three corners, got {len(corners)}")
    if not len(points):
        return 0.0
    u, v = points[:, 0, None], points[:, 1, None]
    begin, end = corners, np.roll(corners, -1, axis=0)
    # Even-odd rule: count the edges that a ray to the right crosses.
    spans = (begin[:, 1] > v) != (end[:, 1] > v)
    with np.errstate(divide="ignore", invalid="ignore"):
        cut = begin[:, 0] + (v - begin[:, 1]) / (end[:, 1] - begin[:, 1]) * (end - begin)[:, 0]
    return float(((spans & (u < cut)).sum(axis=1) % 2 == 1).mean())


def iou(a: object, b: object) -> float:
    """Intersection over union of two boxes (2, 2), least corner first; 0 for empty boxes."""
    first, second = _points(a), _points(b)
    if first.shape != (2, 2) or second.shape != (2, 2):
        raise ValueError("a box is two corners")
    overlap = np.clip(np.minimum(first[1], second[1]) - np.maximum(first[0], second[0]), 0, None)
    areas = [float(np.prod(np.clip(box[1] - box[0], 0, None))) for box in (first, second)]
    shared = float(np.prod(overlap))
    union = sum(areas) - shared
    return shared / union if union > 0.0 else 0.0


def grounding_score(predicted: list, truth: list) -> float:
    """Share of pairs of boxes with IoU above 0.5; a box that is None was not given.

    ValueError when the lists are empty or differ in length: nothing to compare is no success.
    """
    if not truth or len(predicted) != len(truth):
        raise ValueError(f"{len(predicted)} boxes to compare with {len(truth)}")
    hits = [p is not None and iou(p, t) > IOU_BAR for p, t in zip(predicted, truth, strict=True)]
    return sum(hits) / len(hits)
