"""Sets of evolved objects as data: a kind and the edits of its program, in YAML with a hash.

A set says which objects there are and nothing about how they are built: `sim.objects.edits` knows
the operations. No code is ever read from such a file. The sets that come with the package lie
beside this module and are known by their names.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from reprlib import repr as short
from typing import Any

import yaml

from bench_tasks.errors import UsageError, unknown
from bench_tasks.yaml_file import read_yaml

__all__ = ["Edit", "Evolved", "ObjectSet", "read_set", "shipped"]

FORMAT_VERSION = 1
_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Edit:
    """One operation of `sim.objects.edits.OPERATIONS` and its arguments."""

    op: str
    args: dict[str, Any] = field(default_factory=dict)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Evolved:
    """The program of `kind`, edited. It takes the same lengths and fits where that does.

    `parents` says which objects of the set, or which kind, it was made from.
    """

    kind: str
    edits: tuple[Edit, ...]
    parents: tuple[str, ...] = ()

    @cached_property
    def name(self) -> str:
        """Kind and the first digits of the content's hash: equal names mean equal objects."""
        return f"{self.kind}-{_digest(self.content)[:8]}"

    @property
    def content(self) -> list[Any]:
        """What makes the object what it is, as plain data."""
        return [self.kind, [[edit.op, dict(edit.args)] for edit in self.edits]]


@dataclass(frozen=True)
class ObjectSet:
    """Evolved objects, and how they were made."""

    objects: tuple[Evolved, ...]
    seed: int = 0
    command: str = ""

    @property
    def hash(self) -> str:
        """SHA-256 of what the objects are, in their order."""
        return _digest([item.content for item in self.objects])

    def of_kind(self, kind: str) -> tuple[Evolved, ...]:
        """Those made from `kind`."""
        return tuple(item for item in self.objects if item.kind == kind)

    def to_yaml(self) -> str:
        """Text from which `read_set` restores an equal set."""
        head = {
            "format_version": FORMAT_VERSION, "command": self.command, "seed": self.seed,
            "hash": self.hash,
        }  # fmt: skip
        lines = [yaml.safe_dump(head, sort_keys=False, width=1000), "objects:\n"]
        for item in self.objects:
            parents = ", ".join(item.parents)
            lines.append(f"- name: {item.name}\n  kind: {item.kind}\n  parents: [{parents}]\n")
            lines.append("  edits:\n" if item.edits else "  edits: []\n")
            for edit in item.edits:
                words = yaml.safe_dump(
                    {"op": edit.op, **edit.args}, sort_keys=False, default_flow_style=True,
                    width=1000,
                )
                lines.append(f"  - {words}")
        return "".join(lines)


def shipped() -> dict[str, Path]:
    """The sets that come with the package, by name."""
    return {path.stem: path for path in sorted(_HERE.glob("*.yaml"))}


def read_set(name: str) -> ObjectSet:
    """The set of that name, or in that file.

    UsageError in one line when it cannot be read, is malformed, or is not what its hash says.
    """
    path = shipped().get(name, Path(name))
    try:
        raw = read_yaml(path)
    except OSError as error:
        sets = ", ".join(shipped())
        raise UsageError(
            f"cannot read the object set {name}: {error.strerror}; give a file or one of {sets}"
        ) from None
    try:
        found = _parse(raw)
    except UsageError as error:
        raise UsageError(f"object set {path}: {error}") from None
    return found


def _fields(what: str, raw: Any, kinds: dict[str, type]) -> list[Any]:
    if not isinstance(raw, dict):
        raise UsageError(f"{what} must be a mapping, got {short(raw)}")
    for key in raw:
        if key not in kinds:
            raise unknown(f"key of {what}", key, kinds)
    for key, kind in kinds.items():
        if not isinstance(raw.get(key), kind) or isinstance(raw.get(key), bool):
            raise UsageError(
                f"{what}: {key} must be of type {kind.__name__}, got {short(raw.get(key))}"
            )
    return [raw[key] for key in kinds]


def _parse(raw: Any) -> ObjectSet:
    version, command, seed, digest, items = _fields(
        "the set", raw,
        {"format_version": int, "command": str, "seed": int, "hash": str, "objects": list},
    )
    if version != FORMAT_VERSION:
        raise UsageError(f"format_version must be {FORMAT_VERSION}, got {version}")
    objects = []
    for item in items:
        name, kind, parents, edits = _fields(
            "an object", item, {"name": str, "kind": str, "parents": list, "edits": list}
        )
        if not all(isinstance(parent, str) for parent in parents):
            raise UsageError(f"{name}: parents must be names, got {short(parents)}")
        evolved = Evolved(kind, tuple(_edit(name, edit) for edit in edits), tuple(parents))
        if evolved.name != name:
            raise UsageError(f"{name} was changed: what it holds now is {evolved.name}")
        if any(evolved.name == other.name for other in objects):
            raise UsageError(f"{name} is there twice")
        objects.append(evolved)
    found = ObjectSet(tuple(objects), seed, command)
    if not objects:
        raise UsageError("it holds no objects")
    if found.hash != digest:
        raise UsageError(f"it was changed: its hash is {found.hash[:12]}, not {digest[:12]}")
    return found


def _edit(name: str, raw: Any) -> Edit:
    if not isinstance(raw, dict) or not isinstance(raw.get("op"), str):
        raise UsageError(f"{name}: an edit must be a mapping with an op, got {short(raw)}")
    args = {key: value for key, value in raw.items() if key != "op"}
    for key, value in args.items():
        if not isinstance(key, str) or not isinstance(value, str | int | float):
            raise UsageError(f"{name}: {raw['op']} {key} is {short(value)}: no number, no word")
    return Edit(raw["op"], args)
