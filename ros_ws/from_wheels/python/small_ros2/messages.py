"""Types by name, messages from plain values, and definitions with those of all types inside."""

from __future__ import annotations

import importlib
import re
from typing import Any

import yaml
from launch.errors import LaunchError

from small_ros2.packages import share_of

__all__ = ["definition_of", "fill", "message_class", "service_class", "values_of"]

PRIMITIVES = {
    "bool", "byte", "char", "float32", "float64", "int8", "uint8", "int16", "uint16", "int32",
    "uint32", "int64", "uint64", "string", "wstring",
}
RULE = "=" * 80


def _class(type_name: str, kind: str, words: str) -> Any:
    parts = type_name.split("/")
    if len(parts) != 3 or parts[1] != kind:
        raise LaunchError(f"'{type_name}' is no {words} type; write package/{kind}/Name")
    try:
        return getattr(importlib.import_module(f"{parts[0]}.{parts[1]}"), parts[2])
    except (ImportError, AttributeError):
        raise LaunchError(f"{words} type '{type_name}' is not installed") from None


def message_class(type_name: str) -> Any:
    """The class of a type like std_msgs/msg/String; LaunchError when it cannot be imported."""
    return _class(type_name, "msg", "message")


def service_class(type_name: str) -> Any:
    """The class of a type like std_srvs/srv/Trigger; LaunchError when it cannot be imported."""
    return _class(type_name, "srv", "service")


def values_of(text: str) -> dict[str, Any]:
    """The values of fields from YAML as it is typed; LaunchError when it is none."""
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:
        found = text
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise LaunchError(f"values must be YAML like '{{data: true}}', got {text!r}")
    return found


def fill(message: Any, values: dict[str, Any]) -> Any:
    """Set fields of a message, and of those inside; LaunchError names the one that cannot be.

    Sequences of messages are not among them: nobody types those.
    """
    kinds = message.get_fields_and_field_types()
    for name, value in values.items():
        if name not in kinds:
            raise LaunchError(f"there is no field '{name}'; choose from {', '.join(kinds)}")
        now = getattr(message, name)
        if isinstance(value, dict) and hasattr(now, "get_fields_and_field_types"):
            fill(now, value)
            continue
        if isinstance(now, float) and isinstance(value, int):
            value = float(value)
        try:
            setattr(message, name, value)
            if isinstance(now, bool) is not isinstance(getattr(message, name), bool):
                raise ValueError
        except (AssertionError, TypeError, ValueError, OverflowError):
            raise LaunchError(f"field '{name}' is {kinds[name]}, got {value!r}") from None
    return message


def source_of(type_name: str) -> str:
    """The .msg file of a type."""
    package, _, name = type_name.split("/")
    return (share_of(package) / "msg" / f"{name}.msg").read_text(encoding="utf-8")


def references(source: str, package: str) -> list[str]:
    """Types that a definition uses, in their order."""
    found: list[str] = []
    for line in source.splitlines():
        words = line.split("#", 1)[0].split()
        if len(words) < 2:
            continue
        base = re.sub(r"(\[.*\]|<=\d+)$", "", re.sub(r"\[.*\]$", "", words[0]))
        if base in PRIMITIVES:
            continue
        owner, _, name = base.rpartition("/")
        full = f"{owner.split('/')[0] or package}/msg/{name}"
        if full not in found:
            found.append(full)
    return found


def definition_of(type_name: str) -> str:
    """A definition as MCAP stores it: the type's own, then every type inside."""
    text = source_of(type_name).rstrip("\n") + "\n"
    todo, done = references(text, type_name.split("/")[0]), [type_name]
    while todo:
        inner = todo.pop(0)
        if inner in done:
            continue
        done.append(inner)
        source = source_of(inner).rstrip("\n") + "\n"
        package, _, name = inner.split("/")
        text += f"{RULE}\nMSG: {package}/{name}\n{source}"
        todo += references(source, package)
    return text
