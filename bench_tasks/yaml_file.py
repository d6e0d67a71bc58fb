"""Reads YAML that a user may have written: plain data or one error, whatever the file holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from bench_tasks.errors import UsageError

__all__ = ["read_yaml"]

LARGEST = 1 << 1024
"""A greater whole number is no length, seed or count, and Python refuses to print some."""


class _Loader(yaml.SafeLoader):
    """Refuses a key that is given twice, of which YAML's loader would take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping, its keys being all different."""
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise ValueError(f"key {key.value!r} is given twice")
                seen.add(key.value)
        return super().construct_mapping(node, deep)

    def whole_number(self, node: yaml.ScalarNode) -> int:
        """The number, if it can be meant."""
        value = self.construct_yaml_int(node)
        if abs(value) > LARGEST:
            raise ValueError("a whole number is absurdly large")
        return value


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.whole_number)


def read_yaml(path: Path, show: bool = True) -> Any:
    """What the file holds; OSError when it cannot be read.

    UsageError in one line when it is not YAML of plain data. Without `show` that line quotes
    nothing of the file, which may hold a secret.
    """
    try:
        return yaml.load(path.read_text(encoding="utf-8"), _Loader)  # noqa: S506 - a safe one
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 - PyYAML's constructors raise whatever they meet
        why = f": {' '.join(str(error).split()) or repr(error)}" if show else ""
        raise UsageError(f"{path} is not valid YAML{why}") from None
