"""What a robot is to everything above its driver: names, limits, and the layout of its actions.

Every robot here has two arms of seven joints. An action is [torso joints, if any, then for the left
and the right arm 7 joint positions (rad) and an opening (m)]. A state's joints are `joint_names`;
those that actions command are the last ones, in the same order. What comes before them (the legs of
a humanoid) is the robot's own business. So the last 16 numbers of an action mean the same for
every robot, and so do the last 14 joints of a state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from bench_tasks.errors import unknown
from bench_tasks.vocabulary import AXES, FR3_PAIR, MAX_OPENING_M, Scene, WorldState

__all__ = ["NAMES", "Embodiment", "get", "misfit", "with_openings"]

NAMES = (FR3_PAIR, "g1")


def _nothing() -> None:
    """All that the robot needs is there wherever this package is."""


SLACK_RAD, SLACK_M = 0.1, 0.02
"""Beyond the limits of joints and openings: a finger that is pressed on is measured 1 cm off."""


@dataclass(frozen=True)
class Embodiment:
    """One kind of robot.

    `home`, `low` and `high` (n,) are in the layout of an action. `base` names the robot's floating
    base among the objects of a scene, "" where it is bolted down. `axes` are those of scene
    randomisation that make sense with it. `check_installed()` is a UsageError when a package that
    this robot alone needs is missing.
    """

    name: str
    joint_names: tuple[str, ...]
    home: np.ndarray
    low: np.ndarray
    high: np.ndarray
    base: str = ""
    axes: tuple[str, ...] = AXES
    check_installed: Callable[[], None] = _nothing

    @property
    def action_size(self) -> int:
        """Numbers in an action."""
        return len(self.home)

    def beyond(self, values: np.ndarray) -> str:
        """Which of the rows (.., n) of an action's layout cannot be this robot's; "" when all can.

        What lies that far from its limits is another robot's, or of other units.
        """
        slack = np.full(self.action_size, SLACK_RAD)
        slack[self.opening_columns] = SLACK_M
        wrong = np.argwhere((values < self.low - slack) | (values > self.high + slack))
        if not len(wrong):
            return ""
        at, column = tuple(wrong[0]), wrong[0][-1]
        row = f" of row {at[0]}" if len(at) > 1 else ""
        return (
            f"number {column + 1}{row} is {values[at]:.4g}, that of {self.name} is from "
            f"{self.low[column]:.4g} to {self.high[column]:.4g} (rad; openings in m)"
        )

    def check_axes(self, vary: tuple[str, ...]) -> None:
        """UsageError on an axis that does not exist or makes no sense with this robot."""
        for axis in vary:
            if axis not in self.axes:
                kind = f"axis for {self.name}" if axis in AXES else "axis"
                raise unknown(kind, axis, self.axes)

    @property
    def opening_columns(self) -> np.ndarray:
        """Columns (2,) of an action that are openings."""
        return np.array([self.action_size - 9, self.action_size - 1])

    @property
    def joint_columns(self) -> np.ndarray:
        """Columns of an action that are joint positions."""
        return np.setdiff1d(np.arange(self.action_size), self.opening_columns)


def with_openings(joints: np.ndarray, opening_m: float) -> np.ndarray:
    """Joint positions in an action's order with the same opening put in for either arm."""
    return np.concatenate([joints[:-7], [opening_m], joints[-7:], [opening_m]])


@cache
def get(name: str) -> Embodiment:
    """The robot called `name`; UsageError lists the valid names."""
    if name == FR3_PAIR:
        from bench_tasks.robots import fr3 as robots

        low, high = np.tile(robots.JOINT_LIMITS_RAD, (2, 1)).T
        return Embodiment(
            name, robots.JOINT_NAMES, with_openings(np.tile(robots.HOME_RAD, 2), MAX_OPENING_M),
            with_openings(low, 0.0), with_openings(high, MAX_OPENING_M),
        )
    if name == "g1":
        from bench_tasks.robots import g1

        low, high = g1.LIMITS_RAD[g1.LEGS :].T
        return Embodiment(
            name, g1.JOINT_NAMES, with_openings(g1.HOME_RAD, 0.0), with_openings(low, 0.0),
            with_openings(high, 0.0), g1.PELVIS,
            # Its table has three heights as it is, and it has no fingers whose friction could vary.
            tuple(axis for axis in AXES if axis not in ("table_height", "friction")),
            g1.check_installed,
        )
    raise unknown("robot", name, NAMES)


def misfit(scene: Scene, state: WorldState) -> str:
    """Why a state cannot be one of this scene, whose robot has so many joints; "" when it can.

    UsageError when nobody knows the scene's robot.
    """
    robot = get(scene.embodiment)
    for what, found, wanted in (
        ("joint", state.joint_position.shape, (len(robot.joint_names),)),
        ("command", state.command.shape, (robot.action_size,)),
        ("object", state.object_pose.shape, (len(scene.objects), 7)),
    ):
        if found != wanted:
            count, right = ("x".join(map(str, size)) for size in (found, wanted))
            return f"state {state.seq} has {count} {what} numbers, the {robot.name}'s {right}"
    last = int(state.contact_pair.max(initial=0))
    if last >= len(scene.entities):
        return f"state {state.seq} has a contact of party {last} of {len(scene.entities)}"
    return ""
