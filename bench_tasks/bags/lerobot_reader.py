"""Reads a LeRobot dataset (format v3) into demonstrations.

What `lerobot_writer` wrote comes back at the control rate; of others' datasets in the same layout
each row is taken for one control period, and the seed is -1 for the first episode, then -2 and so
on: none that is evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bench_tasks.bags.demonstration import Demonstration
from bench_tasks.errors import BenchError, UnscoredError, UsageError
from bench_tasks.manifest import read_json
from bench_tasks.vocabulary import ACTION_SIZE

__all__ = ["INFO", "read_dataset"]

INFO = "meta/info.json"
TASKS = "meta/tasks.parquet"
EPISODES = "meta/episodes/chunk-000/file-000.parquet"
DATA = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
VIDEO = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
IMAGES = "observation.images."
STATE, ACTION = "observation.state", "action"
CONTROL = ("control.state", "control.action", "control.executed")
STEPS = "control.steps"
_MALFORMED = (
    AttributeError, LookupError, TypeError, ValueError, OSError, ArithmeticError,
    NotImplementedError,
)
"""What is raised, by pyarrow too, where a dataset holds something else than it should."""


def needed(*names: str) -> list[Any]:
    """The modules of these names; BenchError says how to get one that is missing."""
    import importlib

    try:
        return [importlib.import_module(name) for name in names]
    except ImportError as error:
        raise BenchError(
            f"LeRobot datasets need pyarrow and av ({error}): "
            "pip install --no-deps -r requirements/data.txt"
        ) from None


def read_dataset(path: Path) -> Iterator[tuple[str, Demonstration | UnscoredError]]:
    """Name and demonstration of each episode, or why it cannot be read.

    UsageError when the folder is no such dataset, or one of another robot.
    """
    (parquet,) = needed("pyarrow.parquet")
    info = read_json(path / INFO)
    version = info.get("codebase_version")
    if not str(version).startswith("v3."):
        raise UsageError(f"{path}: codebase_version must be v3.0, got {version!r}")
    try:
        features = dict(info["features"])
        for key in (STATE, ACTION):
            shape = list(features.get(key, {}).get("shape", ()))
            if shape != [ACTION_SIZE]:
                raise UsageError(f"{path}: {key} must be of shape [{ACTION_SIZE}], got {shape}")
        table = parquet.read_table(path / TASKS).to_pydict()
        index = table.pop("task_index")
        tasks = dict(zip(index, next(iter(table.values())), strict=True))
        episodes = []
        for file in sorted(path.glob("meta/episodes/*/*.parquet")):
            names = parquet.read_schema(file).names
            columns = [name for name in names if not name.startswith("stats/")]
            episodes += parquet.read_table(file, columns=columns).to_pylist()
    except (StopIteration, *_MALFORMED) as error:
        raise UsageError(f"{path} is not a complete LeRobot dataset: {error!r}") from None
    seen: set[object] = set()
    for episode in episodes:
        number = episode.get("episode_index")
        name = f"{path} episode {number}"
        try:
            if number in seen:
                raise UnscoredError("it is in the dataset twice")
            seen.add(number)
            yield name, _demonstration(path, info, episode, tasks)
        except UnscoredError as error:
            yield name, error
        except _MALFORMED as error:
            yield name, UnscoredError(f"it cannot be read: {error!r}")


def _demonstration(
    path: Path, info: dict[str, Any], episode: dict[str, Any], tasks: dict[int, str]
) -> Demonstration:
    """One episode; UnscoredError, KeyError and the like when it cannot be read."""
    (parquet,) = needed("pyarrow.parquet")
    at = {key: episode[f"data/{key}"] for key in ("chunk_index", "file_index")}
    number, fps = episode["episode_index"], info["fps"]
    if type(fps) not in (int, float) or not 0 < fps < 1e6:
        raise UnscoredError(f"fps must be a number above 0, got {fps!r}")
    wanted = [("episode_index", "=", number)]
    table = parquet.read_table(path / info["data_path"].format(**at), filters=wanted)
    rows = len(table)
    if rows != episode["length"] or rows < 2:
        raise UnscoredError(f"it has {rows} rows, not {episode['length']}")
    order = table["frame_index"].to_pylist()
    if order != list(range(rows)):
        raise UnscoredError("its rows are not in the order of their frame_index")
    if STEPS in table.column_names:
        stride = info["features"][CONTROL[0]]["shape"][0]
        steps = np.array(table[STEPS].to_pylist())
        if (steps[:-1] != stride).any() or not 0 <= steps[-1] < stride:
            raise UnscoredError(f"{STEPS} is not {stride} in all rows but the last, fewer there")
        state, action, executed = (
            np.array(table[key].to_pylist(), np.float64).reshape(-1, ACTION_SIZE)
            for key in CONTROL
        )
        count = int(steps.sum())
        if any(len(values) != rows * stride for values in (state, action, executed)):
            raise UnscoredError(f"its rows do not hold {stride} control periods each")
    else:
        stride, count = 1, rows - 1
        state, action = (
            np.array(table[key].to_pylist(), np.float64) for key in (STATE, ACTION)
        )
        executed = action
    pictures = {}
    for key in sorted(key for key in info["features"] if key.startswith(IMAGES)):
        if info["features"][key]["dtype"] != "video":
            raise UsageError(f"{path}: {key} holds single pictures, only videos are read")
        spot = {name: episode[f"videos/{key}/{name}"] for name in ("chunk_index", "file_index")}
        file = path / info["video_path"].format(video_key=key, **spot)
        start_s = episode[f"videos/{key}/from_timestamp"]
        if type(start_s) not in (int, float) or not 0 <= start_s < 1e9:
            raise UnscoredError(f"its pictures begin at {start_s!r} s of the video")
        clip = _Clip(file, start_s, rows, fps)
        pictures[key.removeprefix(IMAGES)] = (np.arange(rows, dtype=np.int64) * stride, clip)
    text = tasks[table["task_index"][0].as_py()]
    task, seed = episode.get("task_name"), episode.get("seed")
    task = text if task in (None, "") else task
    seed = -1 - number if seed is None else seed
    success = episode.get("success", True)
    for what, value, kind in (
        ("instruction", text, str), ("task_name", task, str), ("seed", seed, int),
        ("success", success, bool),
    ):  # fmt: skip
        if type(value) is not kind:  # what is no verdict is no success either
            raise UnscoredError(f"its {what} must be of type {kind.__name__}, got {value!r}")
    return Demonstration(
        task=task, seed=seed, instruction=text, success=success,
        period_ns=round(1e9 / (fps * stride)),
        state=state[: count + 1], action=action[:count], executed=executed[:count],
        pictures=pictures,
    )  # fmt: skip


class _Clip(Sequence):
    """The pictures of one episode in a video, decoded together when the first is asked for."""

    def __init__(self, file: Path, start_s: float, length: int, fps: float) -> None:
        self._file, self._start_s, self._length, self._fps = file, start_s, length, fps

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, k):
        return self._pictures[k]

    @cached_property
    def _pictures(self) -> list[np.ndarray]:
        (av,) = needed("av")
        found: list[np.ndarray] = []
        try:
            with av.open(str(self._file)) as container:
                stream = container.streams.video[0]
                container.seek(round(self._start_s / stream.time_base), stream=stream)
                for frame in container.decode(stream):
                    late = frame.time - self._start_s - len(found) / self._fps
                    if not found and late < -0.5 / self._fps:
                        continue  # decoding begins at the key frame before
                    if abs(late) > 0.5 / self._fps:
                        raise UsageError(
                            f"{self._file} has no picture at "
                            f"{self._start_s + len(found) / self._fps:g} s, as its rows have: is "
                            f"it of other than {self._fps:g} pictures a second?"
                        )
                    found.append(frame.to_ndarray(format="rgb24"))
                    if len(found) == self._length:
                        return found
        except (av.error.FFmpegError, IndexError, OSError, TypeError) as error:
            raise UsageError(f"{self._file} cannot be decoded: {error}") from None
        raise UsageError(f"{self._file} ends before the episode at {self._start_s:.1f} s does")
