"""Distances of a humanoid's arms along a whole path, as the supervisor asks for them."""

from __future__ import annotations

import numpy as np

from bench_tasks.robots import g1
from bench_tasks.robots.g1_kinematics import UpperBody
from bench_tasks.view import compose
from bench_tasks.vocabulary import ARMS, Scene, WorldState
from hardware.safety.clearance import TooNear
from hardware.safety.limits import Limits
from hardware.unitree.clearance import BodyClearance

__all__ = ["HumanoidClearance"]

TABLE = {"edge_m": 0.24, "depth_m": 0.6, "width_m": 1.2, "thickness_m": 0.04}
"""Of the tasks, in the world frame, where no cell says otherwise."""

UNIT_WITHIN = 0.01
"""What is that much longer or shorter than 1 is no quaternion of a pose."""


class HumanoidClearance:
    """As `clearance.Clearance`, for waist and arms on a pelvis that moves."""

    def __init__(self, limits: Limits) -> None:
        """Load the models (about 0.5 s)."""
        self._limits, self._columns = limits, limits.columns
        self._body, self._arms = BodyClearance(), UpperBody()
        self._row: int | None = None
        self._pelvis = np.array([0.0, 0, 0, 1, 0, 0, 0])

    def begin(self, scene: Scene) -> None:
        """A scene is set up: where its pelvis is among its objects."""
        names = [item.name for item in scene.objects]
        self._row = names.index(g1.PELVIS) if g1.PELVIS in names else None

    def look(self, state: WorldState) -> None:
        """Take where the pelvis is; where that cannot be told no path is free."""
        if self._row is not None:
            pose = state.object_pose[self._row : self._row + 1].ravel()
            told = len(pose) == 7 and abs(np.linalg.norm(pose[3:]) - 1.0) < UNIT_WITHIN
            self._pelvis = pose if told else np.full(7, np.nan)
        self._body.set_table(self._pelvis, self._limits.table or TABLE)

    def check(self, start: np.ndarray, path: np.ndarray) -> TooNear | None:
        """The first place along actions `path` (n, 19), from action `start` (19,), or None."""
        for row, joints in enumerate(path[:, self._columns]):
            outside = self._outside(row, joints)
            if outside is not None:
                return outside
        return self._near(start[self._columns], path[:, self._columns])

    def check_off(self, start: np.ndarray, path: np.ndarray, off: np.ndarray) -> TooNear | None:
        """As `check`, for arms that are and stay `off` (19,) that path; of distances alone."""
        away = off[self._columns]
        return self._near(start[self._columns] + away, path[:, self._columns] + away)

    def _near(self, start: np.ndarray, path: np.ndarray) -> TooNear | None:
        found = self._body.blocked(start, path, self._limits.distance_m)
        if found is None:
            return None
        return TooNear(found.row, found.between, found.distance_m, found.least_m)

    def _outside(self, row: int, joints: np.ndarray) -> TooNear | None:
        """The tool centre point that is in none of its boxes."""
        for arm, hand in zip(ARMS, self._arms.forward(joints), strict=True):
            point = compose(self._pelvis, hand)[:3]
            boxes = self._limits.workspace[arm]
            beyond = np.maximum(boxes[:, 0] - point, point - boxes[:, 1]).max(axis=1)
            if not beyond.min() <= 1e-9:
                where = ", ".join(f"{v:.3f}" for v in point)
                text = f"the {arm} hand at ({where}) m is outside its workspace"
                return TooNear(row, text, -float(beyond.min()), 0.0)
        return None
