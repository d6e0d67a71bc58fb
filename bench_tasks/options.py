"""Configuration of an agent: `name`, `name:key=value,...` or `name:file.yaml,key=value,...`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, TypeVar

from bench_tasks.errors import UsageError, unknown
from bench_tasks.yaml_file import read_yaml

__all__ = ["FORMAT_VERSION", "build", "check_ranges", "read_spec"]

FORMAT_VERSION = 1
T = TypeVar("T")


def read_spec(spec: str, role: str = "planner") -> tuple[str, dict[str, Any]]:
    """(name, options) of a specification; UsageError when it is malformed.

    Values stay text unless they come from a YAML file. Later items win. No value is ever shown in
    an error, since people put secrets where they do not belong.
    """
    name, _, rest = spec.partition(":")
    options: dict[str, Any] = {}
    for item in rest.split(",") if rest else []:
        key, equals, value = (part.strip() for part in item.partition("="))
        if equals and key:
            options[key] = value
        elif item.strip().endswith((".yaml", ".yml")):
            options |= _read_file(Path(item.strip()))
        else:
            raise UsageError(
                f"{role} {name}: each option is key=value or a .yaml file, separated by commas"
            )
    return name.strip(), options


def _read_file(path: Path) -> dict[str, Any]:
    try:
        raw = read_yaml(path, show=False)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    if not isinstance(raw, dict) or raw.pop("format_version", None) != FORMAT_VERSION:
        raise UsageError(f"{path} must be a mapping with format_version: {FORMAT_VERSION}")
    return raw


def build(name: str, kind: type[T], options: dict[str, Any], role: str = "planner") -> T:
    """The dataclass `kind` from options, texts converted to the type of each field's default.

    Lists are separated by "+". UsageError lists the valid keys, or names the one whose value is
    of a wrong type.
    """
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    values = {}
    for key, value in options.items():
        if key not in fields:
            raise unknown(f"option of {role} {name}", key, fields)
        values[key] = _typed(f"{role} {name}", key, value, fields[key].default)
    return kind(**values)


def check_ranges(options: Any, **ranges: tuple[float, float]) -> None:
    """UsageError names the first option whose value is not within its (least, greatest)."""
    for name, (low, high) in ranges.items():
        value = getattr(options, name)
        if not low <= value <= high:
            raise UsageError(f"{name} must be {low} to {high}, got {value}")


def _typed(name: str, key: str, value: Any, default: Any) -> Any:
    kind = type(default)
    if kind is tuple:
        words = value.split("+") if isinstance(value, str) else value
        if isinstance(words, list) and all(isinstance(word, str) for word in words):
            return tuple(word.strip() for word in words if word.strip() not in ("", "none"))
    elif kind is bool:
        if isinstance(value, bool):
            return value
        if value in ("true", "false"):
            return value == "true"
    elif kind in (int, float):
        try:
            if not isinstance(value, bool):
                number = kind(value)
                if number == float(value) and abs(number) < 1e12:
                    return number
        except (TypeError, ValueError, OverflowError):
            pass
    elif isinstance(value, str):
        # What a script's empty variable leaves must not become the default without a word.
        if not value and not default:
            raise UsageError(f"{name}: {key} is empty: give a value, or leave it out")
        return value
    wanted = {tuple: "a list a+b", bool: "true or false", int: "a whole number", float: "a number"}
    raise UsageError(f"{name}: {key} must be {wanted.get(kind, 'text')}")
