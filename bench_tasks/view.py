"""Geometry and contact questions over one state, by object name: what goals are written in."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_tasks.errors import UnscoredError
from bench_tasks.vocabulary import ARMS, ROBOT_PART, Scene, WorldState

__all__ = ["View", "compose", "invert", "quat_from_yaw", "rotate", "rotation_matrix", "yaw_of"]

REST_LINEAR_M_S = 0.02
REST_ANGULAR_RAD_S = 0.2
SQUEEZE_M = 0.002
"""Fingers hold something when it keeps them this much wider open than they are told to be."""


def rotation_matrix(quat: np.ndarray) -> np.ndarray:
    """Rotation matrix (3, 3) of a unit quaternion (w, x, y, z)."""
    w, x, y, z = quat
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def rotate(quat: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Vector (3,) rotated by a unit quaternion (w, x, y, z)."""
    return rotation_matrix(quat) @ np.asarray(vector, dtype=np.float64)


def _multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    w1, x1, y1, z1 = a
    w2, x2, y2, z2 = b
    return np.array(
        [
            w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2,
            w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
            w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2,
            w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2,
        ]
    )


def compose(pose_a_b: np.ndarray, pose_b_c: np.ndarray) -> np.ndarray:
    """Pose (7,) of c in a, from b in a and c in b."""
    a, b = np.asarray(pose_a_b, dtype=np.float64), np.asarray(pose_b_c, dtype=np.float64)
    quat = _multiply(a[3:], b[3:])
    return np.concatenate([a[:3] + rotate(a[3:], b[:3]), quat / np.linalg.norm(quat)])


def invert(pose: np.ndarray) -> np.ndarray:
    """Inverse of a pose (7,)."""
    pose = np.asarray(pose, dtype=np.float64)
    quat = pose[3:] * np.array([1.0, -1.0, -1.0, -1.0])
    return np.concatenate([-rotate(quat, pose[:3]), quat])


def quat_from_yaw(yaw_rad: float) -> np.ndarray:
    """Quaternion (w, x, y, z) of a rotation about the vertical."""
    return np.array([np.cos(yaw_rad / 2), 0.0, 0.0, np.sin(yaw_rad / 2)])


def yaw_of(quat: np.ndarray) -> float:
    """Heading of the rotated x axis in the horizontal plane, rad."""
    matrix = rotation_matrix(quat)
    return float(np.arctan2(matrix[1, 0], matrix[0, 0]))


class View:
    """One state seen through its scene. `start` is the episode's state 0 (or the same state).

    `history` is what the task has noted of the states before it (`Task.history`), if anything.
    """

    def __init__(
        self, scene: Scene, state: WorldState, start: WorldState | None = None, history: Any = None
    ) -> None:
        """Bind a state to its scene."""
        self.history = history
        self.scene = scene
        self.state = state
        self._start = start or state
        self._forces: dict[int, dict[int, float]] | None = None

    @property
    def start(self) -> View:
        """The view of the episode's first state."""
        return View(self.scene, self._start)

    def pose(self, name: str) -> np.ndarray:
        """Pose (7,) of an object in the world frame."""
        return self.state.object_pose[self.scene.index(name)]

    def position(self, name: str) -> np.ndarray:
        """Position (3,) of an object in the world frame, m."""
        return self.pose(name)[:3]

    def velocity(self, name: str) -> np.ndarray:
        """Velocity (3,) of an object in the world frame, m/s."""
        return self.state.object_twist[self.scene.index(name), :3]

    def tilt(self, name: str) -> float:
        """Angle between the object's z axis and the vertical, rad."""
        return float(np.arccos(np.clip(rotation_matrix(self.pose(name)[3:])[2, 2], -1.0, 1.0)))

    def lean(self, name: str) -> float:
        """Angle between the vertical and the nearest of the object's axes, rad.

        0 for a block on any of its faces, where `tilt` asks for one of them.
        """
        upness = np.abs(rotation_matrix(self.pose(name)[3:])[2]).max()
        return float(np.arccos(np.clip(upness, -1.0, 1.0)))

    def at_rest(self, name: str) -> bool:
        """Whether the object moves slower than 2 cm/s and 0.2 rad/s."""
        twist = self.state.object_twist[self.scene.index(name)]
        return bool(
            np.linalg.norm(twist[:3]) < REST_LINEAR_M_S
            and np.linalg.norm(twist[3:]) < REST_ANGULAR_RAD_S
        )

    def all_at_rest(self) -> bool:
        """Whether every object is at rest; a humanoid's own body never quite is."""
        return all(self.at_rest(o.name) for o in self.scene.objects if o.kind != ROBOT_PART)

    def force(self, a: str, b: str) -> float:
        """Summed normal force between two entities, N; 0 when they do not touch.

        An entity is an object, `table`, or for each arm `left_arm`, `left_hand`,
        `left_finger1`, `left_finger2` (and `right_...`). UsageError on another name;
        UnscoredError when this cell does not know: no force is not the same as none measured.
        """
        if self.scene.contacts != "all":
            self._known(a, b)
        return self._contacts(a).get(self.scene.entity(b), 0.0)

    def _known(self, a: str, b: str) -> None:
        """UnscoredError unless it is measured whether the two touch: one has to be a finger."""
        if not self.scene.finger_entities & {self.scene.entity(a), self.scene.entity(b)}:
            raise UnscoredError(f"unscored: nothing here measures whether {a} touches {b}")

    def _contacts(self, name: str) -> dict[int, float]:
        """Entity -> the force between it and `name`."""
        if self._forces is None:  # goals ask about many pairs of one state
            self._forces = {}
            pairs, forces = self.state.contact_pair.tolist(), self.state.contact_force.tolist()
            for (first, second), force in zip(pairs, forces, strict=True):
                for one, other in ((first, second), (second, first)):
                    found = self._forces.setdefault(one, {})
                    found[other] = found.get(other, 0.0) + force
        return self._forces.get(self.scene.entity(name), {})

    def touching(self, a: str, b: str, force_n: float = 0.0) -> bool:
        """Whether two entities press on each other with more than `force_n`."""
        return self.force(a, b) > force_n

    def touched_by_robot(self, name: str) -> bool:
        """Whether any part of either arm touches the object; UnscoredError as `force`."""
        if self.scene.contacts != "all":
            self._known(name, "left_arm")
        robot = self.scene.robot_entities
        return any(force > 0.0 for part, force in self._contacts(name).items() if part in robot)

    def grasped(self, name: str, arm: str, force_n: float = 0.5) -> bool:
        """Whether the arm holds the object: both fingers press on it, and it keeps them apart.

        A fist that pushes also presses with both fingers, but nothing keeps it open.
        """
        k = ARMS.index(arm)
        kept_open = self.state.gripper_opening[k] - self.state.told_opening[k]
        if not kept_open > SQUEEZE_M:
            return False
        return self.touching(name, f"{arm}_finger1", force_n) and self.touching(
            name, f"{arm}_finger2", force_n
        )

    def holder(self, name: str) -> str | None:
        """The arm that grasps the object, the left one first; None when neither does."""
        return next((arm for arm in ARMS if self.grasped(name, arm)), None)

    def supported_by(self, upper: str, lower: str) -> bool:
        """Whether `upper` stands on entity `lower` (touching, and higher if it is an object)."""
        if not self.touching(upper, lower):
            return False
        return lower == "table" or bool(self.position(upper)[2] > self.position(lower)[2])
