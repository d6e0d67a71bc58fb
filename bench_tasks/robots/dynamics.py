"""How a robot's joints answer to commands: gains, friction, delay that the simulation takes on.

Written by `bench_tasks sysid`, read by `bench_tasks run --dynamics` and `dynamics:=...`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from bench_tasks.errors import UsageError
from bench_tasks.manifest import replacing
from bench_tasks.robots.fr3 import JOINT_NAMES
from bench_tasks.vocabulary import ARMS, FR3_PAIR
from bench_tasks.yaml_file import read_yaml
from bench_tasks.yaml_shape import OneOf, between, check_shape, exactly

__all__ = ["MAX_DELAY_S", "MAX_OFFSET_RAD", "Dynamics", "is_dynamics", "read_dynamics"]

VERSION = 2
"""Of the file. In 1 the simulation's own servo was fixed, and only its friction was fitted."""
MAX_DELAY_S = 0.2
MAX_OFFSET_RAD = 0.2
MAX_DRY_NM = 1000.0
MIN_STIFFNESS, MAX_STIFFNESS = 10.0, 7e4
"""Nm/rad. The simulation's step of 2 ms takes no more of joints that have 0.074 kg m^2 to move."""
MAX_DAMPING = 1e5


_JOINT = {
    "stiffness_nm_rad": between(MIN_STIFFNESS, MAX_STIFFNESS),
    "damping_nm_s": between(0.0, MAX_DAMPING),
    "dry_nm": between(0.0, MAX_DRY_NM),
    "offset_rad": between(-MAX_OFFSET_RAD, MAX_OFFSET_RAD),
}
_SHAPE = {
    "format_version": exactly(VERSION),
    "robot": OneOf((FR3_PAIR,)),
    "delay_s": dict.fromkeys(ARMS, between(0.0, MAX_DELAY_S)),
    "joints": dict.fromkeys(JOINT_NAMES, _JOINT),
}


@dataclass(frozen=True, eq=False)
class Dynamics:
    """One FR3 pair's. Arrays (14,) are in the order of `robots.JOINT_NAMES`, delay (2,) by arm.

    A servo pulls each joint towards what it is told with `stiffness` (Nm/rad), and what slows it in
    proportion to its speed is `damping` (Nm s/rad), of servo and gears together. `dry` (Nm) is
    Coulomb friction. A joint settles `offset_rad` beside what it is told; a command takes effect
    `delay_s` late. The hands have neither.
    """

    stiffness: np.ndarray
    damping: np.ndarray
    dry: np.ndarray
    offset_rad: np.ndarray
    delay_s: np.ndarray

    def to_dict(self) -> dict[str, Any]:
        """As in the file."""
        columns = (self.stiffness, self.damping, self.dry, self.offset_rad)
        return {
            "format_version": VERSION,
            "robot": FR3_PAIR,
            "delay_s": {arm: _short(v) for arm, v in zip(ARMS, self.delay_s, strict=True)},
            "joints": {
                name: dict(zip(_JOINT, map(_short, row), strict=True))
                for name, row in zip(JOINT_NAMES, np.stack(columns, axis=1), strict=True)
            },
        }

    @property
    def hash(self) -> str:
        """SHA-256 of the content."""
        return hashlib.sha256(_text(self).encode()).hexdigest()

    def write(self, path: Path) -> None:
        """Replace `path` by the YAML file; BenchError when it cannot be written."""
        with replacing(path) as temporary:
            temporary.write_text(_text(self), encoding="utf-8")


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def _text(dynamics: Dynamics) -> str:
    return yaml.safe_dump(dynamics.to_dict(), sort_keys=False)


def read_dynamics(path: str | Path) -> Dynamics:
    """The file's content; UsageError in one line names what is wrong with it."""
    try:
        raw = read_yaml(Path(path))
    except OSError as error:
        raise UsageError(f"cannot read the dynamics {path}: {error.strerror}") from None
    if isinstance(raw, dict) and raw.get("format_version") == 1 and "joints" in raw:
        raise UsageError(f"{path} is of format 1, which had no stiffness: make it anew from the "
                         "recording, with bench_tasks sysid")  # fmt: skip
    try:
        check_shape(raw, _SHAPE)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    rows = np.array(
        [[raw["joints"][name][key] for key in _JOINT] for name in JOINT_NAMES], np.float64
    )
    return Dynamics(*rows.T.copy(), np.array([raw["delay_s"][arm] for arm in ARMS], np.float64))


def is_dynamics(path: Path) -> bool:
    """Whether it is such a file, of whatever version."""
    try:
        raw = read_yaml(path)
    except (OSError, UsageError):
        return False
    return isinstance(raw, dict) and {"robot", "delay_s", "joints"} <= set(raw)
