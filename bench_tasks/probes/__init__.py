"""Memory probes: what is shown and said to the robot, and what it is asked of it afterwards.

To add one, write a class with a dataclass `Options` of defaults, which it takes an instance of, a
property `pictured` that says whether it needs a renderer, and `steps(seed, render)`, which returns
the generator of its steps; `faults`, if it has any, are lines about what it read. Enter
`name: "module:Class"` here.
"""

from __future__ import annotations

import importlib
from typing import Protocol

from bench_tasks.errors import unknown
from bench_tasks.options import build, read_spec
from bench_tasks.probes.stills import Render
from bench_tasks.probes.stream import Probe

__all__ = ["PROBES", "ProbeKind", "make_probe"]

PROBES: dict[str, str] = {
    "conversations": "bench_tasks.probes.conversations:Conversations",
    "h2hmem": "bench_tasks.probes.h2hmem:H2HMem",
}
"""Name of a probe -> where its class is."""


class ProbeKind(Protocol):
    """Makes the steps of a probe, one conversation or history for each seed."""

    @property
    def pictured(self) -> bool:
        """Whether `steps` needs a renderer."""
        ...

    def steps(self, seed: int, render: Render | None = None) -> Probe:
        """A fresh generator; the same seed gives the same steps to the same replies."""
        ...


def make_probe(spec: str) -> ProbeKind:
    """The probe of `name` or `name:key=value,...`; UsageError lists the valid names or options."""
    name, options = read_spec(spec, "probe")
    if name not in PROBES:
        raise unknown("probe", name, PROBES)
    module, _, attribute = PROBES[name].partition(":")
    kind = getattr(importlib.import_module(module), attribute)
    return kind(build(name, kind.Options, options, "probe"))
