"""Writes demonstrations as a LeRobot dataset (format v3): parquet, mp4 and metadata.

The format has one row per picture, and so has this: `observation.state` and `action` (float32, what
LeRobot's policies take) are those at the picture's time. Everything at the control rate stands
beside them in `control.*`, float64: the rows' states, actions asked for and executed, and how many
of them the episode has (the last row is filled up with its last ones). LeRobot takes for inputs and
outputs of a policy whatever begins with "observation" or "action", and leaves these alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np

from bench_tasks.bags.demonstration import Demonstration
from bench_tasks.bags.lerobot_reader import (
    ACTION,
    CONTROL,
    DATA,
    EPISODES,
    IMAGES,
    INFO,
    STATE,
    STEPS,
    TASKS,
    VIDEO,
    needed,
)
from bench_tasks.errors import BenchError, UsageError
from bench_tasks.manifest import partial_folder, writable_folder
from bench_tasks.robots.fr3 import JOINT_NAMES
from bench_tasks.vocabulary import ACTION_SIZE, ARMS

__all__ = ["write_dataset"]

CODEC = {"crf": "18", "g": "2", "bf": "0", "threads": "1"}
"""Near lossless; every second picture a key frame, for training draws them in any order."""
QUANTILES = {"q01": 0.01, "q10": 0.10, "q50": 0.50, "q90": 0.90, "q99": 0.99}
NAMES = [
    name
    for k, arm in enumerate(ARMS)
    for name in (*JOINT_NAMES[7 * k : 7 * k + 7], f"{arm}_gripper_opening")
]
_COUNTERS = {
    "timestamp": "float32", "frame_index": "int64", "episode_index": "int64", "index": "int64",
    "task_index": "int64",
}  # fmt: skip


def write_dataset(demonstrations: Iterable[Demonstration], out: Path) -> dict[str, int]:
    """Write a new dataset into `out`; how many episodes and rows it has.

    UsageError when `out` exists, there is no demonstration, or one has no steady pictures or does
    not go with the first (cameras, sizes, rate); nothing is left then.
    """
    if out.exists():
        raise UsageError(f"{out} exists already: choose another folder")
    needed("pyarrow.parquet", "av")
    writable_folder(out.absolute().parent)
    try:
        with partial_folder(out) as partial, closing(_Writer(partial)) as writer:
            for item in demonstrations:
                writer.add(item)
            done = writer.finish()
            partial.rename(out)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else error  # in every library's words else
        raise BenchError(f"cannot write {out}: {why}") from None
    return done


def _stride(item: Demonstration) -> int:
    """Control periods from picture to picture; UsageError unless all cameras keep that from 0."""
    name = f"{item.task} seed {item.seed}"
    for indices, _ in item.pictures.values():
        stride = int(indices[1] - indices[0]) if len(indices) > 1 else 0
        if not stride or not np.array_equal(indices, np.arange(0, len(item.state), stride)):
            raise UsageError(
                f"the pictures of {name} do not come at a steady rate from the first state on, as "
                "those of bench_tasks collect do"
            )
    strides = {int(indices[1]) for indices, _ in item.pictures.values()}
    if len(strides) != 1:
        raise UsageError(f"{name} has {'no pictures' if not strides else 'cameras of two rates'}")
    return strides.pop()


class _Writer:
    def __init__(self, path: Path) -> None:
        self._arrow, self._parquet, self._av = needed("pyarrow", "pyarrow.parquet", "av")
        self._path = path
        self._kind: tuple[Any, ...] | None = None
        self._tasks: dict[str, int] = {}
        self._episodes: list[dict[str, Any]] = []
        self._rows = 0
        self._data: Any = None
        self._seen: dict[str, list[np.ndarray]] = {STATE: [], ACTION: []}
        self._videos: dict[str, Any] = {}

    def add(self, item: Demonstration) -> None:
        """Write one episode."""
        stride = _stride(item)
        sizes = {camera: item.picture(camera, 0).shape[:2] for camera in sorted(item.pictures)}
        kind = (item.period_ns, stride, sizes)
        if self._kind is None:
            self._begin(*kind)
        elif kind != self._kind:
            raise UsageError(
                f"{item.task} seed {item.seed} does not go with the first demonstration: control "
                f"period (ns), periods per picture and picture sizes are {kind}, not {self._kind}"
            )
        count = len(range(0, len(item.state), stride))
        last = self._rows + count
        episode = {
            "episode_index": len(self._episodes), "tasks": [item.instruction], "length": count,
            "dataset_from_index": self._rows, "dataset_to_index": last,
            "data/chunk_index": 0, "data/file_index": 0,
            "meta/episodes/chunk_index": 0, "meta/episodes/file_index": 0,
            "task_name": item.task, "seed": item.seed, "success": item.success,
        }  # fmt: skip
        columns = self._columns(item, stride, count)
        stats = {key: _stats(columns[key]) for key in (STATE, ACTION)}
        for camera in sizes:
            key = IMAGES + camera
            stats[key] = self._film(key, item, camera, count)
            episode |= {
                f"videos/{key}/chunk_index": 0, f"videos/{key}/file_index": 0,
                f"videos/{key}/from_timestamp": self._rows / self._fps,
                f"videos/{key}/to_timestamp": last / self._fps,
            }  # fmt: skip
        for key, found in stats.items():
            episode |= {f"stats/{key}/{name}": value for name, value in found.items()}
        for key in (STATE, ACTION):
            self._seen[key].append(columns[key])
        arrays = [self._array(columns[field.name], field.type) for field in self._schema]
        self._data.write_table(self._arrow.table(arrays, schema=self._schema))
        self._episodes.append(episode)
        self._rows = last

    def _begin(self, period_ns: int, stride: int, sizes: dict[str, tuple[int, int]]) -> None:
        arrow = self._arrow
        self._kind = (period_ns, stride, sizes)
        if 1_000_000_000 % (period_ns * stride):
            raise UsageError(
                f"a picture every {period_ns * stride} ns is no whole number a second, which a "
                "LeRobot dataset needs"
            )
        self._fps = 1_000_000_000 // (period_ns * stride)
        vector = arrow.list_(arrow.float32(), ACTION_SIZE)
        block = arrow.list_(arrow.list_(arrow.float64()))
        counters = [(name, getattr(arrow, kind)()) for name, kind in _COUNTERS.items()]
        self._schema = arrow.schema(
            [(STATE, vector), (ACTION, vector), *((key, block) for key in CONTROL),
             (STEPS, arrow.int64()), *counters]
        )  # fmt: skip
        file = self._path / DATA.format(chunk_index=0, file_index=0)
        file.parent.mkdir(parents=True)
        self._data = self._parquet.ParquetWriter(file, self._schema)
        for camera, (height, width) in sizes.items():
            if height % 2 or width % 2:
                raise UsageError(
                    f"{camera} pictures must have an even width and height, got {width} x {height}"
                )
            key = IMAGES + camera
            file = self._path / VIDEO.format(video_key=key, chunk_index=0, file_index=0)
            file.parent.mkdir(parents=True)
            container = self._av.open(str(file), "w")
            stream = container.add_stream("libx264", rate=self._fps, options=CODEC)
            stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
            self._videos[key] = (container, stream)
            self._seen[key] = []

    def _columns(self, item: Demonstration, stride: int, count: int) -> dict[str, np.ndarray]:
        """Column -> values, a row for each picture."""
        steps = np.full(count, stride)
        steps[-1] = len(item.action) - stride * (count - 1)
        rows = np.arange(count)

        def blocks(values: np.ndarray) -> np.ndarray:
            fill = np.repeat(values[-1:], stride * count - len(values), axis=0)
            return np.concatenate([values, fill]).reshape(count, stride, ACTION_SIZE)

        text = item.instruction
        control = [blocks(values) for values in (item.state, item.action, item.executed)]
        return {
            STATE: control[0][:, 0].astype(np.float32), ACTION: control[1][:, 0].astype(np.float32),
            **dict(zip(CONTROL, control, strict=True)), STEPS: steps,
            "timestamp": (rows / self._fps).astype(np.float32), "frame_index": rows,
            "episode_index": np.full(count, len(self._episodes)), "index": self._rows + rows,
            "task_index": np.full(count, self._tasks.setdefault(text, len(self._tasks))),
        }  # fmt: skip

    def _array(self, values: np.ndarray, kind: Any) -> Any:
        return self._arrow.array(values.tolist() if values.ndim > 1 else values, kind)

    def _film(self, key: str, item: Demonstration, camera: str, count: int) -> dict[str, Any]:
        """Append an episode's pictures to the camera's video; their statistics."""
        container, stream = self._videos[key]
        histogram = np.zeros((3, 256))
        size = (stream.height, stream.width, 3)
        for k in range(count):
            picture = item.picture(camera, k)
            if picture.shape != size:
                raise UsageError(f"{item.task} seed {item.seed}: {camera} changes its size")
            histogram += [np.bincount(picture[..., c].ravel(), minlength=256) for c in range(3)]
            frame = self._av.VideoFrame.from_ndarray(picture, format="rgb24")
            container.mux(stream.encode(frame))
        self._seen[key].append(histogram)
        return _picture_stats(histogram, count)

    def close(self) -> None:
        """Give up what is open, also where the disk takes no more: the library would do so later.

        It would say then, in many lines, what has been said in one.
        """
        if self._data is None:
            return
        for file in self._path.rglob("*"):
            with suppress(OSError):
                os.truncate(file, 0)
        with suppress(OSError):
            self._data.close()
        self._data.is_open = False
        for container, _ in self._videos.values():
            with suppress(OSError):
                container.close()

    def finish(self) -> dict[str, int]:
        """Complete the dataset."""
        if self._kind is None:
            raise UsageError("there is no demonstration to write")
        self._data.close()
        for container, stream in self._videos.values():
            container.mux(stream.encode())
            container.close()
        self._data = None
        total = {key: _stats(np.concatenate(self._seen[key])) for key in (STATE, ACTION)}
        total |= {key: _picture_stats(sum(self._seen[key]), self._rows) for key in self._videos}
        self._json("meta/stats.json", total)
        self._json(INFO, self._info())
        file = self._path / EPISODES
        file.parent.mkdir(parents=True)
        self._parquet.write_table(self._arrow.Table.from_pylist(self._episodes), file)
        self._write_tasks()
        return {"episodes": len(self._episodes), "rows": self._rows}

    def _json(self, name: str, value: dict[str, Any]) -> None:
        file = self._path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(value, indent=4) + "\n", encoding="utf-8")

    def _write_tasks(self) -> None:
        """The table of instructions, in the form in which pandas keeps its index."""
        table = self._arrow.table(
            {"task_index": list(self._tasks.values()), "task": list(self._tasks)}
        )
        kinds = {"task_index": ("int64", "int64"), "task": ("unicode", "object")}
        columns = [
            {"name": name, "field_name": name, "pandas_type": kind, "numpy_type": numpy,
             "metadata": None}
            for name, (kind, numpy) in kinds.items()
        ]  # fmt: skip
        known = {"index_columns": ["task"], "column_indexes": [], "columns": columns}
        table = table.replace_schema_metadata({"pandas": json.dumps(known)})
        self._parquet.write_table(table, self._path / TASKS)

    def _info(self) -> dict[str, Any]:
        assert self._kind is not None
        _, stride, sizes = self._kind
        vector = {"dtype": "float32", "shape": [ACTION_SIZE], "names": NAMES}
        block = {"dtype": "float64", "shape": [stride, ACTION_SIZE], "names": None}
        features: dict[str, Any] = {STATE: vector, ACTION: vector}
        for camera, (height, width) in sizes.items():
            features[IMAGES + camera] = {
                "dtype": "video", "shape": [height, width, 3],
                "names": ["height", "width", "channels"],
                "info": {
                    "video.height": height, "video.width": width, "video.codec": "h264",
                    "video.pix_fmt": "yuv420p", "video.is_depth_map": False,
                    "video.fps": self._fps, "video.channels": 3, "has_audio": False,
                },
            }  # fmt: skip
        features |= dict.fromkeys(CONTROL, block)
        for name, kind in ((STEPS, "int64"), *_COUNTERS.items()):
            features[name] = {"dtype": kind, "shape": [1], "names": None}
        episodes = len(self._episodes)
        return {
            "codebase_version": "v3.0", "robot_type": "bimanual_fr3",
            "total_episodes": episodes, "total_frames": self._rows,
            "total_tasks": len(self._tasks), "chunks_size": 1000, "data_files_size_in_mb": 100,
            "video_files_size_in_mb": 200, "fps": self._fps, "splits": {"train": f"0:{episodes}"},
            "data_path": DATA, "video_path": VIDEO, "features": features,
        }  # fmt: skip


def _stats(values: np.ndarray) -> dict[str, Any]:
    """What LeRobot normalises by, of the rows of `values` (n, size)."""
    values = values.astype(np.float64)
    found = {name: getattr(values, name)(axis=0).tolist() for name in ("min", "max", "mean", "std")}
    found |= {name: np.quantile(values, q, axis=0).tolist() for name, q in QUANTILES.items()}
    return {**found, "count": [len(values)]}


def _picture_stats(histogram: np.ndarray, count: int) -> dict[str, Any]:
    """The same of pictures, scaled to [0, 1], from how often (3, 256) each channel has a value."""
    level = np.arange(256) / 255.0
    share = histogram / histogram.sum(axis=1, keepdims=True)
    mean = share @ level
    found = {
        "min": level[(histogram > 0).argmax(axis=1)],
        "max": level[255 - (histogram[:, ::-1] > 0).argmax(axis=1)],
        "mean": mean,
        "std": np.sqrt(share @ level**2 - mean**2),
        **{n: level[(share.cumsum(axis=1) >= q).argmax(axis=1)] for n, q in QUANTILES.items()},
    }
    shaped = {name: value.reshape(3, 1, 1).tolist() for name, value in found.items()}
    return {**shaped, "count": [count]}
