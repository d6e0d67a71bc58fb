"""Distances of both arms to each other, to themselves and to the table, along a whole path."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from bench_tasks.robots.kinematics import DualArm
from bench_tasks.vocabulary import ARM_COLUMNS, ARMS, GRIPPER_COLUMNS, Scene, WorldState
from hardware.safety.limits import Limits

__all__ = ["Clearance", "TooNear"]

RESOLUTION_M = 0.01
"""Between two looks at a pair that is close, its parts move towards each other by less."""
SLACK_M = 0.001
"""Parts that are too near already may come so much nearer on their way apart: noise."""
_TURNING_JOINTS = np.r_[0:7, 9:16]
"""Joints of the pair's model that turn; the other four slide the fingers."""


@dataclass(frozen=True)
class TooNear:
    """Where a path is too near to something; `row` counts its actions from 0."""

    row: int
    text: str
    distance_m: float
    limit_m: float


class Clearance:
    """Checks paths of both arms. Not thread-safe.

    A pair of parts is looked at again only when it can have come too near since: parts move no
    farther than the centres of their bounding spheres do, and what they turn. So nothing is missed
    between the actions, and most pairs cost nothing.
    """

    def __init__(self, limits: Limits) -> None:
        """Load the models (about 0.3 s)."""
        arms = DualArm()
        self._arms, self._limits = arms, limits
        self._model, self._data, self._geometry, self._owner = arms.pair()
        self._state = pin.GeometryData(self._geometry)
        pairs = [(pair.first, pair.second) for pair in self._geometry.collisionPairs]
        self._first, self._second = np.array(pairs).T
        self._radius = np.array([_radius(item) for item in self._geometry.geometryObjects])
        self._least = np.array([limits.distance_m[self._between(*pair)] for pair in pairs])
        self._side = np.array(
            [ARMS.index(arm) if arm in ARMS else len(ARMS) for arm, _ in self._owner]
        )
        self._tcp = [self._model.getFrameId(f"{arm}_tcp") for arm in ARMS]

    def begin(self, scene: Scene) -> None:
        """A scene is set up: its base height holds from now on."""
        self.set_base_height(scene.base_height_m)

    def look(self, state: WorldState) -> None:
        """Two arms that are bolted down are where they were."""

    def set_base_height(self, height_m: float) -> None:
        """Raise both bases to this height above the table top."""
        self._arms.set_base_height(height_m)

    def _between(self, first: int, second: int) -> str:
        (arm_a, link_a), (arm_b, link_b) = self._owner[first], self._owner[second]
        if "table" in (arm_a, arm_b):
            return "table"
        if arm_a == arm_b:
            return "itself"
        return "hands" if min(link_a, link_b) >= 8 else "arms"

    def check(self, start: np.ndarray, path: np.ndarray) -> TooNear | None:
        """The first place along actions `path` (n, 16), from action `start` (16,), or None."""
        return self._along(np.concatenate([start[None], path]), self._least, boxes=True)

    def check_off(self, start: np.ndarray, path: np.ndarray, off: np.ndarray) -> TooNear | None:
        """As `check`, for arms that are and stay `off` (16,) that path; of distances alone.

        What is too near already may be led away from: it must not come nearer.
        """
        rows = np.concatenate([start[None], path]) + off
        low, high = self._limits.opening
        rows[:, GRIPPER_COLUMNS] = np.clip(rows[:, GRIPPER_COLUMNS], low, high)
        self._move_to(self._full(rows[:1])[0])
        centres = np.array([place.translation for place in self._state.oMg])
        first, second = self._first, self._second
        apart = np.linalg.norm(centres[first] - centres[second], axis=1)
        least = self._least.copy()
        for pair in np.flatnonzero(apart - self._radius[first] - self._radius[second] < least):
            found = pin.computeDistance(self._geometry, self._state, int(pair))
            least[pair] = min(least[pair], found.min_distance - SLACK_M)
        return self._along(rows, least, boxes=False)

    def _along(self, rows: np.ndarray, least: np.ndarray, boxes: bool) -> TooNear | None:
        """The first place along actions (n, 16) where a pair is nearer than its `least`."""
        full = self._full(rows)
        centres = np.empty((len(rows), len(self._radius), 3))
        for k, q in enumerate(full):
            self._move_to(q)
            outside = self._outside(k) if boxes else None
            if outside is not None:
                return outside
            centres[k] = [place.translation for place in self._state.oMg]
        first, second = self._first, self._second
        turned = np.abs(np.diff(rows[:, ARM_COLUMNS], axis=0)).reshape(-1, 2, 7).sum(2)
        turned = np.concatenate([turned, np.zeros((len(rows) - 1, 1))], axis=1)[:, self._side]
        shift = np.linalg.norm(np.diff(centres, axis=0), axis=2) + self._radius * turned
        nearing = shift[:, first] + shift[:, second]
        apart = np.linalg.norm(centres[:, first] - centres[:, second], axis=2)
        apart -= self._radius[first] + self._radius[second] + least
        near = np.minimum(apart[:-1], apart[1:]) < nearing / 2
        return self._look(full, near, nearing, least)

    def _look(
        self, full: np.ndarray, near: np.ndarray, nearing: np.ndarray, least: np.ndarray
    ) -> TooNear | None:
        """Distances of the pairs that are `near` (n, p), while they may have been used up."""
        spare = np.full(near.shape[1], -np.inf)
        for k in range(len(near)):
            spare -= nearing[k]
            due = np.flatnonzero(near[k] & (spare <= 0.0))
            if not len(due):
                continue
            # Those that move far within this one period are looked at on the way, too.
            parts = max(1, int(np.ceil(nearing[k, due].max() / RESOLUTION_M)))
            for part in range(1, parts + 1):
                self._move_to(full[k] + part / parts * (full[k + 1] - full[k]))
                for pair in due:
                    found = pin.computeDistance(self._geometry, self._state, int(pair))
                    spare[pair] = found.min_distance - least[pair]
                    if not spare[pair] >= 0.0:
                        return self._told(k, int(pair), found.min_distance, float(least[pair]))
        return None

    def _move_to(self, q: np.ndarray) -> None:
        pin.updateGeometryPlacements(self._model, self._data, self._geometry, self._state, q)

    def _full(self, rows: np.ndarray) -> np.ndarray:
        """Configurations (n, 18) of the pair's model for actions (n, 16)."""
        full = np.empty((len(rows), 18))
        full[:, _TURNING_JOINTS] = rows[:, ARM_COLUMNS]
        full[:, [7, 16]] = full[:, [8, 17]] = rows[:, GRIPPER_COLUMNS] / 2
        return full

    def _outside(self, k: int) -> TooNear | None:
        """The tool centre point that is in none of its boxes; not asked of where the arms are."""
        if k == 0:
            return None
        for arm, frame in zip(ARMS, self._tcp, strict=True):
            point = pin.updateFramePlacement(self._model, self._data, frame).translation
            boxes = self._limits.workspace[arm]
            beyond = np.maximum(boxes[:, 0] - point, point - boxes[:, 1]).max(axis=1)
            if not beyond.min() <= 1e-9:
                where = ", ".join(f"{v:.3f}" for v in point)
                text = f"the {arm} hand at ({where}) m is outside its workspace"
                return TooNear(k - 1, text, -float(beyond.min()), 0.0)
        return None

    def _told(self, row: int, pair: int, distance_m: float, least_m: float) -> TooNear:
        owners = [self._owner[index[pair]] for index in (self._first, self._second)]
        (arm_a, link_a), (arm_b, link_b) = owners
        if "table" in (arm_a, arm_b):
            arm, link = owners[0] if arm_b == "table" else owners[1]
            text = f"{arm} arm (link {link}) to the table"
        elif arm_a == arm_b:
            text = f"{arm_a} arm to itself (links {link_a} and {link_b})"
        else:
            text = f"{arm_a} arm (link {link_a}) to the {arm_b} arm (link {link_b})"
        return TooNear(row, text, float(distance_m), least_m)


def _radius(item: pin.GeometryObject) -> float:
    """Radius (m) of the sphere about the geometry's own origin that holds all of it."""
    item.geometry.computeLocalAABB()
    return float(np.linalg.norm(item.geometry.aabb_center) + item.geometry.aabb_radius)
