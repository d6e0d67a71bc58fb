"""Kinematics of the G1's waist and arms, by pinocchio, in the frame of the pelvis.

Built from the same MJCF that is simulated, the legs left out. Joint positions (17,) are in the
order of an action without its openings: waist, left arm, right arm. Poses are of the TCPs.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pinocchio as pin

from bench_tasks.robots import g1
from bench_tasks.robots.kinematics import pose_of, se3
from bench_tasks.view import rotation_matrix
from bench_tasks.vocabulary import ARMS

__all__ = ["UpperBody", "upper_body"]

LIMIT_MARGIN_RAD = 0.03
TOLERANCE_M, TOLERANCE_RAD = 1e-4, 1e-3
_GRAVITY_M_S2 = 9.81
_ITERATIONS = 150
_STAGNATION = 25
_RESTARTS = 4
_POSTURE = np.concatenate([np.full(g1.WAIST, 0.3), np.full(14, 0.05)])
"""How much a joint is drawn home where the hands leave it free: the waist more, for balance."""


class UpperBody:
    """Forward and inverse kinematics of both hands. Not thread-safe: it holds scratch data."""

    def __init__(self) -> None:
        """Load the model (0.1 s)."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "g1.xml"
            path.write_text(g1.mjcf(meshes=False))
            whole = pin.buildModelFromMJCF(str(path))
        upper = g1.JOINT_NAMES[g1.LEGS :]
        locked = [k for k in range(1, whole.njoints) if whole.names[k] not in upper]
        neutral = pin.neutral(whole)
        neutral[:3] = 0.0
        self._model = pin.buildReducedModel(whole, locked, neutral)
        if tuple(self._model.names)[1:] != upper:
            raise AssertionError(f"joints in another order: {list(self._model.names)}")
        self._tcp = []
        for arm in ARMS:
            link = self._model.getFrameId(f"{arm}_wrist_yaw_link")
            frame = self._model.frames[link]
            self._tcp.append(self._model.addFrame(pin.Frame(
                f"{arm}_tcp", frame.parentJoint, link, frame.placement * se3(g1.TCP_POSE),
                pin.FrameType.OP_FRAME,
            )))  # fmt: skip
        self._data = self._model.createData()
        self.lower = g1.LIMITS_RAD[g1.LEGS :, 0] + LIMIT_MARGIN_RAD
        self.upper = g1.LIMITS_RAD[g1.LEGS :, 1] - LIMIT_MARGIN_RAD

    def forward(self, joints: np.ndarray) -> np.ndarray:
        """TCP poses (2, 7) in the pelvis' frame at joint positions (17,) rad."""
        pin.framesForwardKinematics(self._model, self._data, np.asarray(joints, float))
        return np.stack([pose_of(self._data.oMf[frame]) for frame in self._tcp])

    def gravity(self, joints: np.ndarray, quat: np.ndarray) -> np.ndarray:
        """Torques (17,) Nm that hold joints (17,) rad still, the pelvis being turned by `quat`.

        `quat` (4,) wxyz turns the pelvis' frame into the world's.
        """
        down = rotation_matrix(quat).T @ np.array([0.0, 0.0, -_GRAVITY_M_S2])
        self._model.gravity.linear = down
        return pin.computeGeneralizedGravity(self._model, self._data, np.asarray(joints, float))

    def inverse(
        self, targets: dict[str, np.ndarray], start: np.ndarray, waist: bool = True,
        restarts: int = _RESTARTS,
    ) -> tuple[np.ndarray, float]:
        """Joint positions (17,) within limits that come nearest to `targets`, and how near (m).

        `targets` gives for one or both arms the pose (7,) of its TCP in the pelvis' frame. What
        is left over counts a radian as 0.1 m; 0 when within 0.1 mm and 1 mrad. Damped least
        squares on both hands' SE(3) logarithms, the posture drawn home in the null space; when
        that is stuck, from home and further starts near it, always the same ones. Without the
        waist, that stays as `start` has it.
        """
        wanted = [(ARMS.index(arm), se3(pose)) for arm, pose in targets.items()]
        free = np.ones(len(start), dtype=bool)
        free[: g1.WAIST] = waist
        # An arm that has no target keeps its joints.
        for k, arm in enumerate(ARMS):
            if arm not in targets:
                free[g1.WAIST + 7 * k : g1.WAIST + 7 * k + 7] = False
        rng = np.random.default_rng(0)
        best, left = np.array(start, dtype=np.float64), np.inf
        for attempt in range(restarts + 1):
            q = np.array(start, dtype=np.float64)
            if attempt == 1:
                q[free] = g1.HOME_RAD[free]
            elif attempt > 1:
                near = np.clip(g1.HOME_RAD + rng.uniform(-0.8, 0.8, 17), self.lower, self.upper)
                q[free] = near[free]
            found, error = self._descend(wanted, q, free)
            if error < left:
                best, left = found, error
            if left == 0.0:
                break
        return best, left

    def _descend(
        self, wanted: list[tuple[int, pin.SE3]], q: np.ndarray, free: np.ndarray
    ) -> tuple[np.ndarray, float]:
        model, data = self._model, self._data
        np.clip(q, self.lower, self.upper, out=q)
        before, best, left = np.inf, q.copy(), np.inf
        columns = np.flatnonzero(free)
        for iteration in range(_ITERATIONS):
            pin.computeJointJacobians(model, data, q)
            pin.updateFramePlacements(model, data)
            errors, rows = [], []
            for k, target in wanted:
                frame = self._tcp[k]
                errors.append(pin.log6(data.oMf[frame].actInv(target)).vector)
                rows.append(pin.getFrameJacobian(model, data, frame, pin.LOCAL)[:, columns])
            error, jacobian = np.concatenate(errors), np.concatenate(rows)
            parts = error.reshape(-1, 2, 3)
            lengths = np.linalg.norm(parts, axis=2)
            if (lengths < (TOLERANCE_M, TOLERANCE_RAD)).all():
                return q.copy(), 0.0
            remaining = float((lengths @ (1.0, 0.1)).max())
            if remaining < left:
                best, left = q.copy(), remaining
            if iteration % _STAGNATION == _STAGNATION - 1:
                if left > 0.9 * before:
                    break  # stuck at a limit
                before = left
            damping = 1e-4 + 1e-2 * float(error @ error)
            square = jacobian @ jacobian.T + damping * np.eye(len(error))
            inverse = np.linalg.solve(square, jacobian).T
            posture = (_POSTURE * (g1.HOME_RAD - q))[columns]
            step = inverse @ error + posture - inverse @ (jacobian @ posture)
            longest = float(np.abs(step).max())
            q[columns] += step * min(1.0, 0.3 / longest) if longest > 0 else 0.0
            np.clip(q, self.lower, self.upper, out=q)
        return best, left


@cache
def upper_body() -> UpperBody:
    """The one instance of this process."""
    return UpperBody()
