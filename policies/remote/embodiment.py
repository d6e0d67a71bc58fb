"""What a policy server was trained for: which pictures and numbers it wants, and what it answers.

One YAML file each, in `policies/remote/embodiments` or anywhere. Every key is checked, unknown ones
are refused.

    format_version: 1
    name: droid_left
    about: one line
    arms: {left: [1, 2, 3, 4, 5, 6, 7]}    # the joints it drives; the rest stay as they are
    images:                                # key: a name, or a list of names for nested dicts
      - {key: observation/wrist_image_left, camera: left_wrist, width: 224, height: 224}
    state:
      - {key: observation/joint_position, parts: [left.joints]}
    gripper_state: {closed: 1, open: 0}    # the number that stands for either end
    prompt: prompt
    action:
      rate_hz: 15
      parts: [left.joints, left.gripper]   # or a list of {key, parts}
      gripper: {closed: 1, open: 0, binary: true}
    server: {action_space: joint_position} # what the server's metadata must say, where it says it
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_tasks.errors import UsageError, unknown
from bench_tasks.vocabulary import ARMS, MAX_OPENING_M
from bench_tasks.yaml_file import read_yaml

__all__ = [
    "CAMERAS", "Action", "Embodiment", "Gripper", "Picture", "Vector", "builtin", "load",
    "part_size",
]  # fmt: skip

FORMAT_VERSION = 1
FOLDER = Path(__file__).with_name("embodiments")
CAMERAS = ("head", "third", "left_wrist", "right_wrist")
SPACES = ("joint", "cartesian")
MODES = ("absolute", "delta", "delta_from_start", "velocity")
ROTATIONS = {"quaternion_wxyz": 4, "quaternion_xyzw": 4, "rotvec": 3, "rpy": 3}
FITS = ("pad", "crop", "stretch")
QUANTITIES = ("joints", "command", "gripper", "gripper_command", "pose")
Key = tuple[str, ...]


@dataclass(frozen=True)
class Picture:
    """A camera's picture as uint8 RGB, `layout` hwc or chw.

    Without `width` and `height` it is sent as it was taken. `fit` says what becomes of another
    aspect ratio: padded with black, cropped, or stretched.
    `frames` > 1: the chunk is executed in as many parts, a picture is taken before each, and
    after the first call they are sent together, the oldest first.
    """

    key: Key
    camera: str
    width: int = 0
    height: int = 0
    layout: str = "hwc"
    fit: str = "pad"
    rotate_180: bool = False
    frames: int = 1


@dataclass(frozen=True)
class Vector:
    """Numbers under one key: parts like left.joints (rad), left.gripper, left.pose, in order."""

    key: Key
    parts: tuple[str, ...]
    dtype: str = "float32"


@dataclass(frozen=True)
class Gripper:
    """The numbers that stand for a closed and an open gripper, linear in between.

    `tolerance` is the share of the range by which a number may lie outside and is clipped; beyond
    it is refused. `binary`: what is nearer to open opens wholly, the rest closes.
    """

    closed: float = 0.0
    open: float = MAX_OPENING_M
    binary: bool = False
    tolerance: float = 0.05


@dataclass(frozen=True)
class Action:
    """What comes back: rows of numbers, `rate_hz` of them a second.

    Joints in rad or rad/s; poses are TCP positions (m) with a `rotation`, in the `frame` of the
    arm's base or the world. `delta` adds to the last target, `delta_from_start` to where the arm
    was observed, `velocity` is per second; `scale` multiplies all three. Of each chunk `execute`
    rows are executed before the server is asked again; 0: all.
    """

    rate_hz: float
    vectors: tuple[Vector, ...]
    space: str = "joint"
    mode: str = "absolute"
    rotation: str = "rotvec"
    frame: str = "base"
    scale: float = 1.0
    execute: int = 0
    max_rows: int = 500
    gripper: Gripper = Gripper()


@dataclass(frozen=True)
class Embodiment:
    """See the module's text. `joints` holds for each arm the columns (0 to 6) that are driven."""

    name: str
    joints: dict[str, tuple[int, ...]]
    action: Action
    images: tuple[Picture, ...] = ()
    state: tuple[Vector, ...] = ()
    gripper_state: Gripper = Gripper()
    prompt: Key = ()
    seed: Key = ()
    server: dict[str, Any] = dataclasses.field(default_factory=dict)
    about: str = ""

    @property
    def cameras(self) -> tuple[str, ...]:
        """The cameras that it needs, each once."""
        return tuple(dict.fromkeys(picture.camera for picture in self.images))

    @property
    def action_size(self) -> int:
        """Numbers in a row of actions."""
        return sum(self.size(vector) for vector in self.action.vectors)

    def size(self, vector: Vector) -> int:
        """Numbers in a vector of state or action."""
        return sum(part_size(self, part) for part in vector.parts)


