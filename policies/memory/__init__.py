"""What the robot remembers: memory back ends, and the readers that answer from what they recall.

A back end is a subclass of `base.KeptMemory`, or any class that has the methods `NEEDED` of
`protocols.Memory` and is made of path, user and reader. One with options has a dataclass `Options`
and takes an instance of it, too. It is found as `module.Class` where Python can import it, or by
the name under which it is entered in `MEMORIES`: it is then tested by the contract in
tests/policies/memory.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_tasks.errors import UsageError
from bench_tasks.protocols import Memory

if TYPE_CHECKING:
    from policies.memory.base import Reader

__all__ = ["MEMORIES", "check_memory", "make_memory"]

MEMORIES: dict[str, str] = {
    "none": "policies.memory.plain:NoMemory",
    "full": "policies.memory.plain:FullMemory",
    "window": "policies.memory.plain:WindowMemory",
    "rag": "policies.memory.rag:RagMemory",
    "notes": "policies.memory.notes:NotesMemory",
    "mma": "policies.memory.mma:MmaMemory",
    "structured": "policies.memory.structured:StructuredMemory",
    "mem0": "policies.memory.mem0_memory:Mem0Memory",
    "fast_weights": "policies.memory.fast_weights:FastMemory",
    "oracle": "policies.memory.plain:OracleMemory",
}
"""Memory name -> where its class is."""
NEEDED = ("observe", "answer", "snapshot", "close")
"""What is called of any memory. The rest of `protocols.Memory` is what ours have besides."""


def make_memory(
    spec: str, path: str | Path | None = None, user: str = "robot", reader: Reader | None = None,
    **more: Any,
) -> Memory:
    """The memory `name` or `name:key=value,...` of a user, in a file that may hold others' too.

    Without a path all is kept in this process. `reader` answers from what is recalled: by rules
    when none is given. `more` is for the back end, as the `writer` of `notes`.
    UsageError lists the valid names or options.
    """
    # Imported here: `policies` itself is imported before this, and must not need what we need.
    from bench_tasks.options import build, read_spec
    from bench_tasks.registry import load, making
    from policies.memory.eye import colours_in
    from policies.memory.reader import RuleReader

    name, options = read_spec(spec, "memory")
    kind = load("memory", name, MEMORIES)
    reader = reader or RuleReader(colours_in)
    if not hasattr(kind, "Options") and options:
        raise UsageError(f"memory {name} takes no options, got {', '.join(sorted(options))}")
    with making("memory", name, MEMORIES):
        given = (build(name, kind.Options, options, "memory"),) if hasattr(kind, "Options") else ()
        memory = kind(path, user, reader, *given, **more)
    lacking = [method for method in NEEDED if not callable(getattr(memory, method, None))]
    if lacking:
        raise UsageError(f"memory {name} has no {' and no '.join(lacking)}")
    return memory


def check_memory(spec: str) -> None:
    """UsageError when `make_memory` would raise one."""
    make_memory(spec).close()
