"""Distances of the G1's arms to each other, to its body and to the table, along a whole path.

Shapes are the capsules of the model that is simulated, in the pelvis' frame. The legs stand as the
balance policy's default posture has them, which is near enough to any posture of standing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import coal
import numpy as np
import pinocchio as pin

from bench_tasks.robots import g1
from bench_tasks.robots.kinematics import se3
from bench_tasks.view import invert
from bench_tasks.vocabulary import ARMS

__all__ = ["BodyClearance", "Blocked"]

RESOLUTION_RAD = 0.02
"""Between two looks no joint turns by more: the hands, 0.6 m away, move by about a centimetre."""
_PARTS = ("shoulder_yaw", "elbow_yaw", "wrist", "hand")
_BODY = ("pelvis", "torso", "head", *(f"{side}_{p}" for side in ARMS for p in ("hip", "thigh")))
TABLE = "table"
SLACK_M = 1e-4


@dataclass(frozen=True)
class Blocked:
    """Where a path comes too near to something; `row` counts its points from 0."""

    row: int
    between: str
    distance_m: float
    least_m: float

    def __str__(self) -> str:
        """In words."""
        return f"{self.between}: {self.distance_m:.3f} m, at least {self.least_m:g}"


class BodyClearance:
    """Checks paths of waist and arms (n, 17). Not thread-safe."""

    def __init__(self) -> None:
        """Load the model (about 0.2 s)."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "g1.xml"
            path.write_text(g1.mjcf(meshes=False))
            whole = pin.buildModelFromMJCF(str(path))
            shapes = pin.buildGeomFromMJCF(whole, str(path), pin.GeometryType.COLLISION)
        upper = g1.JOINT_NAMES[g1.LEGS :]
        stance = pin.neutral(whole)
        stance[:3] = 0.0
        for name, angle in zip(g1.JOINT_NAMES, g1.DEFAULT_RAD, strict=True):
            stance[whole.joints[whole.getJointId(name)].idx_q] = angle
        locked = [k for k in range(1, whole.njoints) if whole.names[k] not in upper]
        self._model, self._shapes = pin.buildReducedModel(whole, shapes, locked, stance)
        self._data = self._model.createData()
        self._table, self._size = 0, ()
        self._pair_up()

    def set_table(self, pelvis: np.ndarray, table: Mapping[str, float]) -> None:
        """Where a table is, and the pelvis (7,), in the world, whose z is 0 on the table top.

        Its near edge is at x = `edge_m`, its middle at y = 0; it is `depth_m`, `width_m` and
        `thickness_m`.
        """
        size = table["depth_m"], table["width_m"], table["thickness_m"]
        middle = np.array([table["edge_m"] + size[0] / 2, 0.0, -size[2] / 2, 1.0, 0.0, 0.0, 0.0])
        placement = se3(invert(pelvis)) * se3(middle)
        if self._size == size:
            self._shapes.geometryObjects[self._table].placement = placement
            return
        if self._size:
            self._shapes.removeGeometryObject(TABLE)
        item = pin.GeometryObject(TABLE, 0, 0, placement, coal.Box(*size))
        self._size, self._table = size, self._shapes.addGeometryObject(item)
        self._pair_up()

    def _pair_up(self) -> None:
        """Which shapes must not meet: an arm the other, the body, the table; not its own parts."""
        self._shapes.removeAllCollisionPairs()
        find = self._shapes.getGeometryId
        arms = [[find(f"{arm}_{part}_collision") for part in _PARTS] for arm in ARMS]
        hands = [set(arm[2:]) for arm in arms]
        pairs = [(a, b, "hands" if a in hands[0] and b in hands[1] else "arms")
                 for a in arms[0] for b in arms[1]]  # fmt: skip
        # The upper arm hangs at the torso, whose capsule is larger than the torso is there.
        pairs += [(part, find(f"{name}_collision"), "itself") for arm in arms for part in arm[1:]
                  for name in _BODY]  # fmt: skip
        if self._size:
            pairs += [(part, self._table, "table") for arm in arms for part in arm]
        for first, second, _ in pairs:
            self._shapes.addCollisionPair(pin.CollisionPair(first, second))
        self._kinds = [kind for *_, kind in pairs]
        self._state = pin.GeometryData(self._shapes)

    def distances(self, joints: np.ndarray) -> np.ndarray:
        """Of every pair, m, at joints (17,) rad; negative where they overlap."""
        pin.computeDistances(
            self._model, self._data, self._shapes, self._state, np.asarray(joints, float)
        )
        return np.array([found.min_distance for found in self._state.distanceResults])

    def nearest(self, joints: np.ndarray) -> tuple[float, str]:
        """The least distance (m) at joints (17,) rad, and between what."""
        distances = self.distances(joints)
        k = int(np.argmin(distances))
        return float(distances[k]), self._named(k)

    def _named(self, k: int) -> str:
        pair = self._shapes.collisionPairs[k]
        names = [self._shapes.geometryObjects[i].name.removesuffix("_collision")
                 for i in (pair.first, pair.second)]  # fmt: skip
        return " to ".join(name.replace("_", " ") for name in names)

    def blocked(
        self, start: np.ndarray, path: np.ndarray, least_m: Mapping[str, float]
    ) -> Blocked | None:
        """What comes too near on the way from `start` along `path` (n, 17), also between points.

        `least_m` says how near is too near: `hands` of each other, `arms` of each other otherwise,
        `itself` of the body, `table`. What is too near at the start may only get farther away.
        """
        before = np.asarray(start, float)
        least = np.array([least_m[kind] for kind in self._kinds])
        allowed = np.minimum(least, self.distances(before) - SLACK_M)
        for row, point in enumerate(np.asarray(path, float)):
            steps = max(1, int(np.ceil(np.abs(point - before).max() / RESOLUTION_RAD)))
            for k in range(1, steps + 1):
                distances = self.distances(before + k / steps * (point - before))
                if not (distances >= allowed).all():
                    worst = int(np.argmin(distances - allowed))
                    return Blocked(row, self._named(worst), float(distances[worst]),
                                   float(least[worst]))  # fmt: skip
                allowed = np.minimum(least, np.maximum(allowed, distances - SLACK_M))
            before = point
        return None
