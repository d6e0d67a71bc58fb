"""Distances of the G1's arms to each other, to its body and to the table, along a whole path.

Shapes are the capsules of the model that is simulated, in the pelvis' frame. The legs stand as the
balance policy's default posture has them, which is near enough to any posture of standing.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import coal
import numpy as np
import pinocchio as pin

from bench_tasks import g1
from bench_tasks.kinematics import se3
from bench_tasks.view import invert
from bench_tasks.vocabulary import ARMS

__all__ = ["BodyClearance"]

RESOLUTION_RAD = 0.02
"""Between two looks no joint turns by more: the hands, 0.6 m away, move by about a centimetre."""
_PARTS = ("shoulder_yaw", "elbow_yaw", "wrist", "hand")
_BODY = ("pelvis", "torso", "head", *(f"{side}_{p}" for side in ARMS for p in ("hip", "thigh")))
TABLE = "table"


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
        self._table: int | None = None
        self._pair_up()

    def set_table(self, pelvis: np.ndarray, edge_m: float, size_m: tuple[float, float, float]):
        """Where a table is, and the pelvis (7,), in the world, whose z is 0 on the table top.

        Its near edge is at x = `edge_m`, its middle at y = 0; it is so deep, wide and thick.
        """
        depth, width, thick = size_m
        middle = np.array([edge_m + depth / 2, 0.0, -thick / 2, 1.0, 0.0, 0.0, 0.0])
        placement = se3(invert(pelvis)) * se3(middle)
        box = coal.Box(depth, width, thick)
        if self._table is not None:
            self._shapes.removeGeometryObject(TABLE)
        item = pin.GeometryObject(TABLE, 0, 0, placement, box)
        self._table = self._shapes.addGeometryObject(item)
        self._pair_up()

    def _pair_up(self) -> None:
        """Which shapes must not meet: an arm the other, the body, the table; not its own parts."""
        self._shapes.removeAllCollisionPairs()
        find = self._shapes.getGeometryId
        arms = [[find(f"{arm}_{part}_collision") for part in _PARTS] for arm in ARMS]
        pairs = [(a, b) for a in arms[0] for b in arms[1]]
        # The upper arm hangs at the torso, whose capsule is larger than the torso is there.
        pairs += [(part, find(f"{name}_collision")) for arm in arms for part in arm[1:]
                  for name in _BODY]  # fmt: skip
        if self._table is not None:
            pairs += [(part, find(TABLE)) for arm in arms for part in arm]
        for pair in pairs:
            self._shapes.addCollisionPair(pin.CollisionPair(*pair))
        self._state = pin.GeometryData(self._shapes)

    def nearest(self, joints: np.ndarray) -> tuple[float, str]:
        """The least distance (m) at joints (17,) rad, and between what; negative: they overlap."""
        pin.computeDistances(
            self._model, self._data, self._shapes, self._state, np.asarray(joints, float)
        )
        distances = [found.min_distance for found in self._state.distanceResults]
        k = int(np.argmin(distances))
        pair = self._shapes.collisionPairs[k]
        names = [self._shapes.geometryObjects[i].name.removesuffix("_collision")
                 for i in (pair.first, pair.second)]  # fmt: skip
        return float(distances[k]), " to ".join(name.replace("_", " ") for name in names)

    def blocked(self, start: np.ndarray, path: np.ndarray, least_m: float) -> str:
        """What comes nearer than `least_m` on the way from `start` along `path` (n, 17); "": none.

        Also between the points. Where a start is too near already, it may only get farther away.
        """
        before = np.asarray(start, float)
        allowed = min(least_m, self.nearest(before)[0])
        for point in np.asarray(path, float):
            steps = max(1, int(np.ceil(np.abs(point - before).max() / RESOLUTION_RAD)))
            for k in range(1, steps + 1):
                distance, between = self.nearest(before + k / steps * (point - before))
                if not distance >= allowed - 1e-6:
                    return f"{between}: {distance:.3f} m, at least {least_m:g}"
                allowed = min(least_m, max(allowed, distance))
            before = point
        return ""
