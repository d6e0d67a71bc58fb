"""What the tasks of the humanoid share: tables of three heights, and that it must not fall."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence

import numpy as np

from bench_tasks.robots.g1 import HOME_RAD, LEGS, LIMITS_RAD, PELVIS
from bench_tasks.tasks.base import Check, Layout, Task
from bench_tasks.view import View, compose, invert, quat_from_yaw, rotation_matrix
from bench_tasks.vocabulary import ARMS, UPRIGHT, ObjectInfo, Scene

__all__ = [
    "HEIGHTS_M", "HumanoidTask", "PELVIS_M", "TIP_M", "hand_error", "hand_pose", "in_pelvis",
    "palms_press", "pelvis_pose", "reach_target", "upright",
]  # fmt: skip

HEIGHTS_M = (0.5, 0.74, 0.88)
"""Of the table tops above the floor."""
PELVIS_M = 0.76
"""How high above the floor a standing G1's pelvis is."""
TIP_M = 0.105
"""Of a hand's tip beyond its TCP."""
FALLEN_M, FALLEN_RAD = 0.5, 0.8
"""It has fallen when its pelvis is lower above the floor, or further from upright, or when anything
of it but its feet is on the floor."""
_OFF_THE_FLOOR = ("body", *(f"{arm}_{part}" for arm in ARMS for part in ("arm", "hand")))
PRESS_N = 1.0
"""A palm that holds something presses on it more than this."""
_REACH_M = ((0.26, 0.48), (0.05, 0.36), (0.06, 0.28))
"""Where targets are drawn, of the left hand: forward, to its side, above the table top."""
_AWAY_M = 0.08
"""Least way from where the hand is at first."""


def upright(view: View) -> bool:
    """Whether the robot stands on its feet, and on nothing else as far as the cell feels it."""
    pelvis = view.pose(PELVIS)
    height = pelvis[2] - view.scene.base_height_m
    lean = np.arccos(np.clip(rotation_matrix(pelvis[3:])[2, 2], -1.0, 1.0))
    if not (height > FALLEN_M and lean < FALLEN_RAD):
        return False
    felt = view.scene.contacts == "all"
    return not (felt and any(view.touching("floor", part) for part in _OFF_THE_FLOOR))


def palms_press(view: View, name: str) -> bool:
    """Whether both palms press on an object."""
    return all(view.touching(name, f"{arm}_hand", PRESS_N) for arm in ARMS)


def hand_error(pose: np.ndarray, target: Sequence[float]) -> tuple[float, float]:
    """Distance (m) and angle (rad, of q^-1 q_ref) between two poses (7,)."""
    away = float(np.linalg.norm(pose[:3] - np.asarray(target[:3])))
    same = min(1.0, abs(float(np.dot(pose[3:], target[3:]))))
    return away, 2.0 * float(np.arccos(same))


def pelvis_pose(table_height_m: float) -> np.ndarray:
    """Pose (7,) of a standing robot's pelvis in the world, whose z is 0 at the table top."""
    return np.array([0.0, 0.0, PELVIS_M - table_height_m, 1.0, 0.0, 0.0, 0.0])


def hand_pose(
    scene: Scene, position: Sequence[float], turn_rad: float = 0.0,
    down_rad: Sequence[float] = (0.8, 0.4, 0.1),
) -> list[float]:
    """Pose (7,) of a hand at a position (3,) that points forward, palm inward.

    It points down the more, the lower the table is below the shoulders: by `down_rad` at each of
    the three heights; `turn_rad` turns it to the left about the vertical.
    """
    down = float(np.interp(-scene.base_height_m, HEIGHTS_M, down_rad))
    half = (np.pi / 2 + down) / 2
    flat = np.array([*position, np.cos(half), 0.0, np.sin(half), 0.0])
    turned = compose(np.array([0.0, 0.0, 0.0, *quat_from_yaw(turn_rad)]), flat)
    return [*(float(value) for value in position), *turned[3:].tolist()]


def reach_target(
    rng: np.random.Generator, table_height_m: float, arms: tuple[str, ...]
) -> dict[str, list[float]]:
    """Poses (7,) in the world that these hands reach at once, standing straight, above the table.

    Drawn as joint positions near home, so that hands are turned as arms can turn them; kept are
    those that have the hands in front of the robot, apart from each other and clear of the table.
    """
    from bench_tasks.robots.g1_kinematics import upper_body

    arms_of, pelvis = upper_body(), pelvis_pose(table_height_m)
    home = arms_of.forward(HOME_RAD)
    low, high = LIMITS_RAD[LEGS:].T
    spread = np.array([0.4, 0.1, 0.5, *(0.8, 0.5, 0.5, 0.9, 0.6, 0.5, 0.5) * 2])
    middle = HOME_RAD.copy()
    # The lower the table, the more the waist bends and the lower the forearms point.
    middle[2] = np.interp(table_height_m, HEIGHTS_M, (0.35, 0.2, 0.1))
    middle[[6, 13]] = np.interp(table_height_m, HEIGHTS_M, (0.5, 0.0, -0.4))
    near = [np.array(axis) for axis in zip(*_REACH_M, strict=True)]
    for _ in range(100_000):
        q = np.clip(middle + rng.uniform(-spread, spread), 0.95 * low, 0.95 * high)
        hands = arms_of.forward(q)
        found = {}
        for k, arm in enumerate(("left", "right")):
            place = compose(pelvis, hands[k])
            mirrored = place[:3] * (1.0, 1.0 if arm == "left" else -1.0, 1.0)
            # The fingers' end is 0.1 m beyond the palm, and must clear the table too.
            tip = place[2] + 0.12 * rotation_matrix(place[3:])[2, 2]
            if (
                (mirrored > near[0]).all() and (mirrored < near[1]).all() and tip > 0.05
                and np.linalg.norm(hands[k, :3] - home[k, :3]) > _AWAY_M
            ):
                found[arm] = place.round(4).tolist()
        if set(arms) <= set(found):
            return {arm: found[arm] for arm in arms}
    raise AssertionError(f"no target for {' and '.join(arms)} at {table_height_m} m")


class HumanoidTask(Task):
    """A task of the G1 at a table, laid out by `arrange` for the height that was drawn."""

    embodiment = "g1"
    version = 2

    def table_height_m(self, rng: np.random.Generator) -> float:
        """One of three, drawn before anything else."""
        return HEIGHTS_M[rng.integers(len(HEIGHTS_M))]

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """The height first, as the world draws it too, then all else."""
        return self.arrange(rng, objects, self.table_height_m(rng))

    @abc.abstractmethod
    def arrange(
        self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo], height_m: float
    ) -> Layout:
        """As `layout`, before a table of this height."""

    def both_hold(self, view: View, name: str) -> bool:
        """Between both palms, off the table: rubber hands hold nothing otherwise."""
        return palms_press(view, name) and not view.touching(name, "table")

    def invariants(self, scene: Scene) -> tuple[Check, ...]:
        """A fall ends the episode."""
        return (Check(UPRIGHT, upright),)


def in_pelvis(view: View, pose: np.ndarray) -> np.ndarray:
    """Pose (7,) in the frame of the robot's pelvis, from one in the world."""
    return compose(invert(view.pose(PELVIS)), np.asarray(pose, dtype=np.float64))
