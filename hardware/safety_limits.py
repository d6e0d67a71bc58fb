"""The limits of one robot, read from YAML: all of them there and sensible, or one error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from reprlib import repr as short
from typing import Any

import numpy as np

from bench_tasks.errors import UsageError, unknown
from bench_tasks.vocabulary import ARMS
from bench_tasks.yaml_file import read_yaml

__all__ = ["Limits", "read_limits", "shipped_limits"]

FORMAT_VERSION = 1
_NUMBER, _POSITIVE, _SHARE, _WHOLE = "a number", "more than 0", "in (0, 1]", "a whole number >= 1"
_JOINT: dict[str, Any] = {
    "name": "text", "position_rad": (_NUMBER, _NUMBER), "velocity_rad_s": _POSITIVE,
    "acceleration_rad_s2": _POSITIVE, "jerk_rad_s3": _POSITIVE, "torque_nm": _POSITIVE,
    "near_lower": (_NUMBER, _POSITIVE, _NUMBER), "near_upper": (_NUMBER, _POSITIVE, _NUMBER),
}  # fmt: skip
_POINT = (_NUMBER, _NUMBER, _NUMBER)
_SHAPE: dict[str, Any] = {
    "format_version": _WHOLE, "robot": "text", "joints": [_JOINT],
    "gripper_opening_m": (_NUMBER, _NUMBER),
    "commands": {
        "control_period_s": _POSITIVE, "share": _SHARE, "stop_share": _SHARE,
        "jump_rad": _POSITIVE, "slowest": _SHARE, "max_actions": _WHOLE,
    },
    "workspace_m": {arm: [(_POINT, _POINT)] for arm in ARMS},
    "distance_m": dict.fromkeys(("hands", "arms", "itself", "table"), _NUMBER),
    "measured": {
        "torque_share": _SHARE, "velocity_share": _POSITIVE, "tracking_rad": _POSITIVE,
        "contact_force_n": _POSITIVE, "finger_force_n": _POSITIVE, "state_age_s": _POSITIVE,
    },
}  # fmt: skip


@dataclass(frozen=True)
class Limits:
    """What two arms may be told, and what may be measured of them; joints left arm then right.

    position (14, 2) rad; velocity, acceleration, jerk, torque (14,) in rad/s, rad/s^2, rad/s^3 and
    Nm: the robot's own. near (2, 14, 3): [a, b, c] of the speed that is allowed towards the lower
    and the upper end of the range, -a + sqrt(b |c - q|). workspace: arm -> boxes (n, 2, 3), m.
    `commands`, `distance_m` and `measured` as in the file.
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

    @property
    def period_s(self) -> float:
        """Control period, s."""
        return self.commands["control_period_s"]

    def speed(self, position: np.ndarray, towards_upper: np.ndarray) -> np.ndarray:
        """Greatest joint speeds (n, 14) rad/s at positions (n, 14), in the direction asked for."""
        a, b, c = np.moveaxis(np.where(towards_upper[..., None], self.near[1], self.near[0]), -1, 0)
        # Beyond the end c nothing is allowed, so the distance to it is signed.
        left = np.where(towards_upper, c - position, position - c)
        return np.clip(np.sqrt(b * np.maximum(left, 0.0)) - a, 0.0, self.velocity)


def shipped_limits() -> list[str]:
    """Names of the robots whose limits come with the package."""
    folder = files("hardware.limits").iterdir()
    return sorted(Path(item.name).stem for item in folder if item.name.endswith(".yaml"))


def read_limits(name: str) -> Limits:
    """Limits by the name of a robot or the path of a file.

    UsageError in one line: no such file, a key that is missing or unknown, or a wrong value.
    """
    if name in shipped_limits():
        path = Path(str(files("hardware.limits") / f"{name}.yaml"))
    elif name.endswith((".yaml", ".yml")):
        path = Path(name)
    else:
        raise unknown("limits", name, [*shipped_limits(), "a path ending in .yaml"])
    try:
        raw = read_yaml(path)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    try:
        _check(raw, _SHAPE, "")
        return _made(raw)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def _check(value: Any, shape: Any, where: str) -> None:
    """UsageError unless `value` is as `shape` says: a mapping, a list, fixed numbers, one value."""
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            raise UsageError(f"{where or 'the file'} must be a mapping, got {short(value)}")
        for key in value:
            if key not in shape:
                raise unknown(f"key in {where}" if where else "key", key, shape)
        for key, inner in shape.items():
            if key not in value:
                raise UsageError(f"{where + '.' if where else ''}{key} is missing")
            _check(value[key], inner, f"{where}.{key}" if where else key)
    elif isinstance(shape, list):
        if not isinstance(value, list) or not value:
            raise UsageError(f"{where} must be a list, got {short(value)}")
        for k, item in enumerate(value):
            _check(item, shape[0], f"{where}[{k}]")
    elif isinstance(shape, tuple):
        if not isinstance(value, list) or len(value) != len(shape):
            raise UsageError(f"{where} must be a list of {len(shape)}, got {short(value)}")
        for k, (item, inner) in enumerate(zip(value, shape, strict=True)):
            _check(item, inner, f"{where}[{k}]")
    elif not _fits(value, shape):
        raise UsageError(f"{where} must be {shape}, got {short(value)}")


def _fits(value: Any, shape: str) -> bool:
    if shape == "text":
        return isinstance(value, str) and bool(value)
    if shape == _WHOLE:
        return type(value) is int and value >= 1
    if type(value) not in (int, float) or not math.isfinite(value):
        return False
    return shape == _NUMBER or (value > 0 and (shape == _POSITIVE or value <= 1))


def _made(raw: dict[str, Any]) -> Limits:
    if raw["format_version"] != FORMAT_VERSION:
        raise UsageError(f"format_version must be {FORMAT_VERSION}, got {raw['format_version']}")
    joints = raw["joints"]
    if len(joints) != 7:
        raise UsageError(f"joints must be the 7 of one arm, got {len(joints)}")
    for k, joint in enumerate(joints):
        _ascending(f"joints[{k}].position_rad", *joint["position_rad"])
    _ascending("gripper_opening_m", *raw["gripper_opening_m"])
    for arm in ARMS:
        for k, (low, high) in enumerate(raw["workspace_m"][arm]):
            for a, b in zip(low, high, strict=True):
                _ascending(f"workspace_m.{arm}[{k}]", a, b)

    def both(key: str) -> np.ndarray:
        return np.array([joint[key] for joint in joints] * len(ARMS), dtype=np.float64)

    return Limits(
        robot=raw["robot"],
        joint_names=tuple(f"{arm}_{joint['name']}" for arm in ARMS for joint in joints),
        position=both("position_rad"), velocity=both("velocity_rad_s"),
        acceleration=both("acceleration_rad_s2"), jerk=both("jerk_rad_s3"),
        torque=both("torque_nm"), near=np.stack([both("near_lower"), both("near_upper")]),
        opening=np.array(raw["gripper_opening_m"], dtype=np.float64),
        workspace={arm: np.array(boxes, float) for arm, boxes in raw["workspace_m"].items()},
        commands=raw["commands"], distance_m=raw["distance_m"], measured=raw["measured"],
    )  # fmt: skip


def _ascending(where: str, low: float, high: float) -> None:
    if low >= high:
        raise UsageError(f"{where}: {low:g} must be less than {high:g}")