def part_size(embodiment: Embodiment, part: str) -> int:
    """How many numbers a part like left.joints has."""
    arm, _, quantity = part.partition(".")
    if quantity in ("joints", "command"):
        return len(embodiment.joints[arm])
    return 3 + ROTATIONS[embodiment.action.rotation] if quantity == "pose" else 1


def builtin() -> list[str]:
    """Names of the embodiments that come with the package."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def load(name: str) -> Embodiment:
    """The embodiment of that name, or of that .yaml file; UsageError names what is wrong in it."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else FOLDER / f"{name}.yaml"
    if path.parent == FOLDER and path.stem not in builtin():
        raise UsageError(f"{unknown('embodiment', name, builtin())}, or give a .yaml file")
    try:
        raw = read_yaml(path)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    if not isinstance(raw, dict) or raw.pop("format_version", None) != FORMAT_VERSION:
        raise UsageError(f"{path} must be a mapping with format_version: {FORMAT_VERSION}")
    try:
        return _checked(_embodiment(raw))
    except UsageError as error:
        raise UsageError(f"{path.name}: {error}") from None


def _embodiment(raw: dict[str, Any]) -> Embodiment:
    arms = _mapping("arms", raw.pop("arms", None))
    joints = {}
    for arm, numbers in arms.items():
        if arm not in ARMS:
            raise unknown("arm", arm, ARMS)
        numbers = list(range(1, 8)) if numbers is None else numbers
        valid = isinstance(numbers, list) and all(type(n) is int and 1 <= n <= 7 for n in numbers)
        if not valid or not numbers or len(set(numbers)) != len(numbers):
            raise UsageError(f"arms: {arm} must be a list of different joints 1 to 7")
        joints[arm] = tuple(n - 1 for n in numbers)
    action = _mapping("action", raw.pop("action", None))
    parts = action.pop("parts", None)
    if isinstance(parts, list) and all(isinstance(part, str) for part in parts):
        parts = [{"key": "actions", "parts": parts}]
    vectors = _several("action parts", Vector, parts)
    gripper = _filled("action gripper", Gripper, action.pop("gripper", {}))
    return _filled(
        "the file", Embodiment, raw, joints=joints,
        images=_several("images", Picture, raw.pop("images", [])),
        state=_several("state", Vector, raw.pop("state", [])),
        gripper_state=_filled("gripper_state", Gripper, raw.pop("gripper_state", {})),
        action=_filled("action", Action, action, vectors=vectors, gripper=gripper),
        server=_mapping("server", raw.pop("server", {})),
    )  # fmt: skip


