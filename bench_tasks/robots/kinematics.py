"""Kinematics and self/inter-arm collision of the dual FR3 cell, by pinocchio and coal.

Built from the same MJCF that is simulated. All poses are TCP poses (7,) in the world frame.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import coal
import numpy as np
import pinocchio as pin

from bench_tasks.robots.fr3 import HOME_RAD, TCP_OFFSET_M, arm_mjcf, base_position
from bench_tasks.vocabulary import ARMS

__all__ = ["DualArm", "dual_arm", "pose_of", "se3"]

LIMIT_MARGIN_RAD = 0.03
TOLERANCE_M = 1e-4
TOLERANCE_RAD = 1e-3
_ITERATIONS = 80
_STAGNATION = 12
_NEAR_RESTARTS = 6
_RESTARTS = 36
_TABLE_TOP_M = 0.0


def se3(pose: np.ndarray) -> pin.SE3:
    """The placement that a pose (7,) says."""
    w, x, y, z = (float(v) for v in pose[3:])
    quat = pin.Quaternion(w, x, y, z)
    quat.normalize()
    return pin.SE3(quat, np.asarray(pose[:3], dtype=np.float64))


def pose_of(placement: pin.SE3) -> np.ndarray:
    """The pose (7,) of a placement."""
    x, y, z, w = pin.Quaternion(placement.rotation).coeffs()
    return np.concatenate([placement.translation, [w, x, y, z]])


def _beyond_reach(target: pin.SE3) -> bool:
    """Whether even a straight arm ends short of `target` (in the base's frame).

    The TCP lies 0.2104 m along the hand's z from a circle of 88 mm about joint 7's axis on which
    the wrist moves; shoulder to elbow to wrist is at most 0.7194 m (FR3 link lengths).
    """
    flange = target.translation - 0.2104 * target.rotation[:, 2]
    reach = np.hypot(0.316, 0.0825) + np.hypot(0.384, 0.0825) + 0.088
    return bool(np.linalg.norm(flange - np.array([0.0, 0.0, 0.333])) > reach + 0.001)


def _load(arm: str) -> tuple[pin.Model, pin.GeometryModel]:
    """Model of one arm standing at its base, and its convex collision geometry."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "arm.xml"
        path.write_text(arm_mjcf(f"{arm}_"))
        model = pin.buildModelFromMJCF(str(path))
        geometry = pin.buildGeomFromMJCF(model, str(path), pin.GeometryType.COLLISION)
    for item in geometry.geometryObjects:
        if isinstance(item.geometry, coal.BVHModelBase):
            item.geometry.buildConvexHull(True, "Qt")
            item.geometry = item.geometry.convex
    return model, geometry


class DualArm:
    """Forward and inverse kinematics of both arms and collision checks of the pair.

    Not thread-safe: it holds pinocchio's scratch data.
    """

    def __init__(self) -> None:
        """Load the models (about 0.3 s)."""
        self._height_m = 0.0
        self._models: dict[str, pin.Model] = {}
        self._data: dict[str, pin.Data] = {}
        self._tcp: dict[str, int] = {}
        geometries = {}
        for arm in ARMS:
            model, geometries[arm] = _load(arm)
            hand = model.getFrameId(f"{arm}_hand")
            tcp = pin.Frame(
                f"{arm}_tcp", model.frames[hand].parentJoint, hand,
                model.frames[hand].placement * pin.SE3(np.eye(3), np.array([0, 0, TCP_OFFSET_M])),
                pin.FrameType.OP_FRAME,
            )
            self._tcp[arm] = model.addFrame(tcp)
            self._models[arm], self._data[arm] = model, model.createData()
        self.lower = self._models["left"].lowerPositionLimit[:7] + LIMIT_MARGIN_RAD
        self.upper = self._models["left"].upperPositionLimit[:7] - LIMIT_MARGIN_RAD
        self._build_pair(geometries)

    def _build_pair(self, geometries: dict[str, pin.GeometryModel]) -> None:
        empty, no_geometry = pin.Model(), pin.GeometryModel()
        pair, geometry = empty, no_geometry
        for arm in ARMS:
            placement = pin.SE3(np.eye(3), base_position(arm))
            pair, geometry = pin.appendModel(
                pair, self._models[arm], geometry, geometries[arm], 0, placement
            )
        self._pair, self._pair_data = pair, pair.createData()
        self._names = [item.name for item in geometry.geometryObjects]
        table = pin.GeometryObject(
            "table", 0, 0, pin.SE3(np.eye(3), np.array([0.4, 0.0, _TABLE_TOP_M - 0.052])),
            coal.Box(1.4, 1.8, 0.1),
        )
        table_id = geometry.addGeometryObject(table)
        owner = [self._owner(item) for item in geometry.geometryObjects]
        for i in range(table_id):
            for j in range(i + 1, table_id):
                (arm_i, link_i), (arm_j, link_j) = owner[i], owner[j]
                # Of one arm only links three apart along the chain can meet; the hulls of nearer
                # ones overlap by construction.
                if (arm_i != arm_j and link_i + link_j >= 4) or (
                    arm_i == arm_j and abs(link_i - link_j) >= 3
                ):
                    geometry.addCollisionPair(pin.CollisionPair(i, j))
            if owner[i][1] >= 3:
                geometry.addCollisionPair(pin.CollisionPair(i, table_id))
        self._owner_of = owner
        self._geometry, self._geometry_data = geometry, pin.GeometryData(geometry)
        for request in self._geometry_data.collisionRequests:
            request.security_margin = 0.0

    def _owner(self, item: pin.GeometryObject) -> tuple[str, int]:
        """Arm and position along the chain (0 base ... 7 flange, 8 hand and fingers)."""
        if item.name == "table":
            return "table", 0
        name = self._pair.frames[item.parentFrame].name
        arm = name.split("_", 1)[0]
        tail = name.removeprefix(f"{arm}_")
        return arm, int(tail[-1]) if tail.startswith("fr3_link") else 8 if tail != "base" else 0

    def pair(self) -> tuple[pin.Model, pin.Data, pin.GeometryModel, list[tuple[str, int]]]:
        """Both arms and the table as one model, its collision pairs, and whose each geometry is.

        An owner is (arm or "table", place along the chain: 0 base ... 7 flange, 8 hand). It is the
        model that `collision` works on, not a copy: `set_base_height` changes it.
        """
        return self._pair, self._pair_data, self._geometry, self._owner_of

    def set_base_height(self, height_m: float) -> None:
        """Raise both bases to this height above the table top; 0 at first."""
        if height_m == self._height_m:
            return
        for arm in ARMS:
            joint = self._pair.getJointId(f"{arm}_fr3_joint1")
            self._pair.jointPlacements[joint].translation[2] += height_m - self._height_m
        for item in self._geometry.geometryObjects:
            if item.parentJoint == 0 and item.name != "table":
                item.placement.translation[2] += height_m - self._height_m
        self._height_m = height_m

    def _base(self, arm: str) -> np.ndarray:
        return base_position(arm) + np.array([0.0, 0.0, self._height_m])

    def forward(self, arm: str, joints: np.ndarray) -> np.ndarray:
        """TCP pose (7,) of an arm at joint positions (7,) rad."""
        model, data = self._models[arm], self._data[arm]
        q = np.concatenate([joints, [0.04, 0.04]])
        pin.framesForwardKinematics(model, data, q)
        pose = pose_of(data.oMf[self._tcp[arm]])
        pose[:3] += self._base(arm)
        return pose

    def inverse(
        self, arm: str, pose: np.ndarray, start: np.ndarray, restarts: int = _RESTARTS
    ) -> np.ndarray | None:
        """Joint positions (7,) within limits that put the TCP at `pose`, near `start`; or None.

        Damped least squares on the SE(3) logarithm with the posture drawn to HOME_RAD in the null
        space; further starts, always the same ones, are tried when the first does not converge:
        six near home, then any within the limits and without that draw, which reach the rest of
        the workspace in whatever posture (all of 200 random poses within the limits).
        """
        target = se3(pose)
        target.translation = target.translation - self._base(arm)
        if _beyond_reach(target):
            return None
        rng = np.random.default_rng(0)
        for attempt in range(restarts + 1):
            q = np.array(start if attempt == 0 else HOME_RAD, dtype=np.float64)
            if attempt == 1:
                offset = pose[:3] - base_position(arm)
                q[0] = np.clip(np.arctan2(offset[1], offset[0]), self.lower[0], self.upper[0])
            elif 1 < attempt <= _NEAR_RESTARTS:
                q = np.clip(HOME_RAD + rng.uniform(-0.9, 0.9, 7), self.lower, self.upper)
            elif attempt > _NEAR_RESTARTS:
                q = rng.uniform(self.lower, self.upper)
            solution = self._descend(arm, target, q, 0.05 if attempt <= _NEAR_RESTARTS else 0.0)
            if solution is not None:
                return solution
        return None

    def _descend(
        self, arm: str, target: pin.SE3, q: np.ndarray, posture_gain: float
    ) -> np.ndarray | None:
        model, data, frame = self._models[arm], self._data[arm], self._tcp[arm]
        full = np.concatenate([q, [0.04, 0.04]])
        before = np.inf
        for iteration in range(_ITERATIONS):
            pin.framesForwardKinematics(model, data, full)
            error = pin.log6(data.oMf[frame].actInv(target)).vector
            if iteration % _STAGNATION == _STAGNATION - 1:
                remaining = float(np.linalg.norm(error))
                if remaining > 0.9 * before:
                    return None  # stuck at a limit: what is out of reach is found out sooner
                before = remaining
            if (
                np.linalg.norm(error[:3]) < TOLERANCE_M
                and np.linalg.norm(error[3:]) < TOLERANCE_RAD
            ):
                return full[:7].copy()
            jacobian = pin.computeFrameJacobian(model, data, full, frame, pin.LOCAL)[:, :7]
            damping = 1e-4 + 1e-2 * float(error @ error)
            square = jacobian @ jacobian.T + damping * np.eye(6)
            inverse = np.linalg.solve(square, jacobian).T
            posture = posture_gain * (HOME_RAD - full[:7])
            step = inverse @ error + posture - inverse @ (jacobian @ posture)
            norm = float(np.abs(step).max())
            full[:7] += step * min(1.0, 0.4 / norm) if norm > 0 else 0.0
            np.clip(full[:7], self.lower, self.upper, out=full[:7])
        return None

    def manipulability(self, arm: str, joints: np.ndarray) -> float:
        """Yoshikawa's measure sqrt(det(J J^T)) of the TCP Jacobian."""
        model, data = self._models[arm], self._data[arm]
        q = np.concatenate([joints, [0.04, 0.04]])
        jacobian = pin.computeFrameJacobian(model, data, q, self._tcp[arm], pin.LOCAL)[:, :7]
        return float(np.sqrt(max(0.0, np.linalg.det(jacobian @ jacobian.T))))

    def collision(
        self, left: np.ndarray, right: np.ndarray, openings_m: tuple[float, float] = (0.08, 0.08)
    ) -> str | None:
        """Name what collides with both arms at these joints, or None.

        Self collision, arm against arm, and links against the table top.
        """
        half = (openings_m[0] / 2, openings_m[1] / 2)
        q = np.concatenate([left, [half[0]] * 2, right, [half[1]] * 2])
        if not pin.computeCollisions(
            self._pair, self._pair_data, self._geometry, self._geometry_data, q, True
        ):
            return None
        for k, pair in enumerate(self._geometry.collisionPairs):
            if self._geometry_data.collisionResults[k].isCollision():
                (arm_a, link_a), (arm_b, link_b) = (
                    self._owner_of[pair.first], self._owner_of[pair.second]
                )
                if "table" in (arm_a, arm_b):
                    return f"{arm_a} arm (link {link_a}) with the table"
                if arm_a == arm_b:
                    return f"{arm_a} arm with itself (links {link_a} and {link_b})"
                return f"{arm_a} arm (link {link_a}) with the {arm_b} arm (link {link_b})"
        return None


@cache
def dual_arm() -> DualArm:
    """The one instance of this process."""
    return DualArm()
