"""The limits of one robot, read from YAML: all of them there and sensible, or one error."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bench_tasks.errors import UsageError, unknown
from bench_tasks.robots import embodiments
from bench_tasks.vocabulary import ARMS
from bench_tasks.yaml_shape import (
    NAME,
    NUMBER,
    POSITIVE,
    SHARE,
    WHOLE,
    Kind,
    read_shaped,
    shipped,
)

__all__ = ["Limits", "read_limits", "shipped_limits"]

FORMAT_VERSION = 1
ARM_JOINTS, HUMANOID_JOINTS = 7, 17
_TEXT = Kind("text", NAME.fits)
_JOINT: dict[str, Any] = {
    "name": _TEXT, "position_rad": (NUMBER, NUMBER), "velocity_rad_s": POSITIVE,
    "acceleration_rad_s2": POSITIVE, "jerk_rad_s3": POSITIVE, "torque_nm": POSITIVE,
    "near_lower": (NUMBER, POSITIVE, NUMBER), "near_upper": (NUMBER, POSITIVE, NUMBER),
}  # fmt: skip
_POINT = (NUMBER, NUMBER, NUMBER)
_SHAPE: dict[str, Any] = {
    "format_version": WHOLE, "robot": _TEXT, "joints": [_JOINT],
    "gripper_opening_m": (NUMBER, NUMBER),
    "commands": {
        "control_period_s": POSITIVE, "share": SHARE, "stop_share": SHARE,
        "jump_rad": POSITIVE, "slowest": SHARE, "max_actions": WHOLE,
    },
    "workspace_m": {arm: [(_POINT, _POINT)] for arm in ARMS},
    "distance_m": dict.fromkeys(("hands", "arms", "itself", "table"), NUMBER),
    "measured": {
        "torque_share": SHARE, "velocity_share": POSITIVE, "tracking_rad": POSITIVE,
        "lag_s": POSITIVE,
        "contact_force_n": POSITIVE, "finger_force_n": POSITIVE, "state_age_s": POSITIVE,
    },
}  # fmt: skip


@dataclass(frozen=True)
class Limits:
    """What a robot may be told, and what may be measured of it.

    Its n joints are in the order of an action: left arm then right (14), of a humanoid the waist
    before (17). position (n, 2) rad; velocity, acceleration, jerk, torque (n,) in rad/s, rad/s^2,
    rad/s^3 and Nm: the robot's own. near (2, n, 3): [a, b, c] of the speed that is allowed towards
    the lower and the upper end of the range, -a + sqrt(b |c - q|). workspace: arm -> boxes
    (k, 2, 3), m.
    `commands`, `distance_m` and `measured` as in the file. `lead_periods` after it was sent a
    robot does something: 0 when the action that answers a state is the next one in any case.
    `cell` names the robot whose own settings have made them narrower; a real one must have.
    `table` is a humanoid's, as in its cell's file; empty: the one of the tasks.
    fastest (n,) rad/s is what measured velocities are judged by.
    """

    robot: str
    joint_names: tuple[str, ...]
    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    jerk: np.ndarray
    torque: np.ndarray
    near: np.ndarray
    opening: np.ndarray
    workspace: dict[str, np.ndarray]
    commands: dict[str, float]
    distance_m: dict[str, float]
    measured: dict[str, float]
    fastest: np.ndarray
    lead_periods: int = 0
    cell: str = ""
    table: dict[str, float] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Numbers in an action: the joints, and two openings."""
        return len(self.joint_names) + len(ARMS)

    @cached_property
    def openings(self) -> np.ndarray:
        """Columns (2,) of an action that are openings: each behind the 7 joints of its arm."""
        return np.array([self.size - ARM_JOINTS - 2, self.size - 1])

    @cached_property
    def columns(self) -> np.ndarray:
        """Columns (n,) of an action that are joint positions."""
        return np.setdiff1d(np.arange(self.size), self.openings)

    @property
    def period_s(self) -> float:
        """Control period, s."""
        return self.commands["control_period_s"]

    def actions(self, joints: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Actions (m, size) of joint positions (m, n), the hands staying as in action `last`."""
        rows = np.tile(last, (len(joints), 1))
        rows[:, self.columns] = joints
        return rows

    def commanded(self, values: np.ndarray) -> np.ndarray:
        """Of a state's joints (k,) those that are commanded (n,): the last ones."""
        return values[-len(self.joint_names) :]

    def speed(self, position: np.ndarray, towards_upper: np.ndarray) -> np.ndarray:
        """Greatest joint speeds (m, n) rad/s at positions (m, n), in the direction asked for."""
        a, b, c = np.moveaxis(np.where(towards_upper[..., None], self.near[1], self.near[0]), -1, 0)
        # Beyond the end c nothing is allowed, so the distance to it is signed.
        left = np.where(towards_upper, c - position, position - c)
        return np.clip(np.sqrt(b * np.maximum(left, 0.0)) - a, 0.0, self.velocity)


def shipped_limits() -> list[str]:
    """Names of the robots whose limits come with the package."""
    return shipped("hardware.limits")


def read_limits(name: str) -> Limits:
    """Limits by the name of a robot or the path of a file.

    UsageError in one line: no such file, a key that is missing or unknown, or a wrong value.
    """
    return read_shaped("limits", name, "hardware.limits", _SHAPE, _made)


def _made(_: Path, raw: dict[str, Any]) -> Limits:
    if raw["format_version"] != FORMAT_VERSION:
        raise UsageError(f"format_version must be {FORMAT_VERSION}, got {raw['format_version']}")
    joints = raw["joints"]
    if len(joints) not in (ARM_JOINTS, HUMANOID_JOINTS):
        raise UsageError(f"joints must be the {ARM_JOINTS} of one arm or the {HUMANOID_JOINTS} of "
                         f"waist and arms, got {len(joints)}")  # fmt: skip
    for k, joint in enumerate(joints):
        _ascending(f"joints[{k}].position_rad", *joint["position_rad"])
    _ascending("gripper_opening_m", *raw["gripper_opening_m"])
    for arm in ARMS:
        for k, (low, high) in enumerate(raw["workspace_m"][arm]):
            for a, b in zip(low, high, strict=True):
                _ascending(f"workspace_m.{arm}[{k}]", a, b)

    pair = len(joints) == ARM_JOINTS

    def both(key: str) -> np.ndarray:
        times = len(ARMS) if pair else 1
        return np.array([joint[key] for joint in joints] * times, dtype=np.float64)

    names = tuple(joint["name"] for joint in joints)
    if pair:
        names = tuple(f"{arm}_{name}" for arm in ARMS for name in names)
    _of_robot(raw["robot"], names)

    return Limits(
        robot=raw["robot"], joint_names=names,
        position=both("position_rad"), velocity=both("velocity_rad_s"),
        acceleration=both("acceleration_rad_s2"), jerk=both("jerk_rad_s3"),
        torque=both("torque_nm"), near=np.stack([both("near_lower"), both("near_upper")]),
        opening=np.array(raw["gripper_opening_m"], dtype=np.float64),
        workspace={arm: np.array(boxes, float) for arm, boxes in raw["workspace_m"].items()},
        commands=raw["commands"], distance_m=raw["distance_m"], measured=raw["measured"],
        fastest=both("velocity_rad_s"),
    )  # fmt: skip


def _of_robot(robot: str, names: tuple[str, ...]) -> None:
    """UsageError unless these are the joints of a robot that is known: distances are its own."""
    if robot not in embodiments.NAMES:
        raise unknown("robot", robot, embodiments.NAMES)
    known = embodiments.get(robot)
    its = known.joint_names[-(known.action_size - len(ARMS)) :]  # legs are not commanded
    if len(names) != len(its):
        raise UsageError(f"{robot} has {len(its)} joints that are commanded, these are for "
                         f"{len(names)}")  # fmt: skip
    for name, right in zip(names, its, strict=True):
        if name != right:
            raise UsageError(f"the joints of {robot} are in another order or others: {name} is "
                             f"where {right} should be")  # fmt: skip


def _ascending(where: str, low: float, high: float) -> None:
    if low >= high:
        raise UsageError(f"{where}: {low:g} must be less than {high:g}")
