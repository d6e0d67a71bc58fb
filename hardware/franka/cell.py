"""One cell with two FR3 arms: addresses, settings, and the names of what its sensors publish."""

from __future__ import annotations

import importlib.util
import ipaddress
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

from bench_tasks.errors import UsageError, unknown
from bench_tasks.vocabulary import ARMS
from bench_tasks.yaml_shape import (
    FLAG,
    NAME,
    NUMBER,
    PATH,
    SHARE,
    Kind,
    OneOf,
    between,
    exactly,
    read_shaped,
    shipped,
)
from hardware import cell as base
from hardware.franka.calibration import Mount, read_calibration

__all__ = ["Cell", "driver_python", "read_cell", "shipped_cells"]

FORMAT_VERSION = 1
REPORT_CYCLES = 4
CONTROLS, REALTIME = ("position", "impedance", "cartesian_impedance"), ("ignore", "enforce")
POSE = "cartesian_pose"
"""What pylibfranka can, and arms whose joints were checked must not be driven by."""
PYLIBFRANKA, FRANKA_ROS2 = "pylibfranka", "franka_ros2"
MESSAGES = ("trajectory_msgs", "franka_msgs")
"""What the second way needs of ROS, beyond what all nodes need."""


_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?")
"""Of a host's name."""


def _row(count: int, kind: Kind = NUMBER) -> tuple[Kind, ...]:
    return (kind,) * count


# Wider ranges than an FR3 asks for: degrees and millimetres are beyond them.
_HANDS = {
    "speed_m_s": between(0.001, 1.0), "force_n": between(0.1, 200.0),
    "max_width_m": between(0.001, 0.2), "home": FLAG,
}  # fmt: skip
_EXTERNAL = {"force_n": between(0.5, 300.0), "torque_nm": between(0.1, 100.0)}
_STIFFNESS, _DAMPING = between(0.1, 5000.0), between(0.01, 500.0)
_COLLISION = between(0.1, 300.0)
_SHAPE: dict[str, Any] = {
    "format_version": exactly(FORMAT_VERSION),
    "driver": OneOf((PYLIBFRANKA,)),
    "python": PATH,
    "simulated": FLAG,
    "addresses": dict.fromkeys(ARMS, NAME),
    "arms": {
        "control": OneOf(CONTROLS), "realtime": OneOf(REALTIME), "speed": SHARE,
        "max_jump_rad": base.JUMP,
        "home_share": SHARE, "external": _EXTERNAL,
        "joint_impedance": _row(7, between(0.1, 14250.0)),
        "stiffness": _row(7, _STIFFNESS), "damping": _row(7, _DAMPING),
        "friction_nm": _row(7, between(0.0, 10.0)),
        "cartesian": {
            "stiffness": _row(6, _STIFFNESS), "damping": _row(6, _DAMPING),
            "elbow_stiffness": _STIFFNESS, "elbow_damping": _DAMPING,
        },
        "collision": {
            "lower_torque_nm": _row(7, _COLLISION), "upper_torque_nm": _row(7, _COLLISION),
            "lower_force_n": _row(6, _COLLISION), "upper_force_n": _row(6, _COLLISION),
        },
        "payload": {
            "mass_kg": between(0.0, 10.0), "center_m": _row(3, between(-1.0, 1.0)),
            "inertia_kgm2": _row(9, between(-1.0, 1.0)),
        },
    },
    "hands": _HANDS,
    **base.SEEN,
    "calibration": PATH,
}  # fmt: skip
_SPACE = Kind("a ROS namespace, / in front",
              lambda v: v == "/" or (base.ROS_NAME.fits(v) and v[0] == "/"))  # fmt: skip
_NAMES = {
    "namespace": _SPACE, "joints": NAME, "fingers": NAME,
    **dict.fromkeys(("controller", "joint_states", "torques", "wrench", "hand"), base.ROS_NAME),
}  # fmt: skip
_ROS_SHAPE: dict[str, Any] = {
    "format_version": exactly(FORMAT_VERSION),
    "driver": OneOf((FRANKA_ROS2,)),
    "names": dict.fromkeys(ARMS, _NAMES),
    "arms": {
        "speed": SHARE, "max_jump_rad": base.JUMP, "home_share": SHARE, "external": _EXTERNAL,
        "follow_rad": base.JUMP, "lead_s": SHARE,
    },
    "hands": _HANDS,
    **base.SEEN,
    "calibration": PATH,
}  # fmt: skip


def _shape(raw: Any) -> dict[str, Any]:
    """What must be in a file, which depends on the way to the arms."""
    driver = raw.get("driver", PYLIBFRANKA) if isinstance(raw, dict) else PYLIBFRANKA
    if driver not in (PYLIBFRANKA, FRANKA_ROS2):
        raise unknown("driver", driver, (PYLIBFRANKA, FRANKA_ROS2))
    arms = raw.get("arms") if isinstance(raw, dict) else None
    if driver == PYLIBFRANKA and isinstance(arms, dict) and arms.get("control") == POSE:
        raise UsageError(
            f"arms.control: {POSE} is not offered: pylibfranka sends no elbow with a pose, and the "
            f"joints would not go where they were checked; choose from {', '.join(CONTROLS)}"
        )
    return _SHAPE if driver == PYLIBFRANKA else _ROS_SHAPE


