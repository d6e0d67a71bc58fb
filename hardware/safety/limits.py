"""The limits of one robot, read from YAML: all of them there and sensible, or one error."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from bench_tasks.errors import UsageError, unknown
from bench_tasks.robots import embodiments
from bench_tasks.robots.fr3 import HOME_RAD
from bench_tasks.robots.kinematics import dual_arm
from bench_tasks.vocabulary import ARMS
from bench_tasks.yaml_shape import (
    NAME,
    SHARE,
    between,
    exactly,
    read_shaped,
    shipped,
    whole,
)

__all__ = ["Limits", "read_limits", "shipped_limits"]

FORMAT_VERSION = 1
ARM_JOINTS, HUMANOID_JOINTS = 7, 17
# Wider ranges than any cell asks for: degrees, milliseconds and millimetres are beyond them.
_ANGLE = between(-7.0, 7.0)
_NEAR = between(0.0, 10.0), between(0.01, 1000.0), _ANGLE
_JOINT: dict[str, Any] = {
    "name": NAME, "position_rad": (_ANGLE, _ANGLE), "velocity_rad_s": between(0.01, 50.0),
    "acceleration_rad_s2": between(0.1, 1000.0), "jerk_rad_s3": between(1.0, 1e5),
    "torque_nm": between(0.1, 1000.0), "near_lower": _NEAR, "near_upper": _NEAR,
}  # fmt: skip
_OPENING = between(-0.01, 0.5)
_POINT = (between(-5.0, 5.0),) * 3
_SHAPE: dict[str, Any] = {
    "format_version": exactly(FORMAT_VERSION), "robot": NAME, "joints": [_JOINT],
    "gripper_opening_m": (_OPENING, _OPENING),
    "commands": {
        "control_period_s": between(0.001, 0.5), "share": SHARE, "stop_share": between(0.1, 1.0),
        "jump_rad": between(0.001, 1.0), "slowest": SHARE, "max_actions": whole(1, 1000),
    },
    "workspace_m": {arm: [(_POINT, _POINT)] for arm in ARMS},
    "distance_m": dict.fromkeys(("hands", "arms", "itself", "table"), between(-0.02, 1.0)),
    "measured": {
        "torque_share": SHARE, "velocity_share": between(0.01, 3.0),
        "tracking_rad": between(0.001, 1.0), "lag_s": between(0.001, 0.5),
        "contact_force_n": between(1.0, 2000.0), "finger_force_n": between(1.0, 2000.0),
        "state_age_s": between(0.01, 30.0),
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


def _made(path: Path, raw: dict[str, Any]) -> Limits:
    joints = raw["joints"]
    if len(joints) not in (ARM_JOINTS, HUMANOID_JOINTS):
        raise UsageError(f"joints must be the {ARM_JOINTS} of one arm or the {HUMANOID_JOINTS} of "
                         f"waist and arms, got {len(joints)}")  # fmt: skip
    for k, joint in enumerate(joints):
        _ascending(f"joints[{k}].position_rad", *joint["position_rad"], 0.01)
    _ascending("gripper_opening_m", *raw["gripper_opening_m"], 1e-4)
    for arm in ARMS:
        for k, (low, high) in enumerate(raw["workspace_m"][arm]):
            for a, b in zip(low, high, strict=True):
                _ascending(f"workspace_m.{arm}[{k}]", a, b, 0.01)

    pair = len(joints) == ARM_JOINTS

    def both(key: str) -> np.ndarray:
        times = len(ARMS) if pair else 1
        return np.array([joint[key] for joint in joints] * times, dtype=np.float64)

    names = tuple(joint["name"] for joint in joints)
    if pair:
        names = tuple(f"{arm}_{name}" for arm in ARMS for name in names)
    _of_robot(raw["robot"], names)

    limits = Limits(
        robot=raw["robot"], joint_names=names,
        position=both("position_rad"), velocity=both("velocity_rad_s"),
        acceleration=both("acceleration_rad_s2"), jerk=both("jerk_rad_s3"),
        torque=both("torque_nm"), near=np.stack([both("near_lower"), both("near_upper")]),
        opening=np.array(raw["gripper_opening_m"], dtype=np.float64),
        workspace={arm: np.array(boxes, float) for arm, boxes in raw["workspace_m"].items()},
        commands=raw["commands"], distance_m=raw["distance_m"], measured=raw["measured"],
        fastest=both("velocity_rad_s"),
    )  # fmt: skip
    _can_move(limits)
    own = Path(str(files("hardware.limits") / f"{limits.robot}.yaml"))
    if path.resolve() != own.resolve():
        _no_wider(limits, read_limits(limits.robot))
        if pair:  # where a humanoid's hands are, its pelvis decides
            _hold_home(limits.workspace)
    return limits


def _no_wider(limits: Limits, own: Limits) -> None:
    """UsageError where limits allow a joint or a hand what the robot's `own` do not."""
    at = np.linspace(own.position[:, 0], own.position[:, 1], 21)
    pairs = [
        ("position_rad", -limits.position[:, 0], -own.position[:, 0]),
        ("position_rad", limits.position[:, 1], own.position[:, 1]),
        ("velocity_rad_s", limits.velocity, own.velocity),
        ("acceleration_rad_s2", limits.acceleration, own.acceleration),
        ("jerk_rad_s3", limits.jerk, own.jerk), ("torque_nm", limits.torque, own.torque),
        *((name, (limits.speed(at, towards) - own.speed(at, towards)).max(axis=0), 0.0)
          for name, towards in (("near_lower", np.zeros(at.shape, bool)),
                                ("near_upper", np.ones(at.shape, bool)))),
    ]  # fmt: skip
    for key, mine, most in pairs:
        over = mine - most
        if (over > 1e-6).any():
            name = limits.joint_names[int(np.argmax(over))]
            raise UsageError(f"{key} of {name} is wider than that of {limits.robot}: the robot's "
                             "own limits may only be made narrower")  # fmt: skip
    if limits.opening[0] < own.opening[0] - 1e-9 or limits.opening[1] > own.opening[1] + 1e-9:
        raise UsageError(f"gripper_opening_m is wider than that of {limits.robot}, "
                         f"{own.opening[0]:g} to {own.opening[1]:g}")  # fmt: skip


