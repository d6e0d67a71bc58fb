"""Memory probes: what is shown and said to the robot, and what it is asked of it afterwards.

To add one, write a class with a dataclass `Options` of defaults, which it takes an instance of, a
property `pictured` that says whether it needs a renderer, and `steps(seed, render)`, which returns
the generator of its steps; `faults`, if it has any, are lines about what it read, `check(seed)`, if
it has one, raises at once the UsageError that `steps` would. What it alone measures is its static
method `report(runs)`, from finished runs to numbers by name, None where nothing was to be measured.
It is found as `module.Class` where Python can import it, or by the name under which
`name: "module:Class"` is entered here.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from types import NoneType
from typing import TYPE_CHECKING, Any, Protocol

from bench_tasks.errors import UsageError
from bench_tasks.options import build, read_spec
from bench_tasks.probes.stills import Render
from bench_tasks.probes.stream import Probe
from bench_tasks.probes.varied import Varied, combinations
from bench_tasks.registry import load, making

if TYPE_CHECKING:
    from bench_tasks.probes.runs import Run

__all__ = ["PROBES", "ProbeKind", "check_seeds", "make_probe", "report"]

PROBES: dict[str, str] = {
    "amemgym": "bench_tasks.probes.amemgym:AMemGym",
    "attacks": "bench_tasks.probes.attacks:Attacks",
    "belief": "bench_tasks.probes.belief:BeliefProbe",
    "conversations": "bench_tasks.probes.conversations:Conversations",
    "bag": "bench_tasks.probes.bags:BagProbe",
    "wikiprofile": "bench_tasks.probes.wikiprofile:WikiProfile",
    "h2hmem": "bench_tasks.probes.h2hmem:H2HMem",
    "preferences": "bench_tasks.probes.preferences:Preferences",
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


def make_probe(spec: str, **more: Any) -> ProbeKind:
    """The probe of `name` or `name:key=value,...`; UsageError lists the valid names or options.

    A size may be several, `people=2+4`: seeds have them in turn. `more` is for the probe, such as a
    model that it may use.
    """
    name, options = read_spec(spec, "probe")
    kind = load("probe", name, PROBES)
    for what in more:
        if what not in inspect.signature(kind).parameters:
            raise UsageError(f"probe {name} has nobody that a model could play: no {what}")
    with making("probe", name, PROBES):
        try:
            kinds = [
                kind(build(name, kind.Options, one, "probe"), **more)
                for one in combinations(options, kind.Options)
            ]
            return kinds[0] if len(kinds) == 1 else Varied(kinds)
        except OSError as error:
            reason = f"cannot read {error.filename}: {error.strerror}"
            raise UsageError(f"probe {name}: {reason}") from None


def check_seeds(spec: str, kind: ProbeKind, seeds: Iterable[int]) -> None:
    """UsageError, before anything is played, when the probe cannot be played with all seeds."""
    check = getattr(kind, "check", None)
    try:
        for seed in seeds if check is not None else ():
            check(seed)
    except UsageError as error:
        raise UsageError(f"probe {spec}: {error}") from None


def report(spec: str, runs: list[Run]) -> dict[str, float | None]:
    """What a probe measures besides what all do; {} when that is nothing, or nothing was played.

    Also for a probe of somebody's own whose file is not here: all else of its runs can be scored.
    UsageError when it cannot measure what is in the runs.
    """
    name = spec.partition(":")[0]
    try:
        kind = load("probe", name, PROBES) if runs else None
    except UsageError:
        return {}
    if not hasattr(kind, "report"):
        return {}
    try:
        found = kind.report(runs)
        for key, value in found.items():
            if not isinstance(key, str) or not isinstance(value, (int, float, NoneType)):
                raise TypeError(f"{key!r} must be a number or None, got {value!r:.80}")
    except Exception as error:  # noqa: BLE001 - other people's code: anything can come
        raise UsageError(f"{spec}: a run has not what {name} is measured by: {error!r}") from None
    return found
