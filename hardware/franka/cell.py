"""One cell with two FR3 arms: addresses, settings, and the names of what its sensors publish."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from reprlib import repr as short
from typing import Any

from bench_tasks.errors import UsageError, unknown
from bench_tasks.vocabulary import ARMS
from bench_tasks.yaml_file import read_yaml

__all__ = ["Cell", "driver_python", "read_cell", "shipped_cells"]

FORMAT_VERSION = 1
CONTROLS, REALTIME = ("position", "impedance"), ("ignore", "enforce")
_NUMBER, _POSITIVE, _SHARE, _TEXT, _NAME, _FLAG = (
    "a number", "more than 0", "in (0, 1]", "text", "a text that is not empty", "true or false",
)  # fmt: skip


def _row(count: int, kind: str = _NUMBER) -> tuple[str, ...]:
    return (kind,) * count


_SHAPE: dict[str, Any] = {
    "format_version": _POSITIVE,
    "robot": _NAME,
    "python": _TEXT,
    "addresses": dict.fromkeys(ARMS, _NAME),
    "arms": {
        "control": CONTROLS, "realtime": REALTIME, "speed": _SHARE, "max_jump_rad": _POSITIVE,
        "home_share": _SHARE, "joint_impedance": _row(7, _POSITIVE),
        "stiffness": _row(7, _POSITIVE), "damping": _row(7, _POSITIVE),
        "collision": {
            "lower_torque_nm": _row(7, _POSITIVE), "upper_torque_nm": _row(7, _POSITIVE),
            "lower_force_n": _row(6, _POSITIVE), "upper_force_n": _row(6, _POSITIVE),
        },
        "payload": {"mass_kg": _NUMBER, "center_m": _row(3), "inertia_kgm2": _row(9)},
    },
    "hands": {"speed_m_s": _POSITIVE, "force_n": _POSITIVE, "max_width_m": _POSITIVE,
              "home": _FLAG},
    "confirm_before_home": _FLAG,
    "layout": {"service": _NAME, "wait_s": _POSITIVE, "position_m": _POSITIVE,
               "angle_rad": _POSITIVE},
    "cameras": {"*": {"image": _NAME, "info": _NAME}},
    "camera_age_s": _POSITIVE,
    "objects": {"world_frame": _NAME, "frame": _NAME, "age_s": _POSITIVE},
    "contacts": {"topic": _TEXT, "age_s": _POSITIVE},
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """What the file says, as it says it; every key is documented in `cell.yaml`."""

    name: str
    raw: dict[str, Any]

    def arm(self, arm: str) -> dict[str, Any]:
        """Settings for the process of an arm; `report_every` cycles it reports its state."""
        arms = self.raw["arms"]
        own = {key: arms[key] for key in arms if key != "home_share"}
        return {**own, "address": self.raw["addresses"][arm], "report_every": 4}

    def hand(self, arm: str) -> dict[str, Any]:
        """Settings for the process of a hand."""
        return {**self.raw["hands"], "address": self.raw["addresses"][arm]}

    @property
    def cameras(self) -> dict[str, dict[str, str]]:
        """Camera -> topics of its pictures (`image`) and calibration (`info`)."""
        return self.raw["cameras"]

    def frame(self, name: str) -> str:
        """The tf frame of an object."""
        return self.raw["objects"]["frame"].replace("{name}", name)


def driver_python(cell: Cell) -> str:
    """The interpreter of the drivers' environment; UsageError when there is none."""
    given = cell.raw["python"]
    path = Path(given) if given else Path(sys.prefix) / "franka/bin/python"
    if not path.exists():
        raise UsageError(f"the Franka driver has no Python at {path}: run make franka"
                         + (f", or correct python in {cell.name}" if given else ""))  # fmt: skip
    return str(path)


def shipped_cells() -> list[str]:
    """Names of the cells that come with the package."""
    names = [item.name for item in files("hardware.franka").iterdir()]
    return sorted(Path(name).stem for name in names if name.endswith(".yaml"))


def read_cell(name: str) -> Cell:
    """The cell in a file, or of a name that comes with the package.

    UsageError in one line: no such file, a key that is missing or unknown, or a wrong value.
    """
    if name in shipped_cells():
        path = Path(str(files("hardware.franka") / f"{name}.yaml"))
    elif name.endswith((".yaml", ".yml")):
        path = Path(name)
    else:
        raise unknown("cell", name, [*shipped_cells(), "a path ending in .yaml"])
    try:
        raw = read_yaml(path)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    try:
        _check(raw, _SHAPE, "")
        _sensible(raw)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    return Cell(path.stem, raw)


def _sensible(raw: dict[str, Any]) -> None:
    if raw["format_version"] != FORMAT_VERSION:
        raise UsageError(f"format_version must be {FORMAT_VERSION}, got {raw['format_version']}")
    if len(set(raw["addresses"].values())) < len(ARMS):
        raise UsageError(f"both arms have the address {raw['addresses']['left']}")
    if "{name}" not in raw["objects"]["frame"]:
        raise UsageError(f"objects.frame must hold {{name}}, got {raw['objects']['frame']!r}")
    for camera, topics in raw["cameras"].items():
        for topic in topics.values():
            if topic.startswith(f"/{camera}/"):
                raise UsageError(
                    f"cameras.{camera}: {topic} is what this package publishes itself: let the "
                    "camera's driver publish in another namespace"
                )
    collision = raw["arms"]["collision"]
    for kind in ("torque_nm", "force_n"):
        pairs = zip(collision[f"lower_{kind}"], collision[f"upper_{kind}"], strict=True)
        if any(low > high for low, high in pairs):
            raise UsageError(f"arms.collision: lower_{kind} must not be more than upper_{kind}")


def _check(value: Any, shape: Any, where: str) -> None:
    """UsageError unless `value` is as `shape` says."""
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            raise UsageError(f"{where or 'the file'} must be a mapping, got {short(value)}")
        inner = dict.fromkeys(value, shape["*"]) if "*" in shape else shape
        for key in value:
            if key not in inner or not isinstance(key, str):
                raise unknown(f"key in {where}" if where else "key", key, inner)
        for key, kind in inner.items():
            if key not in value:
                raise UsageError(f"{where + '.' if where else ''}{key} is missing")
            _check(value[key], kind, f"{where}.{key}" if where else key)
    elif shape in (CONTROLS, REALTIME):
        if value not in shape:
            raise unknown(where, value, shape)
    elif isinstance(shape, tuple):
        if not isinstance(value, list) or len(value) != len(shape):
            raise UsageError(f"{where} must be a list of {len(shape)}, got {short(value)}")
        for k, (item, kind) in enumerate(zip(value, shape, strict=True)):
            _check(item, kind, f"{where}[{k}]")
    elif not _fits(value, shape):
        raise UsageError(f"{where} must be {shape}, got {short(value)}")


def _fits(value: Any, kind: str) -> bool:
    if kind in (_TEXT, _NAME):
        return isinstance(value, str) and (bool(value) or kind == _TEXT)
    if kind == _FLAG:
        return isinstance(value, bool)
    if type(value) not in (int, float) or not math.isfinite(value):
        return False
    return kind == _NUMBER or (value > 0 and (kind == _POSITIVE or value <= 1))
