"""Demonstrations as training reads them: from a folder of bags or a LeRobot dataset."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from bench_tasks.bags import lerobot_reader
from bench_tasks.bags.bag import Recording, find_bags, frames, read_bag
from bench_tasks.bags.demonstration import Demonstration
from bench_tasks.errors import UnscoredError
from bench_tasks.robots.embodiments import misfit
from bench_tasks.vocabulary import ACTION_SIZE, FR3_PAIR

__all__ = ["DataHash", "data_hash", "read_bag_demonstration", "read_demonstrations"]

Note = Callable[[str], None]


def read_demonstrations(
    path: Path, note: Note | None = None, failed: bool = False
) -> Iterator[Demonstration]:
    """The demonstrations in a folder of bags, in order of their paths, or in a LeRobot dataset.

    Those that failed (unless asked for) or cannot be read are left out, `note` being told each
    with the reason, in one line. UsageError when there are no recordings at all.
    """
    for name, found in _all(path):
        if isinstance(found, Demonstration):
            found = _flaw(found) or found
        if isinstance(found, UnscoredError):
            _tell(note, f"{name} is left out: {found}")
        elif found.success or failed:
            yield found
        else:
            _tell(note, f"{name} is left out: the demonstration failed")


def _all(path: Path) -> Iterator[tuple[str, Demonstration | UnscoredError]]:
    """Where each demonstration is, and it, or why it cannot be read."""
    if (path / lerobot_reader.INFO).exists():
        yield from lerobot_reader.read_dataset(path)
        return
    for bag in find_bags(path):
        try:
            yield str(bag), read_bag_demonstration(bag)
        except UnscoredError as error:
            yield str(bag), error


def _flaw(item: Demonstration) -> UnscoredError | None:
    """What makes a demonstration useless: one number of it would spoil all that is learnt."""
    for name in ("state", "action", "executed"):
        bad = np.flatnonzero(~np.isfinite(getattr(item, name)).all(axis=1))
        if len(bad):
            return UnscoredError(f"{name} {bad[0]} holds what is not a finite number")
    return None


def _tell(note: Note | None, text: str) -> None:
    if note is not None:
        note(text)


def read_bag_demonstration(path: Path) -> Demonstration:
    """The demonstration in a bag; UnscoredError says what it lacks."""
    recording = read_bag(path, chunks=True)
    if recording.problems:
        raise UnscoredError(recording.problems[0])
    scene, states, verdict = recording.scene, recording.states, recording.verdict
    if scene is None or verdict is None:
        raise UnscoredError(f"it has no {'scene' if scene is None else 'verdict'}")
    if scene.embodiment != FR3_PAIR:
        raise UnscoredError(f"its robot is {scene.embodiment}: only {FR3_PAIR} is trained on")
    wrong = next(filter(None, (misfit(scene, state) for state in states)), "")
    if wrong:
        raise UnscoredError(wrong)
    if [state.seq for state in states] != list(range(len(states))) or len(states) < 2:
        raise UnscoredError("its states are not consecutive from 0 on")
    if scene.control_period_ns < 1:
        raise UnscoredError(f"its control period is {scene.control_period_ns} ns")
    found: dict[str, dict[int, bytes]] = {}
    for frame in frames(path):
        at = round(frame.stamp_ns / scene.control_period_ns)
        if 0 <= at < len(states):  # in realtime a picture may come when the episode is over
            found.setdefault(frame.camera, {})[at] = frame.data
    return Demonstration(
        task=scene.task, seed=scene.seed, instruction=scene.instruction, success=verdict.success,
        period_ns=scene.control_period_ns,
        state=np.stack([state.measured for state in states]),
        action=_asked(recording),
        executed=np.stack([state.command for state in states[1:]]),
        pictures={
            camera: (np.array(sorted(seen), np.int64), [seen[k] for k in sorted(seen)])
            for camera, seen in sorted(found.items())
        },
    )  # fmt: skip


def _asked(recording: Recording) -> np.ndarray:
    """Actions (T, 16) that were asked for; of overlapping chunks the later one counts."""
    count = len(recording.states) - 1
    asked = np.full((count, ACTION_SIZE), np.nan)
    for chunk in recording.chunks:
        values = chunk.values[: max(0, count - chunk.seq)]
        asked[chunk.seq : chunk.seq + len(values)] = values
    missing = np.flatnonzero(np.isnan(asked).any(axis=1))
    if len(missing):
        raise UnscoredError(f"no action was recorded for state {missing[0]}")
    return asked


class DataHash:
    """Hash of all that training reads, demonstration by demonstration; see `data_hash`."""

    def __init__(self) -> None:
        """Begin with none."""
        self._digest = hashlib.sha256()

    def add(self, item: Demonstration) -> None:
        """Take the next demonstration."""
        head = [item.task, item.seed, item.instruction, item.period_ns, list(item.state.shape)]
        self._digest.update(json.dumps(head).encode())
        for array in (item.state, item.action, item.executed):
            self._digest.update(np.ascontiguousarray(array, "<f8").tobytes())
        for camera, (indices, pictures) in item.pictures.items():
            self._digest.update(json.dumps([camera, indices.tolist()]).encode())
            for data in pictures:
                data = data.tobytes() if isinstance(data, np.ndarray) else data
                self._digest.update(len(data).to_bytes(8, "little"))
                self._digest.update(data)

    def hexdigest(self) -> str:
        """SHA-256 of those taken so far."""
        return self._digest.hexdigest()


def data_hash(path: Path) -> str:
    """Hash of all that training reads from the demonstrations in `path`.

    It is of the content, not of the files: the same demonstrations recorded again have the same.
    """
    digest = DataHash()
    for item in read_demonstrations(path):
        digest.add(item)
    return digest.hexdigest()