class Cell(base.Cell):
    """Two arms and their hands."""

    @property
    def by_ros(self) -> bool:
        """Whether franka_ros2's controllers drive the arms, instead of pylibfranka."""
        return self.raw["driver"] == FRANKA_ROS2

    def arm(self, arm: str) -> dict[str, Any]:
        """Settings for the process of an arm; `report_every` cycles it reports its state."""
        arms = self.raw["arms"]
        if self.by_ros:
            own = {key: arms[key] for key in ("speed", "max_jump_rad", "follow_rad", "lead_s")}
            return {**own, "arm": arm, "names": self.raw["names"][arm]}
        own = {key: arms[key] for key in arms if key not in ("home_share", "external")}
        return {**own, "address": self.raw["addresses"][arm], "report_every": REPORT_CYCLES,
                "simulated": self.raw["simulated"]}  # fmt: skip

    def hand(self, arm: str) -> dict[str, Any]:
        """Settings for the process of a hand."""
        if self.by_ros:
            return {**self.raw["hands"], "arm": arm, "names": self.raw["names"][arm]}
        return {**self.raw["hands"], "address": self.raw["addresses"][arm]}

    def mounts(self) -> dict[str, Mount]:
        """Where the cameras are, as far as that is known; UsageError as `read_calibration`."""
        return read_calibration(Path(self.raw["calibration"])) if self.raw["calibration"] else {}


def driver_python(cell: Cell) -> str:
    """The interpreter of the drivers' environment; UsageError when there is none.

    By ROS it is our own, which must know the messages.
    """
    if cell.by_ros:
        for package in MESSAGES:
            if importlib.util.find_spec(package) is None:
                raise UsageError(
                    f"ROS 2 does not know {package}, which {cell.name} needs for franka_ros2: "
                    "source the install/setup.bash of the workspace with franka_ros2, or, where "
                    "ROS comes from wheels, run make"
                )
        return sys.executable
    return base.environment_python(cell, "franka")


def shipped_cells() -> list[str]:
    """Names of the cells that come with the package."""
    return shipped("hardware.franka")


def read_cell(name: str) -> Cell:
    """The cell in a file, or of a name that comes with the package.

    UsageError in one line: no such file, a key that is missing or unknown, or a wrong value.
    """
    return read_shaped("cell", name, "hardware.franka", _shape, _made)


def _made(path: Path, raw: dict[str, Any]) -> Cell:
    _sensible(raw)
    if raw["calibration"]:  # beside the cell that names it
        raw["calibration"] = str(path.parent / raw["calibration"])
    cell = Cell(path.stem, raw)
    for camera in cell.mounts():
        if camera not in cell.cameras:
            raise unknown(f"camera in {raw['calibration']}", camera, cell.cameras)
    return cell


def _on_this_machine(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:  # a name may mean any robot
        return False


def _apart(names: dict[str, dict[str, str]]) -> None:
    """UsageError when both arms have the same controller or hand, or the same joints."""

    def full(arm: str, key: str) -> str:
        name = names[arm][key]
        return name if name[0] == "/" else f"{names[arm]['namespace'].rstrip('/')}/{name}"

    for key in ("controller", "hand", "wrench", "torques"):
        left, right = (full(arm, key) for arm in ARMS)
        if left == right:
            raise UsageError(f"names: both arms have the {key} {left}")
    left, right = (f"{names[arm]['joints']} on {full(arm, 'joint_states')}" for arm in ARMS)
    if left == right:
        raise UsageError(f"names: both arms have the joints {left}")


def _address(text: str) -> str:
    """The same for all ways of writing one; UsageError for what can be no address."""
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        # A name may mean any robot, but not one of digits or with a space in it.
        labels = text.split(".")
        if not all(_LABEL.fullmatch(label) for label in labels) or labels[-1].isdigit():
            raise UsageError(f"addresses: {text!r} is no address of a control box") from None
        return text.lower()
    return str(getattr(found, "ipv4_mapped", None) or found)


def _sensible(raw: dict[str, Any]) -> None:
    base.check_cell(raw)
    if raw["driver"] == FRANKA_ROS2:
        _apart(raw["names"])
        return
    if len({_address(text) for text in raw["addresses"].values()}) < len(ARMS):
        raise UsageError(f"both arms have the address {raw['addresses']['left']}")
    for arm in ARMS:
        if raw["simulated"] and not _on_this_machine(raw["addresses"][arm]):
            raise UsageError(f"simulated must be false: the address of the {arm} arm, "
                             f"{raw['addresses'][arm]}, is not on this machine")  # fmt: skip
    collision = raw["arms"]["collision"]
    inertia = np.array(raw["arms"]["payload"]["inertia_kgm2"], dtype=float).reshape(3, 3)
    about = np.linalg.eigvalsh(inertia)
    if not np.allclose(inertia, inertia.T) or about[0] < -1e-9 or about[2] > 1.01 * about[:2].sum():
        raise UsageError("arms.payload.inertia_kgm2 is that of no body: it must be symmetric, and "
                         "about no axis negative, or more than about the other two")  # fmt: skip
    for kind in ("torque_nm", "force_n"):
        pairs = zip(collision[f"lower_{kind}"], collision[f"upper_{kind}"], strict=True)
        if any(low > high for low, high in pairs):
            raise UsageError(f"arms.collision: lower_{kind} must not be more than upper_{kind}")
