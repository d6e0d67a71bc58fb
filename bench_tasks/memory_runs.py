"""Memory probes played in one process, and what that has in common with playing them over ROS."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_tasks.errors import UsageError
from bench_tasks.manifest import writable_folder

if TYPE_CHECKING:
    from bench_tasks.probes import ProbeKind
    from bench_tasks.probes.player import Record
    from bench_tasks.probes.runs import Run
    from bench_tasks.probes.stills import Render
    from policies.memory.base import Reader

__all__ = [
    "check_live", "check_new", "check_pictures", "played", "renderer", "run_path", "with_models",
]  # fmt: skip

MOST_BYTES = 160
"""Of a name of a folder or file: a file system takes 255, some of them are endings."""


def played(
    probes: list[str], memories: list[str], seeds: range, out: Path, pictures: Path,
    done: Callable[[Run], None] = lambda run: None, note: Callable[[str], None] = lambda line: None,
    reader: str | None = None, user: str | None = None,
) -> list[Run]:
    """Play every probe with every memory, each in a file of its own that is gone afterwards.

    `done` is told of each run, `note` of each fault in what a probe has read, and of the first
    thing that a memory raises in a run. `reader` and `user`
    name models that answer from what is recalled, and play the user.

    UsageError, before anything is played, on an unknown name or option or when a run is there
    already.
    """
    from bench_tasks.probes import check_seeds, make_probe
    from bench_tasks.probes.player import play, storage_bytes
    from bench_tasks.probes.runs import SUFFIX, RunWriter, read_run
    from policies.memory import check_memory, make_memory

    models, reads, plays = with_models(reader, user)
    kinds = {spec: make_probe(spec, **plays) for spec in probes}
    for spec in memories:
        check_memory(spec)
    paths = {
        (probe, memory, seed): Path(f"{run_path(out, probe, memory + models, seed)}{SUFFIX}")
        for probe in kinds for seed in seeds for memory in memories
    }  # fmt: skip
    check_new(paths.values())
    for one, path in paths.items():
        same = next(other for other in paths if paths[other] == path)
        if same != one:
            raise UsageError(f"{' '.join(map(str, same))} and {' '.join(map(str, one))} would "
                             f"have the same file {path}")  # fmt: skip
    for spec, kind in kinds.items():
        check_seeds(spec, kind, seeds)
    render = renderer(pictures, kinds.values())
    runs: list[Run] = []
    for (probe, spec, seed), path in paths.items():
        store = path.with_suffix(".sqlite")
        writer = RunWriter(path, probe, f"{spec}{models}", seed)
        _clear(store)  # A killed run's: what it had heard would be known before it is said.
        memory = make_memory(spec, store, reader=reads)
        size = None
        try:
            steps = kinds[probe].steps(seed, render)
            if spec == memories[0]:
                for line in getattr(kinds[probe], "faults", ()):
                    note(line)
            play(steps, memory, _telling(writer.keep, f"{probe} seed {seed} {spec}", note))
            size = storage_bytes(memory, store)
        finally:
            memory.close()
            writer.close(size)
            _clear(store)
        runs.append(read_run(path))
        done(runs[-1])
    return runs


def _telling(
    keep: Callable[[Record], None], run: str, note: Callable[[str], None]
) -> Callable[[Record], None]:
    """The same, and the first error of a run is told at once: it may be why all takes so long."""
    told = False

    def kept(record: Record) -> None:
        nonlocal told
        keep(record)
        if record.error and not told:
            told = True
            note(f"{run}: {record.error}")

    return kept


def _clear(store: Path) -> None:
    for file in store.parent.glob(f"{store.name}*"):
        file.unlink()


def run_path(out: Path, probe: str, memory: str, seed: int) -> Path:
    """Where in `out` a run lies: its bag, or its file when a suffix is put behind."""
    return out / f"{_slug(probe)}-{seed}" / _slug(memory)


def check_new(paths: Iterable[Path]) -> None:
    """UsageError names the first of the paths that is there already."""
    for path in paths:
        if path.exists():
            raise UsageError(f"{path} exists already: choose another folder")


def check_live(memory: str) -> None:
    """UsageError when there is no such memory, or it cannot be asked over ROS."""
    from policies.memory import make_memory

    made = make_memory(memory)
    made.close()
    if hasattr(made, "tell"):
        raise UsageError(f"memory {memory} must be told what to recall, and no topic says it: "
                         "use bench_tasks remember run")  # fmt: skip


def renderer(pictures: Path, kinds: Iterable[ProbeKind]) -> Render | None:
    """What draws pictures, if any of the probes has some; UsageError as of `check_pictures`."""
    if not check_pictures(pictures, kinds):
        return None
    from sim.still_life import Album

    return Album(pictures)


def check_pictures(pictures: Path, kinds: Iterable[ProbeKind]) -> bool:
    """Whether any of the probes has pictures; UsageError when there is no place to keep them."""
    if pictured := any(kind.pictured for kind in kinds):
        writable_folder(pictures)
    return pictured


def with_models(reader: str | None, user: str | None) -> tuple[str, Reader | None, dict[str, Any]]:
    """Models that take part: what they add to a memory's name, the reader, what a probe is given.

    UsageError when one of them is no model. None is loaded, and no server asked.
    """
    from policies import make_model
    from policies.memory.model_reader import make_reader

    names, reads, plays = "", None, {}
    if reader:
        name, reads = make_reader(reader)
        names = f" read by {name}"
    if user:
        name, complete = make_model(user)
        names, plays = f"{names} talking to {name}", {"complete": complete}
    return names, reads, plays


def _slug(spec: str) -> str:
    name = re.sub(r"\W+", "-", spec).strip("-")
    if len(name.encode()) > MOST_BYTES:
        name = f"{name[: MOST_BYTES // 4]}-{sha256(spec.encode()).hexdigest()[:12]}"
    return name
