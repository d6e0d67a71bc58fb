"""Message types by name, and their definitions with those of all types inside."""

from __future__ import annotations

import importlib
import re
from typing import Any

from launch.errors import LaunchError

from small_ros2.packages import share_of

__all__ = ["definition_of", "message_class"]

PRIMITIVES = {
    "bool", "byte", "char", "float32", "float64", "int8", "uint8", "int16", "uint16", "int32",
    "uint32", "int64", "uint64", "string", "wstring",
}
RULE = "=" * 80


def message_class(type_name: str) -> Any:
    """The class of a type like std_msgs/msg/String; LaunchError when it cannot be imported."""
    parts = type_name.split("/")
    if len(parts) != 3:
        raise LaunchError(f"'{type_name}' is no message type; write package/msg/Name")
    try:
        return getattr(importlib.import_module(f"{parts[0]}.{parts[1]}"), parts[2])
    except (ImportError, AttributeError):
        raise LaunchError(f"message type '{type_name}' is not installed") from None


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