def _hold_home(workspace: dict[str, np.ndarray]) -> None:
    """UsageError when a hand begins outside of its workspace: all that it is told is refused."""
    for arm, boxes in workspace.items():
        point = dual_arm().forward(arm, np.array(HOME_RAD))[:3]
        if not ((boxes[:, 0] <= point) & (point <= boxes[:, 1])).all(axis=1).any():
            where = ", ".join(f"{v:.3f}" for v in point)
            raise UsageError(f"workspace_m.{arm} must hold the hand's starting pose, ({where})")


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


def _can_move(limits: Limits) -> None:
    """UsageError when a joint may not be where it starts, or leave the middle of its range."""
    robot = embodiments.get(limits.robot)
    home, middle = robot.home[robot.joint_columns], limits.position.mean(axis=1)
    for name, (low, high), at in zip(limits.joint_names, limits.position, home, strict=True):
        if not low <= at <= high:
            raise UsageError(f"position_rad of {name}, {low:g} to {high:g}, is without {at:.4g}, "
                             "where it starts")  # fmt: skip
    for key, upper in (("near_lower", False), ("near_upper", True)):
        still = limits.speed(middle[None], np.full((1, len(middle)), upper))[0] <= 0
        if still.any():
            name = limits.joint_names[int(np.argmax(still))]
            raise UsageError(f"{key} of {name} lets it not even move in the middle of its range")


def _ascending(where: str, low: float, high: float, least: float) -> None:
    if low >= high:
        raise UsageError(f"{where}: {low:g} must be less than {high:g}")
    if high - low < least * (1 - 1e-9):
        raise UsageError(f"{where}: between {low:g} and {high:g} must be {least:g} or more")
