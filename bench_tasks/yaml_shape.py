"""What a YAML file must hold: its keys, and what kind of value is at each.

A shape is a dict (these keys and no others; "*" for whatever names there are, at least one), a list
of one shape (at least one such item), a tuple (as many items, each of its shape), a `Kind` or a
`OneOf`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from reprlib import repr as short
from typing import Any, TypeVar

from bench_tasks.errors import UsageError, unknown
from bench_tasks.yaml_file import read_yaml

__all__ = [
    "FLAG", "NAME", "NUMBER", "PATH", "SHARE", "Kind", "OneOf", "between", "check_shape",
    "exactly", "matching", "read_shaped", "shipped", "whole",
]  # fmt: skip

T = TypeVar("T")


@dataclass(frozen=True)
class Kind:
    """One value: what it must be, in words, and whether a value is."""

    says: str
    fits: Callable[[Any], bool]


@dataclass(frozen=True)
class OneOf:
    """One of these names."""

    names: tuple[str, ...]


def _finite(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


NUMBER = Kind("a number", _finite)
SHARE = Kind("in [0.01, 1]", lambda v: _finite(v) and 0.01 <= v <= 1)
"""Of a speed, an acceleration or the like; nothing would be left of it by less."""


def between(least: float, most: float) -> Kind:
    """A number in a range beyond which it is in other units, or no limit any more."""
    return Kind(f"a number from {least:g} to {most:g}",
                lambda v: _finite(v) and least <= v <= most)  # fmt: skip


def whole(least: int, most: int) -> Kind:
    """A whole number in a range."""
    return Kind(f"a whole number from {least} to {most}",
                lambda v: type(v) is int and least <= v <= most)  # fmt: skip


def exactly(number: int) -> Kind:
    """This whole number, such as the version of a format."""
    return Kind(str(number), lambda v: type(v) is int and v == number)


def matching(says: str, pattern: str) -> Kind:
    """A text that is all of a pattern, in which letters and spaces are those of ASCII."""
    found = re.compile(pattern, re.ASCII)
    return Kind(says, lambda v: isinstance(v, str) and found.fullmatch(v) is not None)


NAME = matching("a name without spaces", r"[^\s]+")
PATH = matching("a path, or empty", r"|\S(.*\S)?")
_KEY = matching("a name of letters, digits and _", r"[A-Za-z_]\w*")
FLAG = Kind("true or false", lambda v: isinstance(v, bool))


def check_shape(value: Any, shape: Any, where: str = "") -> None:
    """UsageError, naming the place, unless `value` is as `shape` says."""
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            raise UsageError(f"{where or 'the file'} must be a mapping, got {short(value)}")
        if "*" in shape and not value:
            raise UsageError(f"{where} must hold something, it is empty")
        names = [key for key in value if _KEY.fits(key)]
        inner = dict.fromkeys(names, shape["*"]) if "*" in shape else shape
        for key in value:
            if "*" in shape and key not in inner:
                raise UsageError(f"a key in {where} must be {_KEY.says}, got {short(key)}")
            if key not in inner:
                raise unknown(f"key in {where}" if where else "key", key, inner)
        for key, kind in inner.items():
            if key not in value:
                raise UsageError(f"{where + '.' if where else ''}{key} is missing")
            check_shape(value[key], kind, f"{where}.{key}" if where else key)
    elif isinstance(shape, OneOf):
        if value not in shape.names:
            raise unknown(where, value, shape.names)
    elif isinstance(shape, Kind):
        if not shape.fits(value):
            raise UsageError(f"{where} must be {shape.says}, got {short(value)}")
    else:
        fixed = isinstance(shape, tuple)
        if not isinstance(value, list) or (len(value) != len(shape) if fixed else not value):
            many = f" of {len(shape)}" if fixed else ""
            raise UsageError(f"{where} must be a list{many}, got {short(value)}")
        for k, item in enumerate(value):
            check_shape(item, shape[k] if fixed else shape[0], f"{where}[{k}]")


def shipped(package: str) -> list[str]:
    """Names of the YAML files that a package holds."""
    names = [item.name for item in files(package).iterdir()]
    return sorted(Path(name).stem for name in names if name.endswith(".yaml"))


def read_shaped(
    what: str, name: str, package: str, shape: Any, made: Callable[[Path, dict[str, Any]], T]
) -> T:
    """What `made` makes of a file of `package`, by its name, or of one's own, by its path.

    `shape` may be a function that says which shape a file must have, from what is in it.

    UsageError in one line: no such file, a key that is missing or unknown, a wrong value, or what
    `made` raises.
    """
    known = shipped(package)
    if name in known:
        path = Path(str(files(package) / f"{name}.yaml"))
    elif name.endswith((".yaml", ".yml")):
        path = Path(name)
    else:
        raise unknown(what, name, [*known, "a path ending in .yaml"])
    try:
        raw = read_yaml(path)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    try:
        check_shape(raw, shape(raw) if callable(shape) else shape)
        return made(path, raw)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