def _mapping(where: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise UsageError(f"{where} must be a mapping")
    return dict(value)


def _several(where: str, kind: type, value: Any) -> tuple:
    if not isinstance(value, list):
        raise UsageError(f"{where} must be a list")
    return tuple(_filled(f"{where} {k + 1}", kind, item) for k, item in enumerate(value))


def _filled(where: str, kind: type, value: Any, **known: Any) -> Any:
    """The dataclass `kind`, its fields from a mapping; UsageError on a key or value that is wrong.

    What is `known` already cannot be given.
    """
    fields = {field.name: field for field in dataclasses.fields(kind) if field.name not in known}
    values = _mapping(where, value)
    for key, item in values.items():
        if key not in fields:
            raise unknown(f"key of {where}", key, fields)
        values[key] = _typed(f"{where}: {key}", str(fields[key].type), item)
    for key, field in fields.items():
        needed = field.default is field.default_factory is dataclasses.MISSING
        if needed and key not in values:
            raise UsageError(f"{where}: {key} is missing")
    return kind(**known, **values)


def _typed(where: str, kind: str, value: Any) -> Any:
    if kind == "Key" and isinstance(value, str) and value:
        return (value,)
    if kind in ("Key", "tuple[str, ...]"):
        if isinstance(value, list) and value and all(isinstance(v, str) and v for v in value):
            return tuple(value)
        raise UsageError(f"{where} must be a text or a list of texts")
    if kind == "float" and type(value) in (int, float) and math.isfinite(value):
        return float(value)
    if kind != "float" and type(value).__name__ == kind.partition("[")[0]:
        return value
    raise UsageError(f"{where} must be of type {kind}, got {value!r}")


def _one_of(kind: str, value: str, valid: Any) -> None:
    if value not in valid:
        raise unknown(kind, value, valid)


def _checked(it: Embodiment) -> Embodiment:
    """Return it; UsageError when its values do not fit together."""
    action = it.action
    _one_of("action space", action.space, SPACES)
    _one_of("action mode", action.mode, MODES)
    _one_of("action rotation", action.rotation, ROTATIONS)
    _one_of("action frame", action.frame, ("base", "world"))
    for picture in it.images:
        _one_of("camera", picture.camera, CAMERAS)
        _one_of("layout", picture.layout, ("hwc", "chw"))
        _one_of("fit", picture.fit, FITS)
        for name in ("width", "height"):
            if (picture.width or picture.height) and not 8 <= getattr(picture, name) <= 4096:
                raise UsageError(f"a picture's {name} must be 8 to 4096 pixels")
        if not 1 <= picture.frames <= 64:
            raise UsageError(f"a picture's frames must be 1 to 64, got {picture.frames}")
    if not 1.0 <= action.rate_hz <= 1000.0:
        raise UsageError(f"rate_hz must be 1 to 1000, got {action.rate_hz:g}")
    if not 1 <= action.max_rows <= 10_000 or not 0 <= action.execute <= action.max_rows:
        raise UsageError("max_rows must be 1 to 10000, and execute 0 to max_rows")
    for gripper in (it.gripper_state, action.gripper):
        if gripper.closed == gripper.open or not 0.0 <= gripper.tolerance <= 0.5:
            raise UsageError("a gripper's closed and open must differ, its tolerance be 0 to 0.5")
    for vector in it.state:
        _one_of("dtype", vector.dtype, ("float32", "float64"))
        for part in vector.parts:
            _check_part(it, part, QUANTITIES)
    moving = "joints" if action.space == "joint" else "pose"
    asked = [part for vector in action.vectors for part in vector.parts]
    for part in asked:
        _check_part(it, part, (moving, "gripper"))
    for arm in it.joints:
        if asked.count(f"{arm}.{moving}") != 1 or asked.count(f"{arm}.gripper") > 1:
            raise UsageError(f"action parts must have {arm}.{moving} once, and a gripper once")
        if action.space == "cartesian" and len(it.joints[arm]) != 7:
            raise UsageError(f"arms: {arm} needs all joints in cartesian space")
    return it


def _check_part(it: Embodiment, part: str, quantities: tuple[str, ...]) -> None:
    valid = [f"{arm}.{quantity}" for arm in it.joints for quantity in quantities]
    _one_of("part", part, valid)
