"""Decoded demonstrations kept beside the data, so that only the first training has to read them.

Each folder of demonstrations gets a folder `rows.cache`: pictures as they are learnt from, states,
actions, and the hash of the data, taken in the same pass. It is made again when a recording's size
or time of change, or the code that makes rows, is another one; it can be deleted at any time.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import inspect
import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from bench_tasks.bags.demonstrations import DataHash, read_demonstrations
from bench_tasks.config import DEMONSTRATION_SEEDS
from bench_tasks.errors import UsageError
from bench_tasks.manifest import partial_folder
from bench_tasks.vocabulary import ACTION_SIZE
from policies.wam.data import Rows, check_numbers, rows_of
from policies.wam.shape import MOSAIC, VIEWS, Shape, mosaic

__all__ = ["CACHE", "Loaded", "load_rows"]

CACHE = "rows.cache"
_DATA = {".mcap", ".parquet", ".mp4"}
"""What recordings and datasets keep their content in; the rest changes when they are scored."""


@dataclass(frozen=True)
class Loaded:
    """Rows of several folders; the seed of each demonstration; hash and counts of each folder."""

    rows: Rows
    seeds: list[int]
    folders: list[dict[str, Any]]


class _Joined:
    """Pictures of several files as if they were in one array, for an array of row numbers."""

    def __init__(self, parts: Sequence[np.ndarray]) -> None:
        self._parts = parts
        self._ends = np.cumsum([len(part) for part in parts])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        found = np.empty((len(rows), *MOSAIC, 3), np.uint8)
        part = np.searchsorted(self._ends, rows, side="right")
        for k in np.unique(part):
            here = part == k
            begin = self._ends[k] - len(self._parts[k])
            found[here] = self._parts[k][rows[here] - begin]
        return found


def load_rows(
    folders: Sequence[Path], shape: Shape, say: Callable[[str], None], cache: Path | None = None
) -> Loaded:
    """Rows of all demonstrations in these folders, from what was kept or read now.

    `cache` is where to keep them instead of beside the data. UsageError when a folder holds no
    demonstration that can be used, or one of a seed that is evaluated, or nothing can be kept.
    """
    parts, heads = [], []
    for folder in folders:
        place = folder / CACHE
        if cache is not None:
            place = cache / hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
        head = _kept(folder, shape, place)
        if head is None:
            # Two trainings that begin together must not decode twice, nor into each other's way.
            with _alone(place):
                head = _kept(folder, shape, place) or _read(folder, shape, place, say)
        else:
            say(f"{folder}: {len(head['tasks'])} demonstrations, decoded before")
        for note in head["notes"]:
            say(note)
        for task, seed in zip(head["tasks"], head["seeds"], strict=True):
            if seed >= 0 and seed not in DEMONSTRATION_SEEDS:
                raise UsageError(
                    f"{folder} has {task} seed {seed}, which is evaluated: learn from the seeds "
                    f"{DEMONSTRATION_SEEDS[0]} to {DEMONSTRATION_SEEDS[-1]} of bench_tasks collect"
                )
        arrays = np.load(place / "rows.npz")
        count = sum(head["lengths"])
        pixels = np.memmap(place / "pixels.u8", np.uint8, "r", shape=(count, *MOSAIC, 3))
        parts.append((arrays["state"], arrays["action"], pixels))
        heads.append(head)
    states, actions, pixels = zip(*parts, strict=True)

    def joined(key: str) -> list:
        return [value for head in heads for value in head[key]]

    rows = Rows(
        np.concatenate(states), np.concatenate(actions),
        _Joined(pixels),  # type: ignore[arg-type]
        joined("lengths"), joined("texts"), joined("tasks"),
    )  # fmt: skip
    about = [
        {"hash": head["hash"], "demonstrations": len(head["tasks"]), "rows": sum(head["lengths"])}
        for head in heads
    ]
    return Loaded(rows, joined("seeds"), about)


def _key(folder: Path, shape: Shape) -> dict[str, Any]:
    """What a cache must have been made from to be good."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder")
    files = []
    for path in sorted(folder.rglob("*")):
        wanted = path.suffix in _DATA or path.name == "manifest.json" or path.parent.name == "meta"
        if wanted and CACHE not in path.relative_to(folder).parts and path.is_file():
            stat = path.stat()
            files.append([path.relative_to(folder).as_posix(), stat.st_size, stat.st_mtime_ns])
    code = "".join(inspect.getsource(part) for part in (rows_of, mosaic))
    made = [files, code, MOSAIC, VIEWS]
    digest = hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()
    return {"made_from": digest, "rows_hz": shape.rows_hz}


def _kept(folder: Path, shape: Shape, place: Path) -> dict[str, Any] | None:
    """What is known of the rows kept in `place`; None when there are none or they are outdated."""
    key = _key(folder, shape)
    try:
        head = json.loads((place / "rows.json").read_text())
        count = sum(head["lengths"])
        good = all(head[name] == value for name, value in key.items())
        good &= (place / "pixels.u8").stat().st_size == count * int(np.prod(MOSAIC)) * 3
        with np.load(place / "rows.npz") as arrays:
            good &= all(arrays[name].shape == (count, ACTION_SIZE) for name in ("state", "action"))
    except (OSError, ValueError, LookupError, TypeError, EOFError, BadZipFile, zlib.error):
        return None
    return head if good else None


@contextlib.contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Wait until no other process decodes beside `place`, and keep others from it meanwhile."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(place.parent, os.O_RDONLY)
    except OSError as error:
        raise _unusable(place, error) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _unusable(place: Path, error: OSError) -> UsageError:
    return UsageError(
        f"cannot keep decoded pictures in {place} ({error.strerror}): choose another place with "
        "--cache"
    )


def _read(folder: Path, shape: Shape, place: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Decode all demonstrations of a folder into `place`, which appears complete or not at all."""
    key = _key(folder, shape)
    say(f"{folder}: reading the demonstrations, once")
    try:
        with partial_folder(place) as part:
            part.mkdir(parents=True)
            head = {**key, **_decode(folder, shape, part)}
            (part / "rows.json").write_text(json.dumps(head))
            shutil.rmtree(place, ignore_errors=True)
            part.replace(place)
    except OSError as error:
        raise _unusable(place, error) from None
    say(f"{folder}: {len(head['tasks'])} demonstrations, {sum(head['lengths'])} rows")
    return head


def _decode(folder: Path, shape: Shape, part: Path) -> dict[str, Any]:
    digest, notes, demos = DataHash(), [], []
    states, actions = [], []
    with (part / "pixels.u8").open("wb") as file:
        for demo in read_demonstrations(folder, notes.append):
            digest.add(demo)
            try:
                check_numbers(demo)
                state, action, pixels = rows_of(demo, shape)
            except UsageError as error:
                notes.append(f"left out: {error}")
                continue
            file.write(pixels.tobytes())
            states.append(state)
            actions.append(action)
            demos.append((demo.task, demo.seed, demo.instruction, len(state)))
    if not demos:
        why = f": {notes[0]}" if notes else ""
        raise UsageError(f"{folder} has no demonstration to learn from{why}")
    np.savez(part / "rows.npz", state=np.concatenate(states), action=np.concatenate(actions))
    tasks, seeds, texts, lengths = (list(column) for column in zip(*demos, strict=True))
    return {
        "hash": digest.hexdigest(), "notes": notes, "tasks": tasks, "seeds": seeds,
        "texts": texts, "lengths": lengths,
    }  # fmt: skip
